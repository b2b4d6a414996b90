package testutil

import (
	"fmt"
	"math/rand"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Columns returns a nullable column of every shape that lakesql writes: all plain types, and lists, structs and vectors of some. Maps need file version 2.2.
func Columns(withMaps bool) []arrow.Field {
	pair := arrow.StructOf(
		arrow.Field{Name: "n", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		arrow.Field{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
	)
	dict := func(index, value arrow.DataType) arrow.DataType {
		return &arrow.DictionaryType{IndexType: index, ValueType: value}
	}
	types := []struct {
		name string
		t    arrow.DataType
	}{
		{"bool", arrow.FixedWidthTypes.Boolean}, {"i8", arrow.PrimitiveTypes.Int8}, {"i16", arrow.PrimitiveTypes.Int16},
		{"i32", arrow.PrimitiveTypes.Int32}, {"i64", arrow.PrimitiveTypes.Int64}, {"u8", arrow.PrimitiveTypes.Uint8},
		{"u16", arrow.PrimitiveTypes.Uint16}, {"u32", arrow.PrimitiveTypes.Uint32}, {"u64", arrow.PrimitiveTypes.Uint64},
		{"f16", arrow.FixedWidthTypes.Float16}, {"f32", arrow.PrimitiveTypes.Float32}, {"f64", arrow.PrimitiveTypes.Float64},
		{"utf8", arrow.BinaryTypes.String}, {"large_utf8", arrow.BinaryTypes.LargeString}, {"binary", arrow.BinaryTypes.Binary},
		{"large_binary", arrow.BinaryTypes.LargeBinary}, {"fsb16", &arrow.FixedSizeBinaryType{ByteWidth: 16}},
		{"fsb300", &arrow.FixedSizeBinaryType{ByteWidth: 300}}, {"date32", arrow.FixedWidthTypes.Date32}, {"date64", arrow.FixedWidthTypes.Date64},
		{"time32", arrow.FixedWidthTypes.Time32ms}, {"time64", arrow.FixedWidthTypes.Time64us},
		{"ts", &arrow.TimestampType{Unit: arrow.Microsecond}}, {"ts_utc", &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"}},
		{"duration", arrow.FixedWidthTypes.Duration_ns}, {"dec128", &arrow.Decimal128Type{Precision: 12, Scale: 2}},
		{"dec256", &arrow.Decimal256Type{Precision: 50, Scale: 4}}, {"nothing", arrow.Null},
		{"vec16", arrow.FixedSizeListOf(16, arrow.PrimitiveTypes.Float32)}, {"vec96", arrow.FixedSizeListOf(96, arrow.PrimitiveTypes.Float32)},
		{"vec_half", arrow.FixedSizeListOf(32, arrow.FixedWidthTypes.Float16)}, {"vec_u8", arrow.FixedSizeListOf(7, arrow.PrimitiveTypes.Uint8)},
		{"vec_bool", arrow.FixedSizeListOf(11, arrow.FixedWidthTypes.Boolean)}, {"vec_vec", arrow.FixedSizeListOf(3, arrow.FixedSizeListOf(5, arrow.PrimitiveTypes.Float64))},
		{"list_utf8", arrow.ListOf(arrow.BinaryTypes.String)}, {"list_i64", arrow.ListOf(arrow.PrimitiveTypes.Int64)},
		{"list_bool", arrow.ListOf(arrow.FixedWidthTypes.Boolean)}, {"list_binary", arrow.ListOf(arrow.BinaryTypes.Binary)},
		{"large_list", arrow.LargeListOf(arrow.BinaryTypes.String)}, {"list_list", arrow.ListOf(arrow.ListOf(arrow.PrimitiveTypes.Int32))},
		{"list_vec", arrow.ListOf(arrow.FixedSizeListOf(80, arrow.PrimitiveTypes.Float32))}, {"struct", pair}, {"list_struct", arrow.ListOf(pair)},
		{"dict", dict(arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.String)}, {"dict_u16_i64", dict(arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Int64)},
		{"list_dict", arrow.ListOf(dict(arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.String))},
		{"struct_list", arrow.StructOf(arrow.Field{Name: "l", Type: arrow.ListOf(arrow.BinaryTypes.Binary), Nullable: true})},
	}
	var out []arrow.Field
	for _, t := range types {
		out = append(out, arrow.Field{Name: t.name, Type: t.t, Nullable: true})
	}
	if withMaps {
		out = append(out, arrow.Field{Name: "map", Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32), Nullable: true})
	}
	return out
}

// RowMaker draws values. The zero value but R makes rows without nulls.
type RowMaker struct {
	R         *rand.Rand
	Nulls     float64 // share of nulls, at every level
	ItemNulls float64 // share of nulls among the items of vectors
	Wide      bool    // strings and binaries of 200 to 2200 bytes, not 0 to 20
	Distinct  int     // strings and integers come from so many values; 0 = any
	Empty     float64 // share of empty texts, lists and maps
}

// Batch draws a batch; the caller releases it.
func (m RowMaker) Batch(alloc memory.Allocator, s *arrow.Schema, rows int) arrow.RecordBatch {
	b := array.NewRecordBuilder(alloc, s)
	defer b.Release()
	for i := range s.NumFields() {
		for range rows {
			m.append(b.Field(i), m.Nulls, s.Field(i).Nullable)
		}
	}
	return b.NewRecordBatch()
}

func (m RowMaker) text() []byte {
	if m.Empty > 0 && m.R.Float64() < m.Empty {
		return []byte{}
	}
	if m.Distinct > 0 {
		return fmt.Appendf(nil, "value-%d", m.R.Intn(m.Distinct))
	}
	n := m.R.Intn(20)
	if m.Wide {
		n = 200 + m.R.Intn(2000)
	}
	out := make([]byte, n)
	for i := range out {
		out[i] = byte('a' + m.R.Intn(26))
	}
	return out
}

// items draws how many items a list has, less than limit.
func (m RowMaker) items(limit int) int {
	if m.Empty > 0 && m.R.Float64() < m.Empty {
		return 0
	}
	return m.R.Intn(limit)
}

func (m RowMaker) number(limit int64) int64 {
	if m.Distinct > 0 {
		return m.R.Int63n(min(limit, int64(m.Distinct)))
	}
	return m.R.Int63n(limit)
}

func (m RowMaker) append(b array.Builder, nulls float64, nullable bool) { //nolint:funlen,gocyclo // flat switch
	if nullable && nulls > 0 && m.R.Float64() < nulls {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.NullBuilder:
		b.AppendNull()
	case *array.BooleanBuilder:
		b.Append(m.R.Intn(2) == 0)
	case *array.Int8Builder:
		b.Append(int8(m.number(256) - 128))
	case *array.Int16Builder:
		b.Append(int16(m.number(1000)))
	case *array.Int32Builder:
		b.Append(int32(m.number(1 << 20)))
	case *array.Int64Builder:
		b.Append(m.number(1<<40) - 1<<10)
	case *array.Uint8Builder:
		b.Append(uint8(m.number(16)))
	case *array.Uint16Builder:
		b.Append(uint16(m.number(1 << 16)))
	case *array.Uint32Builder:
		b.Append(uint32(m.number(1 << 30)))
	case *array.Uint64Builder:
		b.Append(uint64(m.number(1 << 50)))
	case *array.Float16Builder:
		b.Append(float16.New(m.R.Float32()))
	case *array.Float32Builder:
		b.Append(m.R.Float32() - 0.5)
	case *array.Float64Builder:
		b.Append(m.R.NormFloat64())
	case *array.StringBuilder:
		b.Append(string(m.text()))
	case *array.LargeStringBuilder:
		b.Append(string(m.text()))
	case *array.BinaryBuilder:
		b.Append(m.text())
	case *array.FixedSizeBinaryBuilder:
		v := make([]byte, b.Type().(*arrow.FixedSizeBinaryType).ByteWidth) //nolint:errcheck // the builder's own type
		m.R.Read(v)
		b.Append(v)
	case *array.Date32Builder:
		b.Append(arrow.Date32(m.number(20000)))
	case *array.Date64Builder:
		b.Append(arrow.Date64(m.number(20000) * 86400000))
	case *array.Time32Builder:
		b.Append(arrow.Time32(m.number(86400000)))
	case *array.Time64Builder:
		b.Append(arrow.Time64(m.number(86400000000)))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(1_767_225_600_000 + m.number(1e12)))
	case *array.DurationBuilder:
		b.Append(arrow.Duration(m.number(1e12)))
	case *array.Decimal128Builder:
		b.Append(decimal128.FromI64(m.number(1e6) - 5e5))
	case *array.Decimal256Builder:
		b.Append(decimal256.FromI64(m.number(1e6) - 5e5))
	case *array.BinaryDictionaryBuilder:
		_ = b.Append(m.text()) // 2^16 different values at most
	case *array.Int64DictionaryBuilder:
		_ = b.Append(m.number(1<<15) - 5)
	case *array.FixedSizeListBuilder:
		b.Append(true)
		for range b.Type().(*arrow.FixedSizeListType).Len() { //nolint:errcheck // the builder's own type
			m.append(b.ValueBuilder(), m.ItemNulls, true)
		}
	case *array.StructBuilder:
		b.Append(true)
		for i := range b.NumField() {
			m.append(b.FieldBuilder(i), nulls, true)
		}
	case *array.MapBuilder:
		b.Append(true)
		for range m.items(4) {
			m.append(b.KeyBuilder(), 0, false)
			m.append(b.ItemBuilder(), nulls, true)
		}
	case array.ListLikeBuilder:
		b.Append(true)
		for range m.items(5) {
			m.append(b.ValueBuilder(), nulls, true)
		}
	default:
		panic(fmt.Sprintf("no values for %T", b))
	}
}
