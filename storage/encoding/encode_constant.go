package encoding

import (
	"bytes"
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/storage/pb/encpb"
)

// inlineBytesMax is the largest constant that the layout message itself may hold.
const inlineBytesMax = 32

// encodeConstant returns a page without values where every slot is null or, in version 2.2, every row holds one value; otherwise nil.
func (b *leafBuilder) encodeConstant(lv pageLevels, opts EncodeOptions) *Page {
	m := &encpb.ConstantLayout{Layers: lv.layers}
	page := &Page{Layout: &encpb.PageLayout{Layout: &encpb.PageLayout_ConstantLayout{ConstantLayout: m}}}
	switch {
	case b.nulls == b.slots: // no value at all
		if len(lv.layers) > 1 {
			page.Buffers = b.constantLevels(lv, m, opts)
		}
		return page
	case lv.def != nil || lv.rep != nil || !opts.V22 || b.slots < 2 || b.isDictionary || b.fields != nil || !b.isConstant():
		return nil
	case b.kind == leafFixed && b.valueBytes <= inlineBytesMax:
		m.InlineValue = bytes.Clone(b.data[:b.valueBytes])
		return page
	case b.kind == leafVariable:
		page.Buffers = [][]byte{constantVariable(b.data[:b.ends[0]], b.offset64)}
		return page
	}
	return nil
}

func (b *leafBuilder) isConstant() bool {
	switch b.kind {
	case leafFixed: // equal to itself shifted by one value
		return bytes.Equal(b.data[b.valueBytes:], b.data[:len(b.data)-b.valueBytes])
	case leafVariable:
		n := b.ends[0]
		for i, end := range b.ends {
			if end != n*uint32(i+1) {
				return false
			}
		}
		return bytes.Equal(b.data[n:], b.data[:len(b.data)-int(n)])
	}
	return false
}

// constantLevels returns the two level buffers of a page of nulls: packed where the version allows, else plain.
func (b *leafBuilder) constantLevels(lv pageLevels, m *encpb.ConstantLayout, opts EncodeOptions) [][]byte {
	out := [][]byte{{}, {}}
	put := func(i int, levels []uint16, largest uint16) (*encpb.CompressiveEncoding, uint64) {
		if levels == nil {
			return nil, 0
		}
		if !opts.V22 {
			out[i] = bytes.Clone(arrow.Uint16Traits.CastToBytes(levels))
			return nil, 0
		}
		c := codecFor(levels, largest, true)
		out[i] = c.append([]byte{}, levels)
		return c.message(), uint64(len(levels))
	}
	m.RepCompression, m.NumRepValues = put(0, lv.rep, lv.maxRep)
	m.DefCompression, m.NumDefValues = put(1, lv.def, lv.maxDef)
	return out
}

// constantVariable is the value buffer of one string: how many Arrow buffers, their lengths, then offsets and bytes.
func constantVariable(value []byte, offset64 bool) []byte {
	var offsets []byte
	if offset64 {
		offsets = binary.LittleEndian.AppendUint64(make([]byte, 8), uint64(len(value)))
	} else {
		offsets = binary.LittleEndian.AppendUint32(make([]byte, 4), uint32(len(value)))
	}
	out := binary.LittleEndian.AppendUint32(nil, 2)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(offsets)))
	out = binary.LittleEndian.AppendUint32(out, uint32(len(value)))
	return append(append(out, offsets...), value...)
}
