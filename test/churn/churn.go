package churn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/test/lakes"
)

// Options say what to run. Steps 0 = 100.
type Options struct {
	Seed      int64
	Steps     int
	Version   string // of files; "" = 2.2
	StableIDs bool
	Skip      []int // steps left out, to make a failing run shorter
}

// Table is a table in the middle of its life.
type Table struct {
	tb      testing.TB
	opts    Options
	dir     string
	lake    *lakes.Lake
	r       *rand.Rand // of the step
	rows    Rows
	next    int64
	extra   int             // columns added so far
	columns []string        // that are there beside the model's
	old     map[uint64]past // versions to go back to
	tags    map[string]Rows // by tag
	done    []string        // statements, in order
	step    int
	Counts  map[string]int // of steps, by kind
	Asked   int            // answers that were compared
}

// Run makes a table in dir and runs steps on it, each compared with the model.
func Run(tb testing.TB, dir string, opts Options) *Table {
	tb.Helper()
	opts = opts.fromEnvironment(tb)
	t := &Table{
		tb: tb, opts: opts, dir: dir, lake: lakes.Open(tb, dir, engine.Config{}), rows: Rows{}, old: map[uint64]past{}, tags: map[string]Rows{}, Counts: map[string]int{},
		r: rand.New(rand.NewSource(opts.Seed)),
	}
	t.do("SET nprobes = 64")
	t.do(`CREATE TABLE c (id BIGINT NOT NULL PRIMARY KEY, labels LIST<VARCHAR>, tag VARCHAR(20), n BIGINT, z BIGINT, v VECTOR(3))
		WITH (file_version = '%s', stable_row_ids = %t, rows_per_fragment = 60)`, opts.Version, opts.StableIDs)
	t.append(150)
	for _, name := range []string{LabelIndex, TagIndex, NumberIndex, ZoneIndex, VectorIndex} {
		t.createIndex(name)
	}
	t.check()
	for t.step = 1; t.step <= opts.Steps; t.step++ {
		t.r = rand.New(rand.NewSource(opts.Seed*1_000_003 + int64(t.step))) // C1
		if slices.Contains(opts.Skip, t.step) {
			continue
		}
		t.Step()
	}
	return t
}

func (o Options) fromEnvironment(tb testing.TB) Options {
	tb.Helper()
	number := func(name string, into *int) {
		if text := os.Getenv(name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil {
				tb.Fatalf("%s=%s: %v", name, text, err)
			}
			*into = n
		}
	}
	seed := int(o.Seed)
	number("LAKESQL_CHURN_SEED", &seed)
	number("LAKESQL_CHURN_STEPS", &o.Steps)
	o.Seed = int64(seed)
	for _, text := range strings.FieldsFunc(os.Getenv("LAKESQL_CHURN_SKIP"), func(r rune) bool { return r == ',' }) {
		n, err := strconv.Atoi(text)
		if err != nil {
			tb.Fatalf("LAKESQL_CHURN_SKIP: %v", err)
		}
		o.Skip = append(o.Skip, n)
	}
	if o.Steps == 0 {
		o.Steps = 100
	}
	if o.Version == "" {
		o.Version = "2.2"
	}
	return o
}

// Path is the dataset's folder.
func (t *Table) Path() string { return filepath.Join(t.dir, "c.lance") }

// Rows is the model.
func (t *Table) Rows() Rows { return t.rows }

// fail ends the test with what replays it.
func (t *Table) fail(format string, args ...any) {
	t.tb.Helper()
	last := t.done[max(0, len(t.done)-25):]
	t.tb.Fatalf("LAKESQL_CHURN_SEED=%d LAKESQL_CHURN_STEPS=%d, files %s, stable ids %t: %s\nthe last statements:\n%s",
		t.opts.Seed, t.step, t.opts.Version, t.opts.StableIDs, fmt.Sprintf(format, args...), strings.Join(last, "\n"))
}

// do runs a statement and returns its affected rows.
func (t *Table) do(format string, args ...any) uint64 {
	t.tb.Helper()
	text := format
	if len(args) > 0 {
		text = fmt.Sprintf(format, args...)
	}
	t.done = append(t.done, text)
	ctx := context.Background()
	res, err := t.lake.Session.Query(ctx, text)
	if err != nil {
		t.fail("%s: %v", text, err)
	}
	affected := res.AffectedRows
	for res.HasRows() {
		b, err := res.Operator.Next(res.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.fail("%s: %v", text, err)
		}
		b.Release()
	}
	if err := res.Close(); err != nil {
		t.fail("%s: %v", text, err)
	}
	return affected
}

// change runs a statement that must affect so many rows.
func (t *Table) change(want uint64, format string, args ...any) {
	t.tb.Helper()
	if got := t.do(format, args...); got != want {
		t.fail("%s: %d rows were affected, want %d", t.done[len(t.done)-1], got, want)
	}
}

// ask returns the ids that a statement finds, in its order.
func (t *Table) ask(text string) (ids []int64) {
	t.tb.Helper()
	lines, _, err := lakes.AskSession(context.Background(), t.lake.Session, text)
	if err != nil {
		t.fail("%s: %v", text, err)
	}
	t.Asked++
	for _, line := range lines {
		id, err := strconv.ParseInt(line, 10, 64)
		if err != nil {
			t.fail("%s: %v", text, err)
		}
		ids = append(ids, id)
	}
	return ids
}

// version is the newest version's number.
func (t *Table) version() uint64 {
	t.tb.Helper()
	ctx := context.Background()
	store, err := object.OpenLocal(t.dir, object.LocalOptions{})
	if err != nil {
		t.fail("%v", err)
	}
	defer func() { _ = store.Close() }()
	table, err := storage.OpenTable(ctx, store, "c.lance", storage.TableOptions{})
	if err != nil {
		t.fail("%v", err)
	}
	snap, err := table.Latest(ctx)
	if err != nil {
		t.fail("%v", err)
	}
	return snap.Version()
}

// check compares the table with the model: all rows, each predicate by index and by scan, and searches.
func (t *Table) check() {
	t.tb.Helper()
	t.sameRows("c", t.rows)
	predicates := append(Labels(), Others()...)
	for range 6 {
		predicates = append(predicates, draw(t.r, 3, t.next))
	}
	for _, prefilter := range []string{"index", "scan", "auto"} {
		t.set("prefilter", prefilter)
		for i, p := range predicates {
			if prefilter == "auto" && i%5 != t.step%5 {
				continue
			}
			if got, want := t.ask("SELECT id FROM c WHERE "+p.Text+" ORDER BY id"), p.Holds(t.rows); !slices.Equal(got, want) {
				t.fail("%s, prefilter %s: finds %s", p.Text, prefilter, differing(got, want))
			}
		}
	}
	at := [3]float64{float64(t.r.Intn(60)) + 0.25, float64(t.r.Intn(60)), float64(t.r.Intn(60))}
	among := predicates[t.r.Intn(len(predicates))]
	for _, ann := range []string{"force", "off"} {
		t.set("ann", ann)
		for _, p := range []*Predicate{nil, &among} {
			where := ""
			if p != nil {
				where = " WHERE " + p.Text
			}
			text := fmt.Sprintf("SELECT id FROM c%s ORDER BY l2_distance(v, '[%g,%g,%g]'), id LIMIT 12", where, at[0], at[1], at[2])
			if got, want := t.ask(text), t.rows.nearest(at, p, 12); !slices.Equal(got, want) {
				t.fail("%s, ann %s: finds %v, want %v", text, ann, got, want)
			}
		}
	}
	t.set("ann", "auto")
}

// set sets a variable of the session; it is no step.
func (t *Table) set(name, value string) {
	t.tb.Helper()
	t.do("SET %s = '%s'", name, value)
	t.done = t.done[:len(t.done)-1]
}

// differing names what is found in excess and what is not found.
func differing(got, want []int64) string {
	more := slices.DeleteFunc(slices.Clone(got), func(id int64) bool { return slices.Contains(want, id) })
	less := slices.DeleteFunc(slices.Clone(want), func(id int64) bool { return slices.Contains(got, id) })
	return fmt.Sprintf("%d rows of %d; too much %v, missing %v", len(got), len(want), more, less)
}

// sameRows compares all columns of the model, and each added column with what it was filled with.
func (t *Table) sameRows(from string, want Rows) {
	t.tb.Helper()
	lines, _, err := lakes.AskSession(context.Background(), t.lake.Session, "SELECT id, labels, tag, n, z, v FROM "+from+" ORDER BY id")
	if err != nil {
		t.fail("%v", err)
	}
	t.Asked++
	ids := want.ids()
	if len(lines) != len(ids) {
		t.fail("%s has %d rows, want %d", from, len(lines), len(ids))
	}
	for i, id := range ids {
		if line := want[id].line(id); lines[i] != line {
			t.fail("row %d of %s is %q, want %q", id, from, lines[i], line)
		}
	}
}

// Finish brings all indices up to date.
func (t *Table) Finish() {
	t.tb.Helper()
	t.updateIndices()
	t.do("CALL lakesql.optimize_indices('c', 9)")
	t.check()
}

// Nearest lists the ids nearest to a place.
func (t *Table) Nearest(at []float64, k int) []int64 { return t.rows.nearest([3]float64(at), nil, k) }

// Distances are those of rows from a place.
func (t *Table) Distances(at []float64, ids []int64) (out []float64) {
	for _, id := range ids {
		out = append(out, t.rows.distance([3]float64(at), id))
	}
	return out
}

// Compare compares a row, spelled by testutil, with the model.
func (t *Table) Compare(id int64, row map[string]any) {
	t.tb.Helper()
	want, ok := t.rows[id]
	if !ok {
		t.fail("a row %d", id)
	}
	spelled := map[string]any{"id": fmt.Sprint(id), "labels": nil, "tag": nil, "n": nil, "z": nil, "v": nil}
	if want.Labels != nil {
		list := []any{}
		for _, l := range *want.Labels {
			if l == nil {
				list = append(list, nil)
			} else {
				list = append(list, *l)
			}
		}
		spelled["labels"] = list
	}
	if want.Tag != nil {
		spelled["tag"] = *want.Tag
	}
	if want.N != nil {
		spelled["n"] = fmt.Sprint(*want.N)
	}
	if want.Z != nil {
		spelled["z"] = fmt.Sprint(*want.Z)
	}
	if v := want.V; v != nil {
		spelled["v"] = []any{json.Number(fmt.Sprint(v[0])), json.Number(fmt.Sprint(v[1])), json.Number(fmt.Sprint(v[2]))}
	}
	for _, name := range t.columns {
		spelled[name] = "7"
	}
	testutil.CompareRow(t.tb, fmt.Sprintf("row %d", id), row, spelled)
}
