package exec

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
)

// The three values of a comparison with all rows of the build side ("x IN (...)").
type threeValued uint8

const (
	isFalse threeValued = iota
	isTrue
	isUnknown
)

// needsCodes says whether NULL has to be told from FALSE pair by pair. With one key and no residual a NULL key is unknown against every row alike.
func (s *JoinSpec) needsCodes() bool {
	if s.Kind != JoinMark && s.Kind != JoinNullAwareAnti {
		return false
	}
	return len(s.LeftKeys) > 1 || (len(s.LeftKeys) == 1 && s.Residual != nil)
}

// keyCodes numbers each key column of the build side on its own, so that two rows are compared key by key with NULL told apart.
type keyCodes struct {
	tables []grouper
	codes  [][]uint32 // by key, by build row; noGroup = NULL
}

// absent is the code of a probe value that no build row has.
const absent = noGroup - 1

func newKeyCodes(b *joinBuild) (*keyCodes, error) {
	k := &keyCodes{}
	for i, c := range b.keys {
		t, err := newGrouper(b.env.Alloc, b.res, []arrow.DataType{c.DataType()}, false)
		if err != nil {
			return k, err
		}
		k.tables = append(k.tables, t)
		if err := b.res.Grow(4 * int64(b.rows)); err != nil {
			return k, err
		}
		codes := make([]uint32, b.rows)
		if err := t.assign(b.keys[i:i+1], b.rows, codes); err != nil {
			return k, err
		}
		if !b.spec.nullSafe(i) {
			setNull(c, codes)
		}
		k.codes = append(k.codes, codes)
	}
	return k, nil
}

// setNull gives noGroup to the rows where c is NULL.
func setNull(c arrow.Array, codes []uint32) {
	if bits, offset := validity(c); bits != nil {
		for r := range codes {
			if !bitutil.BitIsSet(bits, offset+r) {
				codes[r] = noGroup
			}
		}
	}
}

// probe returns the codes of probe rows: noGroup = NULL, absent = a value that no build row has.
func (k *keyCodes) probe(spec *JoinSpec, s *findScratch, keys []arrow.Array, n int) ([][]uint32, error) {
	out := make([][]uint32, len(keys))
	for i, c := range keys {
		codes := make([]uint32, n)
		if err := k.tables[i].find(s, keys[i:i+1], n, codes); err != nil {
			return nil, err
		}
		for r, code := range codes {
			if code == noGroup {
				codes[r] = absent
			}
		}
		if !spec.nullSafe(i) {
			setNull(c, codes)
		}
		out[i] = codes
	}
	return out, nil
}

func (k *keyCodes) close() {
	for _, t := range k.tables {
		t.close()
	}
}

// truths is, for each row of the batch, whether it equals some row of the build side.
func (j *join) truths(ctx context.Context) ([]threeValued, error) {
	out := make([]threeValued, len(j.ids))
	for r, m := range j.matched {
		if m {
			out[r] = isTrue
		}
	}
	spec := &j.state.plan.Spec
	if len(j.keys) == 0 || j.table.rows == 0 {
		return out, nil
	}
	if !spec.needsCodes() {
		bits, offset := validity(j.keys[0])
		for r := range out {
			isNull := bits != nil && !spec.nullSafe(0) && !bitutil.BitIsSet(bits, offset+r)
			if out[r] == isFalse && (isNull || len(j.table.nullRows) > 0) {
				out[r] = isUnknown
			}
		}
		return out, nil
	}
	return out, j.unknowns(ctx, out)
}

// unknowns finds, among the rows that match nothing, those with a comparison that is NULL: no key differs and at least one is NULL.
func (j *join) unknowns(ctx context.Context, out []threeValued) error {
	codes, err := j.table.codes.probe(&j.state.plan.Spec, &j.find, j.keys, len(out))
	if err != nil {
		return err
	}
	j.probes, j.builds = j.probes[:0], j.builds[:0]
	flush := func() error {
		sel, all := []int32(nil), true
		if j.resid != nil {
			if sel, all, err = j.resid.passing(j.batch.Columns(), j.table.cols, j.probes, j.builds); err != nil {
				return err
			}
		}
		if all {
			for _, r := range j.probes {
				out[r] = isUnknown
			}
		}
		for _, p := range sel {
			out[j.probes[p]] = isUnknown
		}
		j.probes, j.builds = j.probes[:0], j.builds[:0]
		return nil
	}
	for r := range out {
		if out[r] != isFalse {
			continue
		}
		if err := ctx.Err(); err != nil { // a row may be compared with every row of the other side
			return err
		}
		anyNull := false
		for i := range codes {
			anyNull = anyNull || codes[i][r] == noGroup
		}
		candidates, count := j.table.nullRows, len(j.table.nullRows)
		if anyNull {
			count = j.table.rows
		}
		for c := range count {
			row := int32(c)
			if !anyNull {
				row = candidates[c]
			}
			if j.table.codes.differ(codes, r, row) {
				continue
			}
			if j.resid == nil {
				out[r] = isUnknown
				break
			}
			j.probes, j.builds = append(j.probes, int32(r)), append(j.builds, row)
			if len(j.probes) == j.state.env.BatchRows {
				if err := flush(); err != nil {
					return err
				}
				if out[r] == isUnknown {
					break
				}
			}
		}
	}
	return flush()
}

// differ says whether some key of probe row r and build row b is FALSE under =.
func (k *keyCodes) differ(probe [][]uint32, r int, b int32) bool {
	for i, codes := range k.codes {
		p, c := probe[i][r], codes[b]
		if p != noGroup && c != noGroup && p != c {
			return true
		}
	}
	return false
}

// markBatch is the batch with a column that says whether each row has a match.
func (j *join) markBatch(ctx context.Context) (arrow.RecordBatch, error) {
	truth, err := j.truths(ctx)
	if err != nil {
		return nil, err
	}
	b := array.NewBooleanBuilder(j.state.env.Alloc)
	defer b.Release()
	b.Reserve(len(truth))
	for _, t := range truth {
		if t == isUnknown {
			b.AppendNull()
		} else {
			b.Append(t == isTrue)
		}
	}
	mark := b.NewArray()
	defer mark.Release()
	return j.output(true, len(truth), mark)
}
