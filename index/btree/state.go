package btree

import (
	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/key"
	"github.com/lakesql/lakesql/index/state"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
)

const stateKind = "btree"

// The flags of a page in a state.
const (
	pageNoMin = 1 << iota
	pageNoMax
)

var _ index.Stateful = (*Segment)(nil)

// MarshalState implements index.Stateful.
func (s *Segment) MarshalState() ([]byte, error) {
	b := s.bounds
	w := state.NewWriter(stateKind)
	w.Number(b.rows)
	w.Number(b.pageRows)
	var flags []byte
	var nulls, ends []uint32
	var words []uint64
	var text []byte
	for i := range b.pages {
		p := &b.pages[i]
		flag := byte(0)
		if p.noMin {
			flag |= pageNoMin
		}
		if p.noMax {
			flag |= pageNoMax
		}
		flags, nulls = append(flags, flag), append(nulls, p.nulls)
		for _, k := range []key.Key{p.min, p.max} {
			if b.codec.IsWide() {
				text = append(text, k.Bytes...)
				ends = append(ends, uint32(len(text)))
			} else {
				words = append(words, k.Word)
			}
		}
	}
	if int(uint32(len(text))) != len(text) {
		return nil, errs.New(errs.ErrUnsupported, "index %s: bounds of %d bytes are not kept", s.meta.Name, len(text))
	}
	w.Bytes(flags)
	w.Halves(nulls)
	w.Words(words)
	w.Bytes(text)
	w.Halves(ends)
	return w.Finish(), nil
}

// boundsOfState reads what MarshalState wrote of a segment of the codec. Keys view the state. Errors: ErrCorrupt, ErrMemoryLimit.
func boundsOfState(codec key.Codec, raw []byte, held *mem.Reservation) (*bounds, error) {
	r, err := state.NewReader(stateKind, raw)
	if err != nil {
		return nil, err
	}
	b := &bounds{codec: codec, held: held, rows: r.Number(), pageRows: r.Number()}
	flags, nulls, words, text, ends := r.Bytes(), r.Halves(), r.Words(), r.Bytes(), r.Halves()
	if err := r.Err(); err != nil {
		return nil, err
	}
	n := len(flags)
	if b.pageRows == 0 || b.pageRows > pageRowsMax || uint64(n) != (b.rows+b.pageRows-1)/b.pageRows || len(nulls) != n ||
		codec.IsWide() && len(ends) != 2*n || !codec.IsWide() && len(words) != 2*n {
		return nil, errs.Corrupt("segment state", -1, "%d pages of %d rows for %d rows", n, b.pageRows, b.rows)
	}
	if err := held.Grow(int64(n) * boundOverheadBytes); err != nil {
		return nil, err
	}
	bound := func(i int) (k key.Key, ok bool) {
		if !codec.IsWide() {
			return key.Key{Word: words[i]}, true
		}
		start := uint32(0)
		if i > 0 {
			start = ends[i-1]
		}
		if start > ends[i] || uint64(ends[i]) > uint64(len(text)) {
			return k, false
		}
		return key.Key{Bytes: text[start:ends[i]:ends[i]]}, true
	}
	b.pages = make([]page, n)
	for i := range b.pages {
		p := &b.pages[i]
		p.noMin, p.noMax, p.nulls, p.pageIdx = flags[i]&pageNoMin != 0, flags[i]&pageNoMax != 0, nulls[i], uint32(i)
		var low, high bool
		p.min, low = bound(2 * i)
		p.max, high = bound(2*i + 1)
		if !low || !high {
			return nil, errs.Corrupt("segment state", -1, "the bounds of page %d lie outside", i)
		}
	}
	return b, b.check()
}
