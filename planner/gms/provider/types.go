package provider

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/sqltypes"
)

// Collation is the collation of every string that lakesql returns: labels and strings compare byte for byte.
const Collation = sql.Collation_utf8mb4_0900_bin

// varcharCharsMax is the length of the VARCHAR that utf8 columns show: the longest that MySQL allows in utf8mb4.
const varcharCharsMax = 16383

// TypeOf returns the MySQL type that shows values of an Arrow type. Lists, structs, maps and vectors show as JSON text.
func TypeOf(t arrow.DataType) sql.Type { //nolint:funlen // a flat switch
	switch t := t.(type) {
	case arrow.ExtensionType:
		return TypeOf(t.StorageType())
	case *arrow.DictionaryType:
		return TypeOf(t.ValueType)
	case *arrow.RunEndEncodedType:
		return TypeOf(t.Encoded())
	case *arrow.TimestampType:
		if t.TimeZone == "" {
			return types.DatetimeMaxPrecision
		}
		return types.TimestampMaxPrecision
	case arrow.DecimalType:
		return decimalType(t)
	}
	switch t.ID() {
	case arrow.NULL:
		return types.Null
	case arrow.BOOL:
		return types.Boolean
	case arrow.INT8:
		return types.Int8
	case arrow.INT16:
		return types.Int16
	case arrow.INT32:
		return types.Int32
	case arrow.INT64:
		return types.Int64
	case arrow.UINT8:
		return types.Uint8
	case arrow.UINT16:
		return types.Uint16
	case arrow.UINT32:
		return types.Uint32
	case arrow.UINT64:
		return types.Uint64
	case arrow.FLOAT16, arrow.FLOAT32:
		return types.Float32
	case arrow.FLOAT64:
		return types.Float64
	case arrow.STRING, arrow.STRING_VIEW:
		return types.MustCreateString(sqltypes.VarChar, varcharCharsMax, Collation)
	case arrow.LARGE_STRING:
		return types.CreateLongText(Collation)
	case arrow.BINARY, arrow.BINARY_VIEW:
		return types.LongBlob
	case arrow.LARGE_BINARY, arrow.FIXED_SIZE_BINARY:
		return types.LongBlob
	case arrow.DATE32, arrow.DATE64:
		return types.Date
	case arrow.TIME32, arrow.TIME64, arrow.DURATION:
		return types.Time
	case arrow.LIST, arrow.LARGE_LIST, arrow.FIXED_SIZE_LIST, arrow.LIST_VIEW, arrow.LARGE_LIST_VIEW, arrow.STRUCT, arrow.MAP:
		return types.JSON
	}
	return types.CreateLongText(Collation)
}

// decimalType is exact; what MySQL's DECIMAL cannot hold shows as text.
func decimalType(t arrow.DecimalType) sql.Type {
	p, s := t.GetPrecision(), t.GetScale()
	if s < 0 {
		p, s = p-s, 0
	}
	if p > types.DecimalTypeMaxPrecision || s > types.DecimalTypeMaxScale || s > p {
		return types.CreateLongText(Collation)
	}
	return types.MustCreateColumnDecimalType(uint8(p), uint8(s))
}

// Columns returns the MySQL schema of an Arrow schema.
func Columns(database, table string, s *arrow.Schema) sql.Schema {
	out := make(sql.Schema, s.NumFields())
	for i, f := range s.Fields() {
		out[i] = &sql.Column{Name: f.Name, Type: TypeOf(f.Type), Nullable: f.Nullable, Source: table, DatabaseSource: database}
	}
	return out
}
