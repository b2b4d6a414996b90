package exec

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"pgregory.net/rapid"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/mem"
)

// windowRow is a row of the naive model; nil is NULL.
type windowRow struct {
	id, part string
	key, v   *int64
	s        *string
}

// windowCase is a window and what the naive model knows of it.
type windowCase struct {
	desc    bool
	spec    WindowSpec
	offsets [2]int64 // of RANGE bounds, already signed: key + offset
}

func windowRows(b arrow.RecordBatch) []windowRow {
	out := make([]windowRow, b.NumRows())
	ints := func(c arrow.Array, i int) *int64 {
		if c.IsNull(i) {
			return nil
		}
		v := c.(*array.Int64).Value(i)
		return &v
	}
	for i := range out {
		out[i] = windowRow{id: text(b.Column(0), i), part: text(b.Column(1), i), key: ints(b.Column(2), i), v: ints(b.Column(3), i)}
		if s := b.Column(4).(*array.String); s.IsValid(i) {
			v := strings.Clone(s.Value(i))
			out[i].s = &v
		}
	}
	return out
}

func compareKeys(a, b *int64, desc bool) int {
	c := 0
	switch {
	case a == nil && b == nil:
	case a == nil:
		c = -1
	case b == nil:
		c = 1
	default:
		c = cmp.Compare(*a, *b)
	}
	if desc {
		return -c
	}
	return c
}

// naiveFrame is the set of rows in the frame of row i, by definition.
func (w windowCase) naiveFrame(part []windowRow, i int) (in []windowRow) {
	f := w.spec.Frame
	inside := func(j int) bool {
		if f.Rows {
			lo, hi := 0, len(part)-1
			switch f.Start.Kind {
			case OffsetPreceding:
				lo = i - int(f.Start.Offset)
			case OffsetFollowing:
				lo = i + int(f.Start.Offset)
			case CurrentRow:
				lo = i
			}
			switch f.End.Kind {
			case OffsetPreceding:
				hi = i - int(f.End.Offset)
			case OffsetFollowing:
				hi = i + int(f.End.Offset)
			case CurrentRow:
				hi = i
			}
			return j >= lo && j <= hi
		}
		// at says whether row j lies at or behind the start, or at or before the end.
		at := func(b FrameBound, offset int64, start bool) bool {
			c := 0
			switch {
			case b.Kind == UnboundedPreceding, b.Kind == UnboundedFollowing:
				return true
			case b.Kind == CurrentRow || part[i].key == nil:
				c = compareKeys(part[j].key, part[i].key, w.desc)
			case part[j].key == nil:
				c = compareKeys(nil, part[i].key, w.desc)
			default:
				bound := *part[i].key + offset
				c = compareKeys(part[j].key, &bound, w.desc)
			}
			if start {
				return c >= 0
			}
			return c <= 0
		}
		return at(f.Start, w.offsets[0], true) && at(f.End, w.offsets[1], false)
	}
	for j := range part {
		if inside(j) {
			in = append(in, part[j])
		}
	}
	return in
}

func show[T any](v *T) string {
	if v == nil {
		return "NULL"
	}
	return fmt.Sprint(*v)
}

// naive is the answer for row i of a sorted partition.
func (w windowCase) naive(part []windowRow, i int) string {
	before, upTo, distinct := 0, 0, map[string]bool{}
	for _, r := range part {
		c := compareKeys(r.key, part[i].key, w.desc)
		if c < 0 {
			before++
			distinct[show(r.key)] = true
		}
		if c <= 0 {
			upTo++
		}
	}
	switch w.spec.Func {
	case WindowRowNumber:
		return fmt.Sprint(i + 1)
	case WindowRank:
		return fmt.Sprint(before + 1)
	case WindowDenseRank:
		return fmt.Sprint(len(distinct) + 1)
	case WindowPercentRank:
		if len(part) == 1 {
			return "0"
		}
		return fmt.Sprint(float64(before) / float64(len(part)-1))
	case WindowCumeDist:
		return fmt.Sprint(float64(upTo) / float64(len(part)))
	case WindowNtile:
		n, at := int(w.spec.N), 0
		for b := range n {
			size := len(part) / n
			if b < len(part)%n {
				size++
			}
			if at += size; i < at {
				return fmt.Sprint(b + 1)
			}
		}
	case WindowLag, WindowLead:
		at := i - int(w.spec.N)
		if w.spec.Func == WindowLead {
			at = i + int(w.spec.N)
		}
		if at >= 0 && at < len(part) {
			return show(part[at].v)
		}
		if len(w.spec.Args) == 2 {
			return part[i].id
		}
		return "NULL"
	}
	return w.naiveOver(w.naiveFrame(part, i))
}

// naiveOver is a function of the rows of a frame.
func (w windowCase) naiveOver(in []windowRow) string {
	switch w.spec.Func {
	case WindowFirst:
		if len(in) > 0 {
			return show(in[0].v)
		}
		return "NULL"
	case WindowLast:
		if len(in) > 0 {
			return show(in[len(in)-1].v)
		}
		return "NULL"
	case WindowNth:
		if int(w.spec.N) <= len(in) {
			return show(in[w.spec.N-1].v)
		}
		return "NULL"
	}
	sum, n := int64(0), 0
	var best *string
	for _, r := range in {
		if r.v != nil {
			sum += *r.v
			n++
		}
		if r.s != nil && (best == nil || *r.s < *best) {
			best = r.s
		}
	}
	switch {
	case w.spec.Agg == AggCountStar:
		return fmt.Sprint(len(in))
	case w.spec.Agg == AggCount:
		return fmt.Sprint(n)
	case w.spec.Agg == AggMin:
		return show(best)
	case n == 0:
		return "NULL"
	}
	return fmt.Sprint(sum)
}

var boundOrder = []BoundKind{UnboundedPreceding, OffsetPreceding, CurrentRow, OffsetFollowing, UnboundedFollowing}

// drawWindow draws a function and, where it has one, its frame.
func drawWindow(t *rapid.T, p Plan, desc bool) windowCase {
	w := windowCase{desc: desc}
	w.spec.Func = rapid.SampledFrom([]WindowFunc{
		WindowAggregate, WindowAggregate, WindowAggregate, WindowRowNumber, WindowRank, WindowDenseRank, WindowPercentRank, WindowCumeDist, WindowNtile, WindowLag, WindowLead,
		WindowFirst, WindowLast, WindowNth,
	}).Draw(t, "func")
	v := col(p, "v")
	switch w.spec.Func {
	case WindowAggregate:
		w.spec.Agg = rapid.SampledFrom([]AggFunc{AggCountStar, AggCount, AggSum, AggMin}).Draw(t, "agg")
		switch w.spec.Agg {
		case AggCountStar:
		case AggMin:
			w.spec.Args = []expr.Expr{col(p, "s")}
		default:
			w.spec.Args = []expr.Expr{v}
		}
	case WindowLag, WindowLead:
		w.spec.Args = []expr.Expr{v, col(p, "id")}[:rapid.IntRange(1, 2).Draw(t, "args")]
		w.spec.N = uint64(rapid.IntRange(0, 4).Draw(t, "n"))
	case WindowFirst, WindowLast, WindowNth:
		w.spec.Args = []expr.Expr{v}
	}
	if w.spec.Func == WindowNtile || w.spec.Func == WindowNth {
		w.spec.N = uint64(rapid.IntRange(1, 5).Draw(t, "n"))
	}
	start := rapid.IntRange(0, 3).Draw(t, "start")
	end := rapid.IntRange(max(1, start), 4).Draw(t, "end")
	f := &w.spec.Frame
	f.Rows = rapid.Bool().Draw(t, "rows")
	f.Start.Kind, f.End.Kind = boundOrder[start], boundOrder[end]
	key := col(p, "key")
	for i, b := range []*FrameBound{&f.Start, &f.End} {
		if b.Kind != OffsetPreceding && b.Kind != OffsetFollowing {
			continue
		}
		n := int64(rapid.IntRange(0, 6).Draw(t, "offset"))
		if f.Rows {
			b.Offset = uint64(n)
			continue
		}
		if (b.Kind == OffsetPreceding) != desc {
			n = -n
		}
		w.offsets[i] = n
		b.Value, f.Key = call(t, "+", key, lit(n)), key
	}
	return w
}

func TestRandomWindows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t, 1, 1)
		desc, n := rapid.Bool().Draw(t, "desc"), rapid.IntRange(0, 60).Draw(t, "n")
		domain := rapid.IntRange(1, 12).Draw(t, "domain")
		d.check(t, func(env *Env, r *rand.Rand) {
			src := windowSource(env.Alloc, r, n, domain, d.types[0])
			defer src.batch.Release()
			cases := make([]windowCase, rapid.IntRange(1, 3).Draw(t, "functions"))
			var specs []WindowSpec
			for i := range cases {
				cases[i] = drawWindow(t, src, desc)
				specs = append(specs, cases[i].spec)
			}
			order := []SortKey{{Expr: col(src, "key"), Desc: desc}}
			ranged := slices.ContainsFunc(specs, func(s WindowSpec) bool { return s.Frame.needsKey() && s.framed() })
			total := !ranged // ties are told apart, so that functions that see them have one answer
			if total {
				order = append(order, SortKey{Expr: col(src, "id")})
			}
			checkWindow(t, env, src, order, total, cases, specs)
		})
	})
}

// windowSource is a batch of id, part, key, v, s.
func windowSource(alloc memory.Allocator, r *rand.Rand, n, domain int, part arrow.DataType) *source {
	ids := array.NewInt64Builder(alloc)
	defer ids.Release()
	for _, i := range r.Perm(n) {
		ids.Append(int64(i))
	}
	cols := []arrow.Array{
		ids.NewArray(), randomArray(r, alloc, part, n, 1+domain/3), randomArray(r, alloc, arrow.PrimitiveTypes.Int64, n, domain),
		randomArray(r, alloc, arrow.PrimitiveTypes.Int64, n, 20), randomArray(r, alloc, arrow.BinaryTypes.String, n, 20),
	}
	return &source{batch: newBatch(fields("id", arrow.PrimitiveTypes.Int64, "part", part, "key", arrow.PrimitiveTypes.Int64, "v", arrow.PrimitiveTypes.Int64, "s", arrow.BinaryTypes.String), cols, n)}
}

func checkWindow(t tester, env *Env, src *source, order []SortKey, total bool, cases []windowCase, specs []WindowSpec) {
	w := must(NewWindow(Window{Input: src, Partition: []expr.Expr{col(src, "part")}, Order: order, Funcs: specs, Output: []int{0}}))(t)
	parts := map[string][]windowRow{}
	for _, r := range windowRows(src.batch) {
		parts[r.part] = append(parts[r.part], r)
	}
	var want []string
	for _, part := range parts {
		slices.SortFunc(part, func(a, b windowRow) int {
			if c := compareKeys(a.key, b.key, cases[0].desc); c != 0 {
				return c
			}
			var x, y int
			_, _ = fmt.Sscan(a.id, &x)
			_, _ = fmt.Sscan(b.id, &y)
			return cmp.Compare(x, y)
		})
		for i := range part {
			line := []string{part[i].id}
			for _, c := range cases {
				line = append(line, c.answer(part, i, total))
			}
			want = append(want, strings.Join(line, "|"))
		}
	}
	got := rowsOf(t, env, w)
	for i, c := range cases { // what depends on the order of ties is not compared
		if !total && c.seesTies() {
			got, want = blank(got, i+1), blank(want, i+1)
		}
	}
	sameRows(t, got, want, false)
}

// answer is naive, where total says that no rows are peers.
func (w windowCase) answer(part []windowRow, i int, total bool) string {
	if !total {
		return w.naive(part, i)
	}
	switch w.spec.Func { // each row is alone
	case WindowRank, WindowDenseRank:
		return fmt.Sprint(i + 1)
	case WindowPercentRank:
		if len(part) == 1 {
			return "0"
		}
		return fmt.Sprint(float64(i) / float64(len(part)-1))
	case WindowCumeDist:
		return fmt.Sprint(float64(i+1) / float64(len(part)))
	}
	if !w.spec.Frame.Rows {
		w.spec.Frame.Rows = true // CURRENT ROW has no other peers
	}
	return w.naive(part, i)
}

// seesTies says that the answer depends on the order of rows that tie.
func (w windowCase) seesTies() bool {
	switch w.spec.Func {
	case WindowRowNumber, WindowNtile, WindowLag, WindowLead, WindowFirst, WindowLast, WindowNth:
		return true
	}
	return w.spec.Func == WindowAggregate && w.spec.Frame.Rows && (w.spec.Frame.Start.Kind != UnboundedPreceding || w.spec.Frame.End.Kind != UnboundedFollowing)
}

func blank(rows []string, column int) []string {
	out := make([]string, len(rows))
	for i, r := range rows {
		parts := strings.Split(r, "|")
		parts[column] = "?"
		out[i] = strings.Join(parts, "|")
	}
	return out
}

// Large partitions are sorted in pieces, and a limit drops rows while they come.
func TestLargeWindows(t *testing.T) {
	const rows = 200_000
	r := rand.New(rand.NewPCG(7, 7))
	src := windowSource(memory.DefaultAllocator, r, rows, 1000, arrow.FixedWidthTypes.Boolean)
	model := windowRows(src.batch)
	for _, how := range []config{{8192, 1}, {8192, 4}} {
		t.Run(how.String(), func(t *testing.T) {
			alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
			defer alloc.AssertSize(t, 0)
			env := how.env(alloc)
			env.Budget = mem.NewBudget("query", 1<<30, nil)
			order := []SortKey{{Expr: col(src, "key")}, {Expr: col(src, "s"), Desc: true}}
			all := must(NewWindow(Window{Input: src, Partition: []expr.Expr{col(src, "part")}, Order: order, Output: []int{0}, Funcs: []WindowSpec{
				{Func: WindowRank, Name: "r"},
				{Func: WindowAggregate, Agg: AggSum, Args: []expr.Expr{col(src, "v")}, Frame: Frame{Start: FrameBound{Kind: UnboundedPreceding}, End: FrameBound{Kind: CurrentRow}}},
			}}))(t)
			top := must(NewWindow(Window{Input: src, Partition: []expr.Expr{col(src, "part")}, Order: order, Output: []int{0}, Funcs: []WindowSpec{{Func: WindowRank}}, Limit: &WindowLimit{By: WindowRank, K: 100}}))(t)
			got, first := rowsOf(t, env, all), rowsOf(t, env, top)
			want, wantFirst := rankAndRun(model)
			sameRows(t, got, want, false)
			sameRows(t, first, wantFirst, false)
			if used := env.Budget.Used(); used != 0 {
				t.Fatalf("%d bytes are still reserved", used)
			}
		})
	}
}

// rankAndRun is, per row, its rank by (key, s DESC) and the sum of v up to its peers, and the rows of rank 100 at most.
func rankAndRun(model []windowRow) (all, first []string) {
	rows := slices.Clone(model)
	order := func(a, b windowRow) int {
		c := cmp.Compare(a.part, b.part)
		if c == 0 {
			c = compareKeys(a.key, b.key, false)
		}
		switch {
		case c != 0 || a.s == nil && b.s == nil:
			return c
		case a.s == nil:
			return 1
		case b.s == nil:
			return -1
		}
		return -cmp.Compare(*a.s, *b.s)
	}
	slices.SortFunc(rows, order)
	begin, sum, any := 0, int64(0), false
	for i := 0; i < len(rows); {
		if i > 0 && rows[i].part != rows[i-1].part {
			begin, sum, any = i, 0, false
		}
		end := i
		for ; end < len(rows) && order(rows[end], rows[i]) == 0; end++ {
			if v := rows[end].v; v != nil {
				sum, any = sum+*v, true
			}
		}
		for ; i < end; i++ {
			total := "NULL"
			if any {
				total = fmt.Sprint(sum)
			}
			rank := 1
			for rank = i; rank > begin && order(rows[rank-1], rows[i]) == 0; rank-- {
			}
			rank += 1 - begin
			all = append(all, fmt.Sprintf("%s|%d|%s", rows[i].id, rank, total))
			if rank <= 100 {
				first = append(first, fmt.Sprintf("%s|%d", rows[i].id, rank))
			}
		}
	}
	return all, first
}

// A window that may not have the memory says so, and gives back what it had.
func TestWindowsAskForMemory(t *testing.T) {
	src := windowSource(memory.DefaultAllocator, rand.New(rand.NewPCG(1, 2)), 50_000, 1000, arrow.PrimitiveTypes.Int64)
	for _, limit := range []int64{1 << 16, 1 << 20, 3 << 20} {
		budget := mem.NewBudget("query", limit, nil)
		env := Env{Alloc: mem.NewAllocator(memory.DefaultAllocator, budget), Budget: budget, Workers: 2}.WithDefaults()
		w := must(NewWindow(Window{Input: src, Partition: []expr.Expr{col(src, "part")}, Order: []SortKey{{Expr: col(src, "s")}}, Funcs: []WindowSpec{
			{Func: WindowAggregate, Agg: AggSum, Args: []expr.Expr{col(src, "v")}, Frame: Frame{Rows: true, Start: FrameBound{Kind: OffsetPreceding, Offset: 9}, End: FrameBound{Kind: CurrentRow}}},
		}}))(t)
		if _, err := collectRows(env, w); err == nil || !strings.Contains(err.Error(), "window: ") {
			t.Fatalf("with %d bytes: %v", limit, err)
		}
		if used := budget.Used(); used != 0 {
			t.Fatalf("%d bytes are still reserved", used)
		}
	}
}
