package storage

import (
	"container/list"
	"context"
	"errors"
	"sync"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/object"
)

// CacheBytesDefault is the limit of a Cache unless CacheOptions says otherwise.
const CacheBytesDefault = 512 << 20

// CacheOptions tunes NewCache. The zero value is the default.
type CacheOptions struct {
	LimitBytes int64 // estimated memory of what is kept; 0 = CacheBytesDefault
	// OpenStore opens the store of a base path outside the dataset's own store; nil = object.OpenURL.
	OpenStore func(ctx context.Context, url string) (object.Store, error)
}

func (o CacheOptions) withDefaults() CacheOptions {
	if o.LimitBytes <= 0 {
		o.LimitBytes = CacheBytesDefault
	}
	if o.OpenStore == nil {
		o.OpenStore = object.OpenURL
	}
	return o
}

// Cache keeps opened files, deletion sets and snapshots of any number of tables, least recently used out first. It must be closed
// before the stores of its tables. It is safe for concurrent use.
type Cache struct {
	opts CacheOptions

	mu        sync.Mutex
	items     map[cacheKey]*list.Element // of *cacheItem
	order     list.List                  // most recently used first
	usedBytes int64
	loading   map[cacheKey]*cacheCall
	stores    map[string]object.Store // of base paths, by URL
	hits      int64
	misses    int64
}

// cacheKey is the identity of a cached thing (I4).
type cacheKey struct {
	store object.Store
	kind  cacheKind
	path  string
	ident string // size and time of the file where it could be replaced
}

type cacheKind uint8

const (
	kindFile cacheKind = iota
	kindDeletions
	kindSnapshot
	kindRowIDs
)

type cacheItem struct {
	key   cacheKey
	value any
	bytes int64
}

// cacheCall is a load in progress that others wait for.
type cacheCall struct {
	done chan struct{}
	err  error
}

// NewCache returns an empty cache.
func NewCache(opts CacheOptions) *Cache {
	return &Cache{
		opts: opts.withDefaults(), items: make(map[cacheKey]*list.Element),
		loading: make(map[cacheKey]*cacheCall), stores: make(map[string]object.Store),
	}
}

// CacheStats counts what a Cache did.
type CacheStats struct {
	Hits, Misses int64
	UsedBytes    int64
	Items        int
}

// Stats returns the counts so far.
func (c *Cache) Stats() CacheStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return CacheStats{Hits: c.hits, Misses: c.misses, UsedBytes: c.usedBytes, Items: len(c.items)}
}

// Close drops everything and closes the stores of base paths.
func (c *Cache) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	for _, s := range c.stores {
		err = errors.Join(err, s.Close())
	}
	clear(c.items)
	clear(c.stores)
	c.order.Init()
	c.usedBytes = 0
	return err
}

// cached returns the value of key, loading it once however many ask at the same time. load also returns the value's
// size in bytes. Errors are not kept.
func cached[T any](ctx context.Context, c *Cache, key cacheKey, load func(ctx context.Context) (T, int64, error)) (T, error) {
	var none T
	for {
		c.mu.Lock()
		if el, ok := c.items[key]; ok {
			c.order.MoveToFront(el)
			c.hits++
			v := el.Value.(*cacheItem).value
			c.weigh(el.Value.(*cacheItem))
			c.mu.Unlock()
			return v.(T), nil
		}
		call, isLoading := c.loading[key]
		if !isLoading {
			call = &cacheCall{done: make(chan struct{})}
			c.loading[key] = call
			c.misses++
			c.mu.Unlock()
			return finish(ctx, c, key, call, load)
		}
		c.mu.Unlock()
		select {
		case <-ctx.Done():
			return none, ctx.Err()
		case <-call.done:
		}
		if err := call.err; err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
			return none, err
		}
		// Loaded (or pushed out since), or given up by a caller whose context ended: look again.
	}
}

func finish[T any](ctx context.Context, c *Cache, key cacheKey, call *cacheCall, load func(ctx context.Context) (T, int64, error)) (v T, err error) {
	done := false
	defer func() { // also when load panics: waiters must not wait for ever
		if !done {
			err = errs.New(errs.ErrInternal, "loading %s did not end", key.path)
		}
		c.mu.Lock()
		delete(c.loading, key)
		call.err = err
		c.mu.Unlock()
		close(call.done)
	}()
	v, size, err := load(ctx)
	done = true
	if err == nil {
		c.put(key, v, size)
	}
	return v, err
}

// weigh takes note of how far an item has grown since it was last used; c.mu is held.
func (c *Cache) weigh(item *cacheItem) {
	if v, ok := item.value.(interface{ heldBytes() int64 }); ok {
		now := v.heldBytes()
		c.usedBytes += now - item.bytes
		item.bytes = now
		c.evict()
	}
}

// settle weighs an item after it was used. One that gave way meanwhile is no matter.
func (c *Cache) settle(key cacheKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if el, ok := c.items[key]; ok {
		c.weigh(el.Value.(*cacheItem))
	}
}

// evict drops what was not used for longest until the rest fits, but never the item used last; c.mu is held.
func (c *Cache) evict() {
	for c.usedBytes > c.opts.LimitBytes && c.order.Len() > 1 {
		last := c.order.Back()
		item := last.Value.(*cacheItem)
		c.order.Remove(last)
		delete(c.items, item.key)
		c.usedBytes -= item.bytes
	}
}

func (c *Cache) put(key cacheKey, v any, size int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if size > c.opts.LimitBytes {
		return // it would push everything out and then itself
	}
	c.items[key] = c.order.PushFront(&cacheItem{key: key, value: v, bytes: size})
	c.usedBytes += size
	c.evict()
}

// openStore returns the store of a base path; it stays open until Close.
func (c *Cache) openStore(ctx context.Context, url string) (object.Store, error) {
	c.mu.Lock()
	s, ok := c.stores[url]
	c.mu.Unlock()
	if ok {
		return s, nil
	}
	s, err := c.opts.OpenStore(ctx, url)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if other, ok := c.stores[url]; ok { // opened twice at once: keep the first
		return other, s.Close()
	}
	c.stores[url] = s
	return s, nil
}
