package engine

import (
	"context"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/sqltypes"
	querypb "github.com/dolthub/vitess/go/vt/proto/query"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/planner/gms/provider"
	"github.com/lakesql/lakesql/planner/gms/translate"
)

// ColumnInfo describes a column of a result for the wire.
type ColumnInfo struct {
	Name, Table, Database string
	Arrow                 arrow.DataType // of the batches
	Type                  sql.Type       // what MySQL clients are told
	Code                  querypb.Type   // its code
	Flags                 uint32         // MySQL's NOT_NULL, UNSIGNED, BINARY and so on
	Charset               uint32         // collation id; 63 = binary
	Decimals              uint32
	LengthBytes           uint32 // longest text
	Nullable              bool
}

// Warning is one line of SHOW WARNINGS.
type Warning struct {
	Level   string
	Code    int
	Message string
}

// Result is a running statement. It is used by one goroutine; Close ends it and must be called.
type Result struct {
	Columns []ColumnInfo
	// Operator yields the rows as batches, which the caller releases; nil where the statement returns no rows.
	Operator exec.Operator
	// Vectorized says that the batches come from our plan; otherwise they were made of go-mysql-server's rows.
	Vectorized bool

	AffectedRows, InsertID uint64 // statements without rows
	Info                   string
	Flags                  *sql.QueryFlags
	Release                bool // the client asked for its connection to end (COMMIT RELEASE)

	ctx     *sql.Context
	cancel  context.CancelFunc
	request *translate.Request
	schema  sql.Schema
	iter    sql.RowIter
	closed  bool
}

// open finds our plan below go-mysql-server's iterators, or reads what a statement without rows did.
func (r *Result) open() error {
	if len(r.schema) == 0 || types.IsOkResultSchema(r.schema) {
		return r.readOK()
	}
	r.Columns = columnsOf(r.ctx, r.schema)
	if node := planBelow(r.iter); node != nil {
		op, err := node.Open(r.ctx)
		if err != nil {
			return err
		}
		r.Operator, r.Vectorized = &guarded{op: op, result: r}, true
		for i := range r.Columns {
			r.Columns[i].Arrow = op.Schema().Field(i).Type
		}
		return nil
	}
	op, err := newRowOperator(r.ctx, r.schema, r.iter, r.request.Env)
	if err != nil {
		return err
	}
	r.Operator = &guarded{op: op, result: r}
	for i := range r.Columns {
		r.Columns[i].Arrow = op.Schema().Field(i).Type
	}
	return nil
}

// planBelow unwraps iterators that only pass rows through.
func planBelow(iter sql.RowIter) *translate.Node {
	for {
		switch it := iter.(type) {
		case *translate.RowIter:
			return it.Node()
		case interface{ GetIter() sql.RowIter }:
			iter = it.GetIter()
		default:
			return nil
		}
	}
}

func (r *Result) readOK() error {
	for {
		row, err := r.iter.Next(r.ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(row) == 1 {
			if ok, is := row[0].(types.OkResult); is {
				r.AffectedRows, r.InsertID = ok.RowsAffected, ok.InsertID
				if ok.Info != nil {
					r.Info = ok.Info.String()
				}
			}
		}
	}
}

// HasRows says that the statement returns rows, be it none.
func (r *Result) HasRows() bool { return r.Operator != nil }

// Reason is why the statement does not run as one plan of ours; nil where it does or is no query.
func (r *Result) Reason() error {
	if r.request == nil {
		return nil
	}
	return r.request.Reason
}

// Warnings returns what the session has to say about the statement so far, oldest first.
func (r *Result) Warnings() []Warning {
	if r.ctx == nil {
		return nil
	}
	all := r.ctx.Warnings()
	out := make([]Warning, 0, len(all))
	for i := len(all) - 1; i >= 0; i-- {
		out = append(out, Warning{Level: all[i].Level, Code: all[i].Code, Message: all[i].Message})
	}
	return out
}

// Context is the statement's context: it ends when the statement is killed, runs out of time or is closed.
func (r *Result) Context() context.Context { return r.ctx }

// Close ends the statement and frees what it held. It is idempotent.
func (r *Result) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	var err error
	if r.Operator != nil {
		err = r.Operator.Close()
	}
	if r.iter != nil {
		err = errors.Join(err, r.iter.Close(r.ctx), provider.EndStatement(r.ctx))
	}
	if r.cancel != nil {
		r.cancel()
	}
	if r.request != nil {
		r.request.Env.Budget.Close()
	}
	return err
}

// guarded turns panics into errors and an ended context into its cause.
type guarded struct {
	op     exec.Operator
	result *Result
}

// Schema implements exec.Operator.
func (g *guarded) Schema() *arrow.Schema { return g.op.Schema() }

// Next implements exec.Operator.
func (g *guarded) Next(ctx context.Context) (batch arrow.RecordBatch, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	err = spawn.Guard(func() (err error) {
		batch, err = g.op.Next(ctx)
		return err
	})
	g.result.request.Warnings.Flush(g.result.ctx)
	if err == nil || errors.Is(err, io.EOF) {
		return batch, err
	}
	if ctx.Err() != nil {
		err = errors.Join(ctx.Err(), err)
	}
	failed(g.result.ctx, err)
	return nil, err
}

// Close implements exec.Operator.
func (g *guarded) Close() error { return spawn.Guard(g.op.Close) }

// The flags and numbers of MySQL's column definitions.
const (
	flagNotNull  = 1
	flagBlob     = 16
	flagUnsigned = 32
	flagBinary   = 128

	charsetBinary    = 63
	decimalsFloating = 31
	decimalsMicro    = 6
)

// columnsOf describes columns as MySQL's protocol does.
func columnsOf(ctx *sql.Context, s sql.Schema) []ColumnInfo {
	out := make([]ColumnInfo, len(s))
	for i, c := range s {
		info := ColumnInfo{
			Name: c.Name, Table: c.Source, Database: c.DatabaseSource, Type: c.Type, Code: c.Type.Type(), Nullable: c.Nullable,
			Charset: charsetBinary, LengthBytes: c.Type.MaxTextResponseByteLength(ctx),
		}
		if !c.Nullable {
			info.Flags |= flagNotNull
		}
		switch {
		case types.IsText(c.Type) && !types.IsBinaryType(c.Type) && c.Type != types.JSON, types.IsEnum(c.Type), types.IsSet(c.Type):
			info.Charset = uint32(provider.Collation)
			if t, ok := c.Type.(sql.TypeWithCollation); ok {
				info.Charset = uint32(t.Collation())
			}
		case types.IsNumber(c.Type):
			info.Flags |= flagBinary
		case types.IsBinaryType(c.Type):
			info.Flags |= flagBinary
		default:
			info.Flags |= flagBinary
		}
		info.describe(c.Type)
		out[i] = info
	}
	return out
}

func (info *ColumnInfo) describe(t sql.Type) {
	switch info.Code {
	case sqltypes.Uint8, sqltypes.Uint16, sqltypes.Uint24, sqltypes.Uint32, sqltypes.Uint64:
		info.Flags |= flagUnsigned
	case sqltypes.Float32, sqltypes.Float64:
		info.Decimals = decimalsFloating
	case sqltypes.Text, sqltypes.Blob, sqltypes.TypeJSON:
		info.Flags |= flagBlob
	case sqltypes.Datetime, sqltypes.Timestamp, sqltypes.Time:
		if d, ok := t.(sql.DatetimeType); !ok || d.Precision() > 0 {
			info.Decimals = decimalsMicro
		}
	}
	if d, ok := t.(sql.DecimalType); ok {
		info.Decimals = uint32(d.Scale())
	}
}

// Budget counts the statement's memory; nil where it has none. After Close its use is what a failure left behind.
func (r *Result) Budget() *mem.Budget {
	if r.request == nil {
		return nil
	}
	return r.request.Env.Budget
}

// ExprEnv is what evaluating over the result's columns depends on: the session's time zone and the statement's memory.
func (r *Result) ExprEnv() *expr.Env { return &r.request.Env.Expr }
