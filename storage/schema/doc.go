// Package schema holds the field tree of a Lance table or file and maps it to Arrow types and back.
//
// It owns the logical type strings (docs/format/manifest.md section 4), field ids, and the flat depth-first list in
// which both manifests and data files store a tree. It does not know where fields live in files: that is
// storage/file for one file and storage for a table.
//
// Invariants:
//
//	I1: Field.Type and Field.Children describe the same tree: a list has one child, a map one child "entries", a struct
//	    one child a field, a fixed-size list of structs one child; every other field has none.
//	I2: ids of one Schema are unique and not negative once assigned.
//	I3: the tree is at most DepthMax deep and holds at most FieldsMax fields, whatever the bytes said.
//
// Start at FromProto and FromArrow.
package schema
