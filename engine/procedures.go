package engine

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dolthub/go-mysql-server/sql"
	ast "github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner/dialect"
	"github.com/lakesql/lakesql/planner/dml"
	"github.com/lakesql/lakesql/planner/gms/translate"
	"github.com/lakesql/lakesql/source/lance"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/write"
)

// procedure is one of CALL lakesql.NAME(table, ...). Each asks for ALTER on its table, one that only reads for SELECT.
type procedure struct {
	usage    string
	min, max int // arguments
	run      func(p *procedureCall) error
	isRead   bool
}

// procedures lists them by name, in lower case.
func procedures() map[string]procedure {
	return map[string]procedure{
		"create_tag":       {"create_tag(table, tag [, version])", 2, 3, (*procedureCall).createTag, false},
		"update_tag":       {"update_tag(table, tag, version)", 3, 3, (*procedureCall).updateTag, false},
		"delete_tag":       {"delete_tag(table, tag)", 2, 2, (*procedureCall).deleteTag, false},
		"create_branch":    {"create_branch(table, branch [, version])", 2, 3, (*procedureCall).createBranch, false},
		"delete_branch":    {"delete_branch(table, branch)", 2, 2, (*procedureCall).deleteBranch, false},
		"branches":         {"branches(table)", 1, 1, (*procedureCall).branches, true},
		"tags":             {"tags(table)", 1, 1, (*procedureCall).tags, true},
		"history":          {"history(table)", 1, 1, (*procedureCall).history, true},
		"restore":          {"restore(table, version)", 2, 2, (*procedureCall).restore, false},
		"cleanup":          {"cleanup(table [, older_than [, keep_latest]])", 1, 3, (*procedureCall).cleanup, false},
		"compact":          {"compact(table [, target_rows])", 1, 2, (*procedureCall).compact, false},
		"optimize_indices": {"optimize_indices(table [, merge])", 1, 2, (*procedureCall).optimizeIndices, false},
	}
}

// procedureCall is a running procedure.
type procedureCall struct {
	*change
	lake  *lance.Catalog // nil for one that only reads
	table *lance.Table
	args  []string // behind the table
}

// call runs a procedure of the namespace lakesql.
func (c *change) call(s *ast.Call) error {
	name := s.ProcName.Name.Lowered()
	if name == "upkeep" {
		if len(s.Params) < 1 || len(s.Params) > 2 {
			return errs.New(errs.ErrInvalid, "CALL lakesql.%s: %d arguments were given", upkeepUsage, len(s.Params))
		}
		args, err := c.arguments(s.Params)
		if err != nil {
			return fmt.Errorf("CALL lakesql.%s: %w", upkeepUsage, err)
		}
		return c.upkeepCall(args)
	}
	p, ok := procedures()[name]
	if !ok {
		return sql.ErrStoredProcedureDoesNotExist.New("lakesql." + name)
	}
	if len(s.Params) < p.min || len(s.Params) > p.max {
		return errs.New(errs.ErrInvalid, "CALL lakesql.%s: %d arguments were given", p.usage, len(s.Params))
	}
	args, err := c.arguments(s.Params)
	if err != nil {
		return fmt.Errorf("CALL lakesql.%s: %w", p.usage, err)
	}
	call, err := c.procedureOn(procedureTable(args[0]), p.isRead)
	if err != nil {
		return err
	}
	call.args = args[1:]
	if err := p.run(call); err != nil {
		return fmt.Errorf("CALL lakesql.%s: %w", name, err)
	}
	return nil
}

// procedureOn begins a procedure on a table.
func (c *change) procedureOn(table dialect.TableName, isRead bool) (*procedureCall, error) {
	if !isRead {
		if err := c.beginOn(table, ast.AuthType_ALTER); err != nil {
			return nil, err
		}
		lake, own, err := c.own(table)
		return &procedureCall{change: c, lake: lake, table: own}, err
	}
	database, err := databaseOf(c.ctx, table.Database)
	if err != nil {
		return nil, err
	}
	auth := ast.AuthInformation{AuthType: ast.AuthType_SELECT, TargetType: ast.AuthTargetType_SingleTableIdentifier, TargetNames: []string{database, table.Name}}
	if err := c.authorize(auth); err != nil {
		return nil, err
	}
	t, err := c.table(table)
	if err != nil {
		return nil, err
	}
	own, ok := t.(*lance.Table)
	if !ok {
		return nil, errs.New(errs.ErrUnsupported, "table %s has no versions", t.Ref())
	}
	return &procedureCall{change: c, table: own}, nil
}

// procedureTable reads table, lake.table and either with @branch, whose name may have dots.
func procedureTable(text string) dialect.TableName {
	main, branch, hasBranch := strings.Cut(text, "@")
	database, name, ok := strings.Cut(main, ".")
	if !ok {
		database, name = "", main
	}
	out := dialect.TableName{Database: strings.Trim(database, "`"), Name: strings.Trim(name, "`")}
	if hasBranch {
		out.Name += "@" + strings.TrimSuffix(branch, "`")
	}
	return out
}

// arguments evaluates the arguments to text.
func (c *change) arguments(params []ast.Expr) ([]string, error) {
	query := &ast.Select{}
	for i, p := range params {
		query.SelectExprs = append(query.SelectExprs, &ast.AliasedExpr{Expr: p, As: ast.NewColIdent(fmt.Sprintf("argument_%d", i+1))})
	}
	node, err := c.bound(c.ctx, query)
	if err != nil {
		return nil, err
	}
	plan, err := translate.Query(c.ctx, c.res.request, node, nil)
	if err != nil {
		return nil, err
	}
	return dml.Texts(c.ctx, c.res.request.Env, plan.Plan)
}

func (p *procedureCall) dataset() *storage.Table { return p.table.Snapshot().Table() }

// ref reads a version: a number, a tag, or "" for the newest.
func ref(text string) storage.Ref {
	if text == "" {
		return storage.Ref{}
	}
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return storage.Ref{Version: n}
	}
	return storage.Ref{Tag: text}
}

func (p *procedureCall) arg(i int) string {
	if i < len(p.args) {
		return p.args[i]
	}
	return ""
}

// number reads an optional argument.
func (p *procedureCall) number(i int, name string) (int64, error) {
	if p.arg(i) == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(p.arg(i), 10, 64)
	if err != nil || n < 0 {
		return 0, errs.New(errs.ErrInvalid, "%s = '%s': a number that is not negative", name, p.arg(i))
	}
	return n, nil
}

func (p *procedureCall) createTag() error {
	at := ref(p.arg(1))
	if at == (storage.Ref{}) {
		at.Version = p.table.Snapshot().Version()
	}
	return write.CreateTag(p.ctx, p.dataset(), p.args[0], at, write.RefOptions{})
}

func (p *procedureCall) updateTag() error {
	return write.UpdateTag(p.ctx, p.dataset(), p.args[0], ref(p.args[1]), write.RefOptions{})
}

func (p *procedureCall) deleteTag() error { return write.DeleteTag(p.ctx, p.dataset(), p.args[0]) }

func (p *procedureCall) createBranch() error {
	at := ref(p.arg(1))
	if at == (storage.Ref{}) {
		at.Version = p.table.Snapshot().Version()
	}
	return write.CreateBranch(p.ctx, p.dataset(), p.args[0], at, write.RefOptions{})
}

func (p *procedureCall) deleteBranch() error {
	main, _, _ := strings.Cut(p.table.Ref().Table, "@")
	defer p.lake.Forget(main + "@" + p.args[0])
	return write.DeleteBranch(p.ctx, p.dataset(), p.args[0])
}

func (p *procedureCall) restore() error {
	_, err := write.Restore(p.ctx, p.dataset(), ref(p.args[0]), write.CommitOptions{})
	return err
}

// cleanup takes an age, as 36h, 7d or a number of seconds, and how many of the newest versions stay whatever their age.
func (p *procedureCall) cleanup() error {
	opts := write.CleanupOptions{}
	if text := p.arg(0); text != "" {
		age, err := parseAge(text)
		if err != nil {
			return err
		}
		opts.OlderThan = age
		if age == 0 {
			opts.OlderThan = -1
		}
	}
	keep, err := p.number(1, "keep_latest")
	if err != nil {
		return err
	}
	opts.KeepLatest = int(keep)
	opts.KeepFrom = func(newest uint64) uint64 { return p.lake.OldestInUse(p.dataset(), newest) }
	done, err := write.Cleanup(p.ctx, p.dataset(), opts)
	if err != nil {
		return err
	}
	return p.report(textColumns("versions_removed", "versions_protected", "data_files", "deletion_files", "index_files", "bytes"),
		fmt.Sprint(len(done.Versions)), fmt.Sprint(len(done.Protected)), fmt.Sprint(done.DataFiles), fmt.Sprint(done.DeletionFiles), fmt.Sprint(done.IndexFiles), fmt.Sprint(done.Bytes))
}

func parseAge(text string) (time.Duration, error) {
	bad := errs.New(errs.ErrInvalid, "older_than = '%s': write an age such as 7d, 36h or a number of seconds", text)
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		text = fmt.Sprintf("%ds", n)
	} else if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseInt(days, 10, 64)
		if err != nil {
			return 0, bad
		}
		text = fmt.Sprintf("%dh", n*24)
	}
	age, err := time.ParseDuration(text)
	if err != nil || age < 0 {
		return 0, bad
	}
	return age, nil
}

func (p *procedureCall) report(schema sql.Schema, values ...any) error {
	p.res.schema = schema
	p.res.iter = sql.RowsToRowIter(sql.NewRow(values...))
	return p.res.open()
}

func (p *procedureCall) compact() error {
	target, err := p.number(0, "target_rows")
	if err != nil {
		return err
	}
	if target == 0 {
		target = rowOptions(p.table.Schema()).FragmentRows
	}
	done, err := write.Compact(p.ctx, p.dataset(), p.compactOptions(target))
	if err != nil {
		return err
	}
	for _, info := range p.table.Indexes() {
		if slices.Contains(done.Uncovered, info.Name) {
			warnOf(p.ctx, errs.New(errs.ErrUnsupported, "%s", lostCover(info.Name, string(info.Kind))))
		}
	}
	return p.report(textColumns("fragments_removed", "fragments_added", "rows_rewritten"),
		fmt.Sprint(done.FragmentsRemoved), fmt.Sprint(done.FragmentsAdded), fmt.Sprint(done.Rows))
}

func (p *procedureCall) optimizeIndices() error {
	merge, err := p.number(0, "merge")
	if err != nil {
		return err
	}
	var rows []sql.Row
	for _, info := range p.table.Indexes() {
		changed, err := write.UpdateIndex(p.ctx, p.dataset(), info.Name, write.UpdateIndexOptions{Merge: int(merge), IndexOptions: p.indexOptions()})
		state := "covers all rows already"
		switch {
		case isUnsupported(err):
			state = "of a kind that is not built here: stays as it is"
		case errors.Is(err, errs.ErrUnknownIndex):
			state = "was dropped meanwhile"
		case err != nil:
			return err
		case changed.UUID != "":
			state = fmt.Sprintf("extended over %d fragments, %d segments replaced", len(changed.Read), len(changed.Replaced))
		}
		rows = append(rows, sql.NewRow(info.Name, string(info.Kind), state))
	}
	p.res.schema = textColumns("index_name", "kind", "state")
	p.res.iter = sql.RowsToRowIter(rows...)
	return p.res.open()
}
