// Package write makes table versions: it creates and drops tables, adds, changes and removes rows, changes columns, compacts, restores, names and cleans up
// versions, and registers index segments.
//
// It owns the rows' way into data files and fragments, and the commit: the next manifest, its transaction, the race for the version number and the rebase
// after a lost race. It does not own the bytes of data files (storage/file), the building of indices (index/...), or statements (planner/gms).
//
// I1: a manifest is published once, by put-if-absent, after every file that it names is durable. A failure before leaves the old version; files
// of a failed commit are removed as far as possible, and what stays is garbage that no version names.
// I2: a commit carries forward everything of the version it is based on that it does not change: index segments, configuration, unknown fields;
// but no position in the file of that version.
// I3: fragment ids and row ids are given at commit, counted up from the manifest's high marks, and never used twice, not even after an old version was restored.
// I4: a commit that lost the race is redone on the winner's version only where the winner's transaction is known to be compatible (conflict.go). What touches rows
// that are there looks at them again: rows that both changed are a conflict, other rows of the same fragment are not. Indices and compactions follow each other (index.go,
// compact_op.go), and are made again where they cannot (again.go).
// I5: a segment covers a fragment only if it answers rightly for each of its live rows. Moved rows are covered where the segment names rows by ids and its columns stayed
// (next.go), rewritten ones where it was remapped; everything else is left to a scan.
// I6: what a transaction staged is seen by its own snapshots alone, and its addresses hold until it ends: ids of staged fragments are given anew at commit.
//
// Where to start: Begin (tx.go) for rows, then txOp (tx_op.go) and commit (commit.go); evolve.go for columns, compact.go, restore.go, refs.go and cleanup.go for versions.
// The bytes and the conflict table: docs/format/writing.md section 7.
package write
