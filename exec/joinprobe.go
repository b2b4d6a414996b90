package exec

import (
	"context"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"

	"github.com/lakesql/lakesql/internal/errs"
)

// join is one worker of a HashJoin: it streams its share of the probe side against the table.
type join struct {
	state  *joinState
	worker int
	closed bool

	sources []joinColumn
	table   *joinBuild // nil until the first Next
	input   Operator   // nil where this worker has no share
	eval    *evaluator // keys of the probe side
	resid   *residual  // nil = none
	find    findScratch
	ids     []uint32 // group of each row of batch
	keys    []arrow.Array

	batch   arrow.RecordBatch // being probed; nil = none
	row     int               // its next row
	at      int               // next of the row's matches
	matched []bool            // by row of batch: a pair passed; only where that is known after all pairs alone
	late    bool              // batch's pairs are done; its rows by matched come next
	probes  []int32           // pairs: row of batch, row of the table (-1 = none)
	builds  []int32
	codes   []int32 // scratch

	rest    bool // this worker hands out the rows of the build side
	restRow int
}

// next returns the next output batch.
func (j *join) next(ctx context.Context) (arrow.RecordBatch, error) {
	if err := j.start(ctx); err != nil {
		return nil, err
	}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var out arrow.RecordBatch
		var err error
		switch {
		case j.rest:
			return j.buildRows()
		case j.batch != nil && j.late:
			out, err = j.lateRows(ctx)
		case j.batch != nil:
			out, err = j.step()
		default:
			err = j.pull(ctx)
			if err == io.EOF && j.lastOut() { //nolint:errorlint // Next returns io.EOF itself
				err, j.rest = nil, true
			}
		}
		if out != nil || err != nil {
			return out, err
		}
	}
}

func (j *join) start(ctx context.Context) error {
	if j.table != nil {
		return nil
	}
	s := j.state
	t, err := s.started.get(func() (*joinBuild, error) { return s.start(ctx) })
	if err != nil {
		return err
	}
	j.table = t
	if j.worker < len(s.inputs) {
		j.input = s.inputs[j.worker]
	}
	probe, keys := s.plan.Spec.probe()
	if j.eval, err = newEvaluator(s.env, probe.Schema(), keys...); err != nil {
		return err
	}
	if s.plan.Spec.Residual != nil {
		j.resid, err = newResidual(s.env, &s.plan.Spec)
	}
	return err
}

// lastOut says, once per worker, that it streams no more; it is true for the last worker of a join that ends with rows of the build side.
func (j *join) lastOut() bool {
	j.input = nil
	if !j.state.plan.Spec.endsWithBuild() {
		return false
	}
	return j.state.probing.Add(-1) == 0
}

// pull gets the next batch of the probe side and looks its keys up.
func (j *join) pull(ctx context.Context) error {
	if j.input == nil {
		return io.EOF
	}
	b, err := j.input.Next(ctx)
	if err != nil {
		return err
	}
	j.batch, j.row, j.at, j.late = b, 0, 0, false
	n := int(b.NumRows())
	if j.keys, err = j.eval.columns(b, j.keys[:0]); err != nil {
		return err
	}
	if err := decode(j.state.env.Alloc, j.keys); err != nil {
		return err
	}
	j.ids = resized(j.ids, n)
	if err := j.table.table.find(&j.find, j.keys, n, j.ids); err != nil {
		return err
	}
	for i, k := range j.keys {
		if bits, offset := validity(k); bits != nil && !j.state.plan.Spec.nullSafe(i) {
			for r := range j.ids {
				if !bitutil.BitIsSet(bits, offset+r) {
					j.ids[r] = noGroup
				}
			}
		}
	}
	j.matched = resized(j.matched, n)
	clear(j.matched)
	return nil
}

// dropBatch gives the probed batch back.
func (j *join) dropBatch() {
	releaseArrays(j.keys)
	j.keys = j.keys[:0]
	if j.batch != nil {
		j.batch.Release()
		j.batch = nil
	}
}

// step probes up to Env.BatchRows pairs of the batch.
func (j *join) step() (arrow.RecordBatch, error) {
	spec := &j.state.plan.Spec
	if j.resid == nil && !spec.pairs() && !spec.endsWithBuild() {
		for r, g := range j.ids { // the keys decide alone
			j.matched[r] = g != noGroup
		}
		j.late = true
		return nil, nil
	}
	inline := j.resid == nil && spec.keepsProbe() // rows without a match can go out among the pairs
	whole := j.collect(inline)
	if j.resid != nil {
		if err := j.resid.filter(j); err != nil {
			return nil, err
		}
	}
	if err := j.note(spec); err != nil {
		return nil, err
	}
	var out arrow.RecordBatch
	var err error
	if spec.pairs() && len(j.probes) > 0 {
		if out, err = j.pairBatch(whole); err != nil {
			return nil, err
		}
	}
	if j.row < len(j.ids) {
		return out, nil
	}
	if (spec.keepsProbe() && !inline) || (!spec.pairs() && !spec.endsWithBuild()) {
		j.late = true
	} else {
		j.dropBatch()
	}
	return out, nil
}

// collect fills probes and builds with the next pairs of equal keys, at most Env.BatchRows. whole says that they are each row of the batch once, in order.
func (j *join) collect(inline bool) (whole bool) {
	limit := j.state.env.BatchRows
	j.probes, j.builds = j.probes[:0], j.builds[:0]
	t := j.table
	if t.starts == nil && j.at == 0 && j.row == 0 && len(j.ids) <= limit {
		j.collectUnique(inline)
		return len(j.probes) == len(j.ids)
	}
	var one [1]int32
	for j.row < len(j.ids) && len(j.probes) < limit {
		rows := t.rowsOf(j.ids[j.row], &one)
		if len(rows) == 0 && inline {
			j.probes, j.builds = append(j.probes, int32(j.row)), append(j.builds, -1)
		}
		n := min(len(rows)-j.at, limit-len(j.probes))
		for _, r := range rows[j.at : j.at+max(n, 0)] {
			j.probes, j.builds = append(j.probes, int32(j.row)), append(j.builds, r)
		}
		if j.at += max(n, 0); j.at < len(rows) {
			break
		}
		j.row, j.at = j.row+1, 0
	}
	return false
}

// collectUnique is collect where no key comes twice on the build side.
func (j *join) collectUnique(inline bool) {
	t := j.table
	for r, g := range j.ids {
		if g == noGroup {
			if inline {
				j.probes, j.builds = append(j.probes, int32(r)), append(j.builds, -1)
			}
			continue
		}
		row := int32(g)
		if t.order != nil {
			row = t.order[g]
		}
		j.probes, j.builds = append(j.probes, int32(r)), append(j.builds, row)
	}
	j.row = len(j.ids)
}

// note records which rows the pairs match.
func (j *join) note(spec *JoinSpec) error {
	if j.table.marks != nil {
		j.table.mark(j.builds)
	}
	if spec.Kind == JoinSingle {
		for i, r := range j.probes {
			if j.builds[i] >= 0 && j.matched[r] {
				return errs.New(errs.ErrManyRows, "Subquery returns more than 1 row")
			}
			j.matched[r] = j.matched[r] || j.builds[i] >= 0
		}
		return nil
	}
	if j.resid != nil {
		for _, r := range j.probes {
			j.matched[r] = true
		}
	}
	return nil
}

// pairBatch builds the output of the pairs; whole says that they are each row of the batch once, in order.
func (j *join) pairBatch(whole bool) (arrow.RecordBatch, error) {
	return j.output(whole && len(j.probes) == len(j.ids), len(j.probes), nil)
}

// output gathers the output columns of n rows: of the probe side those at probes (all of the batch where whole), of the build side those at builds.
func (j *join) output(whole bool, n int, mark arrow.Array) (arrow.RecordBatch, error) {
	cols := make([]arrow.Array, 0, len(j.sources))
	var err error
	for _, s := range j.sources {
		switch {
		case s.mark:
			mark.Retain()
			cols = append(cols, mark)
		case s.build:
			cols, err = j.table.take(s.column, j.builds, s.coded, &j.codes, cols)
		case whole:
			c := j.batch.Column(s.column)
			c.Retain()
			cols = append(cols, c)
		default:
			cols, err = takeColumns(j.state.env.Alloc, j.batch.Columns()[s.column:s.column+1], j.probes, cols)
		}
		if err != nil {
			releaseArrays(cols)
			return nil, err
		}
	}
	return newBatch(j.state.plan.out, cols, n), nil
}

// lateRows is what comes of the batch's rows once all their pairs are known. It ends the batch.
func (j *join) lateRows(ctx context.Context) (arrow.RecordBatch, error) {
	spec := &j.state.plan.Spec
	defer j.dropBatch()
	switch spec.Kind {
	case JoinMark:
		return j.markBatch(ctx)
	case JoinNullAwareAnti:
		truth, err := j.truths(ctx)
		if err != nil {
			return nil, err
		}
		return j.selectRows(func(r int) bool { return truth[r] == isFalse })
	case JoinSemi:
		return j.selectRows(func(r int) bool { return j.matched[r] })
	case JoinAnti:
		return j.selectRows(func(r int) bool { return !j.matched[r] })
	}
	j.probes, j.builds = j.probes[:0], j.builds[:0]
	for r, m := range j.matched {
		if !m {
			j.probes, j.builds = append(j.probes, int32(r)), append(j.builds, -1)
		}
	}
	if len(j.probes) == 0 {
		return nil, nil
	}
	return j.pairBatch(false)
}

// selectRows is the rows of the batch that keep says; nil for none.
func (j *join) selectRows(keep func(r int) bool) (arrow.RecordBatch, error) {
	j.probes = j.probes[:0]
	for r := range j.ids {
		if keep(r) {
			j.probes = append(j.probes, int32(r))
		}
	}
	if len(j.probes) == 0 {
		return nil, nil
	}
	return j.output(len(j.probes) == len(j.ids), len(j.probes), nil)
}

// buildRows hands out the rows of the build side that come last.
func (j *join) buildRows() (arrow.RecordBatch, error) {
	spec := &j.state.plan.Spec
	want := spec.Kind == JoinSemi
	j.builds = j.builds[:0]
	for j.restRow < j.table.rows && len(j.builds) < j.state.env.BatchRows {
		if j.table.marked(j.restRow) == want {
			j.builds = append(j.builds, int32(j.restRow))
		}
		j.restRow++
	}
	if len(j.builds) == 0 {
		return nil, io.EOF
	}
	cols := make([]arrow.Array, 0, len(j.sources))
	for i, s := range j.sources {
		if !s.build {
			cols = append(cols, array.MakeArrayOfNull(j.state.env.Alloc, j.state.plan.out.Field(i).Type, len(j.builds)))
			continue
		}
		var err error
		if cols, err = j.table.take(s.column, j.builds, s.coded, &j.codes, cols); err != nil {
			releaseArrays(cols)
			return nil, err
		}
	}
	return newBatch(j.state.plan.out, cols, len(j.builds)), nil
}
