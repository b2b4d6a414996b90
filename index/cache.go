package index

import (
	"container/list"
	"sync"

	"github.com/lakesql/lakesql/internal/mem"
)

// Cache keeps parts of opened segments (bitmaps, pages) up to a number of bytes, the least recently used leave first. It is
// safe for concurrent use and may be shared by segments.
type Cache struct {
	limitBytes int64

	mu      sync.Mutex
	held    *mem.Reservation
	size    int64
	entries map[cacheKey]*list.Element
	recent  *list.List // front = used last
	nextID  uint64
	hits    uint64
	misses  uint64
}

type cacheKey struct{ segment, part uint64 }

type cacheEntry struct {
	key       cacheKey
	value     any
	sizeBytes int64
}

// NewCache makes a cache of at most limitBytes that is paid for by budget (nil = nobody).
func NewCache(limitBytes int64, budget *mem.Budget) *Cache {
	return &Cache{
		limitBytes: limitBytes, held: budget.Reserve(),
		entries: make(map[cacheKey]*list.Element), recent: list.New(),
	}
}

// CacheStats counts what a cache did.
type CacheStats struct {
	Hits, Misses uint64
	SizeBytes    int64
	Entries      int
}

// Stats returns the counts so far.
func (c *Cache) Stats() CacheStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return CacheStats{Hits: c.hits, Misses: c.misses, SizeBytes: c.size, Entries: len(c.entries)}
}

// LimitBytes is the most the cache holds.
func (c *Cache) LimitBytes() int64 { return c.limitBytes }

// Register returns a number under which a segment keeps its parts; no two segments get the same.
func (c *Cache) Register() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nextID++
	return c.nextID
}

// Get returns a part. It must not be changed.
func (c *Cache) Get(segment, part uint64) (any, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[cacheKey{segment, part}]
	if !ok {
		c.misses++
		return nil, false
	}
	c.hits++
	c.recent.MoveToFront(e)
	return e.Value.(*cacheEntry).value, true
}

// Put keeps a part if it fits: one that is larger than a quarter of the cache, or that the budget refuses after the others left, is not kept.
func (c *Cache) Put(segment, part uint64, value any, sizeBytes int64) {
	const entryBytes = 160 // the entry itself, its list element and map slot
	sizeBytes += entryBytes
	c.mu.Lock()
	defer c.mu.Unlock()
	key := cacheKey{segment, part}
	if _, ok := c.entries[key]; ok || sizeBytes > c.limitBytes/4 {
		return
	}
	for c.size+sizeBytes > c.limitBytes {
		c.evict(c.recent.Back())
	}
	for c.held.Grow(sizeBytes) != nil {
		if c.recent.Len() == 0 {
			return
		}
		c.evict(c.recent.Back())
	}
	c.size += sizeBytes
	c.entries[key] = c.recent.PushFront(&cacheEntry{key, value, sizeBytes})
}

// Drop forgets the parts of one segment.
func (c *Cache) Drop(segment uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for e := c.recent.Front(); e != nil; {
		next := e.Next()
		if e.Value.(*cacheEntry).key.segment == segment {
			c.evict(e)
		}
		e = next
	}
}

func (c *Cache) evict(e *list.Element) {
	entry := c.recent.Remove(e).(*cacheEntry)
	delete(c.entries, entry.key)
	c.size -= entry.sizeBytes
	c.held.Shrink(entry.sizeBytes)
}
