// Package vector finds nearest vectors: exactly, by comparing the query with stored rows, and through IVF segments that the real engine or
// Build wrote.
//
// It owns distances as Lance defines them, the k nearest, the files index.idx and auxiliary.idx, and k-means. It does not own which rows are
// visible (storage.Snapshot), the choice between exact and approximate (the planner) or the merge over segments and fragments (its callers,
// with Merge).
//
// I1: a row whose vector is NULL, or whose distance is not defined (a zero vector under cosine, NaN), is never a hit.
// I2: answers depend on the rows alone: not on the number of goroutines, the blocks, or whether candidates were picked or masked.
// I3: a Segment reads the rows of the lists that it probes and of no other list.
//
// Start at Scanner for exact search, Open and Segment.Nearest for an index, Build for making one. The bytes are drawn in docs/format/ivf.md.
package vector
