package provider

import (
	"encoding/base64"
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/shopspring/decimal"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
)

// RowReader turns batches of one schema into rows of go-mysql-server, for what the row engine does above our plans. It is used by one goroutine.
type RowReader struct {
	json map[int]*expr.Program // columns that show as JSON text
	env  expr.Env
}

// NewRowReader prepares for batches of schema s.
func NewRowReader(s *arrow.Schema, env expr.Env) (*RowReader, error) {
	r := &RowReader{json: make(map[int]*expr.Program), env: env}
	for i, f := range s.Fields() {
		if TypeOf(f.Type) != types.JSON {
			continue
		}
		cast := &expr.Call{Func: "cast", Args: []expr.Expr{&expr.Column{ID: i, Name: f.Name, T: f.Type}}, T: arrow.BinaryTypes.String}
		p, err := expr.Compile(cast, s)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", f.Name, err)
		}
		r.json[i] = p
	}
	return r, nil
}

// Rows returns the rows of a batch; they do not refer to its memory.
func (r *RowReader) Rows(batch arrow.RecordBatch) ([]sql.Row, error) {
	rows := make([]sql.Row, batch.NumRows())
	values := make([]any, int(batch.NumRows())*int(batch.NumCols()))
	width := int(batch.NumCols())
	for i := range rows {
		rows[i] = values[i*width : (i+1)*width : (i+1)*width]
	}
	for c := range width {
		if err := r.column(batch, c, rows); err != nil {
			return nil, fmt.Errorf("column %q: %w", batch.ColumnName(c), err)
		}
	}
	return rows, nil
}

func (r *RowReader) column(batch arrow.RecordBatch, c int, rows []sql.Row) error {
	arr := batch.Column(c)
	if p, ok := r.json[c]; ok {
		text, err := p.Eval(&r.env, batch)
		if err != nil {
			return err
		}
		defer text.Release()
		for i := range rows {
			if text.IsValid(i) {
				rows[i][c] = types.NewLazyJSONDocument([]byte(text.ValueStr(i)))
			}
		}
		return nil
	}
	for i := range rows {
		v, err := r.Value(arr, i)
		if err != nil {
			return err
		}
		rows[i][c] = v
	}
	return nil
}

// Value returns one value as go-mysql-server holds values of TypeOf(arr.DataType()); nil for NULL. Not for lists, structs and maps.
func (r *RowReader) Value(arr arrow.Array, i int) (any, error) { //nolint:funlen // a flat switch
	if arr.IsNull(i) {
		return nil, nil
	}
	switch a := arr.(type) {
	case array.ExtensionArray:
		return r.Value(a.Storage(), i)
	case *array.Dictionary:
		return r.Value(a.Dictionary(), a.GetValueIndex(i))
	case *array.Null:
		return nil, nil
	case *array.Boolean:
		if a.Value(i) {
			return int8(1), nil
		}
		return int8(0), nil
	case *array.Int8:
		return a.Value(i), nil
	case *array.Int16:
		return a.Value(i), nil
	case *array.Int32:
		return a.Value(i), nil
	case *array.Int64:
		return a.Value(i), nil
	case *array.Uint8:
		return a.Value(i), nil
	case *array.Uint16:
		return a.Value(i), nil
	case *array.Uint32:
		return a.Value(i), nil
	case *array.Uint64:
		return a.Value(i), nil
	case *array.Float16:
		return a.Value(i).Float32(), nil
	case *array.Float32:
		return a.Value(i), nil
	case *array.Float64:
		return a.Value(i), nil
	case *array.String:
		return string([]byte(a.Value(i))), nil
	case *array.LargeString:
		return string([]byte(a.Value(i))), nil
	case *array.StringView:
		return string([]byte(a.Value(i))), nil
	case *array.Binary:
		return append([]byte{}, a.Value(i)...), nil
	case *array.LargeBinary:
		return append([]byte{}, a.Value(i)...), nil
	case *array.BinaryView:
		return append([]byte{}, a.Value(i)...), nil
	case *array.FixedSizeBinary:
		return append([]byte{}, a.Value(i)...), nil
	case *array.Date32:
		return a.Value(i).ToTime(), nil
	case *array.Date64:
		return a.Value(i).ToTime(), nil
	case *array.Timestamp:
		return r.timestamp(a, i), nil
	case *array.Time32, *array.Time64, *array.Duration:
		return types.Timespan(timeMicros(arr, i)), nil
	}
	if t, ok := arr.DataType().(arrow.DecimalType); ok {
		return decimalValue(arr, i, t)
	}
	return nil, errs.New(errs.ErrUnsupported, "values of type %s have no MySQL form", arr.DataType())
}

// timestamp cuts to microseconds; with a zone the value shows in the session's zone.
func (r *RowReader) timestamp(a *array.Timestamp, i int) time.Time {
	t := a.DataType().(*arrow.TimestampType)
	v := a.Value(i).ToTime(t.Unit).Truncate(time.Microsecond)
	if t.TimeZone != "" && r.env.Location != nil {
		l := v.In(r.env.Location)
		v = time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), l.Second(), l.Nanosecond(), time.UTC)
	}
	return v
}

func timeMicros(arr arrow.Array, i int) int64 {
	switch a := arr.(type) {
	case *array.Time32:
		return int64(a.Value(i)) * a.DataType().(*arrow.Time32Type).Unit.Multiplier().Microseconds()
	case *array.Time64:
		if a.DataType().(*arrow.Time64Type).Unit == arrow.Nanosecond {
			return int64(a.Value(i)) / 1000
		}
		return int64(a.Value(i))
	case *array.Duration:
		if unit := a.DataType().(*arrow.DurationType).Unit; unit != arrow.Nanosecond {
			return int64(a.Value(i)) * unit.Multiplier().Microseconds()
		}
		return int64(a.Value(i)) / 1000
	}
	return 0
}

func decimalValue(arr arrow.Array, i int, t arrow.DecimalType) (any, error) {
	d, err := decimal.NewFromString(arr.ValueStr(i))
	if err != nil {
		return nil, errs.New(errs.ErrInternal, "decimal %q: %w", arr.ValueStr(i), err)
	}
	if _, isDecimal := TypeOf(t).(sql.DecimalType); !isDecimal {
		return d.StringFixed(max(t.GetScale(), 0)), nil
	}
	return d, nil
}

// BinaryText is how binary values stand inside JSON text.
func BinaryText(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
