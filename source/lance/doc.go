// Package lance makes a folder of Lance datasets a catalog: NAME.lance is table NAME. It joins storage snapshots with their index segments and
// gives them to exec as tables that scan, take, look up and search.
//
// It owns which segments answer for which rows, and the cache of opened segments. It does not own bytes (storage), index algorithms (index/*) or the choice of method (planner).
//
// I1: an index answer about a row counts only where the row's present fragment is covered by the segment that gave it: a row
// that an update moved elsewhere is read, not looked up.
// I2: search tasks of one request cover every visible row exactly once.
// I3: whoever reads a version holds its Table. Catalog.OldestInUse relies on that, for clean-ups.
//
// Start at Catalog.Table, then table.go.
package lance
