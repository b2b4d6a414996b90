package index

import (
	"context"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/object"
)

// OpenFile opens a file of a segment's folder by its name, e.g. "bitmap_page_lookup.lance".
type OpenFile func(ctx context.Context, name string) (object.File, error)

// OpenOptions says how a filter segment is opened. The zero value is ready.
type OpenOptions struct {
	// Cache keeps what lookups read (bitmaps, pages); nil = a cache of the segment's own, of CacheBytes.
	Cache *Cache
	// CacheBytes is the size of the segment's own cache; 0 = 32 MiB.
	CacheBytes int64
	// Budget pays for what stays in memory while the segment is open (keys, page bounds); nil = nobody counts.
	Budget *mem.Budget
	// FragmentRows returns the physical rows of a fragment (or of an upper half of the row ids). It bounds the whole-fragment
	// entries of bitmap files; where it is nil or does not know the fragment such an entry is every row that could exist, which is as
	// exact (Resolve drops rows that do not) but costs about 4 MiB of memory.
	FragmentRows func(fragment uint32) (rows uint64, ok bool)
	// State is what MarshalState made of the same segment before (Stateful): the directory is not read from the files again, and lies where State is, which must
	// stay as it is while the segment is open. Whoever keeps it pays for it. A state that does not fit the files is ErrCorrupt. nil = there is none.
	State []byte
}

// Stateful is a segment whose directory (keys, page bounds, NULL lists; not the bitmaps and pages that lookups read) can be kept in a cache.
type Stateful interface {
	Segment
	// MarshalState returns what OpenOptions.State takes.
	MarshalState() ([]byte, error)
}

const defaultCacheBytes = 32 << 20

// OwnCache returns o.Cache, or a new cache where there is none.
func (o OpenOptions) OwnCache() *Cache {
	if o.Cache != nil {
		return o.Cache
	}
	size := o.CacheBytes
	if size <= 0 {
		size = defaultCacheBytes
	}
	return NewCache(size, o.Budget)
}

// Columns returns the columns that a file of an index must have; a missing one is ErrCorrupt.
func Columns(r *file.Reader, names ...string) ([]file.Column, error) {
	for _, name := range names {
		if _, ok := r.Schema().Lookup(name); !ok {
			return nil, errs.Corrupt("schema", -1, "no column %q", name)
		}
	}
	return r.Columns(names...)
}
