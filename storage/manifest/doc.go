// Package manifest reads and writes the table-level files of a Lance dataset: manifests with their index and
// transaction sections, the names under _versions, deletion files, row id sequences, tags and branches.
//
// It owns bytes and names (docs/format/manifest.md), and turns them into checked Go values. It does not know what a
// snapshot is, opens no data file and keeps no cache: that is package storage.
//
// Invariants:
//
//	I1: a Manifest that Decode returned has unique fragment ids that fit 32 bits, plain relative file paths, a field and
//	    a column index for each entry of a data file, and only feature flags that this package knows.
//	I2: the hint file is never read: the latest version is what the folder says.
//	I3: unknown fields of a manifest stay in Proto, so that a rewritten manifest keeps them.
//
// Start at Decode and Read; RowIDs and ParseDeletions stand alone.
package manifest
