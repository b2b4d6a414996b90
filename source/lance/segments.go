package lance

import (
	"container/list"
	"errors"
	"sync"
	"time"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/spawn"
)

// segmentsMax is how many opened segments a cache keeps unless told otherwise.
const segmentsMax = 4096

// faultPatience is how long a segment that cannot be read is not tried again. What is built anew has a UUID of its own and is tried at once.
const faultPatience = time.Minute

// SegmentCache keeps opened index segments by their UUID: they are immutable, so they outlive versions and serve every snapshot that lists them.
// The least recently used ones go first, when there are too many and when the budget of a new one has no room. Of segments that cannot be read it
// keeps the error for a while. It is safe for concurrent use.
type SegmentCache struct {
	now    func() time.Time
	mu     sync.Mutex
	limit  int
	order  *list.List // of *cachedSegment, most recent first
	byUUID map[string]*list.Element
}

type cachedSegment struct {
	uuid    string
	once    sync.Once
	segment index.Segment // written inside once, and read below mu where isOpen says that this is over
	err     error
	isOpen  bool
	failed  time.Time // when err came up, where it is lasting
}

// NewSegmentCache keeps at most limit segments; 0 = a default.
func NewSegmentCache(limit int) *SegmentCache {
	if limit <= 0 {
		limit = segmentsMax
	}
	return &SegmentCache{now: time.Now, limit: limit, order: list.New(), byUUID: make(map[string]*list.Element)}
}

// get returns the segment, opened once however many ask at the same time. A failure that may pass is not kept.
func (c *SegmentCache) get(uuid string, open func() (index.Segment, error)) (index.Segment, error) {
	c.mu.Lock()
	el, ok := c.byUUID[uuid]
	if ok {
		if at := el.Value.(*cachedSegment).failed; !at.IsZero() && c.now().Sub(at) >= faultPatience { //nolint:forcetypeassert // the list holds nothing else
			c.order.Remove(el)
			ok = false
		}
	}
	if ok {
		c.order.MoveToFront(el)
	} else {
		el = c.order.PushFront(&cachedSegment{uuid: uuid})
		c.byUUID[uuid] = el
	}
	entry := el.Value.(*cachedSegment) //nolint:forcetypeassert // see above
	c.mu.Unlock()
	entry.once.Do(func() { c.open(el, entry, open) })
	return entry.segment, entry.err
}

// open fills in an entry. While its memory is refused, others give way.
func (c *SegmentCache) open(el *list.Element, entry *cachedSegment, open func() (index.Segment, error)) {
	for {
		entry.err = spawn.Guard(func() (err error) {
			entry.segment, err = open()
			return err
		})
		if !errors.Is(entry.err, errs.ErrMemoryLimit) || !c.makeRoom() {
			break
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case entry.err == nil:
		entry.isOpen = true
	case isLasting(entry.err):
		entry.failed = c.now()
	case c.byUUID[entry.uuid] == el:
		c.order.Remove(el)
		delete(c.byUUID, entry.uuid)
	}
	for c.order.Len() > c.limit && c.dropOldest() {
	}
}

// fail puts an error in the place of an open segment that turned out to be damaged. A query that holds the segment may go on using it.
func (c *SegmentCache) fail(uuid string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if el, ok := c.byUUID[uuid]; ok {
		entry := el.Value.(*cachedSegment) //nolint:forcetypeassert // see get
		if !entry.isOpen {
			return // it is being opened, or failed before
		}
		c.order.Remove(el)
		_ = entry.segment.Close() // it frees memory, which does not fail
	}
	entry := &cachedSegment{uuid: uuid, err: err, failed: c.now()}
	entry.once.Do(func() {})
	c.byUUID[uuid] = c.order.PushFront(entry)
}

// makeRoom drops the least recently used segment; false where there is none.
func (c *SegmentCache) makeRoom() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dropOldest()
}

// dropOldest takes out the segment that was not used for longest and gives back its memory; mu is held. A query that holds the segment may go
// on using it: closing frees reservations and cached parts, and the garbage collector the rest after the last user.
func (c *SegmentCache) dropOldest() bool {
	for el := c.order.Back(); el != nil; el = el.Prev() {
		entry := el.Value.(*cachedSegment) //nolint:forcetypeassert // see get
		if !entry.isOpen && entry.failed.IsZero() {
			continue
		}
		c.order.Remove(el)
		delete(c.byUUID, entry.uuid)
		if !entry.isOpen {
			return true
		}
		_ = entry.segment.Close() // it frees memory, which does not fail
		return true
	}
	return false
}

// Close closes every segment. No query may run.
func (c *SegmentCache) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	for el := c.order.Front(); el != nil; el = el.Next() {
		if entry := el.Value.(*cachedSegment); entry.isOpen { //nolint:forcetypeassert // see get
			err = errors.Join(err, entry.segment.Close())
		}
	}
	c.order.Init()
	clear(c.byUUID)
	return err
}
