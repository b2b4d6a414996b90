//go:build interop

package interop

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/segtest"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/write"
)

var lifeSpecs = []write.IndexSpec{
	{Column: "labels", Kind: index.KindLabelList}, {Column: "nums", Kind: index.KindLabelList},
	{Column: "tenant", Kind: index.KindBitmap}, {Column: "score", Kind: index.KindBTree},
	{Column: "id", Kind: index.KindZoneMap, RowsPerZone: 200},
}

var lifeFilters = append(slices.Clone(filters),
	filter{"id = 6077", "id_idx"}, filter{"id IN (6005,8001,999999)", "id_idx"}, filter{"id < 6300", "id_idx"}, filter{"id BETWEEN 7990 AND 8410", "id_idx"},
	filter{"NOT (id < 9700)", "id_idx"}, filter{"id >= 10400", "id_idx"})

// indexLife is one table that lakesql and an engine change in turn.
type indexLife struct {
	t      *testing.T
	eng    *Engine
	target write.Target
	path   string
	stable bool
	// engineIsWrong says that the engine's own index update left segments that it answers wrongly by.
	engineIsWrong bool
}

func (l *indexLife) table() *storage.Table {
	l.t.Helper()
	table, err := storage.OpenTable(context.Background(), l.target.Store, l.target.Dir, storage.TableOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	return table
}

func (l *indexLife) update(merge int) {
	l.t.Helper()
	for _, s := range lifeSpecs {
		if _, err := write.UpdateIndex(context.Background(), l.table(), s.Column+"_idx", write.UpdateIndexOptions{Merge: merge}); err != nil {
			l.t.Fatal(err)
		}
	}
}

// same compares answers, and what the engine's plans name.
func (l *indexLife) same(after string) {
	l.t.Helper()
	plans := sameAnswersTo(l.t, l.eng, l.path, after, lifeFilters, l.engineIsWrong)
	for i, f := range lifeFilters {
		if f.index == "" {
			continue
		}
		if plan := plans[i]; !strings.Contains(plan, "ScalarIndexQuery") || !strings.Contains(plan, f.index) {
			l.t.Errorf("%s, %s: the engine's plan does not name %s:\n%s", after, f.where, f.index, plan)
		}
	}
}

// segments counts the segments of every index, which must be alike (0 = not counted), and those that may be stale.
func (l *indexLife) segments(after string, want int) {
	l.t.Helper()
	for _, i := range l.eng.Info(l.path).Indices {
		if strings.HasSuffix(i.Name, "_idx") && want > 0 && i.Segments != want {
			l.t.Errorf("%s: the engine lists %d segments of %s, want %d", after, i.Segments, i.Name, want)
		}
	}
	if d := segtest.OpenDataset(l.t, l.path); d.Stale > 0 {
		l.t.Errorf("%s: %d segments may be stale", after, d.Stale)
	}
}

func (l *indexLife) engineChanges(first int) {
	l.t.Helper()
	l.eng.Do("append", Request{"path": l.path, "in": l.eng.Send(filterRows(first, 300))}, nil)
	l.eng.Do("delete", Request{"path": l.path, "filter": fmt.Sprintf("id %% 10 = %d", first%7)}, nil)
	l.eng.Do("update", Request{"path": l.path, "filter": "id % 50 = 8", "values": map[string]string{"tenant": "'t1'", "labels": "['ai','wet']", "score": "1.0"}}, nil)
}

// TestIndicesLiveBesideTheEngine: lakesql and an engine extend, merge, remap and compact one another's segments.
func TestIndicesLiveBesideTheEngine(t *testing.T) {
	for name, eng := range StartPythons(t) {
		for _, c := range []struct {
			version           file.Version
			stable, addresses bool
		}{{file.V22, false, false}, {file.V22, true, false}, {file.V21, true, true}} {
			if c.stable && name == "pylance" || !c.stable && name != "pylance" {
				continue // address keys are for the newer engine; the matrix has the rest
			}
			t.Run(fmt.Sprintf("%s %s stable ids %t, address keys %t", name, c.version, c.stable, c.addresses), func(t *testing.T) {
				store, dir := local(t)
				l := &indexLife{t: t, eng: eng, target: write.Target{Store: store, Dir: "t.lance"}, path: filepath.Join(dir, "t.lance"), stable: c.stable}
				opts := write.CreateOptions{
					Version: c.version, StableRowIDs: c.stable, Rows: write.RowOptions{FragmentRows: 1600},
					Parts: []write.Batches{&batches{rows: sliced(filterRows(6000, 4000), 1777)}},
				}
				if _, err := write.CreateTable(context.Background(), l.target, filterColumns, opts); err != nil {
					t.Fatal(err)
				}
				for _, s := range lifeSpecs {
					s.RowAddresses = c.addresses && s.Kind == index.KindBTree // as the engine does
					if _, err := write.CreateIndex(context.Background(), l.table(), s, write.CreateIndexOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				l.same("built")
				l.story()
			})
		}
	}
}

func (l *indexLife) story() {
	t := l.t
	appendRows(t, l.target, filterRows(10_000, 300), write.AppendOptions{})
	l.update(-1)
	l.segments("our new rows", 2)
	l.same("our new rows as a segment")
	l.engineChanges(10_300)
	l.same("the engine's changes")
	l.update(1)
	l.segments("our update", map[bool]int{false: 2, true: 0}[l.stable])
	l.same("our update")
	l.engineChanges(10_600)
	l.eng.Do("optimize_indices", Request{"path": l.path, "options": map[string]any{"num_indices_to_merge": 0}}, nil)
	// In tables with stable row ids the engine now finds updated rows by what they were: entries of the old segment, rows that the new one covers.
	l.engineIsWrong = l.stable
	l.same("the engine's update")
	l.engineIsWrong = false
	l.update(9)
	l.segments("our merge", 1)
	l.same("our merge of its segments and ours")
	l.engineChanges(10_900)
	if _, err := write.Compact(context.Background(), l.table(), write.CompactOptions{TargetRows: 1000, Remapper: write.IndexRemapper{}}); err != nil {
		t.Fatal(err)
	}
	l.same("our compaction")
	l.update(1)
	l.segments("after our compaction", 1)
	l.same("our update after our compaction")
	l.eng.Do("compact", Request{"path": l.path}, nil)
	l.eng.Do("optimize_indices", Request{"path": l.path}, nil)
	l.engineIsWrong = l.stable
	l.same("the engine's compaction and update")
	l.engineIsWrong = false
	l.eng.Do("create_index", Request{"path": l.path, "column": "tenant", "kind": "NGRAM", "name": "grams"}, nil)
	appendRows(t, l.target, filterRows(11_200, 300), write.AppendOptions{})
	l.update(1)
	if _, err := write.DropIndex(context.Background(), l.table(), "nums_idx", write.CommitOptions{}); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, i := range l.eng.Info(l.path).Indices {
		names = append(names, i.Name)
	}
	slices.Sort(names)
	if want := []string{"grams", "id_idx", "labels_idx", "score_idx", "tenant_idx"}; !slices.Equal(names, want) {
		t.Errorf("the engine lists %v, want %v", names, want)
	}
}
