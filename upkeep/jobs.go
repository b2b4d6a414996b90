package upkeep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/sirupsen/logrus"

	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/source"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/write"
)

// conflictRetries is how often a job's commit is tried at once after other writers came first. More would be fighting: it is tried again at the next look.
const conflictRetries = 2

// job is what runs.
type job struct {
	id      uint32
	runner  *Runner
	table   *table
	name    string
	started time.Time
	cancel  context.CancelCauseFunc
	done    chan struct{} // closed when it has ended

	bytesBefore int64
	// Guarded by the runner's mutex.
	stage string
	rows  int64
}

// progress tells how far the job is.
func (j *job) progress(stage string, done, total int64) {
	text := fmt.Sprintf("%s: %d", stage, done)
	if total > 0 {
		text = fmt.Sprintf("%s: %d of %d", stage, done, total)
	}
	j.runner.mu.Lock()
	defer j.runner.mu.Unlock()
	j.stage = text
	j.rows = max(j.rows, done)
}

// jobs does what is due for a table: compaction first, as it carries the indices along, then indices, then old versions.
func (r *Runner) jobs(ctx context.Context, t *table) error {
	snap, err := r.open(ctx, t)
	if err != nil {
		return err
	}
	if w, ok := r.compaction(snap); ok {
		if err := r.run(ctx, t, w); err != nil {
			return err
		}
		if snap, err = r.open(ctx, t); err != nil {
			return err
		}
	}
	for _, w := range r.indices(snap) {
		if err := r.run(ctx, t, w); err != nil {
			return err
		}
	}
	if snap, err = r.open(ctx, t); err != nil {
		return err
	}
	w, ok, err := r.cleanup(ctx, t, snap)
	if err != nil || !ok {
		return err
	}
	t.cleaned = r.opts.Now()
	return r.run(ctx, t, w)
}

// begin registers a job; nil where jobs may not begin any more.
func (r *Runner) begin(t *table, name string, cancel context.CancelCauseFunc) *job {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.off {
		return nil
	}
	if r.lastID++; r.lastID < firstID {
		r.lastID = firstID
	}
	j := &job{id: r.lastID, runner: r, table: t, name: name, started: r.opts.Now(), cancel: cancel, done: make(chan struct{}), bytesBefore: r.limits.TakenBytes()}
	r.running = j
	t.status.Job, t.status.State, t.status.LastRun = name, StateRunning, j.started
	return j
}

// stop ends the job; the runner's mutex is held. What it wrote for nothing is removed without regard to the limits, so that nobody waits for that.
func (j *job) stop() {
	j.runner.limits.Lift(true)
	j.cancel(errStopped)
}

func (r *Runner) end(j *job, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running = nil
	r.limits.Lift(false)
	s := &j.table.status
	s.Duration, s.Rows, s.Bytes = r.opts.Now().Sub(j.started), j.rows, r.limits.TakenBytes()-j.bytesBefore
	s.State = StateWaiting
	if err == nil {
		logrus.Infof("upkeep: %s.%s: %s: %d rows, %d bytes in %s", s.Lake, s.Table, j.name, s.Rows, s.Bytes, s.Duration)
	}
	close(j.done)
}

// run runs one job to its end. One that somebody stopped ends with errStopped.
func (r *Runner) run(ctx context.Context, t *table, w work) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	j := r.begin(t, w.name, cancel)
	if j == nil {
		return errStopped
	}
	err := spawn.Guard(func() error { return w.do(compute.WithAllocator(ctx, r.alloc), j) })
	if cause := context.Cause(ctx); cause != nil && err != nil {
		err = errors.Join(cause, err)
	}
	r.end(j, err)
	return err
}

func (r *Runner) indexOptions(j *job) write.IndexOptions {
	return write.IndexOptions{
		Budget: r.budget, MemoryBytes: r.opts.MemoryBytes / 4, Parallelism: r.opts.Cores, Progress: j.progress,
		Commit: write.CommitOptions{Retries: conflictRetries},
	}
}

func (r *Runner) compact(ctx context.Context, j *job, snap *storage.Snapshot, opts write.CompactOptions, plan write.CompactionPlan) error {
	done := make(chan int, 1) // the rows so far: progress comes from several goroutines
	done <- 0
	opts.Progress = func(rows int) {
		n := <-done + rows
		j.progress("rewrite rows", int64(n), int64(plan.Rows))
		done <- n
	}
	indices := r.indexOptions(j)
	indices.Progress = func(stage string, done, total int64) { j.progress("remap indices, "+stage, done, total) }
	opts.Remapper = write.IndexRemapper{Options: indices}
	out, err := write.Compact(ctx, snap.Table(), opts)
	if err != nil {
		return err
	}
	for _, name := range out.Uncovered {
		logrus.Warnf("upkeep: %s.%s: index %s does not cover the rows that were compacted: it is of a kind that is not built here, or cannot be remapped; "+
			"it is extended where that is possible, else create it anew", j.table.key.lake, j.table.key.table, name)
	}
	return nil
}

func (r *Runner) update(ctx context.Context, j *job, snap *storage.Snapshot, name string, merge int) error {
	_, err := write.UpdateIndex(ctx, snap.Table(), name, write.UpdateIndexOptions{Merge: merge, IndexOptions: r.indexOptions(j)})
	return err
}

func (r *Runner) clean(ctx context.Context, j *job, snap *storage.Snapshot) error {
	j.progress("remove old versions", 0, 0)
	age := r.opts.Cleanup.OlderThan
	if age == 0 {
		age = -1 // of any age; 0 would be the default
	}
	lake := j.table.lake.catalog
	if _, err := lake.Table(ctx, j.table.key.table, source.AsOf{}); err != nil { // else the lake may hold on to an older version, which nobody reads
		return err
	}
	done, err := write.Cleanup(ctx, snap.Table(), write.CleanupOptions{
		OlderThan: age, KeepLatest: r.opts.Cleanup.KeepLatest, Now: r.opts.Now,
		KeepFrom: func(newest uint64) uint64 { return lake.OldestInUse(snap.Table(), newest) },
	})
	j.progress("versions removed", int64(len(done.Versions)), 0)
	return err
}
