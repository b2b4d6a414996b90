// Package labellist is the LABEL_LIST index: which rows hold a label in a list column, in SQL's three-valued logic.
//
// It opens what the real engine and lakesql wrote, answers array_has, array_has_any, array_has_all and IS NULL, and collects
// a list column for a new segment. The file and its cache are package bitmap's; committing a segment is package write's.
//
// The answers follow one table (docs/format/label_list.md section 4): a NULL list gives NULL, a NULL element never matches, an empty list
// matches nothing.
//
// I1: a segment without null-list data answers Match TrueOnly: its TRUE rows are right, NULL and FALSE cannot be told apart.
// I2: IS NOT NULL is no set in the file, since empty lists appear nowhere: index.Evaluate derives it from IS NULL and the universe.
// I3: a lookup reads the bitmaps of its needles and no other.
// I4: a segment that may be stale (index.Meta) answers AtMost: its TRUE and NULL rows are rechecked; without null-list data it does not answer.
//
// Start with segment.go.
package labellist
