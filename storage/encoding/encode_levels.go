package encoding

import (
	"encoding/binary"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/storage/pb/encpb"
)

// pageLevels is what the entries of one page look like from outside: layer codes for what occurs, and levels renumbered to fit.
type pageLevels struct {
	layers     []encpb.RepDefLayer // inner-most first
	def        []uint16            // nil = every entry is valid
	rep        []uint16            // nil = no list
	maxDef     uint16
	maxRep     uint16
	maxVisible uint16
	entries    int
}

// levels describes the page that the builder holds. A flat column gets a definition level only if a null occurs. The layers of a nested one keep every level
// that the schema allows, so that they mean the same in all its pages: Lance core 12 miscounts where a page has a level that its neighbour lacks.
func (b *leafBuilder) levels() pageLevels {
	lv := pageLevels{maxRep: b.maxRep, entries: b.entries}
	if b.maxRep > 0 {
		lv.rep = b.rep
	}
	var used [2*depthMax + 8]bool
	for _, d := range b.def {
		used[d] = true
	}
	if len(b.steps) > 1 {
		for _, s := range b.steps {
			used[s.defNull] = used[s.defNull] || s.nullable
			used[s.defEmpty] = used[s.defEmpty] || s.kind == stepList
		}
	}
	var renumber [len(used)]uint16
	take := func(level uint16) bool {
		if used[level] {
			lv.maxDef++
			renumber[level] = lv.maxDef
		}
		return used[level]
	}
	lists := 0
	for i := len(b.steps) - 1; i >= 0; i-- {
		s := b.steps[i]
		if s.kind != stepList {
			code := encpb.RepDefLayer_REPDEF_ALL_VALID_ITEM
			if take(s.defNull) {
				code = encpb.RepDefLayer_REPDEF_NULLABLE_ITEM
			}
			lv.layers = append(lv.layers, code)
			continue
		}
		if lists == 0 {
			lv.maxVisible = lv.maxDef
		}
		lists++
		nulls, empties := take(s.defNull), take(s.defEmpty)
		code := encpb.RepDefLayer_REPDEF_ALL_VALID_LIST
		switch {
		case nulls && empties:
			code = encpb.RepDefLayer_REPDEF_NULL_AND_EMPTY_LIST
		case nulls:
			code = encpb.RepDefLayer_REPDEF_NULLABLE_LIST
		case empties:
			code = encpb.RepDefLayer_REPDEF_EMPTYABLE_LIST
		}
		lv.layers = append(lv.layers, code)
	}
	if lists == 0 {
		lv.maxVisible = lv.maxDef
	}
	if lv.maxDef == 0 {
		return lv
	}
	if lv.def = b.def; lv.def == nil {
		lv.def = make([]uint16, b.entries)
	}
	for i, d := range lv.def {
		lv.def[i] = renumber[d]
	}
	return lv
}

// levelCodec is how the levels of one page are stored: bitpacked in that many bits (0 = all are zero), or as runs.
type levelCodec struct {
	width  int
	isRuns bool
}

// codecFor chooses: nothing for zeros alone, runs (version 2.2) where they take less than packed levels.
func codecFor(levels []uint16, largest uint16, v22 bool) levelCodec {
	c := levelCodec{width: levelBits(largest)}
	if bitsOf(levels) == 0 {
		return levelCodec{}
	}
	if !v22 {
		return c
	}
	const header = 8
	runs := countRuns(levels)*(levelBytes+1) + header*(1+len(levels)/packBlock)
	c.isRuns = runs < len(levels)*c.width/8
	return c
}

const levelBytes = 2

func (c levelCodec) append(dst []byte, levels []uint16) []byte {
	switch {
	case c.isRuns:
		return appendLevelRuns16(dst, levels)
	case c.width == 0:
		return dst
	}
	return appendLevels(dst, levels, c.width)
}

// appendLevelRuns16 appends the block form of runs: the size of the values, the values, a length byte each.
func appendLevelRuns16(dst []byte, levels []uint16) []byte {
	at := len(dst)
	dst = binary.LittleEndian.AppendUint64(dst, 0)
	v := runValues{data: arrow.Uint16Traits.CastToBytes(levels), valueBytes: levelBytes}
	dst = v.appendBuffer(dst, 0, 0, len(levels))
	binary.LittleEndian.PutUint64(dst[at:], uint64(len(dst)-at-8))
	return v.appendBuffer(dst, 1, 0, len(levels))
}

func (c levelCodec) message() *encpb.CompressiveEncoding {
	if c.isRuns {
		return runValues{valueBytes: levelBytes}.message()
	}
	return levelEncoding(c.width)
}

func (lv pageLevels) isVisible(entry int) bool {
	return lv.def == nil || lv.def[entry] <= lv.maxVisible
}

func levelBits(largest uint16) int { return bits.Len16(largest) }

func flatEncoding(bitsPerValue int) *encpb.CompressiveEncoding {
	return &encpb.CompressiveEncoding{Compression: &encpb.CompressiveEncoding_Flat{Flat: &encpb.Flat{BitsPerValue: uint64(bitsPerValue)}}}
}

// levelEncoding is the message of appendLevels.
func levelEncoding(width int) *encpb.CompressiveEncoding {
	return &encpb.CompressiveEncoding{Compression: &encpb.CompressiveEncoding_OutOfLineBitpacking{
		OutOfLineBitpacking: &encpb.OutOfLineBitpacking{UncompressedBitsPerValue: 16, Values: flatEncoding(width)},
	}}
}
