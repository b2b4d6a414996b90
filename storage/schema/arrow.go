package schema

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/internal/errs"
)

// FromArrow builds the Lance schema of an Arrow schema; ids run depth first from 0. Extension types are stored as
// their storage type with the extension's name and metadata beside it. Errors: ErrUnsupported (naming field and type),
// ErrInvalid for repeated names.
func FromArrow(in *arrow.Schema) (*Schema, error) {
	s := &Schema{Metadata: make(map[string][]byte)}
	md := in.Metadata()
	for i, k := range md.Keys() {
		s.Metadata[k] = []byte(md.Values()[i])
	}
	var count int
	for _, af := range in.Fields() {
		f, err := fromArrowField(af, 0, &count)
		if err != nil {
			return nil, fmt.Errorf("field %q: %w", af.Name, err)
		}
		s.Fields = append(s.Fields, f)
	}
	if err := checkNames(s.Fields, errs.ErrInvalid, ""); err != nil {
		return nil, err
	}
	next := int32(0)
	for f := range s.All() {
		f.ID = next
		next++
	}
	return s, nil
}

func fromArrowField(af arrow.Field, depth int, count *int) (*Field, error) {
	*count++
	if depth >= DepthMax || *count > FieldsMax {
		return nil, errs.New(errs.ErrUnsupported, "more than %d levels or %d fields are not supported", DepthMax, FieldsMax)
	}
	f := &Field{ID: -1, Name: af.Name, Type: af.Type, Nullable: af.Nullable, Metadata: textOf(af.Metadata)}
	if ext, ok := af.Type.(arrow.ExtensionType); ok {
		f.Type = ext.StorageType()
		if f.Metadata == nil {
			f.Metadata = make(map[string]string, 2)
		}
		f.Metadata[extensionNameKey] = ext.ExtensionName()
		if m := ext.Serialize(); m != "" {
			f.Metadata[extensionMetadataKey] = m
		}
	}
	if id := f.Type.ID(); f.Metadata[extensionNameKey] == jsonExtension && (id == arrow.STRING || id == arrow.LARGE_STRING) {
		f.Type = arrow.BinaryTypes.LargeBinary // text is stored as JSONB
	}
	children, err := childFields(f.Type)
	if err != nil {
		return nil, err
	}
	for _, c := range children {
		child, err := fromArrowField(c, depth+1, count)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", c.Name, err)
		}
		f.Children = append(f.Children, child)
	}
	if f.Logical, err = logicalOf(f.Type, f.Metadata); err != nil {
		return nil, err
	}
	if len(f.Children) > 0 { // extension types below give way to their storage
		f.Type, err = f.resolveType()
		if err != nil {
			return nil, err
		}
	}
	return f, nil
}

func textOf(md arrow.Metadata) map[string]string {
	if md.Len() == 0 {
		return nil
	}
	return md.ToMap()
}

// childFields returns the fields that get a schema entry of their own.
func childFields(t arrow.DataType) ([]arrow.Field, error) {
	switch t := t.(type) {
	case *arrow.StructType:
		return t.Fields(), nil
	case *arrow.MapType:
		return []arrow.Field{{Name: "entries", Type: arrow.StructOf(t.KeyField(), t.ItemField())}}, nil
	case *arrow.ListType:
		return []arrow.Field{t.ElemField()}, nil
	case *arrow.LargeListType:
		return []arrow.Field{t.ElemField()}, nil
	case *arrow.FixedSizeListType:
		if t.Elem().ID() == arrow.STRUCT {
			return []arrow.Field{t.ElemField()}, nil
		}
	}
	return nil, nil
}

// logicalOf spells an Arrow type as Lance does.
func logicalOf(t arrow.DataType, metadata map[string]string) (string, error) { //nolint:funlen,gocyclo // flat switch
	switch t := t.(type) {
	case *arrow.NullType, *arrow.BooleanType, *arrow.Int8Type, *arrow.Uint8Type, *arrow.Int16Type, *arrow.Uint16Type,
		*arrow.Int32Type, *arrow.Uint32Type, *arrow.Int64Type, *arrow.Uint64Type, *arrow.BinaryType:
		return t.Name(), nil
	case *arrow.LargeStringType:
		return "large_string", nil
	case *arrow.Float16Type:
		return "halffloat", nil
	case *arrow.Float32Type:
		return "float", nil
	case *arrow.Float64Type:
		return "double", nil
	case *arrow.StringType:
		return "string", nil
	case *arrow.LargeBinaryType:
		if metadata[extensionNameKey] == jsonExtension {
			return "json", nil
		}
		return "large_binary", nil
	case *arrow.Date32Type:
		return "date32:day", nil
	case *arrow.Date64Type:
		return "date64:ms", nil
	case *arrow.Time32Type:
		return "time32:" + t.Unit.String(), nil
	case *arrow.Time64Type:
		return "time64:" + t.Unit.String(), nil
	case *arrow.DurationType:
		return "duration:" + t.Unit.String(), nil
	case *arrow.TimestampType:
		zone := t.TimeZone
		if zone == "" {
			zone = "-"
		}
		return "timestamp:" + t.Unit.String() + ":" + zone, nil
	case *arrow.Decimal128Type:
		return fmt.Sprintf("decimal:128:%d:%d", t.Precision, t.Scale), nil
	case *arrow.Decimal256Type:
		return fmt.Sprintf("decimal:256:%d:%d", t.Precision, t.Scale), nil
	case *arrow.FixedSizeBinaryType:
		return fmt.Sprintf("fixed_size_binary:%d", t.ByteWidth), nil
	case *arrow.StructType:
		return "struct", nil
	case *arrow.MapType:
		return "map", nil
	case *arrow.ListType:
		return listName("list", t.Elem()), nil
	case *arrow.LargeListType:
		return listName("large_list", t.Elem()), nil
	case *arrow.FixedSizeListType:
		return fixedSizeListName(t)
	case *arrow.DictionaryType:
		return dictionaryName(t)
	}
	return "", errs.New(errs.ErrUnsupported, "type %s is not supported", t)
}

func listName(kind string, elem arrow.DataType) string {
	if ext, ok := elem.(arrow.ExtensionType); ok {
		elem = ext.StorageType()
	}
	if elem.ID() == arrow.STRUCT {
		return kind + ".struct"
	}
	return kind
}

func fixedSizeListName(t *arrow.FixedSizeListType) (string, error) {
	if t.Elem().ID() == arrow.STRUCT {
		return fmt.Sprintf("fixed_size_list:struct:%d", t.Len()), nil
	}
	elem := t.ElemField()
	md := textOf(elem.Metadata)
	if md[extensionNameKey] == bfloat16Extension {
		return fmt.Sprintf("fixed_size_list:%s:%d", bfloat16Extension, t.Len()), nil
	}
	if fixedBytes(elem.Type) == 0 {
		return "", errs.New(errs.ErrUnsupported, "type %s is not supported: its elements have no fixed width", t)
	}
	name, err := logicalOf(elem.Type, md)
	if err != nil {
		return "", err
	}
	if t.Len() < 1 || int64(t.Len())*int64(fixedBytes(elem.Type)) > fixedBytesMax {
		return "", errs.New(errs.ErrUnsupported, "type %s is not supported: length %d", t, t.Len())
	}
	return fmt.Sprintf("fixed_size_list:%s:%d", name, t.Len()), nil
}

func dictionaryName(t *arrow.DictionaryType) (string, error) {
	value, err := logicalOf(t.ValueType, nil)
	if err != nil {
		return "", err
	}
	key, err := logicalOf(t.IndexType, nil)
	if err != nil {
		return "", err
	}
	name := fmt.Sprintf("dict:%s:%s:%t", value, key, t.Ordered)
	if _, err := parseDictionary(name, strings.TrimPrefix(name, "dict:"), 0); err != nil {
		return "", err
	}
	return name, nil
}
