package write

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
	"github.com/lakesql/lakesql/storage/rowset"
)

// CompactOptions tunes Compact. The zero value is the default, which is that of the reference engine.
type CompactOptions struct {
	TargetRows   int64   // fragments of fewer rows are merged with their neighbours, into ones of so many; 0 = 1,048,576
	DeletedShare float64 // fragments of which more is deleted are rewritten; 0 = 0.1; 1 = none
	Rows         RowOptions
	Commit       CommitOptions
	Remapper     Remapper         // rewrites segments that name rows by address; nil = they no longer cover what was rewritten
	Alloc        memory.Allocator // of batches that are read; nil = that of the context
	Budget       *mem.Budget      // pays for what is remembered about rows and what file writers keep; nil = nobody
	Progress     func(rows int)   // told of rows that were written, from several goroutines; nil = nobody
}

func (o CompactOptions) withDefaults(ctx context.Context) CompactOptions {
	if o.TargetRows == 0 {
		o.TargetRows = 1 << 20
	}
	if o.DeletedShare == 0 {
		o.DeletedShare = 0.1
	}
	if o.Alloc == nil {
		o.Alloc = compute.GetAllocator(ctx)
	}
	if o.Progress == nil {
		o.Progress = func(int) {}
	}
	o.Rows.FragmentRows = o.TargetRows
	return o
}

// Validate refuses sizes that make no sense.
func (o CompactOptions) Validate() error {
	if o.TargetRows < 0 || o.TargetRows >= fragmentRowsLimit || o.DeletedShare < 0 || o.DeletedShare > 1 {
		return errs.New(errs.ErrInvalid, "target rows %d, deleted share %g: out of range", o.TargetRows, o.DeletedShare)
	}
	return o.Rows.Validate()
}

// Compacted says what Compact did.
type Compacted struct {
	Committed
	FragmentsRemoved, FragmentsAdded int
	Rows                             uint64   // that were rewritten
	Uncovered                        []string // indices that no longer cover the rewritten fragments: extend them
}

// Compact merges small fragments and leaves deleted rows out. Rows keep their stable ids, and the versions that created and last changed them. Without
// anything to do it commits nothing. Indices that come meanwhile follow the rows like those that were there; where others change the same fragments it
// begins again. Errors: ErrConflict where they do so each time, ErrUnsupported for a column or file version that is not written, ErrMemoryLimit, ErrIO, ErrDiskFull.
func Compact(ctx context.Context, table *storage.Table, opts CompactOptions) (Compacted, error) {
	if err := opts.Validate(); err != nil {
		return Compacted{}, err
	}
	return again(ctx, opts.Commit, func() (Compacted, error) { return compact(ctx, table, opts) })
}

func compact(ctx context.Context, table *storage.Table, opts CompactOptions) (Compacted, error) {
	snap, err := table.Latest(ctx)
	if err != nil {
		return Compacted{}, err
	}
	if err := manifest.CheckWritable(snap.Manifest().Proto.GetWriterFeatureFlags()); err != nil {
		return Compacted{}, err
	}
	c := &compaction{
		target: Target{Store: table.Store(), Dir: table.Dir()}, snap: snap, opts: opts.withDefaults(ctx), held: opts.Budget.Reserve(),
		at: &version{Manifest: snap.Manifest(), naming: snap.ManifestFile().Naming},
	}
	defer c.held.Free()
	c.plan()
	if len(c.groups) == 0 {
		return Compacted{Committed: Committed{Version: snap.Version()}}, nil
	}
	return c.run(ctx)
}

// CompactionPlan is what Compact would do.
type CompactionPlan struct {
	Groups      int // of fragments that are rewritten together
	Fragments   int
	Rows        uint64 // that would be copied
	DeletedRows uint64 // that would be left out
}

// PlanCompaction says, without reading, what Compact would do to a version with the same options.
func PlanCompaction(snap *storage.Snapshot, opts CompactOptions) CompactionPlan {
	c := &compaction{snap: snap, opts: opts.withDefaults(context.Background())}
	c.plan()
	out := CompactionPlan{Groups: len(c.groups)}
	for _, g := range c.groups {
		out.Fragments += len(g.old)
		for _, f := range g.old {
			out.Rows += f.Rows()
			out.DeletedRows += f.PhysicalRows() - f.Rows()
		}
	}
	return out
}

// compaction is one run of Compact.
type compaction struct {
	target Target
	snap   *storage.Snapshot
	at     *version
	opts   CompactOptions
	held   *mem.Reservation
	set    *fileSet
	groups []*rewriteGroup
	now    *rowset.Remap // where rows went; nil = their new fragments have no ids yet
}

// rewriteGroup is fragments that are rewritten together.
type rewriteGroup struct {
	old   []*storage.Fragment
	fresh []*tablepb.DataFragment
	runs  []addrRun // old addresses of the rows of fresh, in order
	rows  uint64
}

// addrRun is rows that lie one behind the other.
type addrRun struct {
	from  rowset.RowAddr
	count uint32
}

// addrRunBytes is what a run costs, with the run of a Remap that is made of it.
const addrRunBytes = 32

// plan picks the groups: neighbours that are small or hold many deleted rows, and that the same index segments cover.
func (c *compaction) plan() {
	var bin []*storage.Fragment
	alone := false // the bin is worth rewriting even if it is one fragment
	covers := ""
	closeBin := func() {
		if len(bin) > 1 || alone {
			c.groups = append(c.groups, c.split(bin)...)
		}
		bin, alone = nil, false
	}
	for _, f := range c.snap.Fragments() {
		many := float64(f.PhysicalRows()-f.Rows()) > c.opts.DeletedShare*float64(f.PhysicalRows())
		if !many && f.PhysicalRows() >= uint64(c.opts.TargetRows) {
			closeBin()
			continue
		}
		if by := c.coveredBy(f.ID()); by != covers {
			closeBin()
			covers = by
		}
		bin, alone = append(bin, f), alone || many
	}
	closeBin()
}

// coveredBy names the segments that cover a fragment.
func (c *compaction) coveredBy(id uint32) string {
	var out []byte
	for i, info := range c.snap.Indices() {
		if info.Covers.Contains(id) {
			out = fmt.Appendf(out, "%d ", i)
		}
	}
	return string(out)
}

// split cuts a bin so that each part makes about one fragment, and works in parallel. A part that would be one fragment without much deleted is left alone.
func (c *compaction) split(bin []*storage.Fragment) []*rewriteGroup {
	var out []*rewriteGroup
	left := uint64(0)
	for _, f := range bin {
		left += f.Rows()
	}
	target := uint64(c.opts.TargetRows)
	g := &rewriteGroup{}
	for _, f := range bin {
		g.old, g.rows, left = append(g.old, f), g.rows+f.Rows(), left-f.Rows()
		if g.rows >= target && left >= target {
			out = append(out, g)
			g = &rewriteGroup{}
		}
	}
	if len(g.old) > 0 {
		out = append(out, g)
	}
	return slices.DeleteFunc(out, func(g *rewriteGroup) bool {
		return len(g.old) == 1 && float64(g.old[0].PhysicalRows()-g.old[0].Rows()) <= c.opts.DeletedShare*float64(g.old[0].PhysicalRows())
	})
}

func (c *compaction) run(ctx context.Context) (Compacted, error) {
	v, err := dataVersion(c.snap.FormatVersion())
	if err != nil {
		return Compacted{}, err
	}
	if err := file.CheckWritable(c.snap.Schema(), v); err != nil {
		return Compacted{}, err
	}
	c.set = &fileSet{store: c.target.Store, dir: c.target.Dir, schema: c.snap.Schema(), version: v, opts: c.opts.Rows.withDefaults(), budget: c.opts.Budget}
	group, groupCtx := spawn.WithContext(ctx, c.set.opts.Parallel)
	for _, g := range c.groups {
		group.Go(fmt.Sprintf("compact fragments from %d on", g.old[0].ID()), func() error { return c.rewrite(groupCtx, g) })
	}
	err = group.Wait()
	op := &rewriteOp{snap: c.snap, groups: c.groups}
	if err == nil {
		err = c.remap(ctx, op, c.at)
	}
	var done Committed
	if err == nil {
		op.remap = func(ctx context.Context, base *version) error { return c.remap(ctx, op, base) }
		done, err = c.target.commit(ctx, c.at, op, c.opts.Commit)
	}
	if err != nil {
		return Compacted{}, c.takeBack(ctx, op, err)
	}
	for _, m := range op.remapped {
		if m.fresh != nil && !m.used { // its index was replaced or dropped meanwhile; what stays here is garbage
			_ = c.target.removeSegment(ctx, m.fresh)
		}
	}
	out := Compacted{Committed: done, Uncovered: op.uncovered}
	for _, g := range c.groups {
		out.FragmentsRemoved += len(g.old)
		out.FragmentsAdded += len(g.fresh)
		out.Rows += g.rows
	}
	return out, nil
}

func (c *compaction) takeBack(ctx context.Context, op *rewriteOp, err error) error {
	if errors.Is(err, errOutcome) {
		return err
	}
	for _, g := range c.groups {
		err = errors.Join(err, c.set.remove(ctx, g.fresh))
	}
	for _, m := range op.remapped {
		if m.fresh != nil {
			err = errors.Join(err, c.target.removeSegment(ctx, m.fresh))
		}
	}
	return err
}

// rewrite copies the live rows of a group.
func (c *compaction) rewrite(ctx context.Context, g *rewriteGroup) error {
	w := &partWriter{of: c.set}
	err := c.copyRows(ctx, g, w)
	if err == nil {
		_, err = w.finish(ctx)
	}
	g.fresh = w.done
	if err != nil {
		return errors.Join(err, w.abort())
	}
	if c.snap.HasStableRowIDs() {
		return g.keepLineage(ctx)
	}
	return nil
}

func (c *compaction) copyRows(ctx context.Context, g *rewriteGroup, w *partWriter) error {
	ids := make([]uint32, len(g.old))
	for i, f := range g.old {
		ids[i] = f.ID()
	}
	scan, err := c.snap.Scan(ctx, storage.ScanOptions{Fragments: ids, Alloc: c.opts.Alloc, WithRowAddr: true})
	if err != nil {
		return err
	}
	columns := int(scan.Schema().NumFields()) - 1
	sc := arrow.NewSchema(scan.Schema().Fields()[:columns], nil)
	for r := scan.Reader(); ; {
		b, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		rows := array.NewRecordBatch(sc, b.Columns()[:columns], b.NumRows())
		err = w.add(ctx, rows)
		rows.Release()
		if addrs, ok := b.Column(columns).(*array.Uint64); ok && err == nil {
			err = c.note(g, addrs.Uint64Values())
		}
		n := int(b.NumRows())
		b.Release()
		if err != nil {
			return errors.Join(err, r.Close())
		}
		c.opts.Progress(n)
	}
}

// note remembers where rows were.
func (c *compaction) note(g *rewriteGroup, addrs []uint64) error {
	before := len(g.runs)
	for _, a := range addrs {
		if n := len(g.runs); n > 0 && g.runs[n-1].from+rowset.RowAddr(g.runs[n-1].count) == rowset.RowAddr(a) {
			g.runs[n-1].count++
			continue
		}
		g.runs = append(g.runs, addrRun{from: rowset.RowAddr(a), count: 1})
	}
	return c.held.Grow(int64(len(g.runs)-before) * addrRunBytes)
}

// keepLineage gives the new fragments the ids of their rows, and the versions that created and last changed them.
func (g *rewriteGroup) keepLineage(ctx context.Context) error {
	byID := make(map[uint32]*rowOrigin)
	updated := make(map[uint32]*rowOrigin)
	for _, f := range g.old {
		ids, err := f.RowIDs(ctx)
		if err != nil {
			return err
		}
		created, err := f.CreatedVersions(ctx)
		if err != nil {
			return err
		}
		changed, err := f.UpdatedVersions(ctx)
		if err != nil {
			return err
		}
		byID[f.ID()], updated[f.ID()] = newOrigin(ids, created), newOrigin(nil, changed)
	}
	at := &runCursor{runs: g.runs}
	for _, f := range g.fresh {
		var ids []uint64
		var created, changed []manifest.VersionRun
		for range f.GetPhysicalRows() {
			a, ok := at.next()
			if !ok {
				return errs.New(errs.ErrInternal, "more rows were written than read")
			}
			o := byID[a.Fragment()]
			ids = append(ids, o.ids.At(uint64(a.Offset())))
			created = manifest.AppendVersion(created, 1, o.versionAt(uint64(a.Offset())))
			changed = manifest.AppendVersion(changed, 1, updated[a.Fragment()].versionAt(uint64(a.Offset())))
		}
		if _, err := nameRows(f, ids, created); err != nil {
			return err
		}
		versions, err := manifest.EncodeVersions(changed)
		if err != nil {
			return err
		}
		f.LastUpdatedAtVersionSequence = &tablepb.DataFragment_InlineLastUpdatedAtVersions{InlineLastUpdatedAtVersions: versions}
	}
	return nil
}

// runCursor yields the addresses of runs.
type runCursor struct {
	runs []addrRun
	at   uint32
}

func (c *runCursor) next() (rowset.RowAddr, bool) {
	for len(c.runs) > 0 && c.at == c.runs[0].count {
		c.runs, c.at = c.runs[1:], 0
	}
	if len(c.runs) == 0 {
		return 0, false
	}
	c.at++
	return c.runs[0].from + rowset.RowAddr(c.at-1), true
}

// moved says where the rows of all groups went, given the new fragments' ids.
func (c *compaction) moved(ids []uint64) (*rowset.Remap, error) {
	m := &rowset.Remap{}
	for _, g := range c.groups {
		for _, f := range g.old {
			m.Retire(f.ID())
		}
		runs := slices.Clone(g.runs)
		for _, f := range g.fresh {
			to, left := rowset.Addr(uint32(ids[0]), 0), uint32(f.GetPhysicalRows())
			ids = ids[1:]
			for left > 0 && len(runs) > 0 {
				n := min(left, runs[0].count)
				if err := m.Move(runs[0].from, to, n); err != nil {
					return nil, err
				}
				to, left = to+rowset.RowAddr(n), left-n
				runs[0].from, runs[0].count = runs[0].from+rowset.RowAddr(n), runs[0].count-n
				if runs[0].count == 0 {
					runs = runs[1:]
				}
			}
		}
	}
	return m, nil
}

// remap rewrites the segments of a version that name the rewritten rows by address, those that were not rewritten before. Their new addresses must be known, so the
// fragments' ids are reserved by a commit of its own.
func (c *compaction) remap(ctx context.Context, op *rewriteOp, base *version) error {
	affected := c.affected(op, base)
	if len(affected) == 0 || c.opts.Remapper == nil {
		return nil
	}
	if err := c.place(ctx, op, base); err != nil {
		return err
	}
	snap := c.snap
	if base.Version() != snap.Version() {
		var err error
		if snap, err = snap.Table().At(ctx, storage.Ref{Version: base.Version()}); err != nil {
			return err
		}
	}
	for _, i := range affected {
		m, err := c.opts.Remapper.Remap(ctx, snap, snap.Indices()[i], c.now)
		if err != nil {
			return fmt.Errorf("index %s: %w", snap.Indices()[i].Name, err)
		}
		op.remapped = append(op.remapped, remappedSegment{old: base.Indices[i].GetUuid().GetUuid(), fresh: m})
		if m == nil {
			continue
		}
		if err := c.target.complete(ctx, describe(m, base.Indices[i]), uint64(c.opts.Commit.withDefaults().Now().UnixMilli())); err != nil {
			return err
		}
	}
	return nil
}

// affected are the segments of a version that cover all of a group, name its rows by address, and were not looked at before.
func (c *compaction) affected(op *rewriteOp, base *version) []int {
	var out []int
	for i, m := range base.Indices {
		covers, err := coverOf(m)
		if err != nil || len(m.GetFields()) == 0 || c.snap.HasStableRowIDs() && keepsRowIDs(m) || op.looked(m) {
			continue
		}
		if slices.ContainsFunc(c.groups, func(g *rewriteGroup) bool {
			return len(g.fresh) > 0 && !slices.ContainsFunc(g.old, func(f *storage.Fragment) bool { return !covers.Contains(f.ID()) })
		}) {
			out = append(out, i)
		}
	}
	return out
}

// place gives the new fragments ids, which stay aside for them.
func (c *compaction) place(ctx context.Context, op *rewriteOp, base *version) error {
	if c.now != nil {
		return nil
	}
	fresh := 0
	for _, g := range c.groups {
		fresh += len(g.fresh)
	}
	reserved, err := c.target.commit(ctx, base, &reserveOp{count: uint32(fresh)}, c.opts.Commit)
	if err != nil {
		return err
	}
	op.ids = reserved.FragmentIDs
	c.now, err = c.moved(op.ids)
	return err
}
