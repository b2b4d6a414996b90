// Package parquet makes a folder of Parquet files a catalog: NAME.parquet is table NAME, and so is a folder NAME of *.parquet files of one schema.
//
// It owns which files make a table and how row groups become batches. It does not own the format: that is arrow-go's.
//
// I1: a table's files are listed when it is opened and never looked up again, so that a statement sees one set of files.
//
// Start at Catalog.Table.
package parquet
