package server

import (
	"context"
	"errors"
	"io"
	"strings"

	gms "github.com/dolthub/go-mysql-server/server"
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/mysql"
	"github.com/dolthub/vitess/go/sqltypes"
	querypb "github.com/dolthub/vitess/go/vt/proto/query"
	"github.com/dolthub/vitess/go/vt/sqlparser"
	"github.com/sirupsen/logrus"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/planner/dialect"
	"github.com/lakesql/lakesql/planner/gms/mysqlerr"
)

// handler runs the statements of connections on the engine and sends their columns straight to the wire. What it does not override
// (sessions, preparing, resets) is go-mysql-server's.
type handler struct {
	mysql.Handler
	engine   *engine.Engine
	sessions *gms.SessionManager
	watch    *clientWatch
}

var _ mysql.Handler = (*handler)(nil)

// call is one statement of a client.
type call struct {
	text     string
	bindings map[string]sqlparser.Expr
	more     bool // more statements follow in the same packet
	heldBack bool // its rows may wait in a server-side cursor until they are fetched, while the next batch is made
}

// ComQuery implements mysql.Handler.
func (h *handler) ComQuery(ctx context.Context, c *mysql.Conn, query string, callback mysql.ResultSpoolFn) error {
	_, err := h.send(ctx, c, call{text: strings.Clone(query)}, callback) // the packet's bytes are reused
	return err
}

// send runs a statement. An error after the first rows is left to the connection, which sends it in place of their end: whole is then false, and there is no error.
func (h *handler) send(ctx context.Context, c *mysql.Conn, statement call, callback mysql.ResultSpoolFn) (whole bool, err error) {
	began := false
	var lost error
	err = asMySQL(h.run(ctx, c, statement, func(r *sqltypes.Result, more bool) error {
		began = began || len(r.Fields) > 0
		lost = callback(r, more)
		return lost
	}))
	var failure *mysql.SQLError
	f, ok := c.Conn.(*filterConn)
	if err == nil || !began || lost != nil || !ok || !errors.As(err, &failure) {
		return err == nil, err
	}
	f.broken.Store(failure)
	return false, nil
}

// WarningCount implements mysql.Handler. The library asks when it ends the rows of a result: of one that broke the filter puts the error there.
func (h *handler) WarningCount(c *mysql.Conn) uint16 {
	if f, ok := c.Conn.(*filterConn); ok && f.endsBroken(c.StatusFlags) {
		return brokenWarnings
	}
	return h.Handler.WarningCount(c)
}

// ComMultiQuery implements mysql.Handler: it runs the first statement and returns the others.
func (h *handler) ComMultiQuery(ctx context.Context, c *mysql.Conn, query string, callback mysql.ResultSpoolFn) (string, error) {
	statements := dialect.Split(strings.Clone(query))
	if len(statements) == 0 {
		_, err := h.send(ctx, c, call{}, callback)
		return "", err
	}
	rest := strings.Join(statements[1:], ";")
	whole, err := h.send(ctx, c, call{text: statements[0], more: rest != ""}, callback)
	if !whole {
		return "", err
	}
	return rest, nil
}

// ComStmtExecute implements mysql.Handler.
func (h *handler) ComStmtExecute(ctx context.Context, c *mysql.Conn, prepare *mysql.PrepareData, callback func(*sqltypes.Result) error) error {
	bindings, err := literals(prepare.BindVars)
	if err != nil {
		return asMySQL(err)
	}
	statement := call{text: carried(prepare.PrepareStmt), bindings: bindings, heldBack: true}
	_, err = h.send(ctx, c, statement, func(r *sqltypes.Result, _ bool) error { return callback(r) })
	var failure *mysql.SQLError
	if f, ok := c.Conn.(*filterConn); ok && errors.As(err, &failure) {
		f.failure.Store(failure)
	}
	return err
}

// ComInitDB implements mysql.Handler.
func (h *handler) ComInitDB(c *mysql.Conn, name string) error {
	return asMySQL(h.Handler.ComInitDB(c, name))
}

// ComPrepare implements mysql.Handler.
func (h *handler) ComPrepare(ctx context.Context, c *mysql.Conn, query string, _ *mysql.PrepareData) ([]*querypb.Field, error) {
	query = carried(query)
	sc, err := h.sessions.NewContextWithQuery(ctx, c, query)
	if err != nil {
		return nil, asMySQL(err)
	}
	if sc, err = sc.ProcessList.BeginOperation(sc); err != nil {
		return nil, asMySQL(err)
	}
	defer sc.ProcessList.EndOperation(sc)
	if err := sql.SessionCommandBegin(sc.Session); err != nil {
		return nil, asMySQL(err)
	}
	defer sql.SessionCommandEnd(sc.Session)
	columns, err := h.engine.Prepare(sc, query, nil)
	if err != nil || columns == nil {
		return nil, asMySQL(err)
	}
	fields, _ := describe(columns)
	return fields, nil
}

// asMySQL gives an error its MySQL code, and logs what is our own fault: the client gets no stack. It returns the interface's nil for nil.
func asMySQL(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, errs.ErrInternal) {
		logrus.Error(err)
	}
	return mysqlerr.Convert(err)
}

func literals(vars map[string]*querypb.BindVariable) (map[string]sqlparser.Expr, error) {
	out := make(map[string]sqlparser.Expr, len(vars))
	for name, v := range vars {
		value, err := sqltypes.BindVariableToValue(v)
		if err != nil {
			return nil, errs.New(errs.ErrInvalid, "parameter %s: %w", name, err)
		}
		if out[name], err = sqlparser.ExprFromValue(value); err != nil {
			return nil, errs.New(errs.ErrInvalid, "parameter %s: %w", name, err)
		}
	}
	return out, nil
}

// run runs one statement and sends its result. It ends early when the client goes away or the statement is killed (I2).
func (h *handler) run(ctx context.Context, c *mysql.Conn, statement call, callback mysql.ResultSpoolFn) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	sc, err := h.sessions.NewContextWithQuery(ctx, c, statement.text)
	if err != nil {
		return err
	}
	if sc, err = sc.ProcessList.BeginQuery(sc, statement.text); err != nil {
		return err
	}
	defer sc.ProcessList.EndQuery(sc)
	if err := sql.SessionCommandBegin(sc.Session); err != nil {
		return err
	}
	defer sql.SessionCommandEnd(sc.Session)

	defer h.watch.add(c, cancel)()

	return spawn.Guard(func() error { return h.answer(sc, c, statement, callback) })
}

func (h *handler) answer(sc *sql.Context, c *mysql.Conn, statement call, callback mysql.ResultSpoolFn) (err error) {
	res, err := h.engine.Run(sc, engine.Call{Text: statement.text, Bindings: statement.bindings})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, res.Close()) }()
	if err := setStatus(sc, c); err != nil {
		return err
	}
	if !res.HasRows() {
		if f, ok := c.Conn.(*filterConn); ok {
			f.oks.add(okPacket{affected: res.AffectedRows, insertID: res.InsertID, warnings: sc.WarningCount(), info: res.Info})
			f.release.Store(res.Release)
		}
		return callback(&sqltypes.Result{RowsAffected: res.AffectedRows, InsertID: res.InsertID, Info: res.Info}, statement.more)
	}
	return h.stream(res, statement, callback)
}

// stream sends the batches of a result. The column definitions go out with the first batch, so that an error before it is an error packet.
func (h *handler) stream(res *engine.Result, statement call, callback mysql.ResultSpoolFn) error {
	fields, types := describe(res.Columns)
	ctx := res.Context()
	held := res.Budget().Reserve()
	defer held.Free()
	// A batch that is held back is sent before the next one is taken, so that two memories in turn are enough.
	var encoders [2]*rowEncoder
	sent := false
	for turn := 0; ; turn++ {
		b, err := res.Operator.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		enc := &encoders[0]
		if statement.heldBack {
			enc = &encoders[turn%2]
		}
		if *enc == nil {
			if *enc, err = newRowEncoder(b.Schema(), types, held); err != nil {
				b.Release()
				return err
			}
		}
		rows, err := (*enc).encode(res.ExprEnv(), b)
		n := uint64(b.NumRows())
		b.Release()
		if err != nil {
			return err
		}
		if err := callback(&sqltypes.Result{Fields: fields, Rows: rows, RowsAffected: n}, statement.more); err != nil {
			return err
		}
		sent = true
	}
	if sent {
		return nil
	}
	return callback(&sqltypes.Result{Fields: fields}, statement.more)
}

func describe(cols []engine.ColumnInfo) ([]*querypb.Field, []querypb.Type) {
	fields := make([]*querypb.Field, len(cols))
	types := make([]querypb.Type, len(cols))
	for i, col := range cols {
		types[i] = col.Code
		fields[i] = &querypb.Field{
			Name: col.Name, OrgName: col.Name, Table: col.Table, OrgTable: col.Table, Database: col.Database,
			Type: col.Code, Charset: col.Charset, ColumnLength: col.LengthBytes, Flags: col.Flags, Decimals: col.Decimals,
		}
	}
	return fields, types
}

// setStatus tells the client whether it is in a transaction and commits by itself.
func setStatus(sc *sql.Context, c *mysql.Conn) error {
	v, err := sc.GetSessionVariable(sc, sql.AutoCommitSessionVar)
	if err != nil {
		return err
	}
	on, err := sql.ConvertToBool(sc, v)
	if err != nil {
		return err
	}
	set := func(flag uint16, yes bool) {
		if yes {
			c.StatusFlags |= flag
		} else {
			c.StatusFlags &^= flag
		}
	}
	set(uint16(mysql.ServerStatusAutocommit), on)
	set(uint16(mysql.ServerInTransaction), sc.GetTransaction() != nil && (!on || sc.GetIgnoreAutoCommit()))
	return nil
}
