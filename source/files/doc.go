// Package files reads files of other formats as batches of Arrow: Parquet, Arrow IPC (file and stream), CSV and NDJSON, in folders and object stores.
//
// It owns finding files (Find), what is learned from a sample of them (Inspect: format, dialect, columns), and their rows in given columns (Open). It does not
// own tables: package write/transfer puts the rows into them.
//
// I1: a row of a file is yielded whole, in its order, or reported as bad with its place, and never both or neither.
// I2: a value is read as the column's type without loss or the row is bad. Floating numbers go to the nearest of their type, times to the digits that a column declares.
// I3: memory depends on the size of chunks and of the largest row, not on the file's.
//
// Start at Inspect (inspect.go), then Open (reader.go); lines.go cuts text into chunks of whole rows, pipeline.go parses them in parallel and in order.
package files
