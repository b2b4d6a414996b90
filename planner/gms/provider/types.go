package provider

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/sqltypes"

	"github.com/lakesql/lakesql/planner/coltype"
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

// ColumnType is the type that a column shows: as declared where its metadata says that, else TypeOf.
func ColumnType(f arrow.Field) sql.Type {
	name, n := coltype.Declared(f)
	switch name {
	case "varchar":
		return types.MustCreateString(sqltypes.VarChar, int64(n), Collation)
	case "char":
		return types.MustCreateString(sqltypes.Char, int64(n), Collation)
	case "tinytext":
		return types.CreateTinyText(Collation)
	case "text":
		return types.CreateText(Collation)
	case "mediumtext":
		return types.CreateMediumText(Collation)
	case "binary":
		return types.MustCreateBinary(sqltypes.Binary, int64(n))
	case "varbinary":
		return types.MustCreateBinary(sqltypes.VarBinary, int64(n))
	case "tinyblob":
		return types.TinyBlob
	case "blob":
		return types.Blob
	case "mediumblob":
		return types.MediumBlob
	case "mediumint":
		if f.Type.ID() == arrow.UINT32 {
			return types.Uint24
		}
		return types.Int24
	case "year":
		return types.Year
	case "json":
		return types.JSON
	case "datetime":
		return types.MustCreateDatetimeType(sqltypes.Datetime, n)
	case "timestamp":
		return types.MustCreateDatetimeType(sqltypes.Timestamp, n)
	}
	return TypeOf(f.Type)
}

// Columns returns the MySQL schema of an Arrow schema, with what the fields' metadata says of declared types, defaults, comments and the primary key.
func Columns(database, table string, s *arrow.Schema) sql.Schema {
	out := make(sql.Schema, s.NumFields())
	for i, f := range s.Fields() {
		c := &sql.Column{Name: f.Name, Type: ColumnType(f), Nullable: f.Nullable, Source: table, DatabaseSource: database, Comment: coltype.Comment(f)}
		if def, ok := coltype.Default(f); ok {
			c.Default = sql.NewUnresolvedColumnDefaultValue(def)
		}
		if text := coltype.Text(f.Type); text != "" {
			// CREATE TABLE takes the type from such a comment, so that what SHOW CREATE TABLE prints makes the same table.
			if c.Comment != "" {
				text += "; " + c.Comment
			}
			c.Comment = text
		}
		out[i] = c
	}
	for _, i := range coltype.Key(s) {
		out[i].PrimaryKey = !out[i].Nullable
	}
	return out
}
