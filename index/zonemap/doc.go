// Package zonemap is the ZONEMAP index: for each zone, a run of rows of one fragment, the least and the greatest value and how many are NULL. It tells where a
// value cannot be; what is left is read (docs/format/zonemap.md).
//
// It opens what the real engine and lakesql wrote, answers =, IN, ranges and IS NULL with Match AtMost, and builds a segment from a column. It does not
// read the rows that it could not rule out: exec does.
//
// I1: stored keys are row addresses in every table, also in those with stable row ids.
// I2: a row is ruled out by a zone that holds it, never because no zone holds it.
// I3: zones of a fragment that do not reach its last row may stand for other rows than they say (engines before 1.0 counted live rows alone): such a
// fragment is never ruled out in part.
//
// Start with segment.go; zones.go is the file.
package zonemap
