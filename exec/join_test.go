package exec

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
)

// naiveJoin is the join of two batches, pair by pair. The residual, if wanted, is "last left column < last right column" over int64.
func naiveJoin(l, r arrow.RecordBatch, kind JoinKind, keys int, nullSafe []bool, residual bool) []string {
	left, right := batchRows(l), batchRows(r)
	lt, rt := texts(l), texts(r)
	nulls := func(n int) string { return strings.TrimSuffix(strings.Repeat("NULL|", n), "|") }
	hits := make([]bool, len(right))
	var out []string
	for i, lr := range left {
		matches, unknown := 0, false
		for j, rr := range right {
			keysMatch := comparison(lt, rt, i, j, keys, nullSafe)
			passes := !residual || residualPasses(lt, rt, i, j)
			if passes && keysMatch == isUnknown {
				unknown = true
			}
			if !passes || keysMatch != isTrue {
				continue
			}
			matches++
			hits[j] = true
			if kind == JoinInner || kind == JoinLeft || kind == JoinFull || kind == JoinSingle {
				out = append(out, lr+"|"+rr)
			}
		}
		switch kind {
		case JoinLeft, JoinFull, JoinSingle:
			if matches == 0 {
				out = append(out, lr+"|"+nulls(int(r.NumCols())))
			}
		case JoinSemi:
			if matches > 0 {
				out = append(out, lr)
			}
		case JoinAnti:
			if matches == 0 {
				out = append(out, lr)
			}
		case JoinNullAwareAnti:
			if matches == 0 && !unknown {
				out = append(out, lr)
			}
		case JoinMark:
			mark := fmt.Sprint(matches > 0)
			if matches == 0 && unknown {
				mark = "NULL"
			}
			out = append(out, lr+"|"+mark)
		}
	}
	if kind == JoinFull {
		for j, rr := range right {
			if !hits[j] {
				out = append(out, nulls(int(l.NumCols()))+"|"+rr)
			}
		}
	}
	return out
}

// texts are the values of a batch by column.
func texts(b arrow.RecordBatch) [][]string {
	out := make([][]string, b.NumCols())
	for c := range out {
		out[c] = make([]string, b.NumRows())
		for i := range out[c] {
			out[c][i] = text(b.Column(c), i)
		}
	}
	return out
}

func comparison(l, r [][]string, i, j, keys int, nullSafe []bool) threeValued {
	out := isTrue
	for k := range keys {
		a, b := l[k][i], r[k][j]
		switch {
		case nullSafe[k] && a == b:
		case nullSafe[k] || (a != "NULL" && b != "NULL" && a != b):
			return isFalse
		case a == "NULL" || b == "NULL":
			out = isUnknown
		}
	}
	return out
}

func residualPasses(l, r [][]string, i, j int) bool {
	x, err1 := strconv.ParseInt(l[len(l)-1][i], 10, 64)
	y, err2 := strconv.ParseInt(r[len(r)-1][j], 10, 64)
	return err1 == nil && err2 == nil && x < y
}

var allKinds = []JoinKind{JoinInner, JoinLeft, JoinFull, JoinSemi, JoinAnti, JoinNullAwareAnti, JoinMark}

func TestJoinEqualsNaiveForEveryKindAndKeyType(t *testing.T) {
	for i, kt := range keyTypes {
		for _, kind := range allKinds {
			t.Run(fmt.Sprintf("%s/%s", kt, kind), func(t *testing.T) {
				for seed := range uint64(2) {
					r := rand.New(rand.NewPCG(seed, uint64(i)))
					types := []arrow.DataType{kt}
					if seed%2 == 1 {
						types = append(types, keyTypes[r.IntN(len(keyTypes))])
					}
					for _, c := range configs {
						alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
						checkJoin(t, c.env(alloc), rand.New(rand.NewPCG(seed, uint64(i)+7)), kind, types)
						alloc.AssertSize(t, 0)
					}
				}
			})
		}
	}
}

func TestJoinWithoutKeysLooksAtEveryPair(t *testing.T) {
	for _, kind := range allKinds {
		t.Run(string(kind), func(t *testing.T) {
			everyConfig(t, func(t *testing.T, env *Env) {
				checkJoin(t, env, rand.New(rand.NewPCG(3, 4)), kind, nil)
			})
		})
	}
}

func checkJoin(t tester, env *Env, r *rand.Rand, kind JoinKind, types []arrow.DataType) {
	t.Helper()
	all := append(append([]arrow.DataType(nil), types...), arrow.PrimitiveTypes.Int64)
	domain := 1 + r.IntN(30)
	sizes := []int{0, 1, 40, 90}
	l := randomBatch(r, env.Alloc, sizes[r.IntN(4)], domain, all...)
	defer l.Release()
	rt := randomBatch(r, env.Alloc, sizes[r.IntN(4)], domain, all...)
	defer rt.Release()
	left, right := &source{batch: l}, &source{batch: rt}
	for _, residual := range []bool{false, true} {
		for _, buildLeft := range []bool{false, true} {
			if buildLeft && (kind == JoinMark || kind == JoinNullAwareAnti) {
				continue
			}
			spec := JoinSpec{Kind: kind, Left: left, Right: right, BuildLeft: buildLeft, NullSafe: make([]bool, len(types))}
			for k := range types {
				c := fmt.Sprintf("c%d", k)
				spec.LeftKeys, spec.RightKeys = append(spec.LeftKeys, col(left, c)), append(spec.RightKeys, col(right, c))
				spec.NullSafe[k] = r.IntN(4) == 0
			}
			if residual {
				n := len(all)
				spec.Residual = must(expr.NewCall("<", &expr.Column{ID: n - 1, Name: "x", T: arrow.PrimitiveTypes.Int64}, &expr.Column{ID: 2*n - 1, Name: "y", T: arrow.PrimitiveTypes.Int64}))(t)
			}
			p := must(NewHashJoin(spec))(t)
			sameRows(t, rowsOf(t, env, p), naiveJoin(l, rt, kind, len(types), spec.NullSafe, residual), false)
		}
	}
}

func TestSingleJoinAttachesOneRowOrFails(t *testing.T) {
	everyConfig(t, func(t *testing.T, env *Env) {
		schema := fields("k", arrow.PrimitiveTypes.Int64, "v", arrow.BinaryTypes.String)
		l := fromJSON(t, env.Alloc, schema, `[{"k":1,"v":"a"},{"k":2,"v":"b"},{"k":null,"v":"c"}]`)
		defer l.batch.Release()
		one := fromJSON(t, env.Alloc, schema, `[{"k":1,"v":"x"}]`)
		defer one.batch.Release()
		two := fromJSON(t, env.Alloc, schema, `[{"k":1,"v":"x"},{"k":1,"v":"y"}]`)
		defer two.batch.Release()
		keyed := JoinSpec{Kind: JoinSingle, Left: l, Right: one, LeftKeys: []expr.Expr{col(l, "k")}, RightKeys: []expr.Expr{col(one, "k")}}
		sameRows(t, rowsOf(t, env, must(NewHashJoin(keyed))(t)), []string{"1|a|1|x", "2|b|NULL|NULL", "NULL|c|NULL|NULL"}, false)
		sameRows(t, rowsOf(t, env, must(NewHashJoin(JoinSpec{Kind: JoinSingle, Left: l, Right: one}))(t)), []string{"1|a|1|x", "2|b|1|x", "NULL|c|1|x"}, false)
		keyed.Right = two
		for _, spec := range []JoinSpec{keyed, {Kind: JoinSingle, Left: l, Right: two}} {
			if _, err := Collect(context.Background(), env, must(NewHashJoin(spec))(t)); !errors.Is(err, errs.ErrManyRows) {
				t.Fatalf("two matches gave %v", err)
			}
		}
	})
}

// A key that comes often on both sides gives many more pairs than rows: they come in batches of the wanted size.
func TestFrequentKeysStreamOut(t *testing.T) {
	alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer alloc.AssertSize(t, 0)
	r := rand.New(rand.NewPCG(1, 1))
	l := randomBatch(r, alloc, 500, 1, arrow.PrimitiveTypes.Int32)
	defer l.Release()
	src := &source{batch: l}
	p := must(NewHashJoin(JoinSpec{Kind: JoinInner, Left: src, Right: &source{batch: l}, LeftKeys: []expr.Expr{col(src, "c0")}, RightKeys: []expr.Expr{col(src, "c0")}}))(t)
	valid := l.Column(0).Len() - l.Column(0).NullN()
	for _, c := range []config{{100, 1}, {100, 4}} {
		if got := len(rowsOf(t, c.env(alloc), p)); got != valid*valid {
			t.Fatalf("%d pairs, want %d", got, valid*valid)
		}
	}
}

func TestJoinEndsEarlyAndCleansUp(t *testing.T) {
	alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer alloc.AssertSize(t, 0)
	r := rand.New(rand.NewPCG(1, 1))
	b := randomBatch(r, alloc, 5000, 100, arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.String)
	defer b.Release()
	src := &source{batch: b}
	keys := []expr.Expr{col(src, "c0")}
	spec := JoinSpec{Kind: JoinFull, Left: src, Right: &source{batch: b}, LeftKeys: keys, RightKeys: keys}

	t.Run("under a limit", func(t *testing.T) {
		p := must(NewLimit(must(NewHashJoin(spec))(t), 10, 5))(t)
		if got := len(rowsOf(t, config{7, 4}.env(alloc), p)); got != 10 {
			t.Fatalf("%d rows", got)
		}
	})
	t.Run("canceled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		op, err := Gather(ctx, config{7, 4}.env(alloc), must(NewHashJoin(spec))(t))
		if err != nil {
			t.Fatal(err)
		}
		first, err := op.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		first.Release()
		cancel()
		for err == nil {
			var b arrow.RecordBatch
			if b, err = op.Next(ctx); err == nil {
				b.Release()
			}
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
		if err := errors.Join(op.Close(), op.Close()); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("an input fails", func(t *testing.T) {
		broken := errors.New("broken")
		for _, bad := range []JoinSpec{
			{Kind: JoinInner, Left: &source{batch: b, fail: broken}, Right: src, LeftKeys: keys, RightKeys: keys},
			{Kind: JoinInner, Left: src, Right: &source{batch: b, fail: broken}, LeftKeys: keys, RightKeys: keys},
		} {
			if _, err := Collect(context.Background(), config{100, 4}.env(alloc), must(NewHashJoin(bad))(t)); !errors.Is(err, broken) {
				t.Fatalf("got %v", err)
			}
		}
	})
	t.Run("memory is refused", func(t *testing.T) {
		budget := mem.NewBudget("query", 30_000, nil)
		env := Env{Alloc: mem.NewAllocator(alloc, budget), Budget: budget, Workers: 2}.WithDefaults()
		_, err := Collect(context.Background(), env, must(NewHashJoin(spec))(t))
		if !errors.Is(err, errs.ErrMemoryLimit) || !strings.Contains(err.Error(), "join") {
			t.Fatalf("got %v", err)
		}
		if budget.Used() != 0 {
			t.Fatalf("%d bytes still reserved", budget.Used())
		}
	})
}

// keySpy is a source that says what keys it was told about.
type keySpy struct {
	*source
	keys []string
}

func (s *keySpy) TakesKeys(i int) bool { return i == 0 }

func (s *keySpy) OpenWorkers(ctx context.Context, env *Env, n int) ([]Operator, error) {
	for _, f := range env.KeyFilters(s) {
		for i := range f.Keys.Len() {
			s.keys = append(s.keys, fmt.Sprintf("%d:%s", f.Column, f.Keys.ValueStr(i)))
		}
	}
	return s.source.OpenWorkers(ctx, env, n)
}

func TestJoinOffersItsKeysToTheStreamedSide(t *testing.T) {
	alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer alloc.AssertSize(t, 0)
	schema := fields("k", arrow.PrimitiveTypes.Int64, "v", arrow.PrimitiveTypes.Int64)
	big := fromJSON(t, alloc, schema, `[{"k":1,"v":1},{"k":2,"v":2},{"k":3,"v":3}]`)
	defer big.batch.Release()
	small := fromJSON(t, alloc, schema, `[{"k":3,"v":1},{"k":1,"v":2},{"k":3,"v":2},{"k":null,"v":2}]`)
	defer small.batch.Release()
	for _, c := range []struct {
		kind JoinKind
		want string
	}{{JoinInner, "[0:3 0:1]"}, {JoinSemi, "[0:3 0:1]"}, {JoinLeft, "[]"}, {JoinAnti, "[]"}} {
		spy := &keySpy{source: big}
		// The key passes a filter, a projection, a grouping and a sort on its way.
		cond := must(expr.NewCall(">", col(spy, "v"), &expr.Literal{Value: col0Scalar(0)}))(t)
		through := must(NewProject(must(NewFilter(spy, cond))(t), []string{"v", "key"}, []expr.Expr{col(spy, "v"), col(spy, "k")}))(t)
		ordered := must(NewSort(must(NewDistinct(through))(t), []SortKey{{Expr: col(through, "v")}}))(t)
		p := must(NewHashJoin(JoinSpec{Kind: c.kind, Left: ordered, Right: small, LeftKeys: []expr.Expr{col(through, "key")}, RightKeys: []expr.Expr{col(small, "k")}}))(t)
		rowsOf(t, config{100, 2}.env(alloc), p)
		if got := fmt.Sprint(spy.keys); got != c.want {
			t.Errorf("%s: keys %s, want %s", c.kind, got, c.want)
		}
	}
}

func TestJoinKeysNeedOneType(t *testing.T) {
	b := randomBatch(rand.New(rand.NewPCG(1, 1)), memory.DefaultAllocator, 1, 1, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64)
	src := &source{batch: b}
	_, err := NewHashJoin(JoinSpec{Kind: JoinInner, Left: src, Right: src, LeftKeys: []expr.Expr{col(src, "c0")}, RightKeys: []expr.Expr{col(src, "c1")}})
	if !errors.Is(err, errs.ErrInternal) {
		t.Fatalf("got %v", err)
	}
}

// A projection or an aggregate above joins makes them gather only what is used; the answer stays.
func TestJoinsGatherOnlyWhatIsUsed(t *testing.T) {
	everyConfig(t, func(t *testing.T, env *Env) {
		r := rand.New(rand.NewPCG(9, 9))
		b := randomBatch(r, env.Alloc, 60, 20, arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64)
		defer b.Release()
		src := &source{batch: b}
		for _, kind := range allKinds {
			lower := must(NewHashJoin(JoinSpec{Kind: JoinLeft, Left: src, Right: src, LeftKeys: []expr.Expr{col(src, "c0")}, RightKeys: []expr.Expr{col(src, "c2")}}))(t)
			at := func(i int) *expr.Column {
				return &expr.Column{ID: i, Name: fmt.Sprint("x", i), T: lower.Schema().Field(i % 6).Type}
			}
			upper := must(NewHashJoin(JoinSpec{Kind: kind, Left: lower, Right: src, LeftKeys: []expr.Expr{at(5)}, RightKeys: []expr.Expr{col(src, "c0")},
				Residual: call(t, "<", at(2), &expr.Column{ID: 8, Name: "y", T: arrow.PrimitiveTypes.Int64})}))(t)
			filtered := must(NewFilter(upper, call(t, ">", at(3), lit(-4))))(t)
			last := filtered.Schema().NumFields() - 1
			exprs := []expr.Expr{at(4), &expr.Column{ID: last, Name: "last", T: filtered.Schema().Field(last).Type}, at(3)}
			p := must(NewProject(filtered, []string{"a", "b", "c"}, exprs))(t)
			if got := p.Input.Schema().NumFields(); got != 3 {
				t.Fatalf("%s: the join gathers %d columns, want 3", kind, got)
			}
			want := rowsOf(t, env, &Project{Input: filtered, Names: p.Names, Exprs: exprs, out: p.out})
			sameRows(t, rowsOf(t, env, p), want, false)
		}
	})
}

// Strings of large build sides are numbered where there are few of them; the answer stays.
func TestJoinOfManyRowsWithFewStrings(t *testing.T) {
	alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer alloc.AssertSize(t, 0)
	r := rand.New(rand.NewPCG(1, 1))
	large := randomBatch(r, alloc, codedRowsMin+100, 1<<30, arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String)
	defer large.Release()
	few := randomArray(r, alloc, arrow.BinaryTypes.LargeString, int(large.NumRows()), 40)
	large.Column(0).Retain()
	large.Column(1).Retain()
	b := newBatch(fields("id", arrow.PrimitiveTypes.Int64, "many", arrow.BinaryTypes.String, "few", arrow.BinaryTypes.LargeString), []arrow.Array{large.Column(0), large.Column(1), few}, int(large.NumRows()))
	defer b.Release()
	small := b.NewSlice(50, 90)
	defer small.Release()
	left, right := &source{batch: small}, &source{batch: b}
	for _, kind := range []JoinKind{JoinInner, JoinLeft} {
		p := must(NewHashJoin(JoinSpec{Kind: kind, Left: left, Right: right, LeftKeys: []expr.Expr{col(left, "id")}, RightKeys: []expr.Expr{col(right, "id")}}))(t)
		got := rowsOf(t, config{16, 2}.env(alloc), p)
		sameRows(t, got, naiveJoin(small, b, kind, 1, []bool{false}, false), false)
	}
}
