package write

import (
	"context"
	"errors"
	"slices"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
)

// tidyRows: staged fragments of fewer rows are merged before the commit. A transaction of many small statements would leave as many fragments.
const tidyRows = 8192

// tidy merges small staged fragments, those of moved rows and those of new ones each among themselves.
func (x *Tx) tidy(ctx context.Context) error {
	for _, isMoved := range []bool{true, false} {
		isSmall := func(f *stagedFragment) bool { return f.isMoved == isMoved && f.pb.GetPhysicalRows() < tidyRows }
		var small []*stagedFragment
		for _, f := range x.staged {
			if isSmall(f) {
				small = append(small, f)
			}
		}
		if len(small) < 2 {
			continue
		}
		merged, err := x.mergeStaged(ctx, small, isMoved)
		if err != nil {
			return err
		}
		for _, f := range small {
			x.dropped = append(x.dropped, f.pb)
		}
		x.staged = slices.DeleteFunc(x.staged, isSmall)
		if err := x.stage(merged, isMoved); err != nil {
			return err
		}
	}
	return nil
}

// mergeStaged writes the live rows of staged fragments again.
func (x *Tx) mergeStaged(ctx context.Context, small []*stagedFragment, isMoved bool) ([]*tablepb.DataFragment, error) {
	view, err := x.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	set, err := x.files()
	if err != nil {
		return nil, err
	}
	c := &compaction{target: x.target, snap: view, set: set, held: x.opts.Budget.Reserve(), opts: CompactOptions{}.withDefaults(ctx)}
	defer c.held.Free()
	g := &rewriteGroup{}
	for _, f := range small {
		staged, ok := view.Fragment(uint32(f.pb.GetId()))
		if !ok {
			return nil, errs.New(errs.ErrInternal, "staged fragment %d is not there", f.pb.GetId())
		}
		g.old = append(g.old, staged)
	}
	err = c.rewrite(ctx, g)
	if err != nil {
		return nil, errors.Join(err, set.remove(ctx, g.fresh))
	}
	for _, f := range g.fresh {
		f.LastUpdatedAtVersionSequence = nil // the version that is committed
		if !isMoved {                        // new rows get their ids at commit
			f.RowIdSequence, f.CreatedAtVersionSequence = nil, nil
		}
	}
	return g.fresh, nil
}
