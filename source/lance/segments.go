package lance

import (
	"container/list"
	"errors"
	"sync"

	"github.com/lakesql/lakesql/index"
)

// segmentsMax is how many opened segments a cache keeps unless told otherwise.
const segmentsMax = 4096

// SegmentCache keeps opened index segments by their UUID: they are immutable, so they outlive versions and serve every snapshot that lists them.
// The least recently used ones go first. It is safe for concurrent use.
type SegmentCache struct {
	mu     sync.Mutex
	limit  int
	order  *list.List // of *cachedSegment, most recent first
	byUUID map[string]*list.Element
}

type cachedSegment struct {
	uuid    string
	once    sync.Once
	segment index.Segment
	err     error
}

// NewSegmentCache keeps at most limit segments; 0 = a default.
func NewSegmentCache(limit int) *SegmentCache {
	if limit <= 0 {
		limit = segmentsMax
	}
	return &SegmentCache{limit: limit, order: list.New(), byUUID: make(map[string]*list.Element)}
}

// get returns the segment, opened once however many ask at the same time. A failure is not kept.
func (c *SegmentCache) get(uuid string, open func() (index.Segment, error)) (index.Segment, error) {
	c.mu.Lock()
	el, ok := c.byUUID[uuid]
	if ok {
		c.order.MoveToFront(el)
	} else {
		el = c.order.PushFront(&cachedSegment{uuid: uuid})
		c.byUUID[uuid] = el
		c.evict()
	}
	entry := el.Value.(*cachedSegment) //nolint:forcetypeassert // the list holds nothing else
	c.mu.Unlock()
	entry.once.Do(func() { entry.segment, entry.err = open() })
	if entry.err != nil {
		c.mu.Lock()
		if c.byUUID[uuid] == el {
			c.order.Remove(el)
			delete(c.byUUID, uuid)
		}
		c.mu.Unlock()
	}
	return entry.segment, entry.err
}

// evict drops what is over the limit. A query that holds a dropped segment may go on using it: the garbage collector frees it after the last one.
func (c *SegmentCache) evict() {
	for c.order.Len() > c.limit {
		el := c.order.Back()
		entry := el.Value.(*cachedSegment) //nolint:forcetypeassert // see get
		c.order.Remove(el)
		delete(c.byUUID, entry.uuid)
	}
}

// Close closes every segment. No query may run.
func (c *SegmentCache) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	for el := c.order.Front(); el != nil; el = el.Next() {
		if s := el.Value.(*cachedSegment).segment; s != nil { //nolint:forcetypeassert // see get
			err = errors.Join(err, s.Close())
		}
	}
	c.order.Init()
	clear(c.byUUID)
	return err
}
