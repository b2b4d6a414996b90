// Package rowset names rows and holds sets of them. A Set is one roaring bitmap per fragment (or per upper 32 bits of a
// row id), so that set algebra runs fragment by fragment.
//
// It owns the two names of a row (RowAddr, RowID), set algebra, and the two serialized forms in which Lance keeps bitmaps. It
// does not know which rows exist: that is storage.Snapshot.
//
// I1: a Set keeps no empty bitmap. I2: a bitmap that stands in several sets is marked as shared and never changed: a Set that is to change gets a copy first.
package rowset
