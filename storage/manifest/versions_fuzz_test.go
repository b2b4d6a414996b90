package manifest

import (
	"errors"
	"testing"

	"github.com/lakesql/lakesql/internal/errs"
)

// FuzzParseVersions: no panic; an ErrCorrupt, or runs that are as many rows as asked for and read back as themselves.
func FuzzParseVersions(f *testing.F) {
	for _, runs := range [][]VersionRun{nil, {{Count: 5, Version: 1}}, {{Count: 5, Version: 1}, {Count: 2, Version: 9}}} {
		b, err := EncodeVersions(runs)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, uint64(7))
	}
	f.Fuzz(func(t *testing.T, b []byte, rows uint64) {
		rows &= 1<<32 - 1
		runs, err := ParseVersions(b, rows)
		if err != nil {
			if !errors.Is(err, errs.ErrCorrupt) {
				t.Fatalf("%v", err)
			}
			return
		}
		n := uint64(0)
		for _, r := range runs {
			n += r.Count
		}
		if n != rows {
			t.Fatalf("%d rows, want %d", n, rows)
		}
		again, err := EncodeVersions(runs)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseVersions(again, rows); err != nil {
			t.Fatal(err)
		}
	})
}
