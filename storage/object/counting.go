package object

import (
	"context"
	"maps"
	"sync"
)

// Counts is what was read of one path, or of all.
type Counts struct {
	Opens    int64
	Requests int64 // reads after neighbours are merged, as a remote store would send them
	Bytes    int64 // of those merged reads
	Ranges   int64 // ranges asked for
}

func (c *Counts) add(o Counts) {
	c.Opens += o.Opens
	c.Requests += o.Requests
	c.Bytes += o.Bytes
	c.Ranges += o.Ranges
}

// CountingOptions tunes NewCounting. The zero value is the default.
type CountingOptions struct {
	GapBytes int64 // ranges of one ReadMany that lie at most this far apart count as one request, gap included; 0 = 4 KiB
	AsRemote bool  // files say that they are not mapped, so that callers read as they would from an object store
}

// Counting wraps a store and counts what is read through it, by path.
type Counting struct {
	Store
	opts CountingOptions

	mu     sync.Mutex
	byPath map[string]Counts
	lists  int64
	stats  int64
}

// NewCounting wraps store.
func NewCounting(store Store, opts CountingOptions) *Counting {
	if opts.GapBytes == 0 {
		opts.GapBytes = 4 << 10
	}
	return &Counting{Store: store, opts: opts, byPath: make(map[string]Counts)}
}

// Open implements Store.
func (c *Counting) Open(ctx context.Context, p string) (File, error) {
	f, err := c.Store.Open(ctx, p)
	if err != nil {
		return nil, err
	}
	c.count(p, Counts{Opens: 1})
	return &countingFile{File: f, of: c}, nil
}

// Stat implements Store.
func (c *Counting) Stat(ctx context.Context, p string) (Entry, error) {
	c.mu.Lock()
	c.stats++
	c.mu.Unlock()
	return c.Store.Stat(ctx, p)
}

// List implements Store.
func (c *Counting) List(ctx context.Context, dir string) ([]Entry, error) {
	c.mu.Lock()
	c.lists++
	c.mu.Unlock()
	return c.Store.List(ctx, dir)
}

// Reset forgets all counts.
func (c *Counting) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byPath, c.lists, c.stats = make(map[string]Counts), 0, 0
}

// ByPath returns a copy of the counts of every path that was read.
func (c *Counting) ByPath() map[string]Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.byPath)
}

// Total returns the sum over all paths.
func (c *Counting) Total() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	var sum Counts
	for _, n := range c.byPath {
		sum.add(n)
	}
	return sum
}

// Lists returns how often List was called, Stats how often Stat was.
func (c *Counting) Lists() int64 { c.mu.Lock(); defer c.mu.Unlock(); return c.lists }

// Stats returns how often Stat was called.
func (c *Counting) Stats() int64 { c.mu.Lock(); defer c.mu.Unlock(); return c.stats }

func (c *Counting) count(p string, n Counts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := c.byPath[p]
	sum.add(n)
	c.byPath[p] = sum
}

type countingFile struct {
	File
	of *Counting
}

func (f *countingFile) IsMapped() bool { return f.File.IsMapped() && !f.of.opts.AsRemote }

func (f *countingFile) Read(ctx context.Context, r Range) ([]byte, error) {
	f.of.count(f.Path(), Counts{Requests: 1, Bytes: r.Size, Ranges: 1})
	return f.File.Read(ctx, r)
}

func (f *countingFile) ReadMany(ctx context.Context, rs []Range) ([][]byte, error) {
	n := Counts{Ranges: int64(len(rs))}
	merged, _ := Coalesce(rs, f.of.opts.GapBytes, 1<<62)
	for _, m := range merged {
		n.Requests++
		n.Bytes += m.Size
	}
	f.of.count(f.Path(), n)
	return f.File.ReadMany(ctx, rs)
}
