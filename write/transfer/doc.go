// Package transfer moves rows between files of other formats and tables: Import and Export.
//
// It owns when an import commits and what it records, and how an export's files appear. It does not own the files' formats (source/files reads them, Parquet and
// Arrow are written by the Arrow library) nor the table's (write).
//
// I1: the rows of a file are committed in one version, together with the record that it was imported, or not at all.
// I2: a file that the record names is not imported again unless the caller says so; a file of that name with another size or time is refused.
// I3: an export's file has its name when it is whole and durable. Several files of a local folder appear together.
//
// Start at Import (import.go) and Export (export.go).
package transfer
