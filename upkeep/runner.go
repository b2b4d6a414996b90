package upkeep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/source/lance"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/object"
)

// firstID is the number of the first job in the process list; those of connections count up from 1.
const firstID = 1 << 31

// errStopped ends a job that somebody stopped.
var errStopped = errors.New("stopped")

// Runner maintains tables until it is closed. It is safe for concurrent use.
type Runner struct {
	opts   Options
	lakes  []*lake
	limits *object.Limits
	budget *mem.Budget
	alloc  *mem.Allocator
	cache  *storage.Cache
	group  *spawn.Group
	cancel context.CancelFunc
	poke   chan struct{} // something changed: look at once

	mu      sync.Mutex
	off     bool
	lastID  uint32
	running *job
	tables  map[tableKey]*table
}

// lake is one catalog, read and written through the limits.
type lake struct {
	catalog *lance.Catalog
	store   object.Store
}

type tableKey struct{ lake, table string }

// table is what is known of a table between two looks.
type table struct {
	key      tableKey
	lake     *lake
	opened   *storage.Table // nil = not yet
	next     time.Time
	failures int
	cleaned  time.Time // when a clean-up began last, or when the table was first seen
	status   Status
}

// New returns a runner over the lakes, which outlive it. It does nothing before Start. Errors: ErrInvalid for options, for read-only lakes that are included by name, and
// where there is no lake that can be written to.
func New(catalogs []*lance.Catalog, opts Options) (*Runner, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	r := &Runner{
		opts: opts, tables: make(map[tableKey]*table), poke: make(chan struct{}, 1), lastID: firstID - 1, budget: mem.NewBudget("upkeep", opts.MemoryBytes, nil),
		limits: object.NewLimits(object.LimitOptions{BytesPerSecond: opts.BytesPerSecond, RequestsPerSecond: opts.RequestsPerSecond}),
	}
	r.alloc = mem.NewAllocator(mem.NewPool(), r.budget)
	r.cache = storage.NewCache(storage.CacheOptions{LimitBytes: opts.MemoryBytes / 8, OpenStore: func(ctx context.Context, url string) (object.Store, error) {
		s, err := opts.OpenStore(ctx, url)
		if err != nil {
			return nil, err
		}
		return object.NewThrottled(s, r.limits), nil
	}})
	for _, c := range catalogs {
		if !c.IsReadOnly() {
			r.lakes = append(r.lakes, &lake{catalog: c, store: object.NewThrottled(c.Store(), r.limits)})
			continue
		}
		for _, p := range opts.Include {
			if named(p, c.Name()) {
				return nil, errs.New(errs.ErrInvalid, "upkeep.include: %q: lake %s is read-only", p, c.Name())
			}
		}
	}
	if len(r.lakes) == 0 {
		return nil, errs.New(errs.ErrInvalid, "upkeep: it changes tables, and there is no lake that may be written to: take read_only away, or upkeep")
	}
	return r, nil
}

// Start begins to look after tables. Close ends it.
func (r *Runner) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	r.group, ctx = spawn.WithContext(ctx, 0)
	r.cancel = cancel
	r.group.Go("upkeep", func() error {
		for {
			timer := time.NewTimer(r.Pass(ctx))
			select {
			case <-ctx.Done():
				timer.Stop()
				return nil
			case <-r.poke:
				timer.Stop()
			case <-timer.C:
			}
		}
	})
}

// Close ends the running job and waits for it. The lakes must still be open.
func (r *Runner) Close() error {
	var err error
	if r.group != nil {
		r.stop()
		r.cancel()
		err = r.group.Wait()
	}
	return errors.Join(err, r.cache.Close())
}

// stop ends the running job and returns what closes when it has ended; nil where none runs.
func (r *Runner) stop() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running == nil {
		return nil
	}
	r.running.stop()
	return r.running.done
}

// Switch lets jobs begin, or ends the one that runs, waits for that, and lets none begin.
func (r *Runner) Switch(ctx context.Context, on bool) error {
	r.mu.Lock()
	r.off = !on
	r.mu.Unlock()
	if on {
		r.wake()
		return nil
	}
	done := r.stop()
	if done == nil {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-done:
		return nil
	}
}

// IsOn says whether jobs may begin.
func (r *Runner) IsOn() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.off
}

// LookNow has the tables that a pattern such as prod.* names looked at without waiting for their time, failures forgotten. It returns how many there are. Errors: ErrInvalid for
// a bad pattern, those of listing the lakes.
func (r *Runner) LookNow(ctx context.Context, pattern string) (int, error) {
	o := r.opts
	o.Include = []string{pattern}
	if err := o.Validate(); err != nil {
		return 0, err
	}
	if err := r.discover(ctx); err != nil {
		return 0, err
	}
	r.mu.Lock()
	n := 0
	for key, t := range r.tables {
		if matches(o.Include, key.lake, key.table) {
			n++
			t.failures, t.next = 0, time.Time{}
		}
	}
	r.mu.Unlock()
	if n > 0 {
		r.wake()
	}
	return n, nil
}

func (r *Runner) wake() {
	select {
	case r.poke <- struct{}{}:
	default:
	}
}

// Kill ends a job by its number in the process list; false where no such job runs.
func (r *Runner) Kill(id uint32) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running == nil || r.running.id != id {
		return false
	}
	r.running.stop()
	return true
}

// Pass looks at every table whose time has come, does what is due, and returns how long to wait for the next. It is what Start does again and again.
func (r *Runner) Pass(ctx context.Context) time.Duration {
	if !r.mayBegin() {
		return r.opts.Interval
	}
	if err := r.discover(ctx); err != nil && ctx.Err() == nil {
		logrus.Errorf("upkeep: %v", err)
	}
	for _, t := range r.due() {
		if ctx.Err() != nil || !r.mayBegin() {
			break
		}
		r.tend(ctx, t)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	wait := r.opts.Interval // new tables are found after this long
	for _, t := range r.tables {
		wait = min(wait, t.next.Sub(r.opts.Now()))
	}
	return max(wait, intervalMin)
}

func (r *Runner) mayBegin() bool { return r.IsOn() && r.opts.Hours.has(r.opts.Now()) }

// discover lists the tables. Those of a lake that cannot be listed stay as they were known.
func (r *Runner) discover(ctx context.Context) error {
	var all error
	for _, l := range r.lakes {
		names, err := l.catalog.TableNames(ctx)
		if err != nil {
			all = errors.Join(all, err)
			continue
		}
		r.mu.Lock()
		maps.DeleteFunc(r.tables, func(k tableKey, t *table) bool {
			return t.lake == l && !slices.Contains(names, k.table) && (r.running == nil || r.running.table != t)
		})
		for _, name := range names {
			key := tableKey{l.catalog.Name(), name}
			if r.tables[key] != nil || !r.opts.wants(key.lake, name) {
				continue
			}
			now := r.opts.Now()
			// Tables are not looked at all at once when a server starts.
			t := &table{key: key, lake: l, cleaned: now, next: now.Add(time.Duration(r.opts.Random() * r.opts.Jitter * float64(r.opts.Interval)))}
			t.status = Status{Lake: key.lake, Table: name, State: StateWaiting, NextRun: t.next}
			r.tables[key] = t
		}
		r.mu.Unlock()
	}
	return all
}

// due are the tables whose time has come, those that wait longest first.
func (r *Runner) due() []*table {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []*table
	for _, t := range r.tables {
		if !t.next.After(r.opts.Now()) {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b *table) int {
		return cmp.Or(a.next.Compare(b.next), cmp.Compare(a.key.lake, b.key.lake), cmp.Compare(a.key.table, b.key.table))
	})
	return out
}

// tend looks at a table, does what is due, and says when to look again.
func (r *Runner) tend(ctx context.Context, t *table) {
	err := r.jobs(ctx, t)
	if errors.Is(err, errs.ErrNotFound) {
		r.mu.Lock()
		t.opened = nil // dropped, and maybe made anew
		r.mu.Unlock()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	wait := time.Duration((1 + r.opts.Jitter*(2*r.opts.Random()-1)) * float64(r.opts.Interval))
	if err == nil {
		t.failures = 0
		t.status.State, t.status.LastError = StateWaiting, ""
	} else {
		t.failures++
		wait = min(wait<<min(t.failures, 30), r.opts.BackOffMax)
		if wait <= 0 {
			wait = r.opts.BackOffMax
		}
	}
	t.next = r.opts.Now().Add(wait)
	t.status.NextRun = t.next
	switch what := fmt.Sprintf("upkeep: %s.%s", t.key.lake, t.key.table); {
	case err == nil:
	case errors.Is(err, errStopped) || ctx.Err() != nil:
		t.status.State, t.status.LastError = StateStopped, "stopped by a statement or the end of the server"
		logrus.Infof("%s: %s was stopped; next look at %s", what, t.status.Job, t.next.Format(time.RFC3339))
	case errors.Is(err, errs.ErrConflict):
		t.status.State, t.status.LastError = StateFailed, err.Error()
		logrus.Infof("%s: %s gave way to another writer; next look at %s: %v", what, t.status.Job, t.next.Format(time.RFC3339), err)
	default:
		t.status.State, t.status.LastError = StateFailed, err.Error()
		logrus.Errorf("%s: %s failed; next look at %s: %v", what, t.status.Job, t.next.Format(time.RFC3339), err)
	}
}
