package write

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/object"
)

func (l *life) must(what string, err error) {
	l.t.Helper()
	l.done += ", " + what
	if err != nil {
		l.t.Fatalf("%s: %v", l.done, err)
	}
}

// covered fails unless segments of the index cover every row, each once.
func (l *life) covered(name string) {
	l.t.Helper()
	snap := l.latest()
	all := roaring.New()
	for _, info := range group(snap, name) {
		all.Or(info.Covers)
	}
	for _, f := range snap.Fragments() {
		if !all.Contains(f.ID()) {
			l.t.Errorf("%s: fragment %d is not covered by %s", l.done, f.ID(), name)
		}
	}
}

// A compaction that comes while an index is built, and an index that comes while rows are rewritten: whoever commits second has regard to what the first did, and
// every row is covered in the end.
func TestIndexAndCompactionAtTheSameTime(t *testing.T) {
	ctx := context.Background()
	for _, stable := range []bool{false, true} {
		for i, spec := range lifeIndices {
			spec := spec.withDefaults()
			if stable && i%3 > 0 {
				continue // BITMAP and BTREE hold ids as LABEL_LIST does, vectors always
			}
			t.Run(fmt.Sprintf("%s, stable ids %t", spec.Name, stable), func(t *testing.T) {
				l := newLife(t, int64(i), stable)
				table := openTable(t, l.target)
				compact := func(rows int64) error {
					done, err := Compact(ctx, openTable(t, l.target), CompactOptions{TargetRows: rows, Remapper: IndexRemapper{}})
					if err == nil && done.FragmentsRemoved == 0 {
						t.Errorf("%s: nothing was compacted", l.done)
					}
					return err
				}
				// once runs f at the first sign of progress.
				once := func(f func() error) func() {
					ran := false
					return func() {
						if !ran {
							ran = true
							if err := f(); err != nil {
								t.Errorf("%s: meanwhile: %v", l.done, err)
							}
						}
					}
				}
				during := once(func() error { return compact(130) })
				opts := IndexOptions{Progress: func(string, int64, int64) { during() }}
				_, err := CreateIndex(ctx, table, spec, CreateIndexOptions{IndexOptions: opts})
				l.must("index during which rows are compacted", err)
				l.covered(spec.Name)
				l.check()

				_, err = Append(ctx, l.target, l.rows(40), AppendOptions{Rows: RowOptions{FragmentRows: 20}})
				l.must("append", err)
				during = once(func() error { return compact(250) })
				_, err = UpdateIndex(ctx, table, spec.Name, UpdateIndexOptions{IndexOptions: opts})
				l.must("update during which its segment and the rows are compacted", err)
				l.covered(spec.Name)
				l.check()

				_, err = Append(ctx, l.target, l.rows(50), AppendOptions{Rows: RowOptions{FragmentRows: 25}})
				l.must("append", err)
				beside := spec
				beside.Name = "beside"
				during = once(func() error {
					if _, err := UpdateIndex(ctx, openTable(t, l.target), spec.Name, UpdateIndexOptions{}); err != nil {
						return err
					}
					_, err := CreateIndex(ctx, openTable(t, l.target), beside, CreateIndexOptions{})
					return err
				})
				_, err = Compact(ctx, table, CompactOptions{TargetRows: 1000, Remapper: IndexRemapper{}, Progress: func(int) { during() }, Rows: RowOptions{Parallel: 1}})
				l.must("compaction during which indices are updated and created", err)
				l.check()
				// What the update left of fragments that were not covered before may be lost to the compaction, never to the table.
				_, err = UpdateIndex(ctx, table, spec.Name, UpdateIndexOptions{})
				l.must("update", err)
				_, err = UpdateIndex(ctx, table, beside.Name, UpdateIndexOptions{})
				l.must("update", err)
				l.covered(spec.Name)
				l.covered(beside.Name)
				l.check()
				l.noStrayFolders()
			})
		}
	}
}

// noStrayFolders fails where a folder of an index belongs to no version.
func (l *life) noStrayFolders() {
	l.t.Helper()
	ctx := context.Background()
	versions, err := openTable(l.t, l.target).Versions(ctx)
	if err != nil {
		l.t.Fatal(err)
	}
	named := make(map[string]bool)
	for _, v := range versions {
		s, err := openTable(l.t, l.target).At(ctx, storage.Ref{Version: v.Version})
		if err != nil {
			l.t.Fatal(err)
		}
		for _, info := range s.Indices() {
			named[info.UUID] = true
		}
	}
	entries, err := l.target.Store.List(ctx, object.Join(l.target.Dir, "_indices"))
	if err != nil {
		l.t.Fatal(err)
	}
	for _, e := range entries {
		files, err := l.target.Store.List(ctx, object.Join(l.target.Dir, "_indices", e.Name))
		if err != nil {
			l.t.Fatal(err)
		}
		if !named[e.Name] && len(files) > 0 {
			l.t.Errorf("%s: %d files of segment %s stayed", l.done, len(files), e.Name)
		}
	}
}

// A table that is compacted again and again gives way in the end: the index is there, and true.
func TestAnIndexOfATableThatIsNeverAtRest(t *testing.T) {
	ctx := context.Background()
	l := newLife(t, 5, false)
	busy, runs := false, 0
	opts := IndexOptions{Progress: func(string, int64, int64) {
		if busy { // a remapped segment tells of progress, too
			return
		}
		busy = true
		defer func() { busy = false }()
		runs++
		if _, err := Append(ctx, l.target, l.rows(9), AppendOptions{}); err != nil {
			t.Error(err)
		}
		if _, err := Compact(ctx, openTable(t, l.target), CompactOptions{TargetRows: 1 << 15, Remapper: IndexRemapper{}}); err != nil {
			t.Error(err)
		}
	}}
	for _, spec := range lifeIndices[:3] {
		_, err := CreateIndex(ctx, openTable(t, l.target), spec, CreateIndexOptions{IndexOptions: opts})
		l.must("create "+spec.Column, err)
		if len(group(l.latest(), spec.withDefaults().Name)) == 0 {
			t.Errorf("no index on %s", spec.Column)
		}
		l.check()
	}
	if runs < 6 || runs > 60 {
		t.Errorf("%d compactions", runs)
	}
	l.noStrayFolders()
}

// Two writers that do the same to one index: the second finds the work done.
func TestTwoUpdatesOfOneIndex(t *testing.T) {
	ctx := context.Background()
	l := newLife(t, 6, false)
	spec := lifeIndices[0].withDefaults()
	_, err := CreateIndex(ctx, openTable(t, l.target), spec, CreateIndexOptions{})
	l.must("create", err)
	for _, merge := range []int{0, -1} {
		_, err = Append(ctx, l.target, l.rows(30), AppendOptions{})
		l.must("append", err)
		first := true
		_, err = UpdateIndex(ctx, openTable(t, l.target), spec.Name, UpdateIndexOptions{Merge: merge, IndexOptions: IndexOptions{Progress: func(string, int64, int64) {
			if first {
				first = false
				if _, err := UpdateIndex(ctx, openTable(t, l.target), spec.Name, UpdateIndexOptions{Merge: merge}); err != nil {
					t.Error(err)
				}
			}
		}}})
		l.must(fmt.Sprintf("update, merging %d", merge), err)
		l.covered(spec.Name)
		l.check()
	}
}

// What takes the column away, or changes it, while its index is built is a conflict; other columns do not matter.
func TestColumnsThatChangeWhileTheirIndexIsBuilt(t *testing.T) {
	ctx := context.Background()
	spec := lifeIndices[1].withDefaults() // on tag
	for name, c := range map[string]struct {
		retries int
		change  func(l *life) error
		want    error
	}{
		"another column goes": {-1, func(l *life) error {
			_, err := DropColumns(ctx, openTable(l.t, l.target), []string{"v"}, EvolveOptions{})
			return err
		}, nil},
		"rows change in other columns": {-1, func(l *life) error { return l.update(openTable(l.t, l.target), []string{"labels", "n"}) }, nil},
		"rows change":                  {-1, func(l *life) error { return l.update(openTable(l.t, l.target), []string{"tag"}) }, nil},
		"the column goes": {0, func(l *life) error {
			_, err := DropColumns(ctx, openTable(l.t, l.target), []string{"tag"}, EvolveOptions{})
			return err
		}, errs.ErrConflict},
		"all rows go, and nobody tries again": {-1, func(l *life) error { return l.truncate() }, errs.ErrConflict},
		"all rows go":                         {0, func(l *life) error { return l.truncate() }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t, 7, false)
			first := true
			_, err := CreateIndex(ctx, openTable(t, l.target), spec, CreateIndexOptions{IndexOptions: IndexOptions{
				Commit: CommitOptions{Retries: c.retries},
				Progress: func(string, int64, int64) {
					if first {
						first = false
						if err := c.change(l); err != nil {
							t.Error(err)
						}
					}
				},
			}})
			if !errors.Is(err, c.want) || (c.want == nil) != (err == nil) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			has := slices.ContainsFunc(l.latest().Indices(), func(i storage.IndexInfo) bool { return i.Name == spec.Name })
			if has != (err == nil) {
				t.Errorf("there is an index: %t", has)
			}
			if _, whole := l.latest().Schema().Lookup("v"); whole && err == nil {
				l.check()
			}
			l.noStrayFolders()
		})
	}
}

func (l *life) truncate() error {
	x := mustBegin(l.t, openTable(l.t, l.target), TxOptions{})
	if err := x.Replace(context.Background(), []Batches{l.rows(30)}, nil); err != nil {
		return err
	}
	_, err := x.Commit(context.Background())
	return err
}
