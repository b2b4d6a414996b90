// Package storage is the Lance table: a dataset folder, its versions, and the two verbs by which rows are read, Scan and Take.
//
// It owns which rows exist in a version, where their columns lie (several files per fragment, added, dropped and renamed
// columns, base paths), stable row ids, and the caches of opened files. It does not own bytes of files (storage/file), of
// manifests (storage/manifest) or of stores (storage/object), and never interprets an index: it only says which there are.
//
// A Table is a folder and the only mutable name. A Snapshot is one version of it, immutable and safe for concurrent use.
// A Fragment is a slice of rows: data files of equal length and a set of deleted offsets.
//
// Invariants:
//
//	I1: a Snapshot's fragments are disjoint; a row address (fragment, offset) names at most one live row of it.
//	I2: Scan yields every live candidate exactly once, whatever the number of readers; rows of one batch come from one
//	    fragment, in physical order.
//	I3: a column that a fragment's files do not hold reads as NULL.
//	I4: caches are keyed by the identity of a file (store, path, size, time), so they outlive versions and never mix them.
//	I5: stored keys (of indices) are row ids in tables with stable row ids, row addresses otherwise; Resolve and Keys are the
//	    only conversions, and Resolve drops what is deleted or gone.
//	I6: a file that a version names and the store does not have is an ErrIO, never an empty answer.
//
// Start at OpenTable, then Snapshot, Scan and Take.
package storage
