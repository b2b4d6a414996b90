package upkeep

import (
	"context"
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/planner/coltype"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/write"
)

// named says that a pattern names a lake, not one among many.
func named(pattern, lake string) bool {
	ofLake, _, _ := strings.Cut(strings.ToLower(pattern), ".")
	ok, _ := path.Match(ofLake, strings.ToLower(lake))
	return ok && !strings.ContainsAny(ofLake, "*?[")
}

// open opens the table through the limits.
func (r *Runner) open(ctx context.Context, t *table) (*storage.Snapshot, error) {
	r.mu.Lock()
	opened := t.opened
	r.mu.Unlock()
	if opened == nil {
		dir, err := t.lake.catalog.Dir(t.key.table)
		if err != nil {
			return nil, err
		}
		if opened, err = storage.OpenTable(ctx, t.lake.store, dir, storage.TableOptions{Cache: r.cache, ReadParallelism: r.opts.Cores}); err != nil {
			return nil, err
		}
		r.mu.Lock()
		t.opened = opened
		r.mu.Unlock()
	}
	return opened.Latest(ctx)
}

// compactOptions are those of a compaction of the table, and of the look whether there is something to compact.
func (r *Runner) compactOptions(s *arrow.Schema) write.CompactOptions {
	o := write.CompactOptions{
		DeletedShare: r.opts.Compaction.DeletedShare, Alloc: r.alloc, Budget: r.budget, Rows: write.RowOptions{Parallel: r.opts.Cores},
		Commit: write.CommitOptions{Retries: conflictRetries},
	}
	if text, ok := s.Metadata().GetValue(coltype.KeyFragmentRows); ok {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 && n < math.MaxUint32 {
			o.TargetRows = n
		}
	}
	return o
}

// work is one thing that is due.
type work struct {
	name string
	do   func(ctx context.Context, j *job) error
}

// compaction is due when enough fragments are small, or enough rows deleted.
func (r *Runner) compaction(snap *storage.Snapshot) (work, bool) {
	th := r.opts.Compaction
	if th.Off {
		return work{}, false
	}
	opts := r.compactOptions(snap.ArrowSchema())
	plan := write.PlanCompaction(snap, opts)
	if plan.Fragments < th.SmallFragments && plan.DeletedRows < uint64(th.DeletedRows) {
		return work{}, false
	}
	return work{fmt.Sprintf("compact %d fragments", plan.Fragments), func(ctx context.Context, j *job) error { return r.compact(ctx, j, snap, opts, plan) }}, true
}

// indices are the ones that leave too many rows uncovered or have too many segments. Kinds that are not built here are left alone.
func (r *Runner) indices(snap *storage.Snapshot) []work {
	th := r.opts.Indices
	if th.Off {
		return nil
	}
	var out []work
	for _, i := range write.ListIndices(snap) {
		if !write.Updates(i.Kind) {
			continue
		}
		merge := i.Segments >= th.Segments
		open := i.UncoveredRows > 0 && (i.UncoveredRows >= uint64(th.UncoveredRows) || float64(i.UncoveredRows) >= th.UncoveredShare*float64(snap.Rows()))
		switch {
		case merge:
			out = append(out, work{"merge index " + i.Name, func(ctx context.Context, j *job) error { return r.update(ctx, j, snap, i.Name, math.MaxInt32) }})
		case open:
			out = append(out, work{"extend index " + i.Name, func(ctx context.Context, j *job) error { return r.update(ctx, j, snap, i.Name, -1) }})
		}
	}
	return out
}

// idleCleanup is how long a table goes without a clean-up although none of its versions is old: writers that died may have left files.
const idleCleanup = 24 * time.Hour

// cleanup is due where more versions are there than are kept and the oldest is old enough.
func (r *Runner) cleanup(ctx context.Context, t *table, snap *storage.Snapshot) (work, bool, error) {
	th, now := r.opts.Cleanup, r.opts.Now()
	since := now.Sub(t.cleaned)
	if th.Off || since < th.Every {
		return work{}, false, nil
	}
	files, err := manifest.Versions(ctx, snap.Table().Store(), snap.Table().Dir())
	if err != nil {
		return work{}, false, err
	}
	isOld := len(files) > th.KeepLatest && !files[0].Entry.ModTime.After(now.Add(-th.OlderThan))
	if !isOld && since < idleCleanup {
		return work{}, false, nil
	}
	return work{"clean up", func(ctx context.Context, j *job) error { return r.clean(ctx, j, snap) }}, true, nil
}
