package engine

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/dolthub/go-mysql-server/sql"
	ast "github.com/dolthub/vitess/go/vt/sqlparser"
	"github.com/sirupsen/logrus"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner/dialect"
	"github.com/lakesql/lakesql/planner/gms/provider"
)

// SessionOptions says who speaks. The zero value is the embedding program itself.
type SessionOptions struct {
	User, Address string
	Database      string // the current database; "" = none
}

// Session keeps variables, the current database and warnings between statements. It is used by one goroutine at a time.
type Session struct {
	engine *Engine
	base   *provider.Session
}

// NewSession starts a session.
func (e *Engine) NewSession(opts SessionOptions) *Session {
	client := sql.Client{User: opts.User, Address: opts.Address}
	base := sql.NewBaseSessionWithClientServer("", client, e.sessions.Add(1))
	base.SetCurrentDatabase(opts.Database)
	return &Session{engine: e, base: e.provider.NewSession(base)}
}

// Base returns go-mysql-server's session.
func (s *Session) Base() *sql.BaseSession { return s.base.BaseSession }

// Close rolls back what the session has not committed and forgets what go-mysql-server keeps of it.
func (s *Session) Close() {
	if err := s.base.Abandon(context.Background()); err != nil {
		logrus.Errorf("roll back the transaction of a session that ended: %v", err)
	}
	s.engine.sqle.CloseSession(s.base.ID())
}

// Query runs one statement. args replace its parameters (?) in order: nil, bool, integers, floats, string, []byte, time.Time. The
// caller closes the Result.
func (s *Session) Query(ctx context.Context, text string, args ...any) (*Result, error) {
	bindings, err := bind(args)
	if err != nil {
		return nil, err
	}
	sc := sql.NewContext(ctx, sql.WithSession(s.base), sql.WithMemoryManager(s.engine.sqle.MemoryManager), sql.WithQuery(text),
		sql.WithProcessList(onlookers{list: s.engine.processes}))
	sc.SetQueryTime(s.engine.config.Now())
	call := Call{Text: text, Bindings: bindings, Session: s}
	if len(bindings) > 0 {
		defer s.engine.sqle.PreparedDataCache.UncacheStmt(s.base.ID(), sql.RemoveSpaceAndDelimiter(text, ';'))
	}
	return s.engine.Run(sc, call)
}

// QueryAll runs several statements separated by semicolons in order and hands each Result to use, which must not keep it. It stops at the first error.
func (s *Session) QueryAll(ctx context.Context, text string, use func(*Result) error) error {
	for i, statement := range dialect.Split(text) {
		if err := s.queryOne(ctx, statement, use); err != nil {
			return fmt.Errorf("statement %d: %w", i+1, err)
		}
	}
	return nil
}

func (s *Session) queryOne(ctx context.Context, statement string, use func(*Result) error) (err error) {
	res, err := s.Query(ctx, statement)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := res.Close(); err == nil {
			err = closeErr
		}
	}()
	return use(res)
}

// bind makes literals of arguments, named as the parser names parameters.
func bind(args []any) (map[string]ast.Expr, error) {
	if len(args) == 0 {
		return nil, nil
	}
	out := make(map[string]ast.Expr, len(args))
	for i, a := range args {
		e, err := literal(a)
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+1, err)
		}
		out["v"+strconv.Itoa(i+1)] = e
	}
	return out, nil
}

func literal(a any) (ast.Expr, error) {
	switch v := a.(type) {
	case nil:
		return &ast.NullVal{}, nil
	case bool:
		return ast.BoolVal(v), nil
	case int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		return ast.NewIntVal(fmt.Appendf(nil, "%d", v)), nil
	case float32:
		return ast.NewFloatVal(strconv.AppendFloat(nil, float64(v), 'e', -1, 32)), nil
	case float64:
		return ast.NewFloatVal(strconv.AppendFloat(nil, v, 'e', -1, 64)), nil
	case string:
		return ast.NewStrVal([]byte(v)), nil
	case []byte:
		return ast.NewHexVal(fmt.Appendf(nil, "%x", v)), nil
	case time.Time:
		return ast.NewStrVal([]byte(v.Format("2006-01-02 15:04:05.999999"))), nil
	}
	return nil, errs.New(errs.ErrInvalid, "%T cannot be a parameter", a)
}
