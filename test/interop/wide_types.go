package interop

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// wideType is a column of the table that holds every type.
type wideType struct {
	logical string         // as manifests spell it
	sql     string         // the type in CREATE TABLE; "" = SQL has no word for it
	typ     arrow.DataType // where sql is ""
	v22     bool           // needs files of version 2.2
	no20    string         // why files of version 2.0 do not hold it
}

// wideTypes are the logical types that tables have, and lists, structs, vectors and maps of some.
func wideTypes() []wideType {
	const needs22 = "the engine refuses it before 2.2"
	field := func(name string, t arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: t, Nullable: true}
	}
	utf8, i64 := arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64
	dict := func(index, value arrow.DataType) arrow.DataType {
		return &arrow.DictionaryType{IndexType: index, ValueType: value}
	}
	stamp := func(u arrow.TimeUnit, zone string) arrow.DataType {
		return &arrow.TimestampType{Unit: u, TimeZone: zone}
	}
	duration := func(u arrow.TimeUnit) arrow.DataType { return &arrow.DurationType{Unit: u} }
	pair := arrow.StructOf(field("n", arrow.PrimitiveTypes.Int32), field("s", utf8))
	return []wideType{
		{logical: "bool", sql: "BOOLEAN"}, {logical: "int8", sql: "TINYINT"}, {logical: "uint8", sql: "TINYINT UNSIGNED"}, {logical: "int16", sql: "SMALLINT"},
		{logical: "uint16", sql: "SMALLINT UNSIGNED"}, {logical: "int32", sql: "INT"}, {logical: "uint32", sql: "INT UNSIGNED"}, {logical: "int64", sql: "BIGINT"},
		{logical: "uint64", sql: "BIGINT UNSIGNED"}, {logical: "float", sql: "FLOAT"}, {logical: "double", sql: "DOUBLE"}, {logical: "decimal:128:12:2", sql: "DECIMAL(12,2)"},
		{logical: "decimal:256:50:4", sql: "DECIMAL(50,4)"}, {logical: "string", sql: "VARCHAR(4000)"}, {logical: "string, a text", sql: "TEXT"}, {logical: "large_string", sql: "LONGTEXT"}, {logical: "binary", sql: "VARBINARY(4000)"},
		{logical: "binary, a blob", sql: "BLOB"}, {logical: "large_binary", sql: "LONGBLOB"}, {logical: "date32:day", sql: "DATE"}, {logical: "timestamp:us:-", sql: "DATETIME(6)"}, {logical: "timestamp:us:UTC", sql: "TIMESTAMP(6)"},
		{logical: "time64:us", sql: "TIME(6)"}, {logical: "list", sql: "LIST<VARCHAR>"}, {logical: "list of int64", sql: "LIST<BIGINT>"}, {logical: "list of list", sql: "LIST<LIST<INT>>"},
		{logical: "fixed_size_list:float:16", sql: "VECTOR(16)"}, {logical: "fixed_size_list:halffloat:8", sql: "VECTOR(8, FLOAT16)"}, {logical: "fixed_size_list:double:4", sql: "VECTOR(4, DOUBLE)"},
		{logical: "fixed_size_list:uint8:5", sql: "VECTOR(5, UINT8)"}, {logical: "list of fixed_size_list:float:3", sql: "LIST<VECTOR(3)>"},
		{logical: "struct", sql: "STRUCT<n INT, s VARCHAR>"}, {logical: "list.struct", sql: "LIST<STRUCT<n INT, s VARCHAR>>"}, {logical: "struct of list", sql: "STRUCT<l LIST<VARCHAR>, p STRUCT<a INT, b LIST<INT>>>"},
		{logical: "map", sql: "MAP<VARCHAR, INT>", v22: true, no20: needs22}, {logical: "map of list", sql: "MAP<VARCHAR, LIST<INT>>", v22: true, no20: needs22},
		{logical: "null", typ: arrow.Null}, {logical: "halffloat", typ: arrow.FixedWidthTypes.Float16},
		{logical: "date64:ms", typ: arrow.FixedWidthTypes.Date64}, {logical: "time32:s", typ: arrow.FixedWidthTypes.Time32s},
		{logical: "time32:ms", typ: arrow.FixedWidthTypes.Time32ms}, {logical: "time64:ns", typ: arrow.FixedWidthTypes.Time64ns}, {logical: "timestamp:s:-", typ: stamp(arrow.Second, "")},
		{logical: "timestamp:ms:UTC", typ: stamp(arrow.Millisecond, "UTC")}, {logical: "timestamp:ns:America/New_York", typ: stamp(arrow.Nanosecond, "America/New_York")},
		{logical: "duration:s", typ: duration(arrow.Second)}, {logical: "duration:ms", typ: duration(arrow.Millisecond)}, {logical: "duration:us", typ: duration(arrow.Microsecond)},
		{logical: "duration:ns", typ: duration(arrow.Nanosecond)}, {logical: "decimal:128:38:10", typ: &arrow.Decimal128Type{Precision: 38, Scale: 10}},
		{logical: "fixed_size_binary:16", typ: &arrow.FixedSizeBinaryType{ByteWidth: 16}}, {logical: "fixed_size_binary:300", typ: &arrow.FixedSizeBinaryType{ByteWidth: 300}},
		{logical: "large_list", typ: arrow.LargeListOf(utf8)}, {logical: "large_list.struct", typ: arrow.LargeListOf(pair)},
		{logical: "fixed_size_list:bool:11", typ: arrow.FixedSizeListOf(11, arrow.FixedWidthTypes.Boolean)},
		{logical: "fixed_size_list:fixed_size_list:double:3:2", typ: arrow.FixedSizeListOf(2, arrow.FixedSizeListOf(3, arrow.PrimitiveTypes.Float64))},
		{logical: "dict:string:int32:false", typ: dict(arrow.PrimitiveTypes.Int32, utf8)}, {logical: "dict:int64:uint16:false", typ: dict(arrow.PrimitiveTypes.Uint16, i64)},
		{logical: "list of dict", typ: arrow.ListOf(dict(arrow.PrimitiveTypes.Int32, utf8))}, {logical: "list of list.struct", typ: arrow.ListOf(arrow.ListOf(pair))},
	}
}

// heldBy lists the types that files of a version hold, and the names of their columns.
func heldBy(version string) (types []wideType, names []string) {
	for i, w := range wideTypes() {
		if w.v22 && version != "2.2" || version == "2.0" && w.no20 != "" {
			continue
		}
		types, names = append(types, w), append(names, fmt.Sprintf("c%02d", i))
	}
	return types, names
}

func renderTypes(b *strings.Builder) {
	b.WriteString(`
## Every type in one wide table per version

A table of each version has a column of every type below, with NULLs and empty values at every level; tables of 2.1 and 2.2 are made by lakesql (columns that SQL can spell by ALTER TABLE, the
others with the table), filled by INSERT ... SELECT and read by both engines; then the engine appends what it read, and writes it into a table of its own, and lakesql reads that. Tables of 2.0 are
the engine's: lakesql reads them, deletes rows and builds indices, and refuses to append by name.

| logical type | in SQL | 2.0 | 2.1 | 2.2 |
|---|---|---|---|---|
`)
	for _, w := range wideTypes() {
		word, v20, v21 := "-", "**ci**, read", "**ci**"
		if w.sql != "" {
			word = "`" + w.sql + "`"
		}
		if w.no20 != "" {
			v20 = w.no20
		}
		if w.v22 {
			v21 = "refused by name"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | **ci** |\n", w.logical, word, v20, v21)
	}
	b.WriteString("| fixed_size_list:struct:3 | - | the engine refuses it before 2.2 | refused by name | **ci**, in a table of its own: the engine cannot read it beside other columns |\n")
}
