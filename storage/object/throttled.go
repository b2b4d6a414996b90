package object

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lakesql/lakesql/internal/spawn"
)

// LimitOptions says what throttled stores may take a second, all of them together. The zero value is no limit.
type LimitOptions struct {
	BytesPerSecond    int64 // read and written; 0 = no limit
	RequestsPerSecond int64 // as a remote store would count them: opened mappings are read without any; 0 = no limit
	Now               func() time.Time
	// Wait sleeps; nil = by the clock.
	Wait func(ctx context.Context, d time.Duration) error
}

func (o LimitOptions) withDefaults() LimitOptions {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Wait == nil {
		o.Wait = spawn.Sleep
	}
	return o
}

// Limits is how fast throttled stores may go. It is safe for concurrent use.
type Limits struct {
	opts   LimitOptions
	lifted atomic.Bool
	taken  atomic.Int64 // bytes

	mu              sync.Mutex
	bytes, requests bucket
}

// bucket fills with time, up to what one second brings. Below zero it is in debt: whoever took that much waits until it is paid.
type bucket struct {
	left float64
	at   time.Time
}

// NewLimits returns limits that nothing has used yet.
func NewLimits(o LimitOptions) *Limits {
	o = o.withDefaults()
	l := &Limits{opts: o}
	l.bytes, l.requests = bucket{float64(o.BytesPerSecond), o.Now()}, bucket{float64(o.RequestsPerSecond), o.Now()}
	return l
}

// Lift lets everything through from now on, until it is called with false: what is left to do of work that was given up should not wait.
func (l *Limits) Lift(lifted bool) { l.lifted.Store(lifted) }

// TakenBytes is how many bytes were read and written so far.
func (l *Limits) TakenBytes() int64 { return l.taken.Load() }

// take waits until so much may be done. Errors: those of ctx.
func (l *Limits) take(ctx context.Context, requests, bytes int64) error {
	l.taken.Add(bytes)
	if l.lifted.Load() {
		return nil
	}
	l.mu.Lock()
	now := l.opts.Now()
	wait := max(l.requests.take(now, requests, l.opts.RequestsPerSecond), l.bytes.take(now, bytes, l.opts.BytesPerSecond))
	l.mu.Unlock()
	if wait <= 0 {
		return nil
	}
	return l.opts.Wait(ctx, wait)
}

// take takes n and returns how long to wait for them.
func (b *bucket) take(now time.Time, n, perSecond int64) time.Duration {
	if perSecond <= 0 || n <= 0 {
		return 0
	}
	if d := now.Sub(b.at); d > 0 {
		b.left = min(b.left+d.Seconds()*float64(perSecond), float64(perSecond))
		b.at = now
	}
	b.left -= float64(n)
	if b.left >= 0 {
		return 0
	}
	return time.Duration(-b.left / float64(perSecond) * float64(time.Second))
}

// Throttled wraps a store whose users may take only so much a second.
type Throttled struct {
	Store
	limits *Limits
}

// NewThrottled wraps store; closing the one closes the other. The result is a Pager and a SizedOpener, or has Leftovers, where store is and has.
func NewThrottled(store Store, limits *Limits) Store {
	t := &Throttled{Store: store, limits: limits}
	if pager, ok := store.(Pager); ok {
		return &throttledPager{Throttled: t, pager: pager}
	}
	if left, ok := store.(Leftovers); ok {
		return &throttledFolders{Throttled: t, left: left}
	}
	return t
}

// Open implements Store.
func (t *Throttled) Open(ctx context.Context, path string) (File, error) {
	if err := t.limits.take(ctx, 1, 0); err != nil {
		return nil, err
	}
	return t.wrap(t.Store.Open(ctx, path))
}

func (t *Throttled) wrap(f File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return &throttledFile{File: f, limits: t.limits}, nil
}

// Stat implements Store.
func (t *Throttled) Stat(ctx context.Context, path string) (Entry, error) {
	if err := t.limits.take(ctx, 1, 0); err != nil {
		return Entry{}, err
	}
	return t.Store.Stat(ctx, path)
}

// List implements Store.
func (t *Throttled) List(ctx context.Context, dir string) ([]Entry, error) {
	if err := t.limits.take(ctx, 1, 0); err != nil {
		return nil, err
	}
	return t.Store.List(ctx, dir)
}

// Put implements Store.
func (t *Throttled) Put(ctx context.Context, path string, content []byte, ifAbsent bool) error {
	if err := t.limits.take(ctx, 1, int64(len(content))); err != nil {
		return err
	}
	return t.Store.Put(ctx, path, content, ifAbsent)
}

// Create implements Store.
func (t *Throttled) Create(ctx context.Context, path string) (Writer, error) {
	if err := t.limits.take(ctx, 1, 0); err != nil {
		return nil, err
	}
	w, err := t.Store.Create(ctx, path)
	if err != nil {
		return nil, err
	}
	return &throttledWriter{Writer: w, take: func(n int64) error { return t.limits.take(ctx, 0, n) }}, nil
}

// Delete implements Store.
func (t *Throttled) Delete(ctx context.Context, path string) error {
	if err := t.limits.take(ctx, 1, 0); err != nil {
		return err
	}
	return t.Store.Delete(ctx, path)
}

type throttledPager struct {
	*Throttled
	pager Pager
}

// ListPage implements Pager.
func (t *throttledPager) ListPage(ctx context.Context, dir string, limit int) ([]Entry, bool, error) {
	if err := t.limits.take(ctx, 1, 0); err != nil {
		return nil, false, err
	}
	return t.pager.ListPage(ctx, dir, limit)
}

// OpenSized implements SizedOpener.
func (t *throttledPager) OpenSized(ctx context.Context, path string, sizeBytes int64) (File, error) {
	if sized, ok := t.Store.(SizedOpener); ok {
		return t.wrap(sized.OpenSized(ctx, path, sizeBytes))
	}
	return t.Open(ctx, path)
}

type throttledFolders struct {
	*Throttled
	left Leftovers
}

// RemoveEmptyFolder implements Leftovers.
func (t *throttledFolders) RemoveEmptyFolder(ctx context.Context, dir string) error {
	return t.left.RemoveEmptyFolder(ctx, dir)
}

// RemoveTemporary implements Leftovers.
func (t *throttledFolders) RemoveTemporary(ctx context.Context, dir string, before time.Time) (int64, error) {
	return t.left.RemoveTemporary(ctx, dir, before)
}

type throttledFile struct {
	File
	limits *Limits
}

func (f *throttledFile) requests(n int) int64 {
	if f.IsMapped() {
		return 0
	}
	return int64(n)
}

// Read implements File.
func (f *throttledFile) Read(ctx context.Context, r Range) ([]byte, error) {
	if err := f.limits.take(ctx, f.requests(1), r.Size); err != nil {
		return nil, err
	}
	return f.File.Read(ctx, r)
}

// throttledGapBytes: ranges that lie this close together are one request, as remote stores send them.
const throttledGapBytes = 4 << 10

// ReadMany implements File.
func (f *throttledFile) ReadMany(ctx context.Context, rs []Range) ([][]byte, error) {
	merged, _ := Coalesce(rs, throttledGapBytes, 1<<62)
	var bytes int64
	for _, m := range merged {
		bytes += m.Size
	}
	if err := f.limits.take(ctx, f.requests(len(merged)), bytes); err != nil {
		return nil, err
	}
	return f.File.ReadMany(ctx, rs)
}

// FetchBytes implements Fetcher.
func (f *throttledFile) FetchBytes(rs []Range) int64 { return FetchBytes(f.File, rs) }

type throttledWriter struct {
	Writer
	take func(bytes int64) error
}

// Write implements io.Writer.
func (w *throttledWriter) Write(p []byte) (int, error) {
	if err := w.take(int64(len(p))); err != nil {
		return 0, err
	}
	return w.Writer.Write(p)
}
