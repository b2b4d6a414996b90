package metamorphic

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/test/lakes"
)

func TestMain(m *testing.M) {
	flag.Parse()
	for name, value := range map[string]string{"rapid.checks": fmt.Sprint(draws), "rapid.seed": seed} {
		if f := flag.Lookup(name); f.Value.String() == f.DefValue {
			if err := f.Value.Set(value); err != nil {
				fmt.Fprintln(os.Stderr, name, err)
				os.Exit(1)
			}
		}
	}
	lakes.Quiet()
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent())
}

const rows = 300

// parcels has every kind of index, NULLs everywhere, and vectors with ties.
func parcels() lakes.Table {
	type row struct {
		ID     *int      `json:"id"`
		Labels []*string `json:"labels"`
		Nums   []*int    `json:"nums"`
		Tenant *string   `json:"tenant"`
		TS     *string   `json:"ts"`
		V      []float32 `json:"v"`
		Wide   string    `json:"wide"`
	}
	r := rand.New(rand.NewPCG(1, 2))
	rare := func(n int) bool { return r.IntN(n) == 0 }
	all := make([]row, rows)
	for i := range all {
		x := row{ID: &i, Wide: fmt.Sprintf("wide %d %s", i, strings.Repeat("x", 200))}
		if rare(40) {
			x.ID = nil
		}
		if !rare(8) {
			x.Labels = []*string{}
			for range r.IntN(4) {
				word := words[r.IntN(8)]
				x.Labels = append(x.Labels, &word)
			}
			if rare(8) {
				x.Labels = append(x.Labels, nil)
			}
		}
		if !rare(8) {
			x.Nums = []*int{}
			for range r.IntN(4) {
				n := r.IntN(8)
				x.Nums = append(x.Nums, &n)
			}
			if rare(8) {
				x.Nums = append(x.Nums, nil)
			}
		}
		if !rare(8) {
			tenant := fmt.Sprintf("t%d", r.IntN(4))
			x.Tenant = &tenant
		}
		if !rare(8) {
			ts := fmt.Sprintf("2026-01-%02d %02d:00:00", 1+r.IntN(28), r.IntN(24))
			x.TS = &ts
		}
		if !rare(8) {
			x.V = []float32{float32(r.IntN(4)), float32(r.IntN(4)), float32(r.IntN(4)) / 2}
		}
		all[i] = x
	}
	text, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return lakes.Table{
		Name: "t", Rows: string(text),
		Fields: []arrow.Field{
			lakes.Field("id", lakes.Int64), lakes.Field("labels", lakes.Labels), lakes.Field("nums", arrow.ListOf(arrow.PrimitiveTypes.Int32)), lakes.Field("tenant", lakes.Text),
			lakes.Field("ts", &arrow.TimestampType{Unit: arrow.Microsecond}), lakes.Field("v", lakes.Vector(3)), lakes.Field("wide", lakes.Text),
		},
		Indices: []lakes.Index{
			{Column: "labels", Kind: index.KindLabelList}, {Column: "nums", Kind: index.KindLabelList}, {Column: "id", Kind: index.KindBTree}, {Column: "tenant", Kind: index.KindBitmap},
			{Column: "ts", Kind: index.KindBTree}, {Column: "v", Metric: index.MetricL2, Lists: 4},
		},
	}
}

// configuration is an engine over a table of some path.
type configuration struct {
	name string
	lake *lakes.Lake
}

// configurations has the reference first: a table without indices, batches of the default size, one worker.
func configurations(t *testing.T) []configuration {
	t.Helper()
	dirs := map[lakes.Path]string{}
	for _, path := range lakes.Paths {
		dirs[path] = t.TempDir()
		lakes.Build(t, dirs[path], path, parcels())
	}
	out := []configuration{{"reference", lakes.Open(t, dirs[lakes.Bare], engine.Config{Workers: 1})}}
	for i, path := range lakes.Only(lakes.Indexed, lakes.Half, lakes.Extended, lakes.Stable) {
		for k, batch := range []int{1, 7, 8192} {
			workers := []int{1, 4}[(i+k)%2]
			lake := lakes.Open(t, dirs[path], engine.Config{BatchRows: batch, Workers: workers})
			out = append(out, configuration{fmt.Sprintf("%s, batches of %d, %d workers", path, batch, workers), lake})
		}
	}
	return out
}

func ask(t *rapid.T, c configuration, text string) []string {
	got, vectorized, err := lakes.AskSession(context.Background(), c.lake.Session, text)
	if err != nil {
		t.Fatalf("%s: %s: %v", c.name, text, err)
	}
	if !vectorized && !strings.HasPrefix(text, "SET") {
		t.Fatalf("%s: %s runs row by row", c.name, text)
	}
	return got
}

// each asks a statement of every configuration under every setting and wants the reference's answer.
func each(t *rapid.T, all []configuration, settings []string, text string, ordered bool) {
	want := ask(t, all[0], text)
	if !ordered {
		slices.Sort(want)
	}
	for _, c := range all[1:] {
		for _, s := range settings {
			ask(t, c, "SET "+s)
			got := ask(t, c, text)
			if !ordered {
				slices.Sort(got)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%s, %s: %s\ngot  %q\nwant %q", c.name, s, text, got, want)
			}
		}
	}
}

// TestPredicates asks each predicate as a filter and as a value; the reference's two answers agree too.
func TestPredicates(t *testing.T) {
	all := configurations(t)
	settings := []string{"prefilter = 'auto'", "prefilter = 'index'", "prefilter = 'scan'"}
	rapid.Check(t, func(t *rapid.T) {
		p := drawPredicate(t, rapid.IntRange(0, 4).Draw(t, "depth"))
		filter, value := "SELECT wide FROM t WHERE "+p, "SELECT wide, "+p+" FROM t"
		each(t, all, settings, filter, false)
		each(t, all, settings[:1], value, false)
		kept := ask(t, all[0], filter)
		slices.Sort(kept)
		var byValue []string
		for _, line := range ask(t, all[0], value) {
			if wide, ok := strings.CutSuffix(line, "\t1"); ok {
				byValue = append(byValue, wide)
			}
		}
		slices.Sort(byValue)
		if !slices.Equal(kept, byValue) {
			t.Fatalf("%s: %d rows as a filter, %d as a value", p, len(kept), len(byValue))
		}
		each(t, all, settings[:1], "SELECT COUNT(*), SUM(id), MIN(tenant), COUNT(DISTINCT ts) FROM t WHERE "+p, false)
	})
}

// TestSearches asks exact searches, and searches by an index whose lists are all probed, with ties broken by a key.
func TestSearches(t *testing.T) {
	all := configurations(t)
	settings := []string{
		"ann = 'off', glm = 'on', prefilter = 'auto'", "ann = 'off', glm = 'off', prefilter = 'scan'", "ann = 'auto', glm = 'auto', prefilter = 'brute_force'",
		"ann = 'force', glm = 'on', prefilter = 'index', nprobes = 1000",
	}
	rapid.Check(t, func(t *rapid.T) {
		number := func() int { return rapid.IntRange(-1, 4).Draw(t, "coordinate") }
		query := fmt.Sprintf("'[%d, %d, %d.5]'", number(), number(), rapid.IntRange(0, 2).Draw(t, "last"))
		name := rapid.SampledFrom([]string{"l2_distance", "l2sq_distance", "dot_distance"}).Draw(t, "distance")
		where := ""
		if rapid.Bool().Draw(t, "filtered") {
			where = " WHERE " + drawPredicate(t, rapid.IntRange(0, 3).Draw(t, "depth"))
		}
		columns := rapid.SampledFrom([]string{"wide", "id, wide", "id, labels, wide", "wide, ts, tenant"}).Draw(t, "columns")
		limit, offset := rapid.SampledFrom([]int{0, 1, 5, 50, 400}).Draw(t, "limit"), rapid.SampledFrom([]int{0, 0, 3, 100}).Draw(t, "offset")
		text := fmt.Sprintf("SELECT %s, %s(v, %s) AS d FROM t%s ORDER BY d, wide LIMIT %d OFFSET %d", columns, name, query, where, limit, offset)
		each(t, all, settings, text, true)
		each(t, all, settings, fmt.Sprintf("SELECT tenant, COUNT(*), SUM(id) FROM (%s) x GROUP BY tenant ORDER BY tenant", strings.Replace(text, columns, "id, tenant, wide", 1)), true)
	})
}
