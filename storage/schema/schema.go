package schema

import (
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
)

// Limits of what is accepted from files.
const (
	FieldsMax       = 1 << 17 // fields of one schema, nested ones included
	DepthMax        = 32      // levels of nesting, fixed-size lists within a type string included
	fixedBytesMax   = 1 << 28 // bytes of one fixed-width value: vectors, fixed-size binary
	typeStringBytes = 1 << 12 // length of a logical type string
)

// Field is one node of a Lance schema. Types follow docs/format/manifest.md.
type Field struct {
	ID       int32 // stable over renames; -1 = not assigned yet
	Name     string
	Logical  string // logical type string, e.g. "list.struct"
	Type     arrow.DataType
	Nullable bool
	Metadata map[string]string // Field.metadata, e.g. "lance-encoding:blob"
	Children []*Field          // list: the item; struct: the fields; map: entries; empty for fixed-size lists of primitives
}

// Schema is the ordered top-level fields of a table or file, with the schema metadata.
type Schema struct {
	Fields   []*Field
	Metadata map[string][]byte
}

// Lookup returns the top-level field of that exact name.
func (s *Schema) Lookup(name string) (*Field, bool) {
	for _, f := range s.Fields {
		if f.Name == name {
			return f, true
		}
	}
	return nil, false
}

// ByID returns the field of that id, at any depth.
func (s *Schema) ByID(id int32) (*Field, bool) {
	for f := range s.All() {
		if f.ID == id {
			return f, true
		}
	}
	return nil, false
}

// All yields every field depth first, parents before children.
func (s *Schema) All() iter.Seq[*Field] {
	return func(yield func(*Field) bool) {
		for _, f := range s.Fields {
			for d := range f.All() {
				if !yield(d) {
					return
				}
			}
		}
	}
}

// MaxID returns the largest field id, -1 if there is none.
func (s *Schema) MaxID() int32 {
	top := int32(-1)
	for f := range s.All() {
		top = max(top, f.ID)
	}
	return top
}

// All yields the field and its descendants depth first, parents before children.
func (f *Field) All() iter.Seq[*Field] {
	return func(yield func(*Field) bool) { f.walk(yield) }
}

func (f *Field) walk(yield func(*Field) bool) bool {
	if !yield(f) {
		return false
	}
	for _, c := range f.Children {
		if !c.walk(yield) {
			return false
		}
	}
	return true
}

// Leaves returns the descendants that have no children, in depth-first order; a field without children is its own leaf.
func (f *Field) Leaves() []*Field {
	var out []*Field
	for d := range f.All() {
		if len(d.Children) == 0 {
			out = append(out, d)
		}
	}
	return out
}

// Arrow returns the field as Arrow sees it, metadata included.
func (f *Field) Arrow() arrow.Field {
	out := arrow.Field{Name: f.Name, Type: f.Type, Nullable: f.Nullable}
	if len(f.Metadata) > 0 {
		out.Metadata = arrow.MetadataFrom(f.Metadata)
	}
	return out
}

// Arrow returns the schema as Arrow sees it. Metadata values that are not text are left as their bytes.
func (s *Schema) Arrow() *arrow.Schema {
	fields := make([]arrow.Field, len(s.Fields))
	for i, f := range s.Fields {
		fields[i] = f.Arrow()
	}
	if len(s.Metadata) == 0 {
		return arrow.NewSchema(fields, nil)
	}
	text := make(map[string]string, len(s.Metadata))
	for k, v := range s.Metadata {
		text[k] = string(v)
	}
	md := arrow.MetadataFrom(text)
	return arrow.NewSchema(fields, &md)
}
