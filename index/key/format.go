package key

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/float16"
)

// valueBits is the bit pattern of the value of a word, at the low end.
func (c Codec) valueBits(w uint64) uint64 {
	switch c.typ.ID() {
	case arrow.BOOL, arrow.UINT8, arrow.UINT16, arrow.UINT32, arrow.UINT64:
		return w
	case arrow.FLOAT16, arrow.FLOAT32, arrow.FLOAT64:
		bits := ^w
		if w&signBit != 0 {
			bits = w &^ signBit
		}
		return bits >> (64 - c.typ.(arrow.FixedWidthDataType).BitWidth())
	default:
		return w ^ signBit
	}
}

// wordValue turns a word back into a Go value: int64, uint64, bool or float64.
func (c Codec) wordValue(w uint64) any {
	bits := c.valueBits(w)
	switch c.typ.ID() {
	case arrow.BOOL:
		return bits != 0
	case arrow.UINT8, arrow.UINT16, arrow.UINT32, arrow.UINT64:
		return bits
	case arrow.FLOAT16:
		return float64(float16.FromBits(uint16(bits)).Float32())
	case arrow.FLOAT32:
		return float64(math.Float32frombits(uint32(bits)))
	case arrow.FLOAT64:
		return math.Float64frombits(bits)
	default:
		return int64(bits)
	}
}
