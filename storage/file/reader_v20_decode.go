package file

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/encoding"
	"github.com/lakesql/lakesql/storage/object"
)

// v20Bytes is the bytes of page buffers that a part has, in the order in which visit meets them.
type v20Bytes struct {
	pieces [][]byte
	next   int
}

func (b *v20Bytes) take() []byte {
	p := b.pieces[b.next]
	b.next++
	return p
}

// v20State is a v20Page part on its way.
type v20State struct {
	first []([]byte) // of the first round: everything but the bytes of variable-width values
	bytes [][]byte   // of the second round
	dict  *dictionary
}

// cut returns the range of a buffer that holds the values of s.
func (b *v20Buffer) cut(s span) object.Range {
	if b.scheme != "" {
		return b.at
	}
	from := int64(s.from) * int64(b.bits) / 8
	to := (int64(s.to)*int64(b.bits) + 7) / 8
	return within(b.at, from, to-from)
}

// cutEnds also covers the end of the value before s, which is where the first one starts.
func (b *v20Buffer) cutEnds(s span) object.Range {
	if s.from > 0 {
		s.from--
	}
	return b.cut(s)
}

// firstRanges lists what the first round reads of an array, for one span.
func (a *v20Array) firstRanges(rs []object.Range, s span) []object.Range {
	if a.validity != nil {
		rs = append(rs, a.validity.cut(s))
	}
	items := s
	for d, b := range a.itemValidity {
		n := uint64(a.shape.Dims[d])
		items = span{items.from * n, items.to * n}
		if b != nil {
			rs = append(rs, b.cut(items))
		}
	}
	if a.values != nil {
		rs = append(rs, a.values.cut(s))
	}
	if a.ends != nil {
		rs = append(rs, a.ends.cutEnds(s))
	}
	if a.indices != nil {
		rs = a.indices.firstRanges(rs, s)
	}
	return rs
}

func (v *v20Page) fetch(r *Reader, p *part) ([]object.Range, error) {
	st, _ := p.state.(*v20State)
	switch p.step {
	case stepStart:
		st = &v20State{dict: v.dict.Load()}
		p.state, p.step = st, stepTables
		if v.root.allNull {
			return nil, nil
		}
		var rs []object.Range
		for _, s := range p.spans {
			rs = v.root.firstRanges(rs, s)
		}
		if v.root.items != nil && st.dict == nil {
			rs = v.dictionaryRanges(rs)
		}
		return rs, nil
	case stepTables:
		st.first, p.step = p.got, stepData
		if v.root.items != nil && st.dict == nil {
			n := len(v.dictionaryRanges(nil))
			items := &v20Bytes{pieces: st.first[len(st.first)-n:]}
			st.first = st.first[:len(st.first)-n]
			d, err := v.loadDictionary(r, items)
			if err != nil {
				return nil, err
			}
			st.dict = d
			r.cache.keep(d, d.sizeBytes, func() { v.dict.Store(d) }, func() { v.dict.Store(nil) })
		}
		if v.root.bytes == nil {
			return nil, nil
		}
		return v.byteRanges(r, p, st)
	default:
		st.bytes = p.got
		return nil, nil
	}
}

// dictionaryRanges lists the whole buffers of the dictionary.
func (v *v20Page) dictionaryRanges(rs []object.Range) []object.Range {
	rs = v.root.items.firstRanges(rs, span{0, uint64(v.root.itemCount)})
	if v.root.items.bytes != nil {
		rs = append(rs, v.root.items.bytes.at)
	}
	return rs
}

// byteRanges finds the bytes of variable-width values from the ends that the first round brought.
func (v *v20Page) byteRanges(r *Reader, p *part, st *v20State) ([]object.Range, error) {
	a := &v.root
	rs := make([]object.Range, len(p.spans))
	per := len(a.firstRanges(nil, span{0, 1}))
	for i, s := range p.spans {
		ends, err := a.ends.plain(st.first[i*per+per-1], r.codecs)
		if err != nil {
			return nil, err
		}
		from, to, err := a.valueBytes(ends, s)
		if err != nil {
			return nil, err
		}
		if a.bytes.scheme != "" {
			rs[i] = a.bytes.at
			continue
		}
		if to > uint64(a.bytes.at.Size) {
			return nil, errs.Corrupt("offsets", a.ends.at.Offset, "value bytes [%d, %d) of %d", from, to, a.bytes.at.Size)
		}
		rs[i] = within(a.bytes.at, int64(from), int64(to-from))
	}
	return rs, nil
}

// plain decompresses a buffer where it is compressed.
func (b *v20Buffer) plain(got []byte, codecs *encoding.Codecs) ([]byte, error) {
	if b.scheme == "" {
		return got, nil
	}
	return codecs.ExpandBuffer(b.scheme, got)
}

// spanEnds returns the ends of s alone and where its first value starts; whole says that ends hold the whole page.
func (a *v20Array) spanEnds(ends []byte, s span) (own []byte, start uint64, err error) {
	if a.ends.scheme != "" { // the whole buffer
		at := int(s.from)
		if len(ends) < int(s.to)*8 {
			return nil, 0, errs.Corrupt("offsets", a.ends.at.Offset, "%d bytes for %d offsets", len(ends), s.to)
		}
		if at > 0 {
			start = a.endOf(ends[(at-1)*8:])
		}
		return ends[at*8 : s.to*8], start, nil
	}
	if s.from > 0 {
		start = a.endOf(ends)
		ends = ends[8:]
	}
	return ends, start, nil
}

func (a *v20Array) endOf(b []byte) uint64 {
	e := binary.LittleEndian.Uint64(b)
	if e >= a.adjustment {
		e -= a.adjustment
	}
	return e
}

// valueBytes returns the bytes that the values of s take.
func (a *v20Array) valueBytes(ends []byte, s span) (from, to uint64, err error) {
	own, start, err := a.spanEnds(ends, s)
	if err != nil || len(own) == 0 {
		return start, start, err
	}
	to = a.endOf(own[len(own)-8:])
	if to < start {
		return 0, 0, errs.Corrupt("offsets", a.ends.at.Offset, "end %d before start %d", to, start)
	}
	return start, to, nil
}

func (v *v20Page) decode(l *leafRead, p *part, _ *scratch) error {
	st, _ := p.state.(*v20State)
	layer := &l.nest.Layers[0]
	n := spanRows(p.spans)
	if v.root.allNull {
		layer.AppendNull(n)
		if l.plan.shape.Kind != encoding.Null {
			l.values.AppendZero(n)
		}
		return l.plainPart()
	}
	if l.values == nil { // readsDirect
		l.direct = st.first[0]
		layer.AppendValid(n)
		return nil
	}
	b := &v20Bytes{pieces: st.first}
	if v.root.bytes != nil { // each span's bytes follow what the first round brought for it
		b = interleave(st.first, st.bytes)
	}
	if v.root.items == nil {
		if err := v.root.decode(l.values, layer, p.spans, b, l.q.r.codecs); err != nil {
			return err
		}
		return l.plainPart()
	}
	return v.decodeDictionary(l, p, b, st.dict)
}

func interleave(first, bytes [][]byte) *v20Bytes {
	per := len(first) / len(bytes)
	out := make([][]byte, 0, len(first)+len(bytes))
	for i, b := range bytes {
		out = append(append(out, first[i*per:(i+1)*per]...), b)
	}
	return &v20Bytes{pieces: out}
}

func (v *v20Page) decodeDictionary(l *leafRead, p *part, b *v20Bytes, dict *dictionary) error {
	a := v.root.indices
	indices := encoding.NewValues(l.q.mem, l.q.r.codecs, a.shape, spanRows(p.spans))
	defer indices.Release()
	layer := &l.nest.Layers[0]
	base := layer.N
	if v.root.oneBased {
		if a.validity != nil || v.root.validity != nil {
			return errs.New(errs.ErrUnsupported, "a dictionary with nulls of two kinds is not supported")
		}
		own := encoding.NewNesting(l.q.mem, []encoding.LayerSpec{{}})
		defer own.Release()
		if err := a.decode(indices, &own.Layers[0], p.spans, b, l.q.r.codecs); err != nil {
			return err
		}
		return l.values.GatherOneBased(dict.values, indices, layer)
	}
	if v.root.validity != nil {
		return errs.New(errs.ErrUnsupported, "validity outside a dictionary is not supported")
	}
	if err := a.decode(indices, layer, p.spans, b, l.q.r.codecs); err != nil {
		return err
	}
	return l.dictionaryPart(dict, indices, func(i int) bool { return !layer.IsValid(base + i) })
}

// decode appends the values of spans and their validity.
func (a *v20Array) decode(dst *encoding.Values, layer *encoding.Layer, spans []span, b *v20Bytes, codecs *encoding.Codecs) error {
	for _, s := range spans {
		n := int(s.to - s.from)
		switch {
		case a.allNull:
			layer.AppendNull(n)
			dst.AppendZero(n)
			continue
		case a.validity != nil:
			bits, first, err := a.validity.open(b.take(), s, codecs)
			if err != nil {
				return err
			}
			if err := layer.AppendBits(bits, first, n); err != nil {
				return err
			}
		case a.ends == nil:
			layer.AppendValid(n)
		}
		if err := a.decodeSpan(dst, layer, s, b, codecs); err != nil {
			return err
		}
	}
	return nil
}

// open returns bytes that hold the values of s, and at which bit they start.
func (b *v20Buffer) open(got []byte, s span, codecs *encoding.Codecs) (bytes []byte, first int, err error) {
	if b.scheme != "" {
		raw, err := codecs.ExpandBuffer(b.scheme, got)
		return raw, int(s.from) * b.bits, err
	}
	return got, int(s.from * uint64(b.bits) % 8), nil
}

func (a *v20Array) decodeSpan(dst *encoding.Values, layer *encoding.Layer, s span, b *v20Bytes, codecs *encoding.Codecs) error {
	n := int(s.to - s.from)
	items := s
	for d, bits := range a.itemValidity {
		k := uint64(a.shape.Dims[d])
		items = span{items.from * k, items.to * k}
		var src []byte
		first := 0
		if bits != nil {
			var err error
			if src, first, err = bits.open(b.take(), items, codecs); err != nil {
				return err
			}
		}
		if err := dst.AppendItemBits(d, src, first, int(items.to-items.from)); err != nil {
			return err
		}
	}
	switch {
	case a.constant != nil:
		return encoding.AppendConstant(dst, a.constant, n)
	case a.values != nil:
		src, first, err := a.values.open(b.take(), s, codecs)
		if err != nil {
			return err
		}
		return dst.AppendFlat(src, first, n)
	}
	ends, err := a.ends.plain(b.take(), codecs)
	if err != nil {
		return err
	}
	own, start, err := a.spanEnds(ends, s)
	if err != nil {
		return err
	}
	valid := layer
	if a.validity != nil { // nulls lie in the bitmap; those of the ends would count twice
		valid = &encoding.NewNesting(memory.DefaultAllocator, []encoding.LayerSpec{{}}).Layers[0]
	}
	parsed, err := encoding.ParseEnds(own, n, start, a.adjustment, valid)
	if err != nil {
		return err
	}
	data, err := a.bytes.plain(b.take(), codecs)
	if err != nil {
		return err
	}
	if a.bytes.scheme != "" {
		data = data[min(start, uint64(len(data))):]
	}
	return dst.AppendEnds(parsed, data, a.symbols)
}
