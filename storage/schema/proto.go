package schema

import (
	"bytes"
	"fmt"
	"maps"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/pb/filepb"
)

// FromProto builds the tree from the flat list of a manifest or file descriptor: parents before children, parent_id -1
// for the top level. Errors: ErrCorrupt for a list that is no tree, ErrUnsupported (naming field and type) for an
// unknown logical type.
func FromProto(fields []*filepb.Field, metadata map[string][]byte) (*Schema, error) {
	if len(fields) > FieldsMax {
		return nil, errs.Corrupt("schema", -1, "%d fields, at most %d are supported", len(fields), FieldsMax)
	}
	s := &Schema{Metadata: make(map[string][]byte, len(metadata))}
	for k, v := range metadata {
		s.Metadata[k] = bytes.Clone(v)
	}
	byID := make(map[int32]*Field, len(fields))
	depth := make(map[int32]int, len(fields))
	for _, pf := range fields {
		f := &Field{
			ID: pf.GetId(), Name: pf.GetName(), Logical: pf.GetLogicalType(), Nullable: pf.GetNullable(),
			Metadata: textMap(pf.GetMetadata()),
		}
		if f.ID < 0 {
			return nil, errs.Corrupt("schema", -1, "field %q has id %d", f.Name, f.ID)
		}
		if _, twice := byID[f.ID]; twice {
			return nil, errs.Corrupt("schema", -1, "field id %d twice", f.ID)
		}
		if pf.GetParentId() < 0 {
			s.Fields = append(s.Fields, f)
		} else {
			parent, ok := byID[pf.GetParentId()]
			if !ok {
				return nil, errs.Corrupt("schema", -1, "field %q: parent %d does not come before it", f.Name, pf.GetParentId())
			}
			parent.Children = append(parent.Children, f)
			depth[f.ID] = depth[parent.ID] + 1
			if depth[f.ID] >= DepthMax {
				return nil, errs.Corrupt("schema", -1, "field %q: nested deeper than %d", f.Name, DepthMax)
			}
		}
		byID[f.ID] = f
	}
	if err := checkNames(s.Fields, errs.ErrCorrupt, ""); err != nil {
		return nil, err
	}
	for _, f := range s.Fields {
		if err := f.resolve(f.Name); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// textMap copies metadata of any value type to text.
func textMap(m map[string][]byte) map[string]string {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[k] = string(v)
	}
	return out
}

// checkNames refuses empty and repeated names among siblings.
func checkNames(fields []*Field, kind error, path string) error {
	seen := make(map[string]struct{}, len(fields))
	for _, f := range fields {
		if _, twice := seen[f.Name]; twice {
			if kind == errs.ErrCorrupt { //nolint:errorlint // a kind, not an error that happened
				return errs.Corrupt("schema", -1, "two fields named %q", path+f.Name)
			}
			return errs.New(kind, "schema: two fields named %q", path+f.Name)
		}
		seen[f.Name] = struct{}{}
	}
	return nil
}

// resolve fills Type in, children first. path names the field in errors.
func (f *Field) resolve(path string) error {
	for _, c := range f.Children {
		if err := c.resolve(path + "." + c.Name); err != nil {
			return err
		}
	}
	t, err := f.resolveType()
	if err != nil {
		return fmt.Errorf("field %q: %w", path, err)
	}
	f.Type = t
	return nil
}

func (f *Field) resolveType() (arrow.DataType, error) {
	switch f.Logical {
	case "struct":
		if err := checkNames(f.Children, errs.ErrCorrupt, f.Name+"."); err != nil {
			return nil, err
		}
		return structOf(f.Children), nil
	case "list", "list.struct":
		item, err := f.onlyChild()
		if err != nil {
			return nil, err
		}
		return arrow.ListOfField(item.Arrow()), nil
	case "large_list", "large_list.struct":
		item, err := f.onlyChild()
		if err != nil {
			return nil, err
		}
		return arrow.LargeListOfField(item.Arrow()), nil
	case "map":
		return f.resolveMap()
	}
	if n, ok := structListLength(f.Logical); ok {
		return f.resolveStructList(n)
	}
	if len(f.Children) > 0 {
		if _, err := parseType(f.Logical, 0); err != nil {
			return nil, err
		}
		return nil, errs.Corrupt("schema", -1, "type %q has %d children", f.Logical, len(f.Children))
	}
	t, err := parseType(f.Logical, 0)
	if err != nil {
		return nil, err
	}
	if f.Logical == "json" && f.Metadata[extensionNameKey] == "" {
		f.Metadata = maps.Clone(f.Metadata)
		if f.Metadata == nil {
			f.Metadata = make(map[string]string, 1)
		}
		f.Metadata[extensionNameKey] = jsonExtension
	}
	return t, nil
}

func structOf(children []*Field) *arrow.StructType {
	fields := make([]arrow.Field, len(children))
	for i, c := range children {
		fields[i] = c.Arrow()
	}
	return arrow.StructOf(fields...)
}

func (f *Field) onlyChild() (*Field, error) {
	if len(f.Children) != 1 {
		return nil, errs.Corrupt("schema", -1, "type %q has %d children, not 1", f.Logical, len(f.Children))
	}
	return f.Children[0], nil
}

func (f *Field) resolveMap() (arrow.DataType, error) {
	entries, err := f.onlyChild()
	if err != nil {
		return nil, err
	}
	st, ok := entries.Type.(*arrow.StructType)
	if !ok || st.NumFields() != 2 {
		return nil, errs.Corrupt("schema", -1, "map entries are %s, not a struct of key and value", entries.Type)
	}
	key := st.Field(0)
	key.Nullable = false
	return arrow.MapOfFields(key, st.Field(1)), nil
}

// structListLength reads fixed_size_list:struct:<n>.
func structListLength(logical string) (int32, bool) {
	var n int32
	if _, err := fmt.Sscanf(logical, "fixed_size_list:struct:%d", &n); err != nil || n < 1 || n > fixedBytesMax ||
		logical != fmt.Sprintf("fixed_size_list:struct:%d", n) {
		return 0, false
	}
	return n, true
}

func (f *Field) resolveStructList(n int32) (arrow.DataType, error) {
	item, err := f.onlyChild()
	if err != nil {
		return nil, err
	}
	if item.Type.ID() != arrow.STRUCT {
		return nil, errs.Corrupt("schema", -1, "type %q has a child of type %s", f.Logical, item.Type)
	}
	return arrow.FixedSizeListOfField(n, item.Arrow()), nil
}

// ToProto returns the flat depth-first list as manifests and file descriptors store it.
func (s *Schema) ToProto() []*filepb.Field {
	var out []*filepb.Field
	var add func(f *Field, parent int32)
	add = func(f *Field, parent int32) {
		pf := &filepb.Field{
			Name: f.Name, Id: f.ID, ParentId: parent, LogicalType: f.Logical, Nullable: f.Nullable, Encoding: encodingOf(f.Type),
		}
		for k, v := range f.Metadata {
			if pf.Metadata == nil {
				pf.Metadata = make(map[string][]byte, len(f.Metadata))
			}
			pf.Metadata[k] = []byte(v)
		}
		out = append(out, pf)
		for _, c := range f.Children {
			add(c, f.ID)
		}
	}
	for _, f := range s.Fields {
		add(f, -1)
	}
	return out
}

// encodingOf is the value that the reference writer puts into Field.encoding; readers ignore it.
func encodingOf(t arrow.DataType) filepb.Field_Encoding {
	switch t.ID() {
	case arrow.STRUCT, arrow.NULL:
		return filepb.Field_NONE
	case arrow.STRING, arrow.BINARY, arrow.LARGE_STRING, arrow.LARGE_BINARY:
		return filepb.Field_VAR_BINARY
	case arrow.DICTIONARY:
		return filepb.Field_DICTIONARY
	}
	return filepb.Field_PLAIN
}
