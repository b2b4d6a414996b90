package index_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/storage/rowset"
)

// verdict is one row's answer: 1 TRUE, 0 FALSE, -1 NULL.
type verdict int

func not(a verdict) verdict {
	if a < 0 {
		return a
	}
	return 1 - a
}

func and(a, b verdict) verdict {
	switch {
	case a == 0 || b == 0:
		return 0
	case a < 0 || b < 0:
		return -1
	}
	return 1
}

func or(a, b verdict) verdict { return not(and(not(a), not(b))) }

// rowKeys are the universe: two fragments, one of them with a gap.
var rowKeys = []uint64{0, 1, 2, 3, 5, 70_000, 1 << 32, 1<<32 | 1, 1<<32 | 9}

// tree is a random formula over three predicates, evaluated both ways.
type tree struct {
	op   string
	leaf int
	args []tree
}

func drawTree(t *rapid.T, depth int) tree {
	op := "leaf"
	if depth > 0 {
		op = rapid.SampledFrom([]string{"leaf", "not", "and", "or"}).Draw(t, "op")
	}
	switch op {
	case "not":
		return tree{op: op, args: []tree{drawTree(t, depth-1)}}
	case "and", "or":
		return tree{op: op, args: []tree{drawTree(t, depth-1), drawTree(t, depth-1)}}
	}
	return tree{op: "leaf", leaf: rapid.IntRange(0, 2).Draw(t, "leaf")}
}

func (f tree) sets(leaves []index.Truth, universe *rowset.Set) index.Truth {
	switch f.op {
	case "not":
		return f.args[0].sets(leaves, universe).Not(universe)
	case "and":
		return f.args[0].sets(leaves, universe).And(f.args[1].sets(leaves, universe))
	case "or":
		return f.args[0].sets(leaves, universe).Or(f.args[1].sets(leaves, universe))
	}
	return leaves[f.leaf]
}

func (f tree) row(leaves [][]verdict, i int) verdict {
	switch f.op {
	case "not":
		return not(f.args[0].row(leaves, i))
	case "and":
		return and(f.args[0].row(leaves, i), f.args[1].row(leaves, i))
	case "or":
		return or(f.args[0].row(leaves, i), f.args[1].row(leaves, i))
	}
	return leaves[f.leaf][i]
}

func truthOf(verdicts []verdict) index.Truth {
	out := index.Truth{True: &rowset.Set{}, Null: &rowset.Set{}}
	for i, v := range verdicts {
		switch v {
		case 1:
			out.True.Add(rowKeys[i])
		case -1:
			out.Null.Add(rowKeys[i])
		}
	}
	return out
}

func TestSetAlgebraEqualsThreeValuedLogicRowByRow(t *testing.T) {
	universe := rowset.NewSet(rowKeys...)
	rapid.Check(t, func(t *rapid.T) {
		var leaves []index.Truth
		var verdicts [][]verdict
		for range 3 {
			v := rapid.SliceOfN(rapid.SampledFrom([]verdict{-1, 0, 1}), len(rowKeys), len(rowKeys)).Draw(t, "verdicts")
			verdicts = append(verdicts, v)
			leaves = append(leaves, truthOf(v))
		}
		f := drawTree(t, 4)
		want := make([]verdict, len(rowKeys))
		for i := range rowKeys {
			want[i] = f.row(verdicts, i)
		}
		got, wantSets := f.sets(leaves, universe), truthOf(want)
		if !rowset.Equal(got.True, wantSets.True) || !rowset.Equal(got.Null, wantSets.Null) {
			t.Fatalf("formula %+v: sets %v, rows %v", f, got, want)
		}
		for i := range leaves {
			if before := truthOf(verdicts[i]); !rowset.Equal(leaves[i].True, before.True) || !rowset.Equal(leaves[i].Null, before.Null) {
				t.Fatal("an operand changed")
			}
		}
	})
}
