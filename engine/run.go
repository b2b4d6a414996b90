package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
	ast "github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/planner/dialect"
	"github.com/lakesql/lakesql/planner/gms/mysqlerr"
	"github.com/lakesql/lakesql/planner/gms/provider"
	"github.com/lakesql/lakesql/planner/gms/translate"
)

// Call is one statement to run.
type Call struct {
	Text     string              // what the user wrote
	Parsed   ast.Statement       // the statement where it was parsed before (COM_STMT_EXECUTE); nil = parse Text
	Bindings map[string]ast.Expr // parameters by name: v1, v2...
	Flags    *sql.QueryFlags     // of go-mysql-server; nil = none
	Session  *Session            // for statements of our own; nil refuses them
}

// Run runs one statement in a context of go-mysql-server, whose session it reads and changes. The caller closes the Result. It gives the errors
// of every layer below; mysqlerr.Convert names their codes.
func (e *Engine) Run(ctx *sql.Context, call Call) (*Result, error) {
	text := sql.RemoveSpaceAndDelimiter(call.Text, ';')
	rewritten, err := dialect.Rewrite(text, e.config.Statement)
	if startDiagnostics(ctx, rewritten) {
		ctx.Session.LockWarnings()
		defer ctx.Session.UnlockWarnings()
	}
	var res *Result
	if err == nil {
		res, err = e.run(ctx, text, rewritten, call)
	}
	if err != nil {
		ctx.SetLastQueryInfoInt(sql.RowCount, -1)
		failed(ctx, err)
	}
	return res, err
}

// run runs a statement that was rewritten.
func (e *Engine) run(ctx *sql.Context, text string, rewritten *dialect.Result, call Call) (*Result, error) {
	if rewritten.IsEmpty() {
		return nil, mysqlerr.EmptyQuery()
	}
	if err := refuseWrite(ctx, rewritten); err != nil {
		return nil, err
	}
	values, err := provider.ReadVariables(ctx, rewritten.Hints)
	if err != nil {
		return nil, err
	}
	location, err := e.location(ctx)
	if err != nil {
		return nil, err
	}
	inner, cancel := context.WithCancel(ctx.Context)
	if values.MaxExecutionMillis > 0 && isRead(rewritten.Text) {
		inner, cancel = context.WithTimeout(ctx.Context, time.Duration(values.MaxExecutionMillis)*time.Millisecond)
	}
	st, err := provider.NewStatementOf(ctx, location)
	if err != nil {
		cancel()
		return nil, err
	}
	req := e.request(rewritten, values, st)
	ctx = ctx.WithContext(translate.WithRequest(inner, req))
	res := &Result{ctx: ctx, cancel: cancel, request: req}
	err = spawn.Guard(func() error { return e.start(ctx, text, call, res) })
	req.Warnings.Flush(ctx)
	if err != nil {
		err = refined(req, err)
		if cause := inner.Err(); cause != nil && ctx.Context.Err() != nil {
			err = fmt.Errorf("%w: %w", cause, err)
		}
		if res.iter != nil {
			_ = res.iter.Close(ctx) // it ends the statement's context: only now
		}
		cancel()
		req.Env.Budget.Close()
		if end := provider.EndStatement(ctx); end != nil {
			err = errors.Join(err, end)
		}
		return nil, err
	}
	return res, nil
}

// Prepare resolves a statement with parameters for later calls of Run with the same Text; it executes nothing. parsed is the tree of
// a parser that came before (COM_STMT_PREPARE); nil = parse Text. It returns the result's columns as far as they can be known without the parameters.
func (e *Engine) Prepare(ctx *sql.Context, text string, parsed ast.Statement) ([]ColumnInfo, error) {
	text = sql.RemoveSpaceAndDelimiter(text, ';')
	rewritten, err := dialect.Rewrite(text, e.config.Statement)
	if err != nil {
		return nil, err
	}
	if rewritten.Verb() == "call" {
		if stmt, _, _, err := e.sqle.Parser.ParseWithOptions(ctx, text, ';', false, sql.LoadSqlMode(ctx).ParserOptions()); err != nil || changes(stmt) {
			return nil, err
		}
	}
	if rewritten.Own != nil { // it has no parameters and is read again when it runs
		if schema := ownColumns(rewritten.Own); schema != nil {
			return columnsOf(ctx, schema), nil
		}
		return nil, nil
	}
	location, err := e.location(ctx)
	if err != nil {
		return nil, err
	}
	st, err := provider.NewStatementOf(ctx, location)
	if err != nil {
		return nil, err
	}
	req := &translate.Request{Statement: st, Rewritten: rewritten}
	ctx = ctx.WithContext(translate.WithRequest(ctx.Context, req))
	var out []ColumnInfo
	err = spawn.Guard(func() error {
		var node sql.Node
		if parsed == nil {
			node, err = e.sqle.PrepareQuery(ctx, text)
		} else {
			translate.Protect(parsed)
			node, err = e.sqle.PrepareParsedQuery(ctx, text, text, parsed)
		}
		if err == nil && !types.IsOkResultSchema(node.Schema()) {
			out = columnsOf(ctx, node.Schema())
		}
		return err
	})
	if err != nil {
		return nil, refined(req, err)
	}
	return out, nil
}

func (e *Engine) request(rewritten *dialect.Result, values provider.Values, st *provider.Statement) *translate.Request {
	limit := e.config.QueryMemoryLimitBytes
	if values.MemoryLimitBytes > 0 {
		limit = values.MemoryLimitBytes
	}
	budget := mem.NewBudget("query", limit, e.budget)
	alloc := mem.NewAllocator(e.pool, budget)
	location := st.Location()
	warnings := &translate.Warnings{}
	env := exec.Env{
		Warn:  warnings.Add,
		Alloc: alloc, Budget: budget, BatchRows: e.config.BatchRows, Workers: e.config.Workers, Tables: st,
		Expr: expr.Env{Alloc: alloc, Location: location, Now: e.config.Now()},
	}
	values.Planner.Expr = expr.Env{Location: location, Now: env.Expr.Now}
	ready := env.WithDefaults()
	values.Planner.Run = ready
	return &translate.Request{
		RowsMax: e.config.RowEngine.WithDefaults().RowsMax, Statement: st, Rewritten: rewritten, Settings: values.Planner, Env: ready,
		Warnings: warnings,
	}
}

// start plans the statement and opens its rows.
func (e *Engine) start(ctx *sql.Context, text string, call Call, res *Result) error {
	if handled, err := e.write(ctx, text, call, res); handled {
		return err
	}
	schema, iter, flags, err := e.sqle.QueryWithBindings(ctx, text, call.Parsed, call.Bindings, call.Flags)
	if err != nil {
		return err
	}
	res.schema, res.iter, res.Flags = schema, iter, flags
	return res.open()
}

// refined puts the error that MySQL gives in the place of what go-mysql-server makes of it: of a statement that is not valid, and of SET for a variable
// that there is not, which is looked up as a column.
func refined(req *translate.Request, err error) error {
	if err == nil || req.Invalid != nil {
		return req.Invalid
	}
	if req.Rewritten.Verb() != "set" || !sql.ErrColumnNotFound.Is(err) {
		return err
	}
	if parts := strings.Split(err.Error(), `"`); len(parts) >= 3 {
		return sql.ErrUnknownSystemVariable.New(parts[1])
	}
	return err
}

// refuseWrite refuses what changes something in a transaction that is READ ONLY.
func refuseWrite(ctx *sql.Context, rewritten *dialect.Result) error {
	session, ok := ctx.Session.(*provider.Session)
	if !ok || !rewritten.Writes() {
		return nil
	}
	refuses, err := session.RefusesWrites(ctx)
	if err == nil && refuses {
		err = sql.ErrReadOnlyTransaction.New()
	}
	return err
}

// isRead says that a statement falls under max_execution_time: MySQL limits SELECT alone.
func isRead(text string) bool {
	text = strings.TrimLeft(text, "( \t\r\n")
	for _, word := range []string{"select", "with", "values", "table", "explain"} {
		if len(text) >= len(word) && strings.EqualFold(text[:len(word)], word) {
			return true
		}
	}
	return strings.HasPrefix(text, "/*")
}

// location is the session's time zone.
func (e *Engine) location(ctx *sql.Context) (*time.Location, error) {
	v, err := ctx.GetSessionVariable(ctx, "time_zone")
	if err != nil {
		return nil, err
	}
	name, _ := v.(string)
	if name == "" || strings.EqualFold(name, "SYSTEM") {
		return e.config.Location, nil
	}
	if offset, ok := parseOffset(name); ok {
		return time.FixedZone(name, offset), nil
	}
	return e.zones.find(name)
}

// parseOffset reads +HH:MM and -HH:MM into seconds.
func parseOffset(s string) (int, bool) {
	var h, m int
	if len(s) < 5 || s[0] != '+' && s[0] != '-' {
		return 0, false
	}
	if n, err := fmt.Sscanf(s[1:], "%d:%d", &h, &m); err != nil || n != 2 || h < 0 || h > 14 || m < 0 || m > 59 {
		return 0, false
	}
	seconds := h*3600 + m*60
	if s[0] == '-' {
		seconds = -seconds
	}
	return seconds, true
}
