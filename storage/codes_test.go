package storage

import (
	"context"
	"errors"
	"io"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/storage/rowset"
)

// Every dataset that the reference engine wrote gives the same rows when its text comes as codes, in a scan of everything and of some of the rows.
func TestCodesAreTheSameRows(t *testing.T) {
	paths, err := filepath.Glob("../testdata/lance/*.lance")
	must(t, err)
	coded := 0
	for _, path := range paths {
		s := latest(t, path)
		var names []string
		for _, f := range s.ArrowSchema().Fields() {
			names = append(names, f.Name)
		}
		plain := scan(t, s, ScanOptions{BatchRows: 100}, 1)
		n := codedColumns(t, s, names)
		coded += n
		if got := scan(t, s, ScanOptions{BatchRows: 100, Codes: names}, 2); !reflect.DeepEqual(got.rows, plain.rows) {
			t.Errorf("%s: %d columns as codes give other rows", path, n)
		}
		addrs := slices.Sorted(maps.Keys(plain.rows))
		for _, step := range []int{2, 9} { // near enough to be read as a range, and not
			some := rowset.NewSet()
			for i := 0; i < len(addrs); i += step {
				some.Add(uint64(addrs[i]))
			}
			got := scan(t, s, ScanOptions{Candidates: some, Codes: names}, 1)
			for a, row := range got.rows {
				if !reflect.DeepEqual(row, plain.rows[a]) {
					t.Errorf("%s: row %s of one in %d is %v as codes, not %v", path, a, step, row, plain.rows[a])
				}
			}
		}
	}
	if coded < 5 {
		t.Errorf("%d columns came as codes only", coded)
	}
}

// codedColumns counts the columns of text that come as codes in some batch.
func codedColumns(t *testing.T, s *Snapshot, names []string) int {
	c, err := s.Scan(context.Background(), ScanOptions{Codes: names})
	must(t, err)
	seen := make(map[int]bool)
	for r := c.Reader(); ; {
		b, err := r.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return len(seen)
		}
		must(t, err)
		for i, col := range b.Columns() {
			if col.DataType().ID() == arrow.DICTIONARY && c.Schema().Field(i).Type.ID() != arrow.DICTIONARY {
				seen[i] = true
			}
		}
		b.Release()
	}
}
