package rowset

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

const (
	// A dense part may take this many bytes whatever it holds, and denseBytesPerKey for each key seen, so that scattered keys
	// cannot make it large.
	denseFloorBytes  = 64 << 10
	denseBytesPerKey = 32
)

// Builder makes a Set from keys in any order, duplicates allowed, in one pass: keys of one upper half that lie close
// together go into a plain bit array, others into a list that is sorted at the end. The zero value is ready.
type Builder struct {
	parts map[uint32]*builderPart
	last  *builderPart
	upper uint32 // of last
}

type builderPart struct {
	dense []uint64 // bit i = key i
	loose []uint32 // keys beyond dense
	count int64    // keys seen
}

// Add puts keys in.
func (b *Builder) Add(keys []uint64) {
	for len(keys) > 0 {
		upper := uint32(keys[0] >> 32)
		part := b.part(upper)
		n := 1
		most := uint32(keys[0])
		for n < len(keys) && uint32(keys[n]>>32) == upper {
			most = max(most, uint32(keys[n]))
			n++
		}
		part.add(keys[:n], most)
		keys = keys[n:]
	}
}

func (b *Builder) part(upper uint32) *builderPart {
	if b.last != nil && b.upper == upper {
		return b.last
	}
	p, ok := b.parts[upper]
	if !ok {
		if b.parts == nil {
			b.parts = make(map[uint32]*builderPart)
		}
		p = &builderPart{}
		b.parts[upper] = p
	}
	b.last, b.upper = p, upper
	return p
}

// add takes keys of one upper half; most is the largest lower half among them.
func (p *builderPart) add(keys []uint64, most uint32) {
	p.count += int64(len(keys))
	words := int64(most)/64 + 1
	if words > int64(len(p.dense)) && words*8 <= denseFloorBytes+denseBytesPerKey*p.count {
		p.dense = append(p.dense, make([]uint64, words-int64(len(p.dense)))...)
	}
	dense := p.dense
	if words <= int64(len(dense)) {
		for _, k := range keys {
			dense[uint32(k)>>6] |= 1 << (k & 63)
		}
		return
	}
	for _, k := range keys {
		if w := uint32(k) >> 6; int64(w) < int64(len(dense)) {
			dense[w] |= 1 << (k & 63)
		} else {
			p.loose = append(p.loose, uint32(k))
		}
	}
}

// SizeBytes is the memory held now.
func (b *Builder) SizeBytes() int64 {
	var n int64
	for _, p := range b.parts {
		n += int64(cap(p.dense))*8 + int64(cap(p.loose))*4 + 96
	}
	return n
}

// Set returns the keys added and empties the builder.
func (b *Builder) Set() *Set {
	out := &Set{}
	for upper, p := range b.parts {
		m := roaring.FromDense(p.dense, true)
		if len(p.loose) > 0 {
			slices.Sort(p.loose)
			m.AddMany(p.loose)
		}
		if !m.IsEmpty() {
			out.put(upper, m)
		}
	}
	*b = Builder{}
	return out
}
