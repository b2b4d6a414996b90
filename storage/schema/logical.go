package schema

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/internal/errs"
)

// Metadata keys by which Arrow marks extension types, and the extensions that have a logical type of their own.
const (
	extensionNameKey     = "ARROW:extension:name"
	extensionMetadataKey = "ARROW:extension:metadata"
	jsonExtension        = "lance.json"
	bfloat16Extension    = "lance.bfloat16"
)

// plainTypes are the logical types without parameters or children.
func plainType(logical string) arrow.DataType { //nolint:funlen // flat switch
	switch logical {
	case "null":
		return arrow.Null
	case "bool":
		return arrow.FixedWidthTypes.Boolean
	case "int8":
		return arrow.PrimitiveTypes.Int8
	case "uint8":
		return arrow.PrimitiveTypes.Uint8
	case "int16":
		return arrow.PrimitiveTypes.Int16
	case "uint16":
		return arrow.PrimitiveTypes.Uint16
	case "int32":
		return arrow.PrimitiveTypes.Int32
	case "uint32":
		return arrow.PrimitiveTypes.Uint32
	case "int64":
		return arrow.PrimitiveTypes.Int64
	case "uint64":
		return arrow.PrimitiveTypes.Uint64
	case "halffloat":
		return arrow.FixedWidthTypes.Float16
	case "float":
		return arrow.PrimitiveTypes.Float32
	case "double":
		return arrow.PrimitiveTypes.Float64
	case "string":
		return arrow.BinaryTypes.String
	case "large_string":
		return arrow.BinaryTypes.LargeString
	case "binary":
		return arrow.BinaryTypes.Binary
	case "large_binary", "json":
		return arrow.BinaryTypes.LargeBinary
	case "date32:day":
		return arrow.FixedWidthTypes.Date32
	case "date64:ms":
		return arrow.FixedWidthTypes.Date64
	case "time32:s":
		return arrow.FixedWidthTypes.Time32s
	case "time32:ms":
		return arrow.FixedWidthTypes.Time32ms
	case "time64:us":
		return arrow.FixedWidthTypes.Time64us
	case "time64:ns":
		return arrow.FixedWidthTypes.Time64ns
	case "duration:s":
		return arrow.FixedWidthTypes.Duration_s
	case "duration:ms":
		return arrow.FixedWidthTypes.Duration_ms
	case "duration:us":
		return arrow.FixedWidthTypes.Duration_us
	case "duration:ns":
		return arrow.FixedWidthTypes.Duration_ns
	}
	return nil
}

// parseType maps the logical type of a field without children to Arrow. Errors: ErrUnsupported for a type that is not known,
// ErrCorrupt for parameters that make no sense.
func parseType(logical string, depth int) (arrow.DataType, error) {
	if depth > DepthMax {
		return nil, errs.Corrupt("schema", -1, "types nested deeper than %d", DepthMax)
	}
	if len(logical) > typeStringBytes {
		return nil, errs.Corrupt("schema", -1, "type string of %d bytes", len(logical))
	}
	if t := plainType(logical); t != nil {
		return t, nil
	}
	kind, rest, _ := strings.Cut(logical, ":")
	switch kind {
	case "timestamp":
		return parseTimestamp(logical, rest)
	case "decimal":
		return parseDecimal(logical, rest)
	case "fixed_size_binary":
		width, err := parseSize(logical, rest, 1)
		if err != nil {
			return nil, err
		}
		return &arrow.FixedSizeBinaryType{ByteWidth: width}, nil
	case "fixed_size_list":
		return parseFixedSizeList(logical, rest, depth)
	case "dict":
		return parseDictionary(logical, rest, depth)
	}
	return nil, errs.New(errs.ErrUnsupported, "type %q is not supported", logical)
}

func parseTimestamp(logical, rest string) (arrow.DataType, error) {
	unitName, zone, ok := strings.Cut(rest, ":")
	if !ok {
		return nil, errs.New(errs.ErrUnsupported, "type %q is not supported: a timestamp needs a unit and a zone", logical)
	}
	unit, ok := parseUnit(unitName)
	if !ok {
		return nil, errs.New(errs.ErrUnsupported, "type %q is not supported: unit %q is unknown", logical, unitName)
	}
	if zone == "-" {
		zone = ""
	}
	return &arrow.TimestampType{Unit: unit, TimeZone: zone}, nil
}

func parseUnit(name string) (arrow.TimeUnit, bool) {
	switch name {
	case "s":
		return arrow.Second, true
	case "ms":
		return arrow.Millisecond, true
	case "us":
		return arrow.Microsecond, true
	case "ns":
		return arrow.Nanosecond, true
	}
	return 0, false
}

func parseDecimal(logical, rest string) (arrow.DataType, error) {
	parts := strings.Split(rest, ":")
	if len(parts) != 3 || (parts[0] != "128" && parts[0] != "256") {
		return nil, errs.New(errs.ErrUnsupported, "type %q is not supported: want decimal:128|256:precision:scale", logical)
	}
	precision, err1 := strconv.ParseInt(parts[1], 10, 32)
	scale, err2 := strconv.ParseInt(parts[2], 10, 32)
	limit := int64(38)
	if parts[0] == "256" {
		limit = 76
	}
	if err1 != nil || err2 != nil || precision < 1 || precision > limit || scale < -limit || scale > limit {
		return nil, errs.Corrupt("schema", -1, "type %q: precision or scale out of range", logical)
	}
	if parts[0] == "256" {
		return &arrow.Decimal256Type{Precision: int32(precision), Scale: int32(scale)}, nil
	}
	return &arrow.Decimal128Type{Precision: int32(precision), Scale: int32(scale)}, nil
}

// parseSize reads a count of elements of elemBytes each.
func parseSize(logical, text string, elemBytes int) (int, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 || n > fixedBytesMax/int64(elemBytes) {
		return 0, errs.Corrupt("schema", -1, "type %q: size %q out of range", logical, text)
	}
	return int(n), nil
}

// parseFixedSizeList reads fixed_size_list:<element>:<n>; the element may hold colons itself.
func parseFixedSizeList(logical, rest string, depth int) (arrow.DataType, error) {
	cut := strings.LastIndexByte(rest, ':')
	if cut < 0 {
		return nil, errs.New(errs.ErrUnsupported, "type %q is not supported: a fixed-size list needs an element and a length", logical)
	}
	elem, err := parseElement(rest[:cut], depth+1)
	if err != nil {
		return nil, fmt.Errorf("in %q: %w", logical, err)
	}
	n, err := parseSize(logical, rest[cut+1:], max(1, fixedBytes(elem.Type)))
	if err != nil {
		return nil, err
	}
	return arrow.FixedSizeListOfField(int32(n), elem), nil
}

func parseElement(logical string, depth int) (arrow.Field, error) {
	elem := arrow.Field{Name: "item", Nullable: true}
	if logical == bfloat16Extension {
		elem.Type = &arrow.FixedSizeBinaryType{ByteWidth: 2}
		elem.Metadata = arrow.NewMetadata([]string{extensionNameKey}, []string{bfloat16Extension})
		return elem, nil
	}
	t, err := parseType(logical, depth)
	if err != nil {
		return elem, err
	}
	if fixedBytes(t) == 0 {
		return elem, errs.New(errs.ErrUnsupported, "a fixed-size list of %q is not supported", logical)
	}
	elem.Type = t
	return elem, nil
}

// fixedBytes is the bytes of one value of a fixed-width type (1 for a bool), 0 for any other.
func fixedBytes(t arrow.DataType) int {
	switch t := t.(type) {
	case *arrow.BooleanType:
		return 1
	case *arrow.FixedSizeListType:
		return int(t.Len()) * fixedBytes(t.Elem())
	case *arrow.DictionaryType, arrow.ExtensionType:
		return 0
	case arrow.FixedWidthDataType:
		return t.BitWidth() / 8
	}
	return 0
}

// parseDictionary reads dict:<value>:<key>:<ordered>; the value may hold colons itself.
func parseDictionary(logical, rest string, depth int) (arrow.DataType, error) {
	bad := func(why string) (arrow.DataType, error) {
		return nil, errs.New(errs.ErrUnsupported, "type %q is not supported: %s", logical, why)
	}
	cut := strings.LastIndexByte(rest, ':')
	if cut < 0 {
		return bad("a dictionary needs value, key and order")
	}
	ordered, rest := rest[cut+1:], rest[:cut]
	cut = strings.LastIndexByte(rest, ':')
	if cut < 0 || (ordered != "true" && ordered != "false") {
		return bad("a dictionary needs value, key and order")
	}
	value, err := parseType(rest[:cut], depth+1)
	if err != nil {
		return nil, fmt.Errorf("in %q: %w", logical, err)
	}
	if value.ID() == arrow.DICTIONARY || arrow.IsNested(value.ID()) || value.ID() == arrow.NULL {
		return bad("its values are no scalars")
	}
	key := plainType(rest[cut+1:])
	if key == nil || !arrow.IsInteger(key.ID()) {
		return bad("its keys are no integers")
	}
	return &arrow.DictionaryType{IndexType: key, ValueType: value, Ordered: ordered == "true"}, nil
}
