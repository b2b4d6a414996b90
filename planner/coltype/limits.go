package coltype

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// Limits is what a declared type demands of values beyond what the Arrow type does. Zero fields demand nothing.
type Limits struct {
	Chars, Bytes int   // longest text
	Pad          int   // BINARY(n): zero bytes are added up to this length
	Min, Max     int64 // both 0 = the Arrow type's own
	Digits       int   // of a second; -1 = all
	JSON         bool
}

// JSON columns of other engines say so by an extension type; their values come as text.
const (
	keyExtension  = "ARROW:extension:name"
	jsonExtension = "lance.json"
)

// IsStoredJSON says that a column is JSON in the form of other engines: JSONB in the table, text here.
func IsStoredJSON(f arrow.Field) bool {
	ext, _ := f.Metadata.GetValue(keyExtension)
	return ext == jsonExtension && f.Type.ID() == arrow.STRING
}

// AsStoredJSON makes a column of text JSON in that form.
func AsStoredJSON(f arrow.Field) arrow.Field {
	all := f.Metadata.ToMap()
	all[keyExtension] = jsonExtension
	f.Metadata = arrow.MetadataFrom(all)
	return f
}

// Declared returns the declared type of a field and its argument (0 where it has none); "" where nothing was declared.
func Declared(f arrow.Field) (name string, n int) {
	text, ok := f.Metadata.GetValue(KeyType)
	if !ok && IsStoredJSON(f) {
		return "json", 0
	}
	if !ok {
		return "", 0
	}
	name, args, ok := strings.Cut(text, "(")
	if ok {
		n, _ = strconv.Atoi(strings.TrimSuffix(args, ")"))
	}
	return name, n
}

// LimitsOf returns the limits of a field.
func LimitsOf(f arrow.Field) Limits {
	l := Limits{Digits: -1}
	name, n := Declared(f)
	switch name {
	case "varchar", "char":
		l.Chars = n
	case "tinytext", "tinyblob":
		l.Bytes = tinyBytes
	case "text", "blob":
		l.Bytes = lineBytes
	case "mediumtext", "mediumblob":
		l.Bytes = mediumBytes
	case "varbinary":
		l.Bytes = n
	case "binary":
		l.Bytes, l.Pad = n, n
	case "mediumint":
		l.Min, l.Max = -1<<23, 1<<23-1
		if f.Type.ID() == arrow.UINT32 {
			l.Min, l.Max = 0, 1<<24-1
		}
	case "year":
		l.Min, l.Max = 0, 2155
	case "datetime", "timestamp", "time":
		l.Digits = n
	case "json":
		l.JSON = true
	}
	return l
}

// Field makes the field of a column. comment "" = none, def "" = no default.
func (t Type) Field(name string, nullable, key bool, comment, def string) arrow.Field {
	var keys, values []string
	add := func(k, v string) {
		if v != "" {
			keys, values = append(keys, k), append(values, v)
		}
	}
	add(KeyType, t.Declared)
	add(KeyComment, comment)
	add(KeyDefault, def)
	if key {
		add(KeyPrimaryKey, "true")
	}
	return arrow.Field{Name: name, Type: t.Arrow, Nullable: nullable, Metadata: arrow.NewMetadata(keys, values)}
}

// Default returns the expression of a field's default.
func Default(f arrow.Field) (string, bool) { return f.Metadata.GetValue(KeyDefault) }

// Comment returns a field's comment, "" where it has none.
func Comment(f arrow.Field) string {
	c, _ := f.Metadata.GetValue(KeyComment)
	return c
}

// Key returns the positions of the fields of the primary key, in the schema's order. The format does not enforce it.
func Key(s *arrow.Schema) []int {
	var out []int
	for i, f := range s.Fields() {
		if v, ok := f.Metadata.GetValue(KeyPrimaryKey); ok && (strings.EqualFold(v, "true") || v == "1" || strings.EqualFold(v, "yes")) {
			out = append(out, i)
		}
	}
	return out
}

// Text writes a nested type as CREATE TABLE takes it; "" for types that MySQL can write itself.
func Text(t arrow.DataType) string {
	switch t := t.(type) {
	case *arrow.ListType:
		return "list<" + elementText(t.Elem()) + ">"
	case *arrow.LargeListType:
		return "list<" + elementText(t.Elem()) + ">"
	case *arrow.FixedSizeListType:
		switch t.Elem().ID() {
		case arrow.FLOAT32:
			return fmt.Sprintf("vector(%d)", t.Len())
		case arrow.FLOAT16, arrow.FLOAT64, arrow.UINT8:
			return fmt.Sprintf("vector(%d, %s)", t.Len(), map[arrow.Type]string{arrow.FLOAT16: "float16", arrow.FLOAT64: "double", arrow.UINT8: "uint8"}[t.Elem().ID()])
		}
	case *arrow.MapType:
		return "map<" + elementText(t.KeyType()) + ", " + elementText(t.ItemType()) + ">"
	case *arrow.StructType:
		parts := make([]string, t.NumFields())
		for i, f := range t.Fields() {
			parts[i] = "`" + f.Name + "` " + elementText(f.Type)
		}
		return "struct<" + strings.Join(parts, ", ") + ">"
	}
	return ""
}

// elementText writes the types that stand inside others.
func elementText(t arrow.DataType) string { //nolint:funlen // a flat switch
	if s := Text(t); s != "" {
		return s
	}
	switch t := t.(type) {
	case arrow.DecimalType:
		return fmt.Sprintf("decimal(%d,%d)", t.GetPrecision(), t.GetScale())
	case *arrow.TimestampType:
		if t.TimeZone != "" {
			return "timestamp(6)"
		}
		return "datetime(6)"
	}
	switch t.ID() {
	case arrow.BOOL:
		return "boolean"
	case arrow.INT8:
		return "tinyint"
	case arrow.INT16:
		return "smallint"
	case arrow.INT32:
		return "int"
	case arrow.INT64:
		return "bigint"
	case arrow.UINT8:
		return "tinyint unsigned"
	case arrow.UINT16:
		return "smallint unsigned"
	case arrow.UINT32:
		return "int unsigned"
	case arrow.UINT64:
		return "bigint unsigned"
	case arrow.FLOAT16, arrow.FLOAT32:
		return "float"
	case arrow.FLOAT64:
		return "double"
	case arrow.STRING, arrow.STRING_VIEW:
		return "varchar"
	case arrow.LARGE_STRING:
		return "longtext"
	case arrow.BINARY, arrow.BINARY_VIEW, arrow.FIXED_SIZE_BINARY:
		return "varbinary"
	case arrow.LARGE_BINARY:
		return "longblob"
	case arrow.DATE32, arrow.DATE64:
		return "date"
	case arrow.TIME32, arrow.TIME64, arrow.DURATION:
		return "time(6)"
	}
	return t.String()
}
