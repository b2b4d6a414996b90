//go:build soak

package indexsoak

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/labellist"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/write"
)

const (
	rows          = 10_000_000
	labels        = 1_000_000
	perRow        = 3
	step, between = 7, 333_331 // label k of row i is (i*step + k*between) mod labels
	memoryBytes   = 64 << 20
)

var columns = arrow.NewSchema([]arrow.Field{{Name: "labels", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true}}, nil)

func name(label uint64) string { return fmt.Sprintf("label-%07d", label) }

// source yields the rows [next, end).
type source struct{ next, end uint64 }

func (s *source) Next(context.Context) (arrow.RecordBatch, error) {
	if s.next == s.end {
		return nil, io.EOF
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, columns)
	defer b.Release()
	list := b.Field(0).(*array.ListBuilder)
	for ; s.next < s.end && list.Len() < 8192; s.next++ {
		list.Append(true)
		for k := range uint64(perRow) {
			list.ValueBuilder().(*array.StringBuilder).Append(name((s.next*step + k*between) % labels))
		}
	}
	return b.NewRecordBatch(), nil
}

// holds says whether row i has the label.
func holds(i, label uint64) bool {
	for k := range uint64(perRow) {
		if (i*step+k*between)%labels == label {
			return true
		}
	}
	return false
}

// TestTenMillionRowsAndAMillionLabels builds within a memory limit that holds a fraction of the labels, and updates after one percent of new rows.
func TestTenMillionRowsAndAMillionLabels(t *testing.T) {
	ctx := context.Background()
	store, err := object.OpenLocal(t.TempDir(), object.LocalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	target := write.Target{Store: store, Dir: "t.lance"}
	if _, err := write.CreateTable(ctx, target, columns, write.CreateOptions{Parts: []write.Batches{&source{0, rows / 2}, &source{rows / 2, rows}}}); err != nil {
		t.Fatal(err)
	}
	table, err := storage.OpenTable(ctx, store, "t.lance", storage.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	debug.FreeOSMemory()
	before := anonymousMiB()
	budget := mem.NewBudget("build", 2*memoryBytes, nil)
	temp := t.TempDir()
	peak := watch(t)
	start := time.Now()
	opts := write.IndexOptions{Budget: budget, MemoryBytes: memoryBytes, TempDir: temp}
	if _, err := write.CreateIndex(ctx, table, write.IndexSpec{Column: "labels", Kind: index.KindLabelList}, write.CreateIndexOptions{IndexOptions: opts}); err != nil {
		t.Fatal(err)
	}
	build := time.Since(start)
	most := peak()
	t.Logf("built in %s, %d MiB of the budget, %d MiB in memory before, %d MiB at most", build, budget.Peak()>>20, before, most)
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 || budget.Used() != 0 {
		t.Errorf("%d temporary folders and %d bytes are left, %v", len(left), budget.Used(), err)
	}
	if before == 0 || most-before > 4*memoryBytes>>20 { // the collector lets garbage pile up to as much again
		t.Errorf("%d MiB before, %d MiB at most", before, most)
	}
	check(t, table, rows)

	if _, err := write.Append(ctx, target, &source{rows, rows + rows/100}, write.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	start = time.Now()
	if _, err := write.UpdateIndex(ctx, table, "labels_idx", write.UpdateIndexOptions{Merge: -1, IndexOptions: opts}); err != nil {
		t.Fatal(err)
	}
	update := time.Since(start)
	t.Logf("updated after 1%% in %s: %.1f%% of a rebuild", update, 100*update.Seconds()/build.Seconds())
	if update > build/20 {
		t.Errorf("an update takes %s, a build %s", update, build)
	}
	check(t, table, rows+rows/100)
	peak = watch(t)
	start = time.Now()
	if _, err := write.UpdateIndex(ctx, table, "labels_idx", write.UpdateIndexOptions{Merge: 2, SegmentsOnly: true, IndexOptions: write.IndexOptions{MemoryBytes: memoryBytes}}); err != nil {
		t.Fatal(err)
	}
	most = peak()
	t.Logf("merged in %s, %d MiB in memory at most", time.Since(start), most)
	if most-before > 8*memoryBytes>>20 { // the labels of both segments are open
		t.Errorf("%d MiB before, %d MiB at most", before, most)
	}
	check(t, table, rows+rows/100)
}

// watch looks at the process's memory until the answer is called, which returns the most MiB that there were. Pages of files that are mapped do not count.
func watch(t *testing.T) func() int64 {
	t.Helper()
	stop, most := make(chan struct{}), make(chan int64)
	go func() {
		var peak int64
		for {
			select {
			case <-stop:
				most <- peak
				return
			case <-time.After(20 * time.Millisecond):
				peak = max(peak, anonymousMiB())
			}
		}
	}()
	return func() int64 {
		close(stop)
		return <-most
	}
}

// anonymousMiB is the memory that the process has now; 0 where it cannot be told.
func anonymousMiB() int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "RssAnon: %d kB", &kib); n == 1 {
			return kib >> 10
		}
	}
	return 0
}

// check looks some labels up and compares with what the rows are made of.
func check(t *testing.T, table *storage.Table, n uint64) {
	t.Helper()
	ctx := context.Background()
	snap, err := table.Latest(ctx)
	if err != nil {
		t.Fatal(err)
	}
	first := make(map[uint32]uint64) // number of a fragment's first row
	at := uint64(0)
	for _, f := range snap.Fragments() {
		first[f.ID()] = at
		at += f.PhysicalRows()
	}
	if at != n {
		t.Fatalf("%d rows, want %d", at, n)
	}
	found := make(map[uint64]map[uint64]bool)
	some := []uint64{0, 1, 6, 7, 333_331, 500_000, labels - 1}
	for _, info := range snap.Indices() {
		open := func(ctx context.Context, name string) (object.File, error) {
			return snap.OpenIndexFile(ctx, info, name)
		}
		s, err := labellist.Open(ctx, open, index.Meta{Name: info.Name, Covers: info.Covers, Version: info.Version}, index.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if keys := s.File().Keys().Len(); len(snap.Indices()) == 1 && keys != labels {
			t.Errorf("%d labels, want %d", keys, labels)
		}
		for _, label := range some {
			values := array.NewStringBuilder(memory.DefaultAllocator)
			values.Append(name(label))
			truth, _, err := s.Lookup(ctx, index.Predicate{Op: index.OpHas, Values: values.NewArray()})
			if err != nil {
				t.Fatal(err)
			}
			if found[label] == nil {
				found[label] = make(map[uint64]bool)
			}
			for key := range truth.True.All() {
				found[label][first[uint32(key>>32)]+key&(1<<32-1)] = true
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, label := range some {
		want := 0
		for i := range n {
			if holds(i, label) {
				want++
				if !found[label][i] {
					t.Fatalf("row %d has label %d and is not found", i, label)
				}
			}
		}
		if len(found[label]) != want {
			t.Errorf("label %d: %d rows, want %d", label, len(found[label]), want)
		}
	}
}
