// Package coltype maps MySQL's column types, and those that lakesql adds (LIST, VECTOR, STRUCT, MAP), to Arrow types and back. What an Arrow type does not
// say by itself (VARCHAR(255), MEDIUMINT, DATETIME(0), JSON) and a column's default, comment and place in the primary key are kept in the field's metadata, so
// that every engine reads the table and lakesql finds its own words again. It knows no MySQL library.
//
// Start reading at Parse (parse.go), then Limits (limits.go).
package coltype
