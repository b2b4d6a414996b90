package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/shopspring/decimal"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/internal/errs"
)

// rowBatch is how many rows of go-mysql-server make a batch.
const rowBatch = 1024

// rowOperator makes batches of go-mysql-server's rows: SHOW, information_schema and what runs row by row. Result closes the iterator.
type rowOperator struct {
	ctx    *sql.Context
	iter   sql.RowIter
	types  []sql.Type
	schema *arrow.Schema
	env    *exec.Env
	done   bool
}

var _ exec.Operator = (*rowOperator)(nil)

func newRowOperator(ctx *sql.Context, s sql.Schema, iter sql.RowIter, env *exec.Env) (*rowOperator, error) {
	r := &rowOperator{ctx: ctx, iter: iter, env: env}
	fields := make([]arrow.Field, len(s))
	for i, c := range s {
		fields[i] = arrow.Field{Name: c.Name, Type: rowType(c.Type), Nullable: true}
		r.types = append(r.types, c.Type)
	}
	r.schema = arrow.NewSchema(fields, nil)
	return r, nil
}

// rowType is the Arrow type that holds values of a MySQL type; text for all that has no better one.
func rowType(t sql.Type) arrow.DataType {
	switch t {
	case types.Int8, types.Int16, types.Int24, types.Int32, types.Int64, types.Boolean:
		return arrow.PrimitiveTypes.Int64
	case types.Uint8, types.Uint16, types.Uint24, types.Uint32, types.Uint64:
		return arrow.PrimitiveTypes.Uint64
	case types.Float32, types.Float64:
		return arrow.PrimitiveTypes.Float64
	case types.Date:
		return arrow.FixedWidthTypes.Date32
	case types.Time:
		return arrow.FixedWidthTypes.Duration_us
	case types.Null:
		return arrow.Null
	}
	switch d := t.(type) {
	case sql.DecimalType:
		if d.Precision() > 38 {
			return &arrow.Decimal256Type{Precision: int32(d.Precision()), Scale: int32(d.Scale())}
		}
		return &arrow.Decimal128Type{Precision: int32(d.Precision()), Scale: int32(d.Scale())}
	case sql.DatetimeType:
		return &arrow.TimestampType{Unit: arrow.Microsecond}
	}
	if types.IsBinaryType(t) {
		return arrow.BinaryTypes.Binary
	}
	return arrow.BinaryTypes.String
}

// Schema implements exec.Operator.
func (r *rowOperator) Schema() *arrow.Schema { return r.schema }

// Close implements exec.Operator.
func (r *rowOperator) Close() error { return nil }

// Next implements exec.Operator.
func (r *rowOperator) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if r.done {
		return nil, io.EOF
	}
	b := array.NewRecordBuilder(r.env.Alloc, r.schema)
	defer b.Release()
	rows := 0
	for rows < rowBatch {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		row, err := r.iter.Next(r.ctx)
		if errors.Is(err, io.EOF) {
			r.done = true
			break
		}
		if err != nil {
			return nil, err
		}
		if len(row) != len(r.types) {
			return nil, errs.New(errs.ErrInternal, "a row has %d columns, the result %d", len(row), len(r.types))
		}
		for i, v := range row {
			if err := r.append(b.Field(i), i, v); err != nil {
				return nil, fmt.Errorf("column %q: %w", r.schema.Field(i).Name, err)
			}
		}
		rows++
	}
	if rows == 0 {
		return nil, io.EOF
	}
	return b.NewRecordBatch(), nil
}

// append converts a value to its column's type and appends it.
func (r *rowOperator) append(b array.Builder, i int, v any) error { //nolint:funlen // a flat switch
	if v == nil {
		b.AppendNull()
		return nil
	}
	switch b := b.(type) {
	case *array.Int64Builder:
		n, _, err := types.Int64.Convert(r.ctx, v)
		if err != nil {
			return err
		}
		b.Append(n.(int64))
	case *array.Uint64Builder:
		n, _, err := types.Uint64.Convert(r.ctx, v)
		if err != nil {
			return err
		}
		b.Append(n.(uint64))
	case *array.Float64Builder:
		n, _, err := types.Float64.Convert(r.ctx, v)
		if err != nil {
			return err
		}
		b.Append(n.(float64))
	case *array.Date32Builder:
		t, err := r.time(types.Date, v)
		if err != nil {
			return err
		}
		b.Append(arrow.Date32FromTime(t))
	case *array.TimestampBuilder:
		t, err := r.time(types.DatetimeMaxPrecision, v)
		if err != nil {
			return err
		}
		b.Append(arrow.Timestamp(t.UnixMicro()))
	case *array.DurationBuilder:
		t, _, err := types.Time.Convert(r.ctx, v)
		if err != nil {
			return err
		}
		b.Append(arrow.Duration(t.(types.Timespan)))
	case *array.Decimal128Builder, *array.Decimal256Builder:
		return r.appendDecimal(b, v)
	case *array.NullBuilder:
		b.AppendNull()
	case *array.BinaryBuilder:
		sv, err := r.types[i].SQL(r.ctx, nil, v)
		if err != nil {
			return err
		}
		b.Append(sv.ToBytes())
	case *array.StringBuilder:
		sv, err := r.types[i].SQL(r.ctx, nil, v)
		if err != nil {
			return err
		}
		b.Append(sv.ToString())
	default:
		return errs.New(errs.ErrInternal, "no builder for %s", r.types[i])
	}
	return nil
}

func (r *rowOperator) time(t sql.Type, v any) (time.Time, error) {
	out, _, err := t.Convert(r.ctx, v)
	if err != nil {
		return time.Time{}, err
	}
	at, ok := out.(time.Time)
	if !ok {
		return time.Time{}, errs.New(errs.ErrInternal, "%T is no time", out)
	}
	return at, nil
}

func (r *rowOperator) appendDecimal(b array.Builder, v any) error {
	out, _, err := types.InternalDecimalType.Convert(r.ctx, v)
	if err != nil {
		return err
	}
	d := out.(decimal.Decimal)
	switch b := b.(type) {
	case *array.Decimal128Builder:
		t := b.Type().(*arrow.Decimal128Type)
		n, err := decimal128.FromString(d.StringFixed(t.Scale), t.Precision, t.Scale)
		if err != nil {
			return errs.New(errs.ErrOverflow, "decimal %s: %w", d, err)
		}
		b.Append(n)
	case *array.Decimal256Builder:
		t := b.Type().(*arrow.Decimal256Type)
		n, err := decimal256.FromString(d.StringFixed(t.Scale), t.Precision, t.Scale)
		if err != nil {
			return errs.New(errs.ErrOverflow, "decimal %s: %w", d, err)
		}
		b.Append(n)
	}
	return nil
}
