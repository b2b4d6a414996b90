// Package key turns column values into ordered keys, so that every kind of filter index compares, sorts and searches values
// in one way.
//
// A value becomes a Word (a uint64 whose unsigned order is the value's order) or Bytes (whose byte-wise order is). The order is
// that of the files of the real engine: integers by value, floats by IEEE 754's total order (negative NaNs first, -0 before 0,
// other NaNs last), false before true, strings and binary byte by byte, decimals by value.
//
// I1: for values a, b of one type, a sorts before b in the files if and only if Compare(key(a), key(b)) < 0.
//
// SQL sees two things differently, and Ranges takes care of them: -0 equals 0, and a NaN compares with nothing, so that
// it is in no answer but IS NOT NULL's.
//
// It does not know index files, and does not convert literals: a predicate of another type than the column is ErrInvalid.
//
// Start with codec.go; dict.go holds the keys of a bitmap file, ranges.go turns predicates into key ranges.
package key
