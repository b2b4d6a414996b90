// Package bitmap reads and writes bitmap files (bitmap_page_lookup.lance: one bitmap of rows per distinct value), which BITMAP
// and LABEL_LIST indices share, and the BITMAP index itself. The bytes are drawn in docs/format/label_list.md.
//
// File is the opened file: all keys in memory, compact and paid for; bitmaps only as they are asked for, kept in a bounded
// cache. Segment answers =, IN, ranges, IS NULL and IS NOT NULL. Writer makes the file; Builder collects a column for it.
//
// It does not know labels or lists (package labellist), nor where a segment lies (storage gives files by name).
//
// I1: the keys of a File are those of the file, each with its row; no order of the file's rows is relied on.
// I2: sets that leave this package may be shared with the cache and are never changed.
// I3: an entry of size 0 in a row map is a whole fragment. It becomes the rows [0, n) where index.OpenOptions.FragmentRows knows n, every
// 32-bit offset otherwise: offsets beyond the fragment name no row, and storage.Snapshot.Resolve drops them.
//
// Start with file.go; treemap.go is the codec of a row map.
package bitmap
