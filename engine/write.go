package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/planbuilder"
	"github.com/dolthub/go-mysql-server/sql/types"
	ast "github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/planner/dialect"
	"github.com/lakesql/lakesql/planner/dml"
	"github.com/lakesql/lakesql/planner/gms/mysqlerr"
	"github.com/lakesql/lakesql/planner/gms/provider"
	"github.com/lakesql/lakesql/planner/gms/translate"
	"github.com/lakesql/lakesql/source"
	"github.com/lakesql/lakesql/source/lance"
	"github.com/lakesql/lakesql/storage"
)

// change is a statement that changes something, on its way.
type change struct {
	e       *Engine
	ctx     *sql.Context
	text    string
	res     *Result
	session *provider.Session
	bind    func(*planbuilder.Builder)
}

// write runs a statement that changes something. handled is false for every other statement.
func (e *Engine) write(ctx *sql.Context, text string, call Call, res *Result) (handled bool, err error) {
	c := &change{e: e, ctx: ctx, text: text, res: res, bind: func(*planbuilder.Builder) {}}
	var stmt ast.Statement
	own := res.request.Rewritten.Own
	if own == nil {
		if stmt, err = c.statement(call); stmt == nil || err != nil {
			return err != nil, err
		}
	}
	var ok bool
	if c.session, ok = ctx.Session.(*provider.Session); !ok {
		return true, errs.New(errs.ErrInternal, "a session of type %T cannot change tables", ctx.Session)
	}
	ctx.SetLastQueryInfoInt(sql.RowCount, 0)
	switch s := stmt.(type) {
	case nil:
		err = c.ownStatement(own)
	case *ast.Insert, *ast.Update, *ast.Delete:
		err = c.rows(s)
	case *ast.Load:
		err = c.load(s)
	case *ast.DDL:
		err = c.definition(s)
	case *ast.AlterTable:
		err = c.again(func() error { return c.alterTable(s) })
	case *ast.DBDDL:
		err = c.database(s)
	case *ast.Call:
		err = c.call(s)
	case *ast.Explain:
		err = c.explain(s)
	default:
		err = errs.New(errs.ErrUnsupported, "users stand in the configuration file (users:) and cannot be changed by statements")
	}
	switch {
	case err == nil && res.HasRows():
		ctx.SetLastQueryInfoInt(sql.RowCount, -1)
	case err == nil:
		ctx.SetLastQueryInfoInt(sql.RowCount, int64(res.AffectedRows))
	}
	return true, err
}

// statement parses what may change something, nil if it does not.
func (c *change) statement(call Call) (ast.Statement, error) {
	switch c.res.request.Rewritten.Verb() {
	case "insert", "replace", "update", "delete", "with", "load", "create", "alter", "drop", "truncate", "rename", "call", "execute", "explain", "describe", "desc",
		"grant", "revoke":
	default:
		return nil, nil //nolint:nilnil // nil is "something else"
	}
	stmt, prepared := c.e.sqle.PreparedDataCache.GetCachedStmt(c.ctx.Session.ID(), c.text)
	if !prepared {
		if stmt = call.Parsed; stmt == nil {
			var err error
			if stmt, _, _, err = c.e.sqle.Parser.ParseWithOptions(c.ctx, c.text, ';', false, sql.LoadSqlMode(c.ctx).ParserOptions()); err != nil {
				return nil, nil //nolint:nilerr,nilnil // go-mysql-server reports it
			}
		}
	}
	c.bind = func(b *planbuilder.Builder) {
		if len(call.Bindings) > 0 || prepared {
			b.SetBindings(call.Bindings)
		}
	}
	if x, ok := stmt.(*ast.Execute); ok {
		return c.executed(x)
	}
	if changes(stmt) {
		return stmt, nil
	}
	return nil, nil //nolint:nilnil // see above
}

// changes says that a statement is run here, not by go-mysql-server.
func changes(stmt ast.Statement) bool {
	switch s := stmt.(type) {
	case *ast.Insert, *ast.Update, *ast.Delete, *ast.Load, *ast.AlterTable, *ast.DBDDL:
		return true
	case *ast.CreateUser, *ast.RenameUser, *ast.DropUser, *ast.CreateRole, *ast.DropRole, *ast.GrantPrivilege, *ast.GrantRole, *ast.GrantProxy,
		*ast.RevokePrivilege, *ast.RevokeAllPrivileges, *ast.RevokeRole, *ast.RevokeProxy:
		return true // go-mysql-server would change users in memory alone
	case *ast.DDL:
		isTable := s.ViewSpec == nil && s.TriggerSpec == nil && s.ProcedureSpec == nil && s.EventSpec == nil && len(s.FromViews) == 0 && s.User.IsEmpty()
		switch strings.ToLower(s.Action) {
		case ast.CreateStr, ast.RenameStr, ast.TruncateStr:
			return isTable
		case ast.DropStr:
			return isTable && len(s.FromTables) > 0
		}
	case *ast.Call:
		return strings.EqualFold(s.ProcName.Qualifier.String(), provider.SystemDatabase)
	case *ast.Explain:
		switch s.Statement.(type) {
		case *ast.Insert, *ast.Update, *ast.Delete:
			return true
		}
	}
	return false
}

// executed is the statement behind EXECUTE name USING @a, @b, if it changes something.
func (c *change) executed(x *ast.Execute) (ast.Statement, error) {
	stmt, ok := c.e.sqle.PreparedDataCache.GetCachedStmt(c.ctx.Session.ID(), x.Name)
	if !ok || !changes(stmt) {
		return nil, nil //nolint:nilnil // go-mysql-server runs it, or reports that it is not there
	}
	values := make(map[string]sql.Expression, len(x.VarList))
	for i, name := range x.VarList {
		t, v, err := c.ctx.GetUserVariable(c.ctx, strings.TrimPrefix(name, "@"))
		if err != nil {
			return nil, err
		}
		if t == nil {
			t = types.Null
		}
		values[fmt.Sprintf("v%d", i+1)] = expression.NewLiteral(v, t)
	}
	c.bind = func(b *planbuilder.Builder) { b.SetBindingsWithExpr(values) }
	return stmt, nil
}

// bound resolves the names of a statement and checks privileges.
func (c *change) bound(ctx *sql.Context, stmt ast.Statement) (sql.Node, error) {
	if _, ok := stmt.(*ast.Update); ok {
		ctx = ctx.WithContext(provider.WithKeys(ctx.Context))
	}
	b := planbuilder.New(ctx, c.e.sqle.Analyzer.Catalog, c.e.sqle.EventScheduler, c.e.sqle.Parser)
	c.bind(b)
	node, _, err := b.BindOnly(stmt, c.text, nil)
	if err != nil {
		return nil, err
	}
	if bc := b.BindCtx(); bc != nil {
		if unused := bc.UnusedBindings(); len(unused) > 0 {
			return nil, errs.New(errs.ErrInvalid, "the statement has %d parameters, %d values were given", len(bc.Bindings)-len(unused), len(bc.Bindings))
		}
	}
	return node, nil
}

// A statement that commits by itself is run again after another writer came first, after a wait that grows with each attempt.
const (
	attemptsMax = 12
	waitMin     = 2 * time.Millisecond
	waitMax     = 200 * time.Millisecond
)

// mayAgain says whether a statement is run once more, and waits a random time, so that writers that met do not meet again.
func (c *change) mayAgain(ctx context.Context, err error, attempt int) bool {
	if !errors.Is(err, errs.ErrConflict) || attempt >= attemptsMax {
		return false
	}
	pause := time.Duration(rand.Int64N(int64(min(waitMin<<attempt, waitMax)))) //nolint:gosec // spreads writers, guards nothing
	return spawn.Sleep(ctx, pause) == nil
}

// again runs a definition that is one version, and once more after another writer came first: it looks at the newest version each time.
func (c *change) again(run func() error) error {
	for attempt := 1; ; attempt++ {
		c.ctx.ClearWarnings()
		if err := run(); !c.mayAgain(c.ctx, err, attempt) {
			return err
		}
	}
}

// rows runs a statement that changes rows.
func (c *change) rows(stmt ast.Statement) error {
	stmt, err := c.named(stmt)
	if err != nil {
		return err
	}
	ctx, cancel := c.limited()
	defer cancel()
	for attempt := 1; ; attempt++ {
		tx, alone, err := c.session.Begun(ctx)
		if err != nil {
			return err
		}
		err = c.attempt(ctx, stmt, tx, alone)
		if err == nil {
			return nil
		}
		if !alone {
			return err
		}
		if end := c.session.RollbackNow(ctx); end != nil {
			return errors.Join(err, end)
		}
		if !c.mayAgain(ctx, err, attempt) {
			return err
		}
		if ctx, err = c.renewed(ctx); err != nil {
			return err
		}
	}
}

// refuseView refuses to insert into a view.
func (c *change) refuseView(name dialect.TableName) error {
	database, err := databaseOf(c.ctx, name.Database)
	if err != nil {
		return err
	}
	db, err := c.e.provider.Database(c.ctx, database)
	if err != nil {
		return err
	}
	views, ok := db.(*provider.Database)
	if !ok {
		return nil
	}
	_, isView, err := views.GetViewDefinition(c.ctx, name.Name)
	if err == nil && isView {
		err = errs.New(errs.ErrUnsupported, "%s.%s is a view: insert into its table", database, name.Name)
	}
	return err
}

// newRow is how go-mysql-server calls the row that VALUES() speaks of.
const newRow = "__new_ins"

// named lets VALUES() in INSERT ... SELECT ... ON DUPLICATE KEY UPDATE find the columns of the SELECT: name resolution knows the word for VALUES rows alone.
func (c *change) named(stmt ast.Statement) (ast.Statement, error) {
	ins, ok := stmt.(*ast.Insert)
	if !ok {
		return stmt, nil
	}
	if err := c.refuseView(tableName(ins.Table)); err != nil {
		return nil, err
	}
	if len(ins.OnDup) == 0 {
		return stmt, nil
	}
	query, ok := ins.Rows.(ast.SelectStatement)
	if !ok {
		return stmt, nil
	}
	uses := false
	_ = ast.Walk(func(n ast.SQLNode) (bool, error) {
		_, is := n.(*ast.ValuesFuncExpr)
		uses = uses || is
		return true, nil
	}, ast.AssignmentExprs(ins.OnDup))
	if !uses {
		return stmt, nil
	}
	columns := ins.Columns
	if len(columns) == 0 {
		table, err := c.table(tableName(ins.Table))
		if err != nil {
			return nil, err
		}
		for _, f := range table.Schema().Fields() {
			columns = append(columns, ast.NewColIdent(f.Name))
		}
	}
	out := *ins
	out.Rows = &ast.Select{
		SelectExprs: ast.SelectExprs{&ast.StarExpr{}},
		From:        ast.TableExprs{&ast.AliasedTableExpr{Expr: &ast.Subquery{Select: query, Columns: columns}, As: ast.NewTableIdent(newRow)}},
	}
	return &out, nil
}

// limited applies a MAX_EXECUTION_TIME hint; the variable is for SELECT alone, as in MySQL.
func (c *change) limited() (*sql.Context, context.CancelFunc) {
	for _, h := range c.res.request.Rewritten.Hints {
		if ms, err := time.ParseDuration(h.Value + "ms"); h.Name == "max_execution_time" && err == nil && ms > 0 {
			inner, cancel := context.WithTimeout(c.ctx.Context, ms)
			return c.ctx.WithContext(inner), cancel
		}
	}
	return c.ctx, func() {}
}

// renewed forgets the versions that the statement has pinned.
func (c *change) renewed(ctx *sql.Context) (*sql.Context, error) {
	st, err := provider.NewStatementOf(ctx, c.res.request.Statement.Location())
	if err != nil {
		return nil, err
	}
	req := *c.res.request
	env := *req.Env
	env.Tables = st
	req.Statement, req.Env = st, &env
	req.Settings.Run = &env
	c.res.request = &req
	return ctx.WithContext(translate.WithRequest(ctx.Context, &req)), nil
}

// attempt binds and runs a statement once, and commits it where it is alone.
func (c *change) attempt(ctx *sql.Context, stmt ast.Statement, tx *provider.Transaction, alone bool) error {
	node, err := c.bound(ctx, stmt)
	if err != nil {
		return err
	}
	st, err := translate.Write(ctx, c.res.request, node)
	if err != nil {
		return err
	}
	return c.run(ctx, st, isIgnore(stmt), tx, alone)
}

// run runs a planned statement in a transaction.
func (c *change) run(ctx *sql.Context, st dml.Statement, ignore bool, tx *provider.Transaction, alone bool) error {
	cat, err := c.writable(st.Target().Catalog)
	if err != nil {
		return err
	}
	staged, err := c.staged(ctx, cat, st.Target(), tx)
	if err != nil {
		return err
	}
	outcome, err := staged.run(ctx, st, c.env(ctx, cat, st.Target().Name(), ignore))
	if !alone && staged.isUnchanged(ctx) && tx.Unstage() { // nothing stands in the way of another table
		err = errors.Join(err, staged.Rollback(context.WithoutCancel(ctx)))
	}
	if err != nil {
		return err
	}
	if alone {
		if err := c.session.CommitNow(ctx); err != nil {
			return err
		}
	}
	c.res.AffectedRows, c.res.Info = outcome.Affected, outcome.Info
	return nil
}

// env is what running depends on.
func (c *change) env(ctx *sql.Context, cat *lance.Catalog, name string, ignore bool) *dml.Env {
	mode := sql.LoadSqlMode(ctx)
	strict := mode.ModeEnabled("STRICT_TRANS_TABLES") || mode.ModeEnabled("STRICT_ALL_TABLES") || mode.ModeEnabled("TRADITIONAL")
	return &dml.Env{
		Exec: c.res.request.Env, Lenient: ignore || !strict, FoundRows: ctx.Client().Capabilities&capabilityFoundRows != 0,
		Warn: func(err error) { warnOf(ctx, err) },
		View: func(snap *storage.Snapshot) exec.Table { return cat.View(name, snap) },
		Pin:  c.res.request.Statement.Pin,
	}
}

// capabilityFoundRows is MySQL's CLIENT_FOUND_ROWS.
const capabilityFoundRows = 2

// warningsMax is MySQL's max_error_count: warnings beyond it are counted only.
const warningsMax = 1024

// warnOf adds an error to SHOW WARNINGS.
func warnOf(ctx *sql.Context, err error) {
	if ctx.WarningCount() >= warningsMax {
		return
	}
	e := mysqlerr.Convert(err)
	ctx.Session.Warn(&sql.Warning{Level: "Warning", Code: e.Num, Message: e.Message})
}

func isIgnore(stmt ast.Statement) bool {
	switch s := stmt.(type) {
	case *ast.Insert:
		return strings.Contains(strings.ToLower(s.Ignore), "ignore")
	case *ast.Update:
		return strings.Contains(strings.ToLower(s.Ignore), "ignore")
	}
	return false
}

// catalog finds the catalog of a database.
func (c *change) catalog(name string) (source.Catalog, error) {
	for _, cat := range c.e.provider.Catalogs() {
		if strings.EqualFold(cat.Name(), name) {
			return cat, nil
		}
	}
	return nil, sql.ErrDatabaseNotFound.New(name)
}

// writable finds a lake whose tables may be changed. ErrReadOnly, ErrUnsupported for other kinds of source.
func (c *change) writable(name string) (*lance.Catalog, error) {
	cat, err := c.catalog(name)
	if err != nil {
		return nil, err
	}
	lake, ok := cat.(*lance.Catalog)
	if !ok {
		return nil, errs.New(errs.ErrUnsupported, "database %s is of kind %s: its tables cannot be changed", cat.Name(), cat.Kind())
	}
	if lake.IsReadOnly() {
		return nil, errs.New(errs.ErrReadOnly, "The server is running with the read_only option of lake %s, so it cannot execute this statement", cat.Name())
	}
	return lake, nil
}

// explain shows how a statement that changes rows would run.
func (c *change) explain(x *ast.Explain) error {
	if x.Analyze {
		return errs.New(errs.ErrUnsupported, "EXPLAIN ANALYZE runs the statement, and this one would change rows: use EXPLAIN, or EXPLAIN ANALYZE of its SELECT")
	}
	stmt, err := c.named(x.Statement)
	if err != nil {
		return err
	}
	node, err := c.bound(c.ctx, stmt)
	if err != nil {
		return err
	}
	st, err := translate.Write(c.ctx, c.res.request, node)
	if err != nil {
		return err
	}
	shown := dml.AsPlan(st)
	c.res.schema = sql.Schema{{Name: "plan", Type: types.LongText}}
	if c.res.request.Rewritten.Format == dialect.FormatJSON {
		text, err := planJSON(shown, nil)
		if err != nil {
			return err
		}
		c.res.schema[0].Name = "EXPLAIN"
		c.res.iter = sql.RowsToRowIter(sql.NewRow(text))
	} else {
		c.res.iter = lines(exec.Explain(shown, nil))
	}
	return c.res.open()
}

// authorize checks the privilege of a statement of our own.
func (c *change) authorize(auth ast.AuthInformation) error {
	return authorize(c.ctx, c.e, auth)
}

func authorize(ctx *sql.Context, e *Engine, auth ast.AuthInformation) error {
	h := e.sqle.Analyzer.Catalog.AuthorizationHandler()
	state := h.NewQueryState(ctx)
	if state != nil {
		if err := state.Error(); err != nil {
			return err
		}
	}
	return h.HandleAuth(ctx, state, auth)
}

// databaseOf is the database of a table's name, the current one where it names none.
func databaseOf(ctx *sql.Context, name string) (string, error) {
	if name != "" {
		return name, nil
	}
	if name = ctx.GetCurrentDatabase(); name == "" {
		return "", sql.ErrNoDatabaseSelected.New()
	}
	return name, nil
}
