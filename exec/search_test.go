package exec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"pgregory.net/rapid"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/storage/rowset"
)

// vectorTable is a table of one column "id" whose rows lie in fragments of perFragment rows, each at a distance (NaN = none) from any query.
// Fragments below indexed are covered by index "v_idx", one segment for every two of them, whose distances are off by noise.
type vectorTable struct {
	memTable
	distance    []float32
	perFragment int
	indexed     int
	noise       func(row int) float32
	ghosts      bool  // segments have rows without a vector, at distance 0
	twice       bool  // each segment gives each of its hits twice
	fail        error // of the last task
	requests    []SearchRequest
}

func newVectorTable(t tester, perFragment, indexed int, distance ...float32) *vectorTable {
	b := array.NewInt64Builder(memory.DefaultAllocator)
	for i := range distance {
		b.Append(int64(i))
	}
	v := &vectorTable{distance: distance, perFragment: perFragment, indexed: indexed, noise: func(int) float32 { return 0 }}
	v.batch = newBatch(fields("id", arrow.PrimitiveTypes.Int64), []arrow.Array{b.NewArray()}, len(distance))
	return v
}

func (v *vectorTable) addr(row int) rowset.RowAddr {
	return rowset.Addr(uint32(row/v.perFragment), uint32(row%v.perFragment))
}

func (v *vectorTable) row(a rowset.RowAddr) int {
	return int(a.Fragment())*v.perFragment + int(a.Offset())
}

func (v *vectorTable) OpenTable(context.Context, TableRef) (Table, error) { return v, nil }

func (v *vectorTable) FragmentIDs() []uint32 {
	var out []uint32
	for f := 0; f*v.perFragment < len(v.distance); f++ {
		out = append(out, uint32(f))
	}
	return out
}

func (v *vectorTable) LiveRows(_ context.Context, fragments []uint32) (*rowset.Set, error) {
	s := rowset.NewSet()
	for i := range v.distance {
		if a := v.addr(i); fragments == nil || slices.Contains(fragments, a.Fragment()) {
			s.Add(uint64(a))
		}
	}
	return s, nil
}

func (v *vectorTable) Take(ctx context.Context, addrs []rowset.RowAddr, columns []string, alloc memory.Allocator) (arrow.RecordBatch, error) {
	plain := make([]rowset.RowAddr, len(addrs))
	for i, a := range addrs {
		plain[i] = rowset.RowAddr(v.row(a))
	}
	return v.memTable.Take(ctx, plain, columns, alloc)
}

func (v *vectorTable) Indexes() []IndexInfo { return nil }

func (v *vectorTable) FilterIndex(context.Context, string, index.Op) (FilterChoice, error) {
	return FilterChoice{}, nil
}

func (v *vectorTable) Lookup(context.Context, LookupRequest) (index.Truth, LookupStats, error) {
	return index.Truth{}, LookupStats{}, errs.ErrUnsupported
}

func (v *vectorTable) Estimate(context.Context, string, index.Predicate) int64 { return -1 }

func (v *vectorTable) VectorIndex(context.Context, string, index.Metric) (VectorChoice, error) {
	return VectorChoice{OK: true, Info: IndexInfo{Name: "v_idx"}}, nil
}

func (v *vectorTable) Distances(_ context.Context, _ SearchRequest, addrs []rowset.RowAddr) ([]float32, error) {
	out := make([]float32, len(addrs))
	for i, a := range addrs {
		out[i] = v.distance[v.row(a)]
	}
	return out, nil
}

func (v *vectorTable) SearchTasks(_ context.Context, req SearchRequest) ([]SearchTask, error) {
	v.requests = append(v.requests, req)
	var tasks []SearchTask
	for f := 0; f < len(v.FragmentIDs()); f++ {
		t := &vectorTask{table: v, req: req, fragments: []uint32{uint32(f)}}
		if req.Index != "" && f < v.indexed {
			t.segment = true
			if f+1 < v.indexed {
				f++
				t.fragments = append(t.fragments, uint32(f))
			}
		}
		tasks = append(tasks, t)
	}
	return tasks, nil
}

type vectorTask struct {
	table     *vectorTable
	req       SearchRequest
	fragments []uint32
	segment   bool
}

func (t *vectorTask) Describe() string { return fmt.Sprint("fragments ", t.fragments) }

func (t *vectorTask) Run(context.Context) ([]SearchHit, bool, index.NearestStats, error) {
	var hits []SearchHit
	for row, d := range t.table.distance {
		a := t.table.addr(row)
		if !slices.Contains(t.fragments, a.Fragment()) || t.req.Among != nil && !t.req.Among.Contains(uint64(a)) || math.IsNaN(float64(d)) && !(t.segment && t.table.ghosts) {
			continue
		}
		switch {
		case math.IsNaN(float64(d)):
			d = 0
		case t.segment:
			d += t.table.noise(row)
		}
		hits = append(hits, SearchHit{Addr: a, Distance: d})
		if t.segment && t.table.twice {
			hits = append(hits, SearchHit{Addr: a, Distance: d})
		}
	}
	slices.SortFunc(hits, func(a, b SearchHit) int {
		return cmp.Or(cmp.Compare(a.Distance, b.Distance), cmp.Compare(a.Addr, b.Addr))
	})
	if t.table.fail != nil && slices.Contains(t.fragments, t.table.FragmentIDs()[len(t.table.FragmentIDs())-1]) {
		return nil, false, index.NearestStats{}, t.table.fail
	}
	stats := index.NearestStats{}
	if t.segment && t.req.MaxProbes > 0 { // the bound bites: a segment has one list more
		stats = index.NearestStats{ListsProbed: int64(t.req.MaxProbes), ListsTotal: int64(t.req.MaxProbes) + 1}
	}
	return hits[:min(len(hits), t.req.K)], t.segment, stats, nil
}

var nan = float32(math.NaN())

// searchRows runs a search and returns "id distance" of each row, in order.
func searchRows(t tester, env *Env, v *vectorTable, s VectorSearch) []string {
	t.Helper()
	e := *env
	e.Tables = v
	s.Table, s.Column, s.Metric, s.Query = v.Ref(), "v", index.MetricL2, []float32{0}
	var early []arrow.Field
	if len(s.Early) > 0 {
		early = v.Schema().Fields()
	}
	p := must(NewVectorSearch(s, early))(t)
	var out []string
	for _, line := range rowsOf(t, &e, p) {
		cells := strings.Split(line, "|")
		var a rowset.RowAddr
		if _, err := fmt.Sscan(cells[len(cells)-2], (*uint64)(&a)); err != nil {
			t.Fatal(err)
		}
		if len(early) > 0 && cells[0] != fmt.Sprint(v.row(a)) {
			t.Fatalf("row %s came with the columns of %s", a, cells[0])
		}
		out = append(out, fmt.Sprint(v.row(a), " ", cells[len(cells)-1]))
	}
	return out
}

func TestVectorSearch(t *testing.T) {
	for _, c := range []struct {
		name       string
		distance   []float32
		search     VectorSearch
		candidates []uint64 // rows; nil = all
		want       string
	}{
		{"the nearest come first", []float32{3, 1, 2, 0}, VectorSearch{K: 2}, nil, "3 0,1 1"},
		{"ties go by address", []float32{1, 1, 0, 1, 1}, VectorSearch{K: 3}, nil, "2 0,0 1,1 1"},
		{"all that tie with the last place follow where further keys decide", []float32{1, 1, 0, 1, 2}, VectorSearch{K: 2, Ties: true}, nil, "2 0,0 1,1 1,3 1"},
		{"no tie at the last place adds nothing", []float32{1, 1, 0, 3, 2}, VectorSearch{K: 3, Ties: true}, nil, "2 0,0 1,1 1"},
		{"everything ties", []float32{5, 5, 5, 5, 5}, VectorSearch{K: 1, Ties: true}, nil, "0 5,1 5,2 5,3 5,4 5"},
		{"more than there are", []float32{1, 0}, VectorSearch{K: 100}, nil, "1 0,0 1"},
		{"rows without a distance fill up", []float32{nan, 1, nan, 0, nan}, VectorSearch{K: 4}, nil, "3 0,1 1,0 NULL,2 NULL"},
		{"and no more where all places are taken", []float32{nan, 1, 0}, VectorSearch{K: 2}, nil, "2 0,1 1"},
		{"all of them where further keys decide", []float32{nan, 1, nan, 0, nan}, VectorSearch{K: 3, Ties: true}, nil, "3 0,1 1,0 NULL,2 NULL,4 NULL"},
		{"no row has a distance", []float32{nan, nan}, VectorSearch{K: 1}, nil, "0 NULL"},
		{"an empty table", nil, VectorSearch{K: 1}, nil, ""},
		{"candidates only", []float32{0, 1, 2, 3, nan}, VectorSearch{K: 2}, []uint64{1, 3, 4}, "1 1,3 3"},
		{"few candidates, one without a distance", []float32{0, 1, 2, 3, nan}, VectorSearch{K: 9}, []uint64{3, 4}, "3 3,4 NULL"},
		{"no candidate", []float32{0, 1}, VectorSearch{K: 2}, []uint64{}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, early := range [][]string{nil, {"id"}} {
				for _, idx := range []string{"", "v_idx"} {
					alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
					v := newVectorTable(t, 2, 2, c.distance...)
					s := c.search
					s.Early = early
					s.Method = SearchMethod{Index: idx, RefineFactor: 1}
					if c.candidates != nil {
						f := &fixedCandidates{}
						for _, r := range c.candidates {
							f.rows = append(f.rows, uint64(v.addr(int(r))))
						}
						s.Candidates = f
					}
					got := strings.Join(searchRows(t, config{2, 3}.env(alloc), v, s), ",")
					if got != c.want {
						t.Errorf("early %v, index %q: got %s, want %s", early, idx, got, c.want)
					}
					alloc.AssertSize(t, 0)
				}
			}
		})
	}
}

// TestRefine: hits of an index with wrong distances are compared again, as many as the factor says; rows of uncovered fragments have theirs from the start.
func TestRefine(t *testing.T) {
	v := newVectorTable(t, 3, 2, 9, 2, 3, 1, 8, 7, 4, 0)
	v.noise = func(row int) float32 { return float32(10 - 2*v.distance[row]) } // turns the order around
	env := config{8192, 2}.env(memory.DefaultAllocator)
	got := searchRows(t, env, v, VectorSearch{K: 2, Method: SearchMethod{Index: "v_idx", RefineFactor: 10}})
	sameRows(t, got, []string{"7 0", "3 1"}, true)
	got = searchRows(t, env, v, VectorSearch{K: 2, Method: SearchMethod{Index: "v_idx", RefineFactor: -1}})
	sameRows(t, got, []string{"7 0", "0 1"}, true) // as the index has them: row 0 is 9 + 10 - 18
	if k := v.requests[0].K; k != 8 {
		t.Errorf("a factor of 10 asked each task for %d of 8 rows", k)
	}
	got = searchRows(t, env, v, VectorSearch{K: 2, Method: SearchMethod{Index: "v_idx", RefineFactor: 10, ExactBelow: 1000, VectorBytes: 4}})
	sameRows(t, got, []string{"7 0", "3 1"}, true)
	if idx := v.requests[2].Index; idx != "" {
		t.Error("few candidates were not compared exactly")
	}
	// The index has rows without a vector; compared again they are last, not first.
	v = newVectorTable(t, 3, 2, nan, 5, 4)
	v.ghosts = true
	got = searchRows(t, env, v, VectorSearch{K: 3, Method: SearchMethod{Index: "v_idx", RefineFactor: 1}})
	sameRows(t, got, []string{"2 4", "1 5", "0 NULL"}, true)
}

func TestARowThatASegmentHasTwiceIsOneHit(t *testing.T) {
	v := newVectorTable(t, 2, 4, 5, 4, 3, 2, 1, 0, 6, 7)
	v.twice = true
	env := config{8192, 2}.env(memory.DefaultAllocator)
	got := searchRows(t, env, v, VectorSearch{K: 8, Early: []string{"id"}, Method: SearchMethod{Index: "v_idx", RefineFactor: 4}})
	sameRows(t, got, []string{"5 0", "4 1", "3 2", "2 3", "1 4", "0 5", "6 6", "7 7"}, true)
}

func TestProbesThatAreBoundedLeaveAShortfall(t *testing.T) {
	v := newVectorTable(t, 2, 2, 1, nan, nan)
	env := config{8192, 1}.env(memory.DefaultAllocator)
	got := searchRows(t, env, v, VectorSearch{K: 3, Method: SearchMethod{Index: "v_idx", MaxProbes: 1}})
	sameRows(t, got, []string{"0 1"}, true)
}

func TestSearchGivesBackWhatItReadWhereATaskFails(t *testing.T) {
	alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer alloc.AssertSize(t, 0)
	v := newVectorTable(t, 2, 0, 0, 1, 2, 3)
	v.fail = errs.ErrCorrupt
	budget := mem.NewBudget("test", 1<<20, nil)
	env := Env{Alloc: alloc, Budget: budget, Workers: 1, Tables: v}.WithDefaults()
	p := must(NewVectorSearch(VectorSearch{Table: v.Ref(), Column: "v", Query: []float32{0}, K: 2, Early: []string{"id"}}, v.Schema().Fields()))(t)
	if _, err := collectRows(env, p); !errors.Is(err, errs.ErrCorrupt) {
		t.Errorf("got %v", err)
	}
	if budget.Used() != 0 {
		t.Errorf("%d bytes are still held", budget.Used())
	}
}

// TestRandomSearches compares searches with a plain sort: exact or by index, early or late, any cut, any candidates.
func TestRandomSearches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		distance := rapid.SliceOfN(rapid.SampledFrom([]float32{0, 1, 2, 3, nan}), 1, 40).Draw(t, "distance")
		v := newVectorTable(t, rapid.IntRange(1, 9).Draw(t, "per fragment"), rapid.IntRange(0, 5).Draw(t, "indexed"), distance...)
		s := VectorSearch{K: rapid.IntRange(1, 45).Draw(t, "k"), Ties: rapid.Bool().Draw(t, "ties")}
		s.Method = SearchMethod{Index: rapid.SampledFrom([]string{"", "v_idx"}).Draw(t, "index"), RefineFactor: rapid.IntRange(1, 3).Draw(t, "refine")}
		if rapid.Bool().Draw(t, "early") {
			s.Early = []string{"id"}
		}
		rows := make([]int, 0, len(distance))
		if rapid.Bool().Draw(t, "candidates") {
			f := &fixedCandidates{}
			for i := range distance {
				if rapid.Bool().Draw(t, "candidate") {
					rows, f.rows = append(rows, i), append(f.rows, uint64(v.addr(i)))
				}
			}
			s.Candidates = f
		} else {
			for i := range distance {
				rows = append(rows, i)
			}
		}
		rank := func(row int) float64 { // NaN last
			if d := float64(distance[row]); !math.IsNaN(d) {
				return d
			}
			return math.Inf(1)
		}
		slices.SortStableFunc(rows, func(a, b int) int { return cmp.Compare(rank(a), rank(b)) })
		end := min(s.K, len(rows))
		for s.Ties && end > 0 && end < len(rows) && rank(rows[end]) == rank(rows[end-1]) {
			end++
		}
		var want []string
		for _, r := range rows[:end] {
			d := "NULL"
			if !math.IsNaN(float64(distance[r])) {
				d = fmt.Sprint(distance[r])
			}
			want = append(want, fmt.Sprint(r, " ", d))
		}
		alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
		got := searchRows(t, rapid.SampledFrom(configs).Draw(t, "config").env(alloc), v, s)
		sameRows(t, got, want, true)
		if n := alloc.CurrentAlloc(); n != 0 {
			t.Fatalf("%d bytes were not given back", n)
		}
	})
}

var _ VectorTable = (*vectorTable)(nil)
