// Package schema holds the field tree of a Lance table or file and maps it to Arrow types and back.
package schema

import "github.com/apache/arrow-go/v18/arrow"

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
