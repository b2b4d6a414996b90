package transfer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"go.uber.org/goleak"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/planner/coltype"
	"github.com/lakesql/lakesql/source/files"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/write"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// desk is a folder of files and a store with a table.
type desk struct {
	t      *testing.T
	dir    string
	target write.Target
}

func newDesk(t *testing.T) *desk {
	return &desk{t: t, dir: t.TempDir(), target: write.Target{Store: object.NewMemory("mem"), Dir: "t.lance"}}
}

func (d *desk) put(name, text string) {
	d.t.Helper()
	must(d.t, os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o666))
}

// csv writes a file of the ids from lo on.
func (d *desk) csv(name string, lo, n int) {
	var b strings.Builder
	b.WriteString("id,name\n")
	for i := range n {
		fmt.Fprintf(&b, "%d,n%d\n", lo+i, lo+i)
	}
	d.put(name, b.String())
}

func (d *desk) find(sources ...string) []files.File {
	d.t.Helper()
	finder := &files.Finder{}
	d.t.Cleanup(func() { must(d.t, finder.Close()) })
	for i, s := range sources {
		sources[i] = filepath.Join(d.dir, s)
	}
	found, err := finder.Find(context.Background(), sources)
	must(d.t, err)
	return found
}

// run imports sources with an allocator that is checked.
func (d *desk) run(opts ImportOptions, sources ...string) (Imported, error) {
	d.t.Helper()
	alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer alloc.AssertSize(d.t, 0)
	budget := mem.NewBudget("import", 0, nil)
	opts.Budget = budget
	opts.Files.Alloc = mem.NewAllocator(alloc, budget)
	done, err := Import(context.Background(), d.target, d.find(sources...), opts)
	if n := budget.Used(); n != 0 {
		d.t.Errorf("%d bytes are still in use", n)
	}
	return done, err
}

// ids returns the ids of the table in its order, and its version.
func (d *desk) ids() (ids []int64, version uint64) {
	d.t.Helper()
	ctx := context.Background()
	table, err := storage.OpenTable(ctx, d.target.Store, d.target.Dir, storage.TableOptions{})
	must(d.t, err)
	snap, err := table.Latest(ctx)
	must(d.t, err)
	scan, err := snap.Scan(ctx, storage.ScanOptions{Columns: []string{"id"}})
	must(d.t, err)
	r := scan.Reader()
	defer func() { must(d.t, r.Close()) }()
	for {
		b, err := r.Next(ctx)
		if err != nil {
			return ids, snap.Version()
		}
		for i := range int(b.NumRows()) {
			ids = append(ids, b.Column(0).(*array.Int64).Value(i))
		}
		b.Release()
	}
}

// dataFiles counts the files of the table's data folder.
func (d *desk) dataFiles() int {
	entries, err := d.target.Store.List(context.Background(), d.target.Dir+"/data")
	must(d.t, err)
	return len(entries)
}

func span(lo, hi int64) []int64 {
	var out []int64
	for ; lo < hi; lo++ {
		out = append(out, lo)
	}
	return out
}

func (d *desk) want(ids []int64, version uint64) {
	d.t.Helper()
	got, v := d.ids()
	if !slices.Equal(got, ids) || v != version {
		d.t.Fatalf("ids %v at version %d, want %v at version %d", got, v, ids, version)
	}
}

// Files are imported once, whatever is run again; more on purpose only.
func TestImportsOnce(t *testing.T) {
	d := newDesk(t)
	d.csv("a.csv", 0, 10)
	d.csv("b.csv", 10, 10)
	done, err := d.run(ImportOptions{CommitRows: 1}, "*.csv")
	must(t, err)
	if !done.Created || done.Files != 2 || done.Rows != 20 || done.Commits != 2 || done.Version != 2 {
		t.Fatalf("%+v", done)
	}
	d.want(span(0, 20), 2)
	d.csv("c.csv", 20, 5)
	done, err = d.run(ImportOptions{}, "*.csv")
	must(t, err)
	if done.Files != 1 || len(done.Known) != 2 || done.Rows != 5 {
		t.Fatalf("%+v", done)
	}
	d.want(span(0, 25), 3)
	done, err = d.run(ImportOptions{}, "*.csv")
	must(t, err)
	if done.Files != 0 || len(done.Known) != 3 {
		t.Fatalf("%+v", done)
	}
	d.want(span(0, 25), 3)
	_, err = d.run(ImportOptions{Again: true}, "c.csv")
	must(t, err)
	d.want(append(span(0, 25), span(20, 25)...), 4)

	d.csv("a.csv", 100, 11)
	if _, err = d.run(ImportOptions{}, "*.csv"); !errors.Is(err, errs.ErrExists) || !strings.Contains(err.Error(), "--again") {
		t.Fatalf("a file that changed: %v", err)
	}
	_, err = d.run(ImportOptions{Again: true}, "a.csv")
	must(t, err)
	done, err = d.run(ImportOptions{}, "*.csv")
	must(t, err)
	if len(done.Known) != 3 {
		t.Fatalf("%+v", done)
	}
}

func TestModes(t *testing.T) {
	d := newDesk(t)
	d.csv("a.csv", 0, 3)
	d.csv("b.csv", 3, 3)
	if _, err := d.run(ImportOptions{Mode: ModeAppend}, "a.csv"); !errors.Is(err, errs.ErrNotFound) {
		t.Fatal(err)
	}
	_, err := d.run(ImportOptions{Mode: ModeCreate}, "a.csv")
	must(t, err)
	if _, err := d.run(ImportOptions{Mode: ModeCreate}, "b.csv"); !errors.Is(err, errs.ErrExists) {
		t.Fatal(err)
	}
	_, err = d.run(ImportOptions{Mode: ModeReplace}, "b.csv", "a.csv")
	must(t, err)
	d.want([]int64{3, 4, 5, 0, 1, 2}, 2)
	done, err := d.run(ImportOptions{Mode: ModeAppend}, "*.csv")
	must(t, err)
	if done.Files != 0 || len(done.Known) != 2 {
		t.Fatalf("%+v", done)
	}
	// What was replaced may come again.
	_, err = d.run(ImportOptions{Mode: ModeReplace}, "b.csv")
	must(t, err)
	_, err = d.run(ImportOptions{}, "*.csv")
	must(t, err)
	d.want([]int64{3, 4, 5, 0, 1, 2}, 4)

	other, err := coltype.ParseColumns("id INT, name VARCHAR")
	must(t, err)
	d.csv("c.csv", 9, 1)
	if _, err := d.run(ImportOptions{Schema: other}, "c.csv"); !errors.Is(err, errs.ErrInvalid) {
		t.Fatal(err)
	}
}

// A file with a bad row is not imported; those before it are, unless all stand and fall together.
func TestBadRowFailsItsFile(t *testing.T) {
	for _, atomic := range []bool{false, true} {
		d := newDesk(t)
		d.csv("a.csv", 0, 10)
		_, err := d.run(ImportOptions{}, "a.csv")
		must(t, err)
		d.csv("b.csv", 10, 10)
		d.put("c.csv", "id,name\n20,x\nx,y\n")
		d.csv("d.csv", 30, 10)
		done, err := d.run(ImportOptions{Atomic: atomic}, "*.csv")
		var bad *files.BadRow
		if !errors.As(err, &bad) || bad.Line != 3 || bad.Column != "id" || !strings.HasSuffix(bad.File, "/c.csv") {
			t.Fatalf("%v", err)
		}
		if atomic {
			d.want(span(0, 10), 1)
		} else {
			d.want(span(0, 20), 2)
			if done.Files != 1 || done.Rows != 10 {
				t.Fatalf("%+v", done)
			}
		}
		if n := d.dataFiles(); n != 1 && atomic || n != 2 && !atomic {
			t.Fatalf("%d data files", n)
		}
		d.put("c.csv", "id,name\n20,x\n21,y\n")
		_, err = d.run(ImportOptions{Atomic: atomic}, "*.csv")
		must(t, err)
		got, _ := d.ids()
		slices.Sort(got)
		if want := append(append(span(0, 20), 20, 21), span(30, 40)...); !slices.Equal(got, want) {
			t.Fatalf("atomic %v: %v", atomic, got)
		}
	}
}

// A first file that fails makes no table.
func TestBadRowMakesNoTable(t *testing.T) {
	d := newDesk(t)
	columns, err := coltype.ParseColumns("id BIGINT, name VARCHAR")
	must(t, err)
	d.put("a.csv", "id,name\nx,y\n")
	if _, err := d.run(ImportOptions{Schema: columns}, "a.csv"); !errors.Is(err, errs.ErrBadValue) {
		t.Fatal(err)
	}
	for _, folder := range []string{"data", "_versions"} {
		if entries, err := d.target.Store.List(context.Background(), d.target.Dir+"/"+folder); err != nil || len(entries) > 0 {
			t.Fatalf("%s: %v, %v", folder, entries, err)
		}
	}
}

func TestSkipBadRows(t *testing.T) {
	d := newDesk(t)
	columns, err := coltype.ParseColumns("id BIGINT, name VARCHAR")
	must(t, err)
	var text strings.Builder
	text.WriteString("id,name\n")
	for i := range 100 {
		if i%10 == 3 {
			text.WriteString("x,y\n")
		} else {
			fmt.Fprintf(&text, "%d,n\n", i)
		}
	}
	d.put("a.csv", text.String())
	if _, err := d.run(ImportOptions{Schema: columns, SkipBad: true, BadRowsMax: 9}, "a.csv"); !errors.Is(err, errs.ErrBadValue) || !strings.Contains(err.Error(), "more than 9 bad rows") {
		t.Fatal(err)
	}
	var lines []int64
	done, err := d.run(ImportOptions{Schema: columns, SkipBad: true, BadRowsMax: 10, OnBad: func(r files.BadRow) error {
		lines = append(lines, r.Line)
		return nil
	}}, "a.csv")
	must(t, err)
	if done.BadRows != 10 || done.Rows != 90 || !slices.Equal(lines, []int64{5, 15, 25, 35, 45, 55, 65, 75, 85, 95}) {
		t.Fatalf("%+v, lines %v", done, lines)
	}
}

// Two imports of the same file beside each other: one of them commits, the other says so.
func TestImportsBesideEachOther(t *testing.T) {
	d := newDesk(t)
	d.csv("a.csv", 0, 10)
	_, err := d.run(ImportOptions{}, "a.csv")
	must(t, err)
	d.csv("b.csv", 10, 10)
	d.csv("c.csv", 20, 10)
	// When the first import of b has staged its rows, another one of b comes first.
	raced := false
	opts := ImportOptions{Commit: write.CommitOptions{Now: func() time.Time {
		if !raced {
			raced = true
			_, err := d.run(ImportOptions{}, "b.csv")
			must(t, err)
		}
		return time.Now()
	}}}
	if _, err := d.run(opts, "b.csv"); !errors.Is(err, errs.ErrConflict) || !strings.Contains(err.Error(), "imported by another writer meanwhile") {
		t.Fatal(err)
	}
	d.want(span(0, 20), 2)
	// Another file is no hindrance.
	raced = false
	opts.Commit.Now = func() time.Time {
		if !raced {
			raced = true
			_, err := d.run(ImportOptions{Again: true}, "b.csv")
			must(t, err)
		}
		return time.Now()
	}
	_, err = d.run(opts, "c.csv")
	must(t, err)
	d.want(append(append(span(0, 20), span(10, 20)...), span(20, 30)...), 4)
}

// The n-th operation of the store fails, or the process dies there, or its answer is lost: what is committed is whole files, and the next import completes them.
func TestStoreFails(t *testing.T) {
	for _, how := range []object.FaultyOptions{{Err: errs.New(errs.ErrDiskFull, "no space left")}, {Crash: true}, {AfterEffect: true}} {
		for n := int64(1); ; n++ {
			d := newDesk(t)
			whole := d.target.Store
			if n%2 == 0 { // into a table, or a new one
				d.csv("0.csv", 0, 10)
				_, err := d.run(ImportOptions{}, "0.csv")
				must(t, err)
			}
			d.csv("0.csv", 0, 10)
			d.csv("b.csv", 10, 10)
			d.csv("c.csv", 20, 10)
			must(t, os.Chtimes(filepath.Join(d.dir, "0.csv"), time.Time{}, time.Unix(1, 0)))
			if n%2 == 0 {
				_, err := d.run(ImportOptions{Mode: ModeReplace}, "0.csv")
				must(t, err)
			}
			how.FailAt = n
			faulty := object.NewFaulty(whole, how)
			d.target.Store = faulty
			_, failure := d.run(ImportOptions{CommitRows: 1}, "*.csv")
			d.target.Store = whole
			if got := d.idsIfAny(); len(got)%10 != 0 || !slices.Equal(got, span(0, int64(len(got)))) {
				t.Fatalf("%+v (%v): ids %v", how, failure, got)
			}
			if done, err := d.run(ImportOptions{CommitRows: 1}, "*.csv"); err != nil {
				t.Fatalf("%+v (%v), then the import goes on: %+v, %v", how, failure, done, err)
			}
			if got := d.idsIfAny(); !slices.Equal(got, span(0, 30)) {
				t.Fatalf("%+v (%v), then the import went on: ids %v", how, failure, got)
			}
			if faulty.Operations() < n {
				if failure != nil || n < 10 {
					t.Fatalf("%d operations, %v", faulty.Operations(), failure)
				}
				break
			}
		}
	}
}

// idsIfAny is ids, nil without a table.
func (d *desk) idsIfAny() []int64 {
	entries, err := d.target.Store.List(context.Background(), d.target.Dir+"/_versions")
	must(d.t, err)
	if len(entries) == 0 {
		return nil
	}
	got, _ := d.ids()
	return got
}

// An import that is interrupted rolls back what is not whole.
func TestInterrupted(t *testing.T) {
	d := newDesk(t)
	d.csv("a.csv", 0, 10)
	_, err := d.run(ImportOptions{}, "a.csv")
	must(t, err)
	d.csv("b.csv", 10, 200_000)
	ctx, cancel := context.WithCancel(context.Background())
	_, err = Import(ctx, d.target, d.find("*.csv"), ImportOptions{Progress: func(p Progress) {
		if p.Rows > 0 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	d.want(span(0, 10), 1)
	if n := d.dataFiles(); n != 1 {
		t.Fatalf("%d data files", n)
	}
}

// A list of 100,000 labels is a value like others.
func TestLongLists(t *testing.T) {
	d := newDesk(t)
	var labels strings.Builder
	for i := range 100_000 {
		if i > 0 {
			labels.WriteString(",")
		}
		fmt.Fprintf(&labels, `"label %d"`, i)
	}
	line := `{"id":1,"labels":[` + labels.String() + `]}` + "\n"
	d.put("a.ndjson", line+`{"id":2,"labels":[]}`+"\n"+strings.Replace(line, `"id":1`, `"id":3`, 1))
	d.put("b.csv", `id,labels`+"\n"+`4,"[`+strings.ReplaceAll(labels.String(), `"`, `""`)+`]"`+"\n")
	_, err := d.run(ImportOptions{}, "a.ndjson")
	must(t, err)
	_, err = d.run(ImportOptions{}, "b.csv")
	must(t, err)
	ctx := context.Background()
	table, err := storage.OpenTable(ctx, d.target.Store, d.target.Dir, storage.TableOptions{})
	must(t, err)
	snap, err := table.Latest(ctx)
	must(t, err)
	scan, err := snap.Scan(ctx, storage.ScanOptions{})
	must(t, err)
	r := scan.Reader()
	defer func() { must(t, r.Close()) }()
	lengths := map[int64]int{}
	for {
		b, err := r.Next(ctx)
		if err != nil {
			break
		}
		lists := b.Column(1).(*array.List)
		items := lists.ListValues().(*array.String)
		for i := range int(b.NumRows()) {
			lo, hi := lists.ValueOffsets(i)
			lengths[b.Column(0).(*array.Int64).Value(i)] = int(hi - lo)
			if hi > lo && (items.Value(int(lo)) != "label 0" || items.Value(int(hi-1)) != "label 99999") {
				t.Fatal("the labels are not those of the file")
			}
		}
		b.Release()
	}
	if fmt.Sprint(lengths) != "map[1:100000 2:0 3:100000 4:100000]" {
		t.Fatal(lengths)
	}
}
