// Package btree is the BTREE index: a column's values, sorted, with the stored key of each row, in pages of equal size, and the bounds
// of every page. The bytes are drawn in docs/format/btree.md.
//
// It opens what the real engine and lakesql wrote, answers =, IN, ranges, IS NULL and IS NOT NULL exactly, and writes new segments.
// A lookup reads the values of the pages in which a range begins and ends, and the row keys of what lies between.
//
// It does not convert literals, and commits nothing (package write does).
//
// I1: page k is the rows [k*batch_size, (k+1)*batch_size) of page_data; NULLs come first, then values ascending in the order of package key.
// I2: page bounds ascend; Open checks them, a lookup checks the order of each page it decodes.
//
// Start with segment.go.
package btree
