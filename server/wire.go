package server

import (
	"fmt"
	"unicode"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/dolthub/vitess/go/sqltypes"
	querypb "github.com/dolthub/vitess/go/vt/proto/query"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
)

// rowEncoder turns batches into rows of MySQL text values. It is used by one statement; the rows of one call are overwritten by the next.
type rowEncoder struct {
	types   []querypb.Type
	columns *expr.TextColumns
	rows    [][]sqltypes.Value
	values  []sqltypes.Value // backs rows
	copies  [][]byte         // per column: the bytes of the present batch
	held    *mem.Reservation // pays for rows and copies
}

// Memory of one value and of one row's slice of values.
const (
	valueBytes = 32
	rowBytes   = 24
)

// newRowEncoder prepares the conversion of each column. types are the columns' types on the wire. held pays for the encoded rows; it is the caller's,
// who frees it.
func newRowEncoder(schema *arrow.Schema, types []querypb.Type, held *mem.Reservation) (*rowEncoder, error) {
	if schema.NumFields() != len(types) {
		return nil, errs.New(errs.ErrInternal, "%d columns with %d wire types", schema.NumFields(), len(types))
	}
	columns, err := expr.NewTextColumns(schema)
	if err != nil {
		return nil, err
	}
	return &rowEncoder{types: types, columns: columns, copies: make([][]byte, len(types)), held: held}, nil
}

// encode returns the batch's rows. It copies every value out of the batch, which may lie in a mapped file (I1).
func (e *rowEncoder) encode(env *expr.Env, b arrow.RecordBatch) ([][]sqltypes.Value, error) {
	n, width := int(b.NumRows()), len(e.types)
	if len(e.rows) < n {
		if err := e.held.Grow(int64(n-len(e.rows)) * int64(rowBytes+width*valueBytes)); err != nil {
			return nil, err
		}
		e.rows = make([][]sqltypes.Value, n)
		e.values = make([]sqltypes.Value, n*width)
		for i := range e.rows {
			e.rows[i] = e.values[i*width : (i+1)*width : (i+1)*width]
		}
	}
	for c := range width {
		if err := e.column(env, b, c, n); err != nil {
			return nil, fmt.Errorf("column %q: %w", b.ColumnName(c), err)
		}
	}
	return e.rows[:n], nil
}

func (e *rowEncoder) column(env *expr.Env, b arrow.RecordBatch, c, n int) error {
	col, err := e.columns.Column(env, b, c)
	if err != nil {
		return err
	}
	defer col.Release()
	switch col := col.(type) {
	case *array.Null:
		for i := range n {
			e.rows[i][c] = sqltypes.NULL
		}
		return nil
	case *array.String:
		err := fillBytes(e, c, n, col, col.ValueOffsets(), col.ValueBytes())
		if t := e.types[c]; t == sqltypes.Float32 || t == sqltypes.Float64 {
			dropUnreal(e.rows[:n], c)
		}
		return err
	case *array.Binary:
		return fillBytes(e, c, n, col, col.ValueOffsets(), col.ValueBytes())
	case *array.LargeString:
		return fillBytes(e, c, n, col, col.ValueOffsets(), col.ValueBytes())
	case *array.LargeBinary:
		return fillBytes(e, c, n, col, col.ValueOffsets(), col.ValueBytes())
	default:
		return errs.New(errs.ErrInternal, "no wire form of %s", col.DataType())
	}
}

// fillBytes copies the n values of a column, which are bytes[offsets[i]-offsets[0]:...], in one piece and points the rows into it.
func fillBytes[O int32 | int64](e *rowEncoder, c, n int, col arrow.Array, offsets []O, bytes []byte) error {
	if n == 0 {
		return nil
	}
	if more := len(bytes) - cap(e.copies[c]); more > 0 {
		if err := e.held.Grow(int64(more)); err != nil {
			return err
		}
		e.copies[c] = make([]byte, 0, len(bytes))
	}
	e.copies[c] = append(e.copies[c][:0], bytes...)
	own := e.copies[c]
	base, t := offsets[0], e.types[c]
	if col.NullN() == 0 {
		for i := range n {
			lo, hi := offsets[i]-base, offsets[i+1]-base
			e.rows[i][c] = sqltypes.MakeTrusted(t, own[lo:hi:hi])
		}
		return nil
	}
	for i := range n {
		if col.IsNull(i) {
			e.rows[i][c] = sqltypes.NULL
			continue
		}
		lo, hi := offsets[i]-base, offsets[i+1]-base
		e.rows[i][c] = sqltypes.MakeTrusted(t, own[lo:hi:hi])
	}
	return nil
}

// dropUnreal makes NaN and the infinities NULL: MySQL has no text of them, and drivers read "nan" as another number or fail.
func dropUnreal(rows [][]sqltypes.Value, c int) {
	for _, row := range rows {
		v := row[c].Raw()
		if len(v) > 0 && unicode.IsLetter(rune(v[len(v)-1])) {
			row[c] = sqltypes.NULL
		}
	}
}
