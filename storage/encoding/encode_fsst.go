package encoding

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/lakesql/lakesql/storage/pb/encpb"
)

const (
	fsstMinBytes     = 32 << 10 // strings of fewer bytes in a page are not worth a symbol table of 2 KiB
	fsstMinLen       = 5        // nor are strings that are all shorter
	fsstSampleBytes  = 32 << 10 // what a table is trained on
	fsstRounds       = 5
	fsstSymbolsMax   = 255
	fsstHashSlots    = 4096
	fsstCandidateMin = 4 // a symbol must occur so often in the sample
	codeLenShift     = 8 // short codes: code | bytes << codeLenShift
	noSymbol         = uint16(fsstEscape) | 1<<codeLenShift
)

// fsstSymbol is up to eight bytes, the first lowest.
type fsstSymbol struct {
	value uint64
	bytes uint8
}

func (s fsstSymbol) first() byte { return byte(s.value) }

// followedBy returns the symbol of both, cut to eight bytes.
func (s fsstSymbol) followedBy(t fsstSymbol) fsstSymbol {
	return fsstSymbol{value: s.value | t.value<<(8*s.bytes), bytes: min(8, s.bytes+t.bytes)}
}

// fsstSlot is a symbol of three and more bytes under the hash of its first three.
type fsstSlot struct {
	value uint64
	mask  uint64
	bytes uint8
	code  uint8
}

// fsstEncoder is a symbol table made for encoding (Boncz, Neumann, Leis 2020: greedy longest match, one symbol per hash of three bytes).
type fsstEncoder struct {
	symbols []fsstSymbol
	short   [1 << 16]uint16 // first two bytes to the longest symbol of at most two: code | bytes << codeLenShift
	one     [256]uint8      // the symbol of one byte, or fsstEscape
	slots   [fsstHashSlots]fsstSlot
}

func fsstHash(w uint64) int {
	return int((w & 0xffffff) * 0x9E3779B97F4A7C15 >> (64 - 12))
}

func newFSSTEncoder() *fsstEncoder {
	e := &fsstEncoder{}
	e.clear()
	return e
}

func (e *fsstEncoder) clear() {
	e.symbols = e.symbols[:0]
	for i := range e.short {
		e.short[i] = noSymbol
	}
	for i := range e.one {
		e.one[i] = fsstEscape
	}
	clear(e.slots[:])
}

// add takes a symbol unless another one has its place. Symbols of one byte must come before those of two.
func (e *fsstEncoder) add(s fsstSymbol) bool {
	code := uint8(len(e.symbols))
	switch {
	case s.bytes == 1:
		e.one[s.first()] = code
		for high := range 256 {
			e.short[int(s.first())|high<<8] = uint16(code) | 1<<codeLenShift
		}
	case s.bytes == 2:
		e.short[uint16(s.value)] = uint16(code) | 2<<codeLenShift
	default:
		slot := &e.slots[fsstHash(s.value)]
		if slot.bytes != 0 {
			return false
		}
		*slot = fsstSlot{value: s.value, mask: ^uint64(0) >> (64 - 8*s.bytes), bytes: s.bytes, code: code}
	}
	e.symbols = append(e.symbols, s)
	return true
}

// match finds the code of the longest symbol at the start of w, of which rem bytes count; fsstEscape where there is none.
func (e *fsstEncoder) match(w uint64, rem int) (code uint8, size int) {
	slot := &e.slots[fsstHash(w)]
	if slot.bytes != 0 && w&slot.mask == slot.value && int(slot.bytes) <= rem {
		return slot.code, int(slot.bytes)
	}
	s := e.short[uint16(w)]
	if rem == 1 && s>>codeLenShift == 2 {
		return e.one[byte(w)], 1
	}
	return uint8(s), int(s >> codeLenShift)
}

func loadTail(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.LittleEndian.Uint64(b)
	}
	var w uint64
	for i, c := range b {
		w |= uint64(c) << (8 * i)
	}
	return w
}

// appendValue appends one encoded value.
func (e *fsstEncoder) appendValue(dst, value []byte) []byte {
	for len(value) >= 8 {
		w := binary.LittleEndian.Uint64(value)
		slot := &e.slots[fsstHash(w)]
		if slot.bytes != 0 && w&slot.mask == slot.value {
			dst = append(dst, slot.code)
			value = value[slot.bytes:]
			continue
		}
		s := e.short[uint16(w)]
		if s == noSymbol {
			dst = append(dst, fsstEscape, byte(w))
		} else {
			dst = append(dst, byte(s))
		}
		value = value[s>>codeLenShift:]
	}
	w := loadTail(value)
	for rem := len(value); rem > 0; {
		code, size := e.match(w, rem)
		dst = append(dst, code)
		if code == fsstEscape {
			dst = append(dst, byte(w))
		}
		w >>= 8 * size
		rem -= size
	}
	return dst
}

// fsstCounts counts codes and pairs of codes in the sample. Codes below 256 are bytes without a symbol, the others symbols.
type fsstCounts struct {
	one [512]uint32
	two [512 * 512]uint16
}

// trainFSST makes a symbol table for the values: each round encodes the sample with the table so far and builds the next one from the symbols and pairs of
// symbols that would have saved most. The same values give the same table.
func trainFSST(data []byte, ends []uint32) *fsstEncoder {
	sample := fsstSample(data, ends)
	e := newFSSTEncoder()
	counts := new(fsstCounts)
	for range fsstRounds {
		clear(counts.one[:])
		clear(counts.two[:])
		for _, value := range sample {
			e.count(value, counts)
		}
		e.rebuild(counts)
	}
	return e
}

// fsstSample takes values at even distances, long ones cut, of about fsstSampleBytes together.
func fsstSample(data []byte, ends []uint32) [][]byte {
	const cut = 1 << 10
	take := max(1, fsstSampleBytes*len(ends)/max(len(data), 1))
	step := max(1, len(ends)/take)
	var out [][]byte
	size := 0
	for i := 0; i < len(ends) && size < fsstSampleBytes; i += step {
		from := uint32(0)
		if i > 0 {
			from = ends[i-1]
		}
		if to := min(ends[i], from+cut); to > from {
			out = append(out, data[from:to])
			size += int(to - from)
		}
	}
	return out
}

func (e *fsstEncoder) count(value []byte, counts *fsstCounts) {
	prev := -1
	for len(value) > 0 {
		code, size := e.match(loadTail(value), len(value))
		at := 256 + int(code)
		if code == fsstEscape {
			at = int(value[0])
		}
		counts.one[at]++
		if prev >= 0 {
			if n := &counts.two[prev<<9|at]; *n < 1<<16-1 {
				*n++
			}
		}
		prev = at
		value = value[size:]
	}
}

func (e *fsstEncoder) symbolOf(at int) fsstSymbol {
	if at < 256 {
		return fsstSymbol{value: uint64(at), bytes: 1}
	}
	return e.symbols[at-256]
}

type fsstCandidate struct {
	fsstSymbol
	gain uint32
}

// rebuild replaces the symbols by the best candidates.
func (e *fsstEncoder) rebuild(counts *fsstCounts) {
	gains := make(map[fsstSymbol]uint32, 4096)
	for a, n := range counts.one {
		if n < fsstCandidateMin {
			continue
		}
		s := e.symbolOf(a)
		weight := uint32(s.bytes)
		if s.bytes == 1 {
			weight = 8 // a byte without a symbol costs two bytes, and its symbol is what longer ones fall back to
		}
		gains[s] += n * weight
		if s.bytes == 8 {
			continue
		}
		for b, pairs := range counts.two[a<<9 : (a+1)<<9] {
			if pairs < fsstCandidateMin {
				continue
			}
			both := s.followedBy(e.symbolOf(b))
			gains[both] += uint32(pairs) * uint32(both.bytes)
		}
	}
	all := make([]fsstCandidate, 0, len(gains))
	for s, gain := range gains {
		all = append(all, fsstCandidate{s, gain})
	}
	slices.SortFunc(all, func(a, b fsstCandidate) int {
		return cmp.Or(cmp.Compare(b.gain, a.gain), cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.value, b.value))
	})
	e.choose(all)
}

func (e *fsstEncoder) choose(all []fsstCandidate) {
	var chosen []fsstCandidate
	var taken [fsstHashSlots]bool
	for _, c := range all {
		if len(chosen) == fsstSymbolsMax {
			break
		}
		if c.bytes > 2 {
			h := fsstHash(c.value)
			if taken[h] {
				continue
			}
			taken[h] = true
		}
		chosen = append(chosen, c)
	}
	slices.SortStableFunc(chosen, func(a, b fsstCandidate) int { return cmp.Compare(a.bytes, b.bytes) })
	e.clear()
	for _, c := range chosen {
		e.add(c.fsstSymbol)
	}
}

// table is the symbol table as readers want it (docs/format/page.md section 7).
func (e *fsstEncoder) table() []byte {
	out := make([]byte, fsstTableBytes)
	binary.LittleEndian.PutUint64(out, fsstMagic<<32|1<<24|uint64(len(e.symbols)))
	lengths := out[fsstHeaderBytes+8*len(e.symbols):]
	for i, s := range e.symbols {
		binary.LittleEndian.PutUint64(out[fsstHeaderBytes+8*i:], s.value)
		lengths[i] = s.bytes
	}
	return out
}

// saves says whether encoding shrinks the sample by a tenth and more.
func (e *fsstEncoder) saves(sample [][]byte) bool {
	raw, coded := 0, 0
	var buf []byte
	for _, value := range sample {
		buf = e.appendValue(buf[:0], value)
		raw += len(value)
		coded += len(buf)
	}
	return coded < raw-raw/saveShare
}

func fsstEncoding(table []byte, values *encpb.CompressiveEncoding) *encpb.CompressiveEncoding {
	return &encpb.CompressiveEncoding{Compression: &encpb.CompressiveEncoding_Fsst{Fsst: &encpb.Fsst{SymbolTable: table, Values: values}}}
}

// fsstValues are strings whose bytes are encoded one by one; offsets and chunks are those of variableValues.
type fsstValues struct {
	variableValues
	table []byte
}

func (v *fsstValues) message() *encpb.CompressiveEncoding {
	return fsstEncoding(v.table, v.variableValues.message())
}

// fsst returns the values encoded, or nil where that does not pay.
func (b *leafBuilder) fsst() *fsstValues {
	if b.isRows() || (!b.options.fsst && (!b.text || b.options.plain || b.options.scheme != 0 || len(b.data) < fsstMinBytes || b.maxLen < fsstMinLen)) {
		return nil
	}
	e := trainFSST(b.data, b.ends)
	if !e.saves(fsstSample(b.data, b.ends)) {
		return nil
	}
	out := takeBuffer(len(b.data)/2 + len(b.data)/8)
	ends := takeWords(len(b.ends))[:len(b.ends)]
	from := uint32(0)
	for i, to := range b.ends {
		out = e.appendValue(out, b.data[from:to])
		ends[i] = uint32(len(out))
		from = to
	}
	return &fsstValues{variableValues: variableValues{data: out, ends: ends, offset64: b.offset64, targetBytes: chunkTarget}, table: e.table()}
}
