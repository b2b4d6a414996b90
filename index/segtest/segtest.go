// Package segtest builds index segments in memory and states what they must answer, for the tests of the filter kinds.
package segtest

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"pgregory.net/rapid"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/rowset"
)

// TB is what tests and rapid checks share.
type TB interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// Opener opens the files of folder dir of store by name.
func Opener(store object.Store, dir string) index.OpenFile {
	return func(ctx context.Context, name string) (object.File, error) {
		return store.Open(ctx, path.Join(dir, name))
	}
}

// Create starts a file of store.
func Create(tb TB, store object.Store, name string) object.Writer {
	tb.Helper()
	w, err := store.Create(context.Background(), name)
	if err != nil {
		tb.Fatal(err)
	}
	return w
}

// Array builds values from JSON.
func Array(tb TB, t arrow.DataType, values string) arrow.Array {
	tb.Helper()
	arr, _, err := array.FromJSON(memory.DefaultAllocator, t, strings.NewReader(values))
	if err != nil {
		tb.Fatalf("%s %s: %v", t, values, err)
	}
	return arr
}

// Type is an element type with some of its values, ascending and different for SQL.
type Type struct {
	Arrow  arrow.DataType
	Values []string // JSON
}

// Types are the types that an index must hold.
var Types = []Type{
	{arrow.FixedWidthTypes.Boolean, []string{`false`, `true`}},
	{arrow.PrimitiveTypes.Int8, []string{`-128`, `-1`, `0`, `5`, `127`}},
	{arrow.PrimitiveTypes.Int32, []string{`-1294967296`, `-1`, `0`, `1`, `10`}},
	{arrow.PrimitiveTypes.Int64, []string{`-9223372036854775808`, `0`, `1`, `9223372036854775807`}},
	{arrow.PrimitiveTypes.Uint16, []string{`0`, `1`, `65535`}},
	{arrow.PrimitiveTypes.Uint64, []string{`0`, `1`, `18446744073709551615`}},
	{arrow.PrimitiveTypes.Float32, []string{`-1.5`, `0`, `0.25`, `3e30`}},
	{arrow.PrimitiveTypes.Float64, []string{`-1e300`, `-1.5`, `0`, `0.1`, `7`}},
	{arrow.FixedWidthTypes.Date32, []string{`-400`, `0`, `20000`}},
	{arrow.FixedWidthTypes.Timestamp_us, []string{`-5`, `0`, `1700000000000000`}},
	{arrow.BinaryTypes.String, []string{`""`, `"FOO"`, `"cafe\u0301"`, `"caf\u00e9"`, `"foo"`, `"foo "`, `"日本"`, `"😀"`}},
	{arrow.BinaryTypes.LargeString, []string{`""`, `"a"`, `"b"`}},
	{arrow.BinaryTypes.Binary, []string{`""`, `"AA=="`, `"/w=="`}},
	{&arrow.Decimal128Type{Precision: 20, Scale: 2}, []string{`"-10.25"`, `"0.00"`, `"0.01"`, `"99999999999.00"`}},
}

// Verdict is one row's answer: 1 TRUE, 0 FALSE, -1 NULL.
type Verdict int

// Of turns a bool into a Verdict.
func Of(isTrue bool) Verdict {
	if isTrue {
		return 1
	}
	return 0
}

// Check compares a Truth with a verdict per stored key.
func Check(tb TB, what string, got index.Truth, keys []uint64, verdict func(i int) Verdict) {
	tb.Helper()
	want := index.Truth{True: &rowset.Set{}, Null: &rowset.Set{}}
	for i, k := range keys {
		switch verdict(i) {
		case 1:
			want.True.Add(k)
		case -1:
			want.Null.Add(k)
		}
	}
	if !rowset.Equal(got.True, want.True) {
		tb.Fatalf("%s: TRUE rows %v, want %v", what, slices.Collect(got.True.All()), slices.Collect(want.True.All()))
	}
	if !rowset.Equal(got.Null, want.Null) {
		tb.Fatalf("%s: NULL rows %v, want %v", what, slices.Collect(got.Null.All()), slices.Collect(want.Null.All()))
	}
}

// DrawKeys draws n different stored keys, in ascending order or not, over a few fragments.
func DrawKeys(t *rapid.T, n int) []uint64 {
	keys := make([]uint64, 0, n)
	step := rapid.Uint64Range(1, 3).Draw(t, "step")
	perFragment := rapid.IntRange(1, max(n, 1)).Draw(t, "rows per fragment")
	for i := range n {
		keys = append(keys, uint64(i/perFragment)<<32|uint64(i%perFragment)*step)
	}
	if rapid.Bool().Draw(t, "shuffled") {
		keys = rapid.Permutation(keys).Draw(t, "keys")
	}
	return keys
}

// JSONList renders indices into t.Values as a JSON array; -1 is NULL.
func (t Type) JSONList(choice []int) string {
	parts := make([]string, len(choice))
	for i, c := range choice {
		parts[i] = "null"
		if c >= 0 {
			parts[i] = t.Values[c]
		}
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// Needles builds the Values of a predicate from indices into t.Values.
func (t Type) Needles(tb TB, choice ...int) arrow.Array {
	tb.Helper()
	return Array(tb, t.Arrow, t.JSONList(choice))
}

// DrawChoice draws one value of t, or -1 for NULL where that is allowed.
func (t Type) DrawChoice(r *rapid.T, withNull bool) int {
	low := 0
	if withNull {
		low = -1
	}
	return rapid.IntRange(low, len(t.Values)-1).Draw(r, "value")
}

// Fuzz flips and cuts bytes as told by edits, for tests on mutated files.
func Fuzz(content, edits []byte) []byte {
	out := slices.Clone(content)
	for i := 0; i+2 < len(edits) && len(out) > 0; i += 3 {
		at := (int(edits[i])<<8 | int(edits[i+1])) * 7 % len(out)
		switch edits[i+2] {
		case 0xFF:
			out = out[:at]
		default:
			out[at] ^= edits[i+2]
		}
	}
	return out
}

// Tolerable says whether err is an error that hostile bytes may cause; it fails the test for any other kind. nil is none.
func Tolerable(tb testing.TB, err error) bool {
	tb.Helper()
	if err == nil {
		return false
	}
	for _, kind := range []error{errs.ErrCorrupt, errs.ErrUnsupported, errs.ErrMemoryLimit, errs.ErrInvalid} {
		if errors.Is(err, kind) {
			return true
		}
	}
	tb.Fatalf("not an error for broken files: %v", err)
	return true
}

// Files reads every file of dir.
func Files(tb testing.TB, store object.Store, dir string) map[string][]byte {
	tb.Helper()
	ctx := context.Background()
	entries, err := store.List(ctx, dir)
	if err != nil {
		tb.Fatal(err)
	}
	out := make(map[string][]byte)
	for _, e := range entries {
		f, err := store.Open(ctx, path.Join(dir, e.Name))
		if err != nil {
			tb.Fatal(err)
		}
		b, err := f.Read(ctx, object.Range{Offset: 0, Size: f.SizeBytes()})
		if err != nil {
			tb.Fatal(err)
		}
		out[e.Name] = slices.Clone(b)
	}
	if len(out) == 0 {
		tb.Fatal(fmt.Errorf("no file in %s", dir))
	}
	return out
}

// DrawCuts cuts n rows into at most parts consecutive parts: part i is the rows from cut i to cut i+1.
func DrawCuts(t *rapid.T, n, parts int) []int {
	cuts := []int{0, n}
	for range rapid.IntRange(0, parts-1).Draw(t, "cuts") {
		cuts = append(cuts, rapid.IntRange(0, n).Draw(t, "cut"))
	}
	slices.Sort(cuts)
	return cuts
}
