// Package write makes table versions: it creates tables, appends rows and registers index segments.
//
// It owns the rows' way into data files and fragments, and the commit: the next manifest, its transaction, the race for the version number and the rebase
// after a lost race. It does not own the bytes of data files (storage/file), the building of indices (index/...), or statements (planner/gms).
//
// I1: a manifest is published once, by put-if-absent, after every file that it names is durable. A failure before leaves the old version; files
// of a failed commit are removed as far as possible, and what stays is garbage that no version names.
// I2: a commit carries forward everything of the version it is based on that it does not change: index segments, configuration, unknown fields;
// but no position in the file of that version.
// I3: fragment ids and row ids are given at commit, counted up from the manifest's high marks, and never used twice.
// I4: a commit that lost the race is redone on the winner's version only where the winner's transaction is known to be compatible.
//
// Start reading at Append (append.go), then commit (commit.go). The bytes: docs/format/writing.md.
package write
