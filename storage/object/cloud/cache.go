package cloud

import (
	"container/list"
	"sync"

	"github.com/lakesql/lakesql/storage/object"
)

// blockBytes is the unit of caching and the alignment of requests: large enough to keep the cache's own cost low, small enough
// that fetching one value costs little more than its bytes.
const blockBytes = 4 << 10

// cachedRangeBytes is the longest range that is cached: longer ones are scans, which would push everything else out.
const cachedRangeBytes = 1 << 20

// blockCache keeps blocks of files, least recently used out first.
type blockCache struct {
	limitBytes int64

	mu        sync.Mutex
	blocks    map[blockKey]*list.Element
	order     list.List
	usedBytes int64
}

type blockKey struct {
	path  string
	size  int64 // of the file
	block int64
}

type cachedBlock struct {
	key   blockKey
	bytes []byte
}

// blockOverheadBytes is about what an entry costs beside its bytes.
const blockOverheadBytes = 256

func newBlockCache(limitBytes int64) *blockCache {
	return &blockCache{limitBytes: limitBytes, blocks: make(map[blockKey]*list.Element)}
}

// get returns the bytes of a range, nil unless every block of it is there.
func (c *blockCache) get(path string, size int64, r object.Range) []byte {
	if r.Size > cachedRangeBytes || c.limitBytes <= 0 {
		return nil
	}
	first, last := r.Offset/blockBytes, (r.Offset+r.Size-1)/blockBytes
	c.mu.Lock()
	defer c.mu.Unlock()
	for b := first; b <= last; b++ {
		if _, ok := c.blocks[blockKey{path, size, b}]; !ok {
			return nil
		}
	}
	var out []byte
	for b := first; b <= last; b++ {
		el := c.blocks[blockKey{path, size, b}]
		c.order.MoveToFront(el)
		bytes := el.Value.(*cachedBlock).bytes
		from, to := max(0, r.Offset-b*blockBytes), min(int64(len(bytes)), r.Offset+r.Size-b*blockBytes)
		if first == last {
			return bytes[from:to:to]
		}
		if out == nil {
			out = make([]byte, 0, r.Size)
		}
		out = append(out, bytes[from:to]...)
	}
	return out
}

// put keeps the whole blocks of bytes that were read at a block's start. The last block of a file may be short.
func (c *blockCache) put(path string, size, offset int64, bytes []byte) {
	if int64(len(bytes)) > cachedRangeBytes || c.limitBytes <= 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for at := int64(0); at < int64(len(bytes)); at += blockBytes {
		end := min(at+blockBytes, int64(len(bytes)))
		key := blockKey{path, size, (offset + at) / blockBytes}
		if _, ok := c.blocks[key]; ok {
			continue
		}
		kept := append([]byte(nil), bytes[at:end]...) // its own memory: a block must not keep a whole request alive
		c.blocks[key] = c.order.PushFront(&cachedBlock{key: key, bytes: kept})
		c.usedBytes += int64(len(kept)) + blockOverheadBytes
	}
	for c.usedBytes > c.limitBytes {
		c.remove(c.order.Back())
	}
}

func (c *blockCache) remove(el *list.Element) {
	b := el.Value.(*cachedBlock)
	c.order.Remove(el)
	delete(c.blocks, b.key)
	c.usedBytes -= int64(len(b.bytes)) + blockOverheadBytes
}

// drop forgets a path whose content changed or went.
func (c *blockCache) drop(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for el := c.order.Front(); el != nil; {
		next := el.Next()
		if el.Value.(*cachedBlock).key.path == path {
			c.remove(el)
		}
		el = next
	}
}
