//go:build shared

package storage

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/lakesql/lakesql/internal/testutil"
)

func TestSharedDatasetsReadEqual(t *testing.T) {
	found := datasets(t, testutil.Shared(t, "fixtures", "lance"))
	if len(found) < 36 {
		t.Fatalf("%d datasets", len(found))
	}
	for _, path := range found {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".lance"), func(t *testing.T) { checkReference(t, path) })
	}
}

func TestSharedHistoryReadsEqual(t *testing.T) {
	checkHistory(t, testutil.Shared(t, "fixtures", "lance", "history.lance"))
}

func TestSharedBigANNReads(t *testing.T) {
	root := testutil.Shared(t, "fixtures", "bigann_tiny")
	for _, path := range datasets(t, root) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			s := latest(t, path)
			all := scan(t, s, ScanOptions{}, 3)
			if uint64(len(all.rows)) != s.Rows() || s.Rows() == 0 {
				t.Fatalf("%d rows of %d", len(all.rows), s.Rows())
			}
			checkTake(t, s, scan(t, s, ScanOptions{}, 1), s.ArrowSchema().Field(0).Name)
		})
	}
}

// TestSharedTPCHTablesRead checks row counts, and by Q1 that the columns of lineitem hold what they should.
func TestSharedTPCHTablesRead(t *testing.T) {
	root := testutil.Shared(t, "tpch", "sf0.01")
	for name, rows := range map[string]uint64{
		"region": 5, "nation": 25, "supplier": 100, "customer": 1500, "part": 2000, "partsupp": 8000, "orders": 15000, "lineitem": 60175,
	} {
		t.Run(name, func(t *testing.T) {
			s := latest(t, filepath.Join(root, name+".lance"))
			all := scan(t, s, ScanOptions{}, 2)
			if s.Rows() != rows || uint64(len(all.rows)) != rows {
				t.Fatalf("%d rows, %d scanned, want %d", s.Rows(), len(all.rows), rows)
			}
			for a, row := range all.rows {
				for c, v := range row {
					if v == nil {
						t.Fatalf("row %s: %s is NULL", a, c)
					}
				}
			}
			if name != "lineitem" {
				checkTake(t, s, scan(t, s, ScanOptions{}, 1), s.ArrowSchema().Field(0).Name)
				return
			}
			got := make(map[string][2]int64) // quantity in hundredths, rows
			for _, row := range all.rows {
				day, err := row["l_shipdate"].(json.Number).Int64()
				must(t, err)
				if day > 10471 { // 1998-09-02
					continue
				}
				quantity, err := strconv.ParseInt(row["l_quantity"].(string), 10, 64)
				must(t, err)
				key := row["l_returnflag"].(string) + "\t" + row["l_linestatus"].(string)
				got[key] = [2]int64{got[key][0] + quantity, got[key][1] + 1}
			}
			answer, err := os.ReadFile(testutil.Shared(t, "tpch", "answers", "q01.tsv"))
			must(t, err)
			lines := strings.Split(strings.TrimSpace(string(answer)), "\n")[1:]
			if len(lines) != len(got) {
				t.Fatalf("%d groups, want %d", len(got), len(lines))
			}
			for _, line := range lines {
				f := strings.Split(line, "\t")
				sum := got[f[0]+"\t"+f[1]]
				text := fmt.Sprintf("%d.%02d %d", sum[0]/100, sum[0]%100, sum[1])
				if want := f[2] + " " + f[len(f)-1]; text != want {
					t.Fatalf("group %s %s: %s, want %s", f[0], f[1], text, want)
				}
			}
		})
	}
}

func TestSharedTakingOneRowOfAMillionReadsLittle(t *testing.T) { checkTakeBytes(t, 1_000_000) }
