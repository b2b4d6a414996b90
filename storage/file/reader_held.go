package file

// Sizes by which a Reader estimates what it holds.
const (
	readerHeldBytes = 4 << 10
	pageHeldBytes   = 160 // of a page without its encoding message
	fieldHeldBytes  = 256
)

// MetadataBytes estimates the memory of what Open read: column metadata and schema. It walks every page.
func (r *Reader) MetadataBytes() int64 {
	n := int64(readerHeldBytes)
	for _, c := range r.columns {
		for _, p := range c.pages {
			n += pageHeldBytes + int64(len(p.encoding)) + 16*int64(len(p.buffers))
		}
	}
	for range r.schema.All() {
		n += fieldHeldBytes
	}
	for k, v := range r.schema.Metadata {
		n += int64(len(k) + len(v))
	}
	return n
}

// CachedBytes is the memory of page structures kept so far; it grows with use up to Options.CacheBytes.
func (r *Reader) CachedBytes() int64 { return r.cache.used() }
