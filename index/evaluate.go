package index

import (
	"context"

	"github.com/lakesql/lakesql/storage/rowset"
)

// Answers says whether Evaluate can answer op with seg, and with which Match. It knows more than the segment alone: IS NOT NULL
// follows from an exact IS NULL and the universe.
func Answers(seg FilterSegment, op Op) (Match, bool) {
	if match, ok := seg.Answers(op); ok {
		return match, true
	}
	if op == OpIsNotNull {
		if match, ok := seg.Answers(OpIsNull); ok && match == Exact {
			return Exact, true
		}
	}
	return Exact, false
}

// Evaluate asks seg and keeps what lies in universe: the stored keys of the rows that the segment covers and the snapshot shows.
func Evaluate(ctx context.Context, seg FilterSegment, p Predicate, universe *rowset.Set) (Truth, Match, error) {
	negate := false
	if _, ok := seg.Answers(p.Op); !ok && p.Op == OpIsNotNull {
		p.Op, negate = OpIsNull, true
	}
	truth, match, err := seg.Lookup(ctx, p)
	if err != nil {
		return Truth{}, match, err
	}
	if negate {
		return truth.Not(universe), match, nil
	}
	return Truth{True: rowset.And(truth.True, universe), Null: rowset.And(truth.Null, universe)}, match, nil
}
