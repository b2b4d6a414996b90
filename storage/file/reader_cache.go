package file

import (
	"slices"
	"sync"
)

// pageCache bounds the page structures that a Reader keeps: the oldest give way. It is safe for concurrent use.
type pageCache struct {
	limitBytes int64 // at most; negative = nothing is kept

	mu        sync.Mutex
	usedBytes int64
	kept      []cachedPiece // oldest first
}

// cachedPiece is one structure; drop makes its page forget it.
type cachedPiece struct {
	of        any // the structure
	sizeBytes int64
	drop      func()
}

// keep makes room for structure of, of the given size, and calls hold to make its page remember it, unless it is too large at all.
// drop is called when it has to give way, possibly while a read still uses the structure: pages only forget their pointer.
func (c *pageCache) keep(of any, size int, hold, drop func()) {
	n := int64(size)
	if n > c.limitBytes {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	hold()
	c.kept, c.usedBytes = append(c.kept, cachedPiece{of, n, drop}), c.usedBytes+n
	for c.usedBytes > c.limitBytes {
		oldest := c.kept[0]
		c.kept[0] = cachedPiece{}
		c.kept, c.usedBytes = c.kept[1:], c.usedBytes-oldest.sizeBytes
		oldest.drop()
	}
}

// forget stops counting a structure that its page replaced by another one. One that was not kept, or gave way since, is no matter.
func (c *pageCache) forget(of any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.IndexFunc(c.kept, func(p cachedPiece) bool { return p.of == of }); i >= 0 {
		c.usedBytes -= c.kept[i].sizeBytes
		c.kept = slices.Delete(c.kept, i, i+1)
	}
}

// used returns the bytes that are kept.
func (c *pageCache) used() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.usedBytes
}
