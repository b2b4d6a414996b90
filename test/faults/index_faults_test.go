//go:build unix

package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/server"
	"github.com/lakesql/lakesql/source"
	"github.com/lakesql/lakesql/source/lance"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/test/lakes"
	"github.com/lakesql/lakesql/write"
)

// indexed is a table of 200 rows with an index of two segments on each column.
func indexed() lakes.Table {
	t := lakes.Table{
		Name: "t",
		Fields: []arrow.Field{
			lakes.Field("id", lakes.Int64), lakes.Field("labels", lakes.Labels), lakes.Field("tenant", lakes.Text), lakes.Field("zone", lakes.Int64), lakes.Field("v", lakes.Vector(2)),
		},
		Indices: []lakes.Index{
			{Column: "id", Kind: index.KindBTree}, {Column: "labels", Kind: index.KindLabelList}, {Column: "tenant", Kind: index.KindBitmap},
			{Column: "zone", Kind: index.KindZoneMap}, {Column: "v", Kind: index.KindIVFFlat, Metric: index.MetricL2, Lists: 4},
		},
	}
	rows := make([]string, 200)
	for i := range rows {
		rows[i] = fmt.Sprintf(`{"id":%d,"labels":["l%d","m%d"],"tenant":"t%d","zone":%d,"v":[%d,%d]}`, i, i%5, i%3, i%4, i, i, i%7)
	}
	t.Rows = "[" + strings.Join(rows, ",") + "]"
	return t
}

// uses names, by indexed column, a statement that the index serves and its answer.
var uses = map[string]struct{ text, want string }{
	"id":     {"SELECT id FROM t WHERE id IN (3, 150)", "150 3"},
	"labels": {"SELECT COUNT(*) FROM t WHERE array_has(labels, 'l1')", "40"},
	"tenant": {"SELECT COUNT(*) FROM t WHERE tenant = 't1'", "50"},
	"zone":   {"SELECT id FROM t WHERE zone BETWEEN 98 AND 101", "100 101 98 99"},
	"v":      {"SELECT id FROM t ORDER BY l2_distance(v, '[100,2]') LIMIT 3", "100 101 99"},
}

// ailing is a store whose reads of some files fail.
type ailing struct {
	object.Store
	match atomic.Pointer[string] // part of the path
	err   error
	opens atomic.Int64 // of files of indices
}

func (a *ailing) Open(ctx context.Context, p string) (object.File, error) {
	if strings.Contains(p, "_indices") {
		a.opens.Add(1)
	}
	if m := a.match.Load(); m != nil && strings.Contains(p, *m) {
		return nil, a.err
	}
	return a.Store.Open(ctx, p)
}

// ill opens the lake over a store that can fail.
func ill(t *testing.T, dir string, opts object.LocalOptions) (*ailing, *lakes.Lake) {
	t.Helper()
	store, err := object.OpenLocal(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	a := &ailing{Store: store}
	e, err := engine.Open(context.Background(), engine.Config{Catalogs: []source.Catalog{lance.Open("lake", a, lance.Options{})}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if used := e.Budget().Used(); used != 0 {
			t.Errorf("%d bytes are still reserved", used)
		}
	})
	s := e.NewSession(engine.SessionOptions{Database: "lake"})
	t.Cleanup(s.Close)
	return a, &lakes.Lake{Engine: e, Session: s}
}

func ask(t *testing.T, l *lakes.Lake, text string) []string {
	t.Helper()
	got, _, err := lakes.AskSession(context.Background(), l.Session, text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return got
}

// segmentsOf returns the folders of an index's segments, oldest first.
func segmentsOf(t *testing.T, dir, column string) []string {
	t.Helper()
	store, err := object.OpenLocal(dir, object.LocalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	table, err := storage.OpenTable(context.Background(), store, "t.lance", storage.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	snap, err := table.Latest(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, x := range snap.Indices() {
		if x.Name == column+"_idx" {
			out = append(out, filepath.Join(dir, "t.lance", "_indices", x.UUID))
		}
	}
	if len(out) != 2 {
		t.Fatalf("%d segments of %s", len(out), column)
	}
	return out
}

func eachFile(t *testing.T, folder string, do func(path string) error) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files in %s, %v", len(files), folder, err)
	}
	for _, f := range files {
		if err := do(f); err != nil {
			t.Fatal(err)
		}
	}
}

func garble(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for i := range b {
		b[i] ^= 0x5a
	}
	return os.WriteFile(path, b, 0o600)
}

// TestDamagedSegmentsAreScanned harms one of two segments, or both, before they are opened: rows stay right, and plans and warnings name the file.
func TestDamagedSegmentsAreScanned(t *testing.T) {
	for name, harm := range map[string]func(string) error{
		"gone": os.Remove, "garbled": garble, "cut": func(p string) error { return os.Truncate(p, 10) }, "empty": func(p string) error { return os.Truncate(p, 0) },
	} {
		for column, use := range uses {
			for _, count := range []int{1, 2} {
				t.Run(fmt.Sprintf("%s %s %d", name, column, count), func(t *testing.T) {
					dir := t.TempDir()
					lakes.Build(t, dir, lakes.Extended, indexed())
					segments := segmentsOf(t, dir, column)
					for _, s := range segments[:count] {
						eachFile(t, s, harm)
					}
					store, l := ill(t, dir, object.LocalOptions{})
					ask(t, l, "SET ann = 'force'")
					checkFault(t, l, column, use.text, use.want, filepath.Base(segments[0]), count)
					before := store.opens.Load()
					checkFault(t, l, column, use.text, use.want, filepath.Base(segments[0]), count)
					if after := store.opens.Load(); after != before {
						t.Errorf("%d files were opened again", after-before)
					}
					rebuild(t, dir, column)
					if got := ask(t, l, "EXPLAIN "+use.text); strings.Contains(strings.Join(got, "\n"), "segment") {
						t.Errorf("after the index was built again: %q", got)
					}
					if got := ask(t, l, "SHOW WARNINGS"); len(got) > 0 && column != "v" || len(got) > 1 {
						t.Errorf("after the index was built again: %q", got)
					}
				})
			}
		}
	}
}

func checkFault(t *testing.T, l *lakes.Lake, column, text, want, segment string, count int) {
	t.Helper()
	got := ask(t, l, text)
	slices.Sort(got)
	if answer := strings.Join(got, " "); answer != want {
		t.Errorf("%s: %q, want %q", text, answer, want)
	}
	// A warning that the answer is approximate may stand beside it.
	warnings := slices.DeleteFunc(ask(t, l, "SHOW WARNINGS"), func(w string) bool { return strings.Contains(w, "approximate") })
	if len(warnings) != 1 || !strings.Contains(warnings[0], column+"_idx segment "+segment[:8]+" file ") || !strings.Contains(warnings[0], ".") {
		t.Errorf("%s: warnings %q", text, warnings)
	}
	more := strings.Contains(strings.Join(warnings, ""), "1 more")
	if more != (count > 1) {
		t.Errorf("%s of %d damaged segments: warnings %q", text, count, warnings)
	}
	for _, explain := range []string{"EXPLAIN ", "EXPLAIN ANALYZE ", "EXPLAIN FORMAT=JSON "} {
		plan := strings.Join(ask(t, l, explain+text), "\n")
		if !strings.Contains(plan, column+"_idx segment "+segment[:8]+" file ") {
			t.Errorf("%s%s does not name the fault:\n%s", explain, text, plan)
		}
		if count == 1 && !strings.Contains(plan, "1 by index, 1 by scan") {
			t.Errorf("%s%s does not tell the coverage:\n%s", explain, text, plan)
		}
	}
}

func rebuild(t *testing.T, dir, column string) {
	t.Helper()
	ctx := context.Background()
	store, err := object.OpenLocal(dir, object.LocalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	table, err := storage.OpenTable(ctx, store, "t.lance", storage.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range indexed().Indices {
		switch {
		case i.Column != column:
		case i.Metric != "":
			_, err = write.BuildIVFFlat(ctx, table, column, write.IVFFlatOptions{Metric: i.Metric, Lists: i.Lists, Replace: true})
		default:
			_, err = write.BuildFilterIndex(ctx, table, write.FilterIndexSpec{Column: column, Kind: i.Kind}, write.FilterIndexOptions{Replace: true})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestSegmentsThatBreakWhileOpen harms a segment after it was opened: the statement that finds out answers all the same.
func TestSegmentsThatBreakWhileOpen(t *testing.T) {
	for name, c := range map[string]struct {
		opts object.LocalOptions
		harm func(string) error
	}{
		"gone": {object.LocalOptions{MappingsMax: -1, SmallBytes: -1}, os.Remove},
		"cut":  {object.LocalOptions{MappingsMax: -1, SmallBytes: -1}, func(p string) error { return os.Truncate(p, 0) }},
	} {
		for column, use := range uses {
			if column == "zone" {
				continue // a zone map is in memory once it is open
			}
			t.Run(name+" "+column, func(t *testing.T) {
				dir := t.TempDir()
				lakes.Build(t, dir, lakes.Extended, indexed())
				_, l := ill(t, dir, c.opts)
				ask(t, l, "SET ann = 'force'")
				// Opens the segments and reads none of the parts that the statement needs.
				ask(t, l, "EXPLAIN "+strings.NewReplacer("l1", "l9", "t1", "t9").Replace(use.text))
				segment := segmentsOf(t, dir, column)[0]
				eachFile(t, segment, c.harm)
				plan := strings.Join(ask(t, l, "EXPLAIN ANALYZE "+use.text), "\n")
				id := filepath.Base(segment)[:8]
				if !strings.Contains(plan, "fault_of_"+id+"=index "+column+"_idx segment "+id) {
					t.Errorf("the fault is not named:\n%s", plan)
				}
				if got := ask(t, l, "SHOW WARNINGS"); !slices.ContainsFunc(got, func(w string) bool { return strings.Contains(w, column+"_idx segment "+id) }) {
					t.Errorf("warnings %q", got)
				}
				checkFault(t, l, column, use.text, use.want, filepath.Base(segment), 1)
			})
		}
	}
}

// TestStoresThatFailAreErrors: an index that a store does not give now may be whole, so the statement fails, and is answered once the store is well.
func TestStoresThatFailAreErrors(t *testing.T) {
	for _, kind := range []error{errs.ErrIO, errs.ErrPermission} {
		for column, use := range uses {
			t.Run(fmt.Sprint(column, kind), func(t *testing.T) {
				dir := t.TempDir()
				lakes.Build(t, dir, lakes.Extended, indexed())
				store, l := ill(t, dir, object.LocalOptions{})
				ask(t, l, "SET ann = 'force'")
				store.err = errs.New(kind, "the store says no")
				segment := filepath.Base(segmentsOf(t, dir, column)[1])
				store.match.Store(&segment)
				for range 2 {
					if _, _, err := lakes.AskSession(context.Background(), l.Session, use.text); !errors.Is(err, kind) || !strings.Contains(err.Error(), column+"_idx") {
						t.Errorf("%s: %v", use.text, err)
					}
				}
				store.match.Store(nil)
				got := ask(t, l, use.text)
				slices.Sort(got)
				if answer := strings.Join(got, " "); answer != use.want {
					t.Errorf("%s: %q, want %q", use.text, answer, use.want)
				}
			})
		}
	}
}

// TestTheWireCountsFaults: clients see how many warnings there are.
func TestTheWireCountsFaults(t *testing.T) {
	dir := t.TempDir()
	lakes.Build(t, dir, lakes.Extended, indexed())
	eachFile(t, segmentsOf(t, dir, "labels")[0], os.Remove)
	l := lakes.Open(t, dir, engine.Config{}).Serve(t, server.Options{})
	for _, text := range []bool{true, false} {
		conn := l.Connect(t, text)
		// The same index twice in a statement is one warning.
		got, err := lakes.AskConn(context.Background(), conn, "SELECT COUNT(*) FROM t WHERE array_has(labels, 'l1') OR id = ? AND array_has(labels, 'm1')", 3)
		if err != nil || !slices.Equal(got, []string{"40"}) {
			t.Errorf("%q, %v", got, err)
		}
		if got, err := lakes.AskConn(context.Background(), conn, "SHOW WARNINGS"); err != nil || len(got) != 1 {
			t.Errorf("%q, %v", got, err)
		}
	}
}
