package upkeep

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/source"
	"github.com/lakesql/lakesql/source/lance"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/write"
)

func TestMain(m *testing.M) {
	logrus.SetLevel(logrus.FatalLevel)
	goleak.VerifyTestMain(m)
}

var columns = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64},
	{Name: "labels", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true},
}, nil)

type rows struct{ from, to int64 }

func (s *rows) Next(context.Context) (arrow.RecordBatch, error) {
	if s.from == s.to {
		return nil, io.EOF
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, columns)
	defer b.Release()
	for ; s.from < s.to; s.from++ {
		b.Field(0).(*array.Int64Builder).Append(s.from)
		labels := b.Field(1).(*array.ListBuilder)
		labels.Append(true)
		labels.ValueBuilder().(*array.StringBuilder).Append(fmt.Sprintf("l%d", s.from%7))
	}
	return b.NewRecordBatch(), nil
}

// hooked calls before ahead of what changes the store.
type hooked struct {
	object.Store
	before atomic.Pointer[func(op, path string) error]
}

func (h *hooked) call(op, path string) error {
	if f := h.before.Load(); f != nil {
		return (*f)(op, path)
	}
	return nil
}

func (h *hooked) set(f func(op, path string) error) { h.before.Store(&f) }

func (h *hooked) Put(ctx context.Context, path string, content []byte, ifAbsent bool) error {
	if err := h.call("put", path); err != nil {
		return err
	}
	return h.Store.Put(ctx, path, content, ifAbsent)
}

func (h *hooked) Create(ctx context.Context, path string) (object.Writer, error) {
	if err := h.call("create", path); err != nil {
		return nil, err
	}
	return h.Store.Create(ctx, path)
}

// lakeTest is a lake with the table t and a clock that stands unless it is moved.
type lakeTest struct {
	t      *testing.T
	dir    string
	store  *hooked
	target write.Target
	lake   *lance.Catalog
	now    time.Time
	next   int64
}

func newLake(t *testing.T, readOnly bool) *lakeTest {
	t.Helper()
	dir := t.TempDir()
	local, err := object.OpenLocal(dir, object.LocalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l := &lakeTest{t: t, dir: dir, store: &hooked{Store: local}, now: time.Now()}
	l.target = write.Target{Store: local, Dir: "t.lance"}
	l.lake = lance.Open("lake", l.store, lance.Options{ReadOnly: readOnly})
	t.Cleanup(func() { _ = l.lake.Close() })
	opts := write.CreateOptions{Parts: []write.Batches{&rows{0, 100}}}
	l.next = 100
	if _, err := write.CreateTable(context.Background(), l.target, columns, opts); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *lakeTest) append(times int, n int64) {
	l.t.Helper()
	for range times {
		if _, err := write.Append(context.Background(), l.target, &rows{l.next, l.next + n}, write.AppendOptions{}); err != nil {
			l.t.Fatal(err)
		}
		l.next += n
	}
}

func (l *lakeTest) table() *storage.Table {
	l.t.Helper()
	table, err := storage.OpenTable(context.Background(), l.target.Store, l.target.Dir, storage.TableOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	return table
}

func (l *lakeTest) latest() *storage.Snapshot {
	l.t.Helper()
	s, err := l.table().Latest(context.Background())
	if err != nil {
		l.t.Fatal(err)
	}
	return s
}

func (l *lakeTest) index() {
	l.t.Helper()
	_, err := write.CreateIndex(context.Background(), l.table(), write.IndexSpec{Column: "labels", Kind: index.KindLabelList}, write.CreateIndexOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
}

// options are small thresholds, and looks that come exactly when they are due.
func (l *lakeTest) options() Options {
	o := Defaults()
	o.Jitter, o.BytesPerSecond, o.RequestsPerSecond = 0, 0, 0
	o.Now, o.Random = func() time.Time { return l.now }, func() float64 { return 0.5 }
	o.Compaction.SmallFragments = 5
	o.Cleanup.Off = true
	return o
}

func (l *lakeTest) runner(o Options) *Runner {
	l.t.Helper()
	r, err := New([]*lance.Catalog{l.lake}, o)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		if err := r.Close(); err != nil {
			l.t.Error(err)
		}
	})
	return r
}

// pass moves the clock to the next look and takes it.
func (l *lakeTest) pass(r *Runner) time.Duration {
	l.t.Helper()
	for _, s := range r.Tables() {
		if s.NextRun.After(l.now) {
			l.now = s.NextRun
		}
	}
	return r.Pass(context.Background())
}

func (l *lakeTest) status(r *Runner) Status {
	l.t.Helper()
	all := r.Tables()
	if len(all) != 1 {
		l.t.Fatalf("%d tables: %+v", len(all), all)
	}
	return all[0]
}

// whole fails unless the rows are those that were appended, and no file is left that no version names.
func (l *lakeTest) whole() {
	l.t.Helper()
	s := l.latest()
	if s.Rows() != uint64(l.next) {
		l.t.Errorf("%d rows, want %d", s.Rows(), l.next)
	}
	named := make(map[string]bool)
	versions, err := l.table().Versions(context.Background())
	if err != nil {
		l.t.Fatal(err)
	}
	for _, v := range versions {
		at, err := l.table().At(context.Background(), storage.Ref{Version: v.Version})
		if err != nil {
			l.t.Fatal(err)
		}
		for _, f := range at.Fragments() {
			for _, d := range f.Proto().GetFiles() {
				named[d.GetPath()] = true
			}
		}
		for _, i := range at.Indices() {
			named[i.UUID] = true
		}
	}
	data, err := os.ReadDir(filepath.Join(l.dir, "t.lance", "data"))
	if err != nil {
		l.t.Fatal(err)
	}
	for _, e := range data {
		if !named[e.Name()] {
			l.t.Errorf("data file %s belongs to nothing", e.Name())
		}
	}
	indices, _ := filepath.Glob(filepath.Join(l.dir, "t.lance", "_indices", "*", "*"))
	for _, path := range indices {
		if !named[filepath.Base(filepath.Dir(path))] {
			l.t.Errorf("index file %s belongs to nothing", path)
		}
	}
}

func TestUpkeepDoesWhatIsDueAndNoMore(t *testing.T) {
	l := newLake(t, false)
	l.index()
	r := l.runner(l.options())
	l.append(3, 2)
	before := l.latest().Version()
	l.pass(r)
	if got := l.latest().Version(); got != before {
		t.Fatalf("below every threshold version %d became %d: %+v", before, got, l.status(r))
	}
	if s := l.status(r); s.Job != "" || s.State != StateWaiting || !s.NextRun.Equal(l.now.Add(5*time.Minute)) {
		t.Errorf("nothing was due: %+v", s)
	}
	l.append(2, 20) // five small fragments beside the first, and 46 rows that are not covered
	l.pass(r)
	s := l.latest()
	if len(s.Fragments()) != 2 {
		t.Errorf("%d fragments, want the indexed one and the others as one", len(s.Fragments()))
	}
	if i := write.ListIndices(s)[0]; i.UncoveredRows != 0 || i.Segments != 2 {
		t.Errorf("%d rows are not covered, %d segments", i.UncoveredRows, i.Segments)
	}
	st := l.status(r)
	if st.Job != "extend index labels_idx" || st.State != StateWaiting || st.Rows != 46 || st.Bytes == 0 || st.LastError != "" || !st.LastRun.Equal(l.now) {
		t.Errorf("%+v", st)
	}
	version := s.Version()
	l.pass(r)
	if got := l.latest().Version(); got != version {
		t.Errorf("with nothing due version %d became %d", version, got)
	}
	// Segments that are too many become one.
	o := l.options()
	o.Indices.Segments = 2
	l.pass(l.runner(o))
	if i := write.ListIndices(l.latest())[0]; i.Segments != 1 || i.UncoveredRows != 0 {
		t.Errorf("%d segments, %d rows not covered", i.Segments, i.UncoveredRows)
	}
	l.whole()
}

func TestOldVersionsGoUnlessSomebodyReadsThem(t *testing.T) {
	ctx := context.Background()
	l := newLake(t, false)
	l.append(8, 5)
	tagged := l.latest().Version() - 6
	if err := write.CreateTag(ctx, l.table(), "kept", storage.Ref{Version: tagged}, write.RefOptions{}); err != nil {
		t.Fatal(err)
	}
	o := l.options()
	o.Compaction.Off, o.Indices.Off = true, true
	o.Cleanup = CleanupThresholds{OlderThan: time.Hour, KeepLatest: 2, Every: time.Hour}
	r := l.runner(o)
	versions := func() (out []uint64) {
		t.Helper()
		all, err := l.table().Versions(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range all {
			out = append(out, v.Version)
		}
		return out
	}
	l.pass(r)
	if n := len(versions()); n != 9 {
		t.Fatalf("young versions went: %v", versions())
	}
	read, err := l.lake.Table(ctx, "t", source.AsOf{Version: 6})
	if err != nil {
		t.Fatal(err)
	}
	l.now = l.now.Add(2 * time.Hour)
	l.pass(r)
	if want := []uint64{tagged, 6, 7, 8, 9}; !slices.Equal(versions(), want) {
		t.Fatalf("versions %v stayed, want the tagged one and those from the one that is read on: %v", versions(), want)
	}
	if read.Rows() != 100+5*5 { // until here it is held
		t.Errorf("%d rows", read.Rows())
	}
	l.now = l.now.Add(2 * time.Hour)
	l.pass(r)
	if want := []uint64{tagged, 8, 9}; !slices.Equal(versions(), want) {
		t.Errorf("versions %v stayed, want %v", versions(), want)
	}
	if s := l.status(r); s.Job != "clean up" || s.LastError != "" {
		t.Errorf("%+v", s)
	}
	l.whole()
}

// waitFor looks again until ok, for a goroutine that is on its way.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 500 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal(what)
}

// blocked makes the runner's job wait at the creation of a file until release is called.
func (l *lakeTest) blocked() (entered chan struct{}, release func()) {
	entered, gate := make(chan struct{}, 100), make(chan struct{})
	l.store.set(func(op, path string) error {
		if op == "create" {
			entered <- struct{}{}
			<-gate
		}
		return nil
	})
	return entered, func() { close(gate); l.store.set(func(string, string) error { return nil }) }
}

func TestAJobThatIsStoppedLeavesTheTableAsItWas(t *testing.T) {
	for name, stop := range map[string]func(r *Runner, j Job) error{
		"KILL": func(r *Runner, j Job) error {
			if r.Kill(j.ID + 1) {
				return errors.New("another number ended it")
			}
			if !r.Kill(j.ID) {
				return errors.New("no such job")
			}
			return nil
		},
		"off": func(r *Runner, _ Job) error {
			short, cancel := context.WithTimeout(context.Background(), time.Millisecond)
			defer cancel()
			if err := r.Switch(short, false); !errors.Is(err, context.DeadlineExceeded) { // the job still hangs in the store
				return fmt.Errorf("off: %w", err)
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLake(t, false)
			l.append(6, 3)
			version := l.latest().Version()
			r := l.runner(l.options())
			entered, release := l.blocked()
			passed := make(chan struct{})
			go func() { defer close(passed); r.Pass(context.Background()) }()
			<-entered
			j, ok := r.Running()
			if !ok || j.ID < firstID || j.Name != "compact 7 fragments" || j.Table != "t" {
				t.Errorf("%+v, %t", j, ok)
			}
			if s := l.status(r); s.State != StateRunning {
				t.Errorf("%+v", s)
			}
			if err := stop(r, j); err != nil {
				t.Error(err)
			}
			release()
			<-passed
			if s := l.status(r); s.State != StateStopped || s.LastError == "" || !s.NextRun.Equal(l.now.Add(10*time.Minute)) {
				t.Errorf("%+v", s)
			}
			if got := l.latest().Version(); got != version {
				t.Errorf("version %d became %d", version, got)
			}
			l.whole()
			if err := r.Switch(context.Background(), true); err != nil {
				t.Error(err)
			}
			l.pass(r)
			if n := len(l.latest().Fragments()); n != 1 {
				t.Errorf("%d fragments after the next look", n)
			}
			l.whole()
		})
	}
}

func TestTheEndOfTheServerEndsTheJob(t *testing.T) {
	l := newLake(t, false)
	l.append(6, 40_000)
	o := l.options()
	o.Now = nil
	o.BytesPerSecond = 4000 // the job would take minutes
	r, err := New([]*lance.Catalog{l.lake}, o)
	if err != nil {
		t.Fatal(err)
	}
	r.Start()
	waitFor(t, "no job begins", func() bool { _, ok := r.Running(); return ok })
	start := time.Now()
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("closing took %s", took)
	}
	l.whole()
}

func TestJobsGiveWayToOtherWriters(t *testing.T) {
	l := newLake(t, false)
	l.append(6, 3)
	r := l.runner(l.options())
	l.store.set(func(op, path string) error {
		if op == "put" && strings.HasSuffix(path, ".manifest") { // every commit of the job comes second
			l.append(1, 1)
		}
		return nil
	})
	l.pass(r)
	s := l.status(r)
	if s.State != StateFailed || s.LastError == "" || !s.NextRun.Equal(l.now.Add(10*time.Minute)) {
		t.Errorf("%+v", s)
	}
	l.pass(r)
	if again := l.status(r); again.State != StateFailed || !again.NextRun.Equal(l.now.Add(20*time.Minute)) {
		t.Errorf("the second time: %+v", again)
	}
	l.store.set(func(string, string) error { return nil })
	l.pass(r)
	if s := l.status(r); s.State != StateWaiting || s.LastError != "" || !s.NextRun.Equal(l.now.Add(5*time.Minute)) {
		t.Errorf("%+v", s)
	}
	if n := len(l.latest().Fragments()); n != 1 {
		t.Errorf("%d fragments", n)
	}
	l.whole()
}

func TestATableThatFailsIsTriedLaterAndOthersAreNot(t *testing.T) {
	l := newLake(t, false)
	l.append(6, 3)
	if err := os.MkdirAll(filepath.Join(l.dir, "broken.lance", "_versions"), 0o755); err != nil {
		t.Fatal(err)
	}
	manifest := filepath.Join(l.dir, "broken.lance", "_versions", "1.manifest")
	if err := os.WriteFile(manifest, []byte("no manifest at all"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := l.runner(l.options())
	for range 12 {
		l.pass(r)
	}
	all := r.Tables()
	if len(all) != 2 || all[0].Table != "broken" || all[0].State != StateFailed || !strings.Contains(all[0].LastError, "1.manifest") || !all[0].NextRun.Equal(l.now.Add(6*time.Hour)) {
		t.Errorf("%+v", all[0])
	}
	if all[1].State != StateWaiting || len(l.latest().Fragments()) != 1 {
		t.Errorf("%+v", all[1])
	}
	if err := os.RemoveAll(filepath.Join(l.dir, "broken.lance")); err != nil {
		t.Fatal(err)
	}
	l.pass(r)
	if got := l.status(r); got.Table != "t" {
		t.Errorf("%+v", got)
	}
}

// The time that a job takes is that of its bytes.
func TestJobsKeepToTheirBytes(t *testing.T) {
	l := newLake(t, false)
	l.append(5, 4000)
	o := l.options()
	o.BytesPerSecond = 512 << 10
	r := l.runner(o)
	l.append(6, 30_000)
	start := time.Now()
	l.pass(r)
	took := time.Since(start)
	bytes := r.limits.TakenBytes()
	// What one second brings is there at the start.
	if most := float64(o.BytesPerSecond) * (1.05 + took.Seconds()); bytes < 3*o.BytesPerSecond/2 || float64(bytes) > most {
		t.Errorf("%d bytes in %s, want at most %.0f", bytes, took, most)
	}
	if peak := r.budget.Peak(); peak == 0 || peak > o.MemoryBytes {
		t.Errorf("%d bytes of memory", peak)
	}
	l.whole()
}

func TestMemoryThatDoesNotSufficeIsAnError(t *testing.T) {
	l := newLake(t, false)
	l.append(5, 4000)
	o := l.options()
	r := l.runner(o)
	held := r.budget.Reserve()
	defer held.Free()
	if err := held.Grow(o.MemoryBytes - 1000); err != nil {
		t.Fatal(err)
	}
	l.pass(r)
	if s := l.status(r); s.State != StateFailed || !strings.Contains(s.LastError, "upkeep") {
		t.Errorf("%+v", s)
	}
	l.whole()
}

func TestOptionsThatCannotBe(t *testing.T) {
	l := newLake(t, false)
	for want, change := range map[string]func(*Options){
		"upkeep.interval: 0s":                  func(o *Options) { o.Interval = 0 },
		"upkeep.jitter: 1.5":                   func(o *Options) { o.Jitter = 1.5 },
		"upkeep.back_off_max: 1s":              func(o *Options) { o.BackOffMax = time.Second },
		"upkeep.cores: 0":                      func(o *Options) { o.Cores = 0 },
		"upkeep.memory: 1":                     func(o *Options) { o.MemoryBytes = 1 },
		"upkeep.bytes_per_second: -1":          func(o *Options) { o.BytesPerSecond = -1 },
		"upkeep.requests_per_second: -1":       func(o *Options) { o.RequestsPerSecond = -1 },
		"upkeep.indices.uncovered_rows: 0":     func(o *Options) { o.Indices.UncoveredRows = 0 },
		"upkeep.indices.uncovered_share: 2":    func(o *Options) { o.Indices.UncoveredShare = 2 },
		"upkeep.indices.segments: 1":           func(o *Options) { o.Indices.Segments = 1 },
		"upkeep.compaction.small_fragments: 1": func(o *Options) { o.Compaction.SmallFragments = 1 },
		"upkeep.compaction.deleted_rows: 0":    func(o *Options) { o.Compaction.DeletedRows = 0 },
		"upkeep.compaction.deleted_share: 0":   func(o *Options) { o.Compaction.DeletedShare = 0 },
		"upkeep.cleanup.older_than: -1s":       func(o *Options) { o.Cleanup.OlderThan = -time.Second },
		"upkeep.cleanup.keep_latest: 0":        func(o *Options) { o.Cleanup.KeepLatest = 0 },
		"upkeep.cleanup.every: -1s":            func(o *Options) { o.Cleanup.Every = -time.Second },
		`upkeep.include: "images"`:             func(o *Options) { o.Include = []string{"images"} },
		`upkeep.exclude: "lake.[a"`:            func(o *Options) { o.Exclude = []string{"lake.[a"} },
	} {
		o := l.options()
		change(&o)
		if _, err := New([]*lance.Catalog{l.lake}, o); !errors.Is(err, errs.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	readOnly := newLake(t, true)
	if _, err := New([]*lance.Catalog{readOnly.lake}, l.options()); !errors.Is(err, errs.ErrInvalid) || !strings.Contains(err.Error(), "written to") {
		t.Errorf("a read-only lake: %v", err)
	}
	o := l.options()
	o.Include = []string{"lake.*"}
	if _, err := New([]*lance.Catalog{l.lake, readOnly.lake}, o); !errors.Is(err, errs.ErrInvalid) || !strings.Contains(err.Error(), `"lake.*": lake lake is read-only`) {
		t.Errorf("a read-only lake that is included: %v", err)
	}
}

func TestIncludedTablesAndHours(t *testing.T) {
	l := newLake(t, false)
	l.append(6, 3)
	o := l.options()
	for pattern, want := range map[string]int{"lake.*": 1, "*.t": 1, "LAKE.T": 1, "lake.u*": 0, "other.*": 0} {
		o.Include, o.Exclude = []string{pattern}, nil
		r := l.runner(o)
		if n, err := r.LookNow(context.Background(), "*.*"); err != nil || n != want {
			t.Errorf("%s includes %d tables, want %d: %v", pattern, n, want, err)
		}
		o.Include, o.Exclude = nil, []string{pattern}
		if n, err := l.runner(o).LookNow(context.Background(), "lake.?"); err != nil || n != 1-want {
			t.Errorf("%s excludes %d tables, want %d: %v", pattern, 1-n, want, err)
		}
	}
	o.Exclude = nil
	for text, hours := range map[string][]int{"22:00-06:00": {22, 23, 0, 5}, "01:30-03:00": {2}, "": {0, 12, 23}} {
		h, err := ParseHours(text)
		if err != nil {
			t.Fatal(err)
		}
		for hour := range 24 {
			is := h.has(time.Date(2026, 5, 1, hour, 0, 0, 0, time.UTC))
			if want := slices.Contains(hours, hour); is != want && (text != "" || !is) {
				if text != "22:00-06:00" || hour > 5 || !is { // all of 0 to 5
					t.Errorf("%q at %d: %t", text, hour, is)
				}
			}
		}
	}
	for _, bad := range []string{"22-6", "25:00-06:00", "10:00-10:00", "10:00-11:60", "10:00-11:00 x"} {
		if _, err := ParseHours(bad); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	at := l.now
	o.Hours = Hours{From: 0, To: time.Minute}
	l.now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	r := l.runner(o)
	if wait := r.Pass(context.Background()); wait != o.Interval || len(r.Tables()) > 0 {
		t.Errorf("out of hours: %s, %+v", wait, r.Tables())
	}
	l.now = at
}
