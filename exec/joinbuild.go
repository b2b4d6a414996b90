package exec

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
)

// joinBuild is the hashed side of a join. After run it is immutable but for the marks of matched rows, and safe for concurrent use.
type joinBuild struct {
	env  *Env
	spec *JoinSpec
	res  *mem.Reservation

	rows  int
	cols  []arrow.Array // all rows of the side
	keys  []arrow.Array // the key of each row
	table grouper       // distinct keys; rows with a NULL key are in no list unless null-safe

	// Rows of group g: order[starts[g]:starts[g+1]]. starts is nil where no key comes twice (row order[g]), order too where moreover every row has a key (row g).
	starts []uint32
	order  []int32

	nullRows []int32  // rows with a NULL in a key that is not null-safe
	marks    []uint32 // one bit per row that found a match; nil where nobody asks
	codes    *keyCodes
	coded    []*codedStrings // by column; nil entries are gathered from cols
}

// buildStep is how many rows are hashed at a time.
const buildStep = 1 << 14

// run gathers and hashes the side; wanted are the output columns of the join.
func (b *joinBuild) run(ctx context.Context, wanted []joinColumn) error {
	if err := b.gather(ctx, wanted); err != nil {
		return err
	}
	if err := b.codeStrings(ctx, wanted); err != nil {
		return err
	}
	ids, err := b.assign(ctx)
	if err != nil {
		return err
	}
	if b.spec.endsWithBuild() {
		words := (b.rows + 31) / 32
		if err := b.res.Grow(4 * int64(words)); err != nil {
			return err
		}
		b.marks = make([]uint32, words)
	}
	if err := b.listRows(ids); err != nil {
		return err
	}
	if b.spec.needsCodes() {
		b.codes, err = newKeyCodes(b)
	}
	settleNulls(b.cols)
	settleNulls(b.keys)
	for _, c := range b.coded {
		if c != nil {
			settleNulls([]arrow.Array{c.values})
		}
	}
	return err
}

// settleNulls counts the NULLs of arrays that several workers will read: the count is made late and kept in the array.
func settleNulls(arrays []arrow.Array) {
	for _, a := range arrays {
		if a != nil {
			settleData(a.Data())
		}
	}
}

func settleData(d arrow.ArrayData) {
	a := array.MakeFromData(d)
	a.NullN()
	a.Release()
	for _, c := range d.Children() {
		settleData(c)
	}
	if d.DataType().ID() == arrow.DICTIONARY {
		settleData(d.Dictionary())
	}
}

// gather collects the side on all workers. Text that is wanted may come as codes.
func (b *joinBuild) gather(ctx context.Context, wanted []joinColumn) error {
	plan, keys := b.spec.build()
	env := b.env
	for _, c := range codable(plan, wanted) {
		env = env.withCodes(plan, c)
	}
	var mu sync.Mutex
	var batches []arrow.RecordBatch
	err := consume(ctx, env, plan, func() (func(arrow.RecordBatch) error, error) {
		return func(r arrow.RecordBatch) error {
			mu.Lock()
			defer mu.Unlock()
			batches = append(batches, r)
			if b.rows += int(r.NumRows()); b.rows > rowsMax {
				return errs.New(errs.ErrUnsupported, "more than %d rows on the hashed side of a join", rowsMax)
			}
			return nil
		}, nil
	})
	if err != nil {
		releaseBatches(batches)
		return err
	}
	if batches, err = b.takeCodes(ctx, plan, wanted, batches); err != nil {
		releaseBatches(batches)
		return err
	}
	if b.cols, err = concatColumns(b.env.Alloc, plan.Schema(), batches); err != nil {
		return err
	}
	for i, c := range b.coded {
		if c != nil {
			b.cols[i].Release()
			b.cols[i] = c.array()
		}
	}
	eval, err := newEvaluator(b.env, plan.Schema(), keys...)
	if err != nil {
		return err
	}
	whole := array.NewRecordBatch(fitSchema(plan.Schema(), b.cols), b.cols, int64(b.rows))
	defer whole.Release()
	if b.keys, err = eval.columns(whole, nil); err != nil {
		return err
	}
	return decode(b.env.Alloc, b.keys)
}

// assign numbers the keys and returns the group of each row, noGroup for rows that can match nothing.
func (b *joinBuild) assign(ctx context.Context) ([]uint32, error) {
	if err := b.newTable(); err != nil {
		return nil, err
	}
	if err := b.res.Grow(4 * int64(b.rows)); err != nil {
		return nil, err
	}
	ids := make([]uint32, b.rows)
	part := make([]arrow.Array, len(b.keys))
	for start := 0; start < b.rows; start += buildStep {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		end := min(start+buildStep, b.rows)
		for i, k := range b.keys {
			part[i] = array.NewSlice(k, int64(start), int64(end))
		}
		err := b.table.assign(part, end-start, ids[start:end])
		releaseArrays(part)
		if err != nil {
			return nil, err
		}
	}
	for i, k := range b.keys {
		if bits, offset := validity(k); bits != nil && !b.spec.nullSafe(i) {
			for r := range ids {
				if ids[r] != noGroup && !bitutil.BitIsSet(bits, offset+r) {
					ids[r] = noGroup
					b.nullRows = append(b.nullRows, int32(r))
				}
			}
		}
	}
	return ids, b.res.Grow(4 * int64(len(b.nullRows)))
}

func (b *joinBuild) newTable() error {
	types := make([]arrow.DataType, len(b.keys))
	for i, k := range b.keys {
		types[i] = k.DataType()
	}
	var err error
	if len(b.keys) == 1 {
		if b.table, err = newDenseGrouper(b.res, b.keys[0]); b.table != nil || err != nil {
			return err
		}
	}
	b.table, err = newGrouper(b.env.Alloc, b.res, types, false)
	return err
}

// listRows lists the rows of each group.
func (b *joinBuild) listRows(ids []uint32) error {
	groups := b.table.count()
	defer b.res.Shrink(4 * int64(b.rows)) // ids
	live := b.rows - len(b.nullRows)
	if groups == b.rows {
		return nil // every row is a group of its own, in order
	}
	if err := b.res.Grow(4 * int64(live+groups+2)); err != nil {
		return err
	}
	starts := make([]uint32, groups+2)
	for _, g := range ids {
		if g != noGroup {
			starts[g+2]++
		}
	}
	unique := true
	for g := 2; g < len(starts); g++ {
		unique = unique && starts[g] == 1
		starts[g] += starts[g-1]
	}
	b.order = make([]int32, live)
	for r, g := range ids {
		if g != noGroup {
			b.order[starts[g+1]] = int32(r)
			starts[g+1]++
		}
	}
	if !unique {
		b.starts = starts[:groups+1]
	}
	return nil
}

// rowsOf is the list of rows of a group; one is scratch for it.
func (b *joinBuild) rowsOf(g uint32, one *[1]int32) []int32 {
	switch {
	case g == noGroup:
		return nil
	case b.starts != nil:
		return b.order[b.starts[g]:b.starts[g+1]]
	case b.order != nil:
		return b.order[g : g+1]
	}
	one[0] = int32(g)
	return one[:]
}

// mark notes that rows found a match.
func (b *joinBuild) mark(rows []int32) {
	for _, r := range rows {
		if r < 0 {
			continue
		}
		w, bit := &b.marks[r>>5], uint32(1)<<(r&31)
		if atomic.LoadUint32(w)&bit == 0 {
			atomic.OrUint32(w, bit)
		}
	}
}

func (b *joinBuild) marked(r int) bool { return atomic.LoadUint32(&b.marks[r>>5])>>(r&31)&1 != 0 }

// distinctKeys returns the distinct values of key i without NULL.
func (b *joinBuild) distinctKeys(i int) (arrow.Array, error) {
	res := b.env.Budget.Reserve()
	defer res.Free()
	g, err := newGrouper(b.env.Alloc, res, []arrow.DataType{b.keys[i].DataType()}, true)
	if err != nil {
		return nil, err
	}
	defer g.close()
	ids := make([]uint32, b.rows)
	if err := g.assign(b.keys[i:i+1], b.rows, ids); err != nil {
		return nil, err
	}
	keys, err := g.keys(b.env.Alloc, 0, g.count())
	if err != nil {
		return nil, err
	}
	if keys[0].NullN() == 0 {
		return keys[0], nil
	}
	defer keys[0].Release()
	var idx []int32
	for r := range keys[0].Len() {
		if keys[0].IsValid(r) {
			idx = append(idx, int32(r))
		}
	}
	kept, err := takeColumns(b.env.Alloc, keys, idx, nil)
	if err != nil {
		return nil, err
	}
	return kept[0], nil
}

func (b *joinBuild) close() {
	releaseArrays(b.cols)
	releaseArrays(b.keys)
	for _, c := range b.coded {
		if c != nil {
			c.values.Release()
		}
	}
	b.cols, b.keys, b.coded = nil, nil, nil
	if b.table != nil {
		b.table.close()
	}
	if b.codes != nil {
		b.codes.close()
	}
	b.res.Free()
}
