// Package file reads and writes one columnar file: data files and index files of versions 2.0, 2.1 and 2.2.
//
// It owns the container (footer, offset tables, global buffers, column metadata), the page layouts and the assembly of Arrow
// arrays. It does not own the codecs (package encoding), nor datasets: which file holds which column, deleted rows and versions
// are package storage's. docs/format/file.md draws the bytes.
//
// Invariants of the reader:
//
//	I1: a Reader is immutable but for its page cache and safe for concurrent use; it holds no goroutine.
//	I2: every offset, size and count is checked before it is used: wrong bytes are an errs.ErrCorrupt that names file, section and
//	    offset, never a panic and never an allocation out of proportion (limits.go of package encoding).
//	I3: a read fetches the bytes its rows need and no others; the ranges of one round are gathered in one ReadMany.
//	I4: page-level work (layouts, chunk tables, dictionaries) is done once and kept; beyond Options.CacheBytes the oldest gives way.
//	I5: arrays over mapped bytes live as long as the object.Store (its I1); all other buffers come from ReadOptions.Alloc.
//
// Start at reader.go; a read goes reader_read.go (rounds of fetching), reader_mini.go, reader_zip.go, reader_constant.go and
// reader_v20.go (pages), reader_assemble.go (arrays).
package file
