package encoding

import (
	"math"
	"unsafe"

	"github.com/lakesql/lakesql/internal/errs"
)

const (
	dictSection = "dictionary"
	// dictSlack is what may be read past the bytes of a dictionary: short values are copied 16 bytes at a time.
	dictSlack = 16
)

// SealDictionary makes room behind the bytes of a decoded dictionary for the wide loads of Gather. Call it once, before the first Gather.
func (v *Values) SealDictionary() {
	if v.Shape.Kind == Variable {
		clear(v.data.tail(dictSlack))
	}
}

// Gather appends the dictionary values that indices name. indices holds plain numbers of 8, 16, 32 or 64 bits; isNull tells
// whether index i belongs to a null, whose number means nothing.
func (v *Values) Gather(dict, indices *Values, isNull func(i int) bool) error {
	switch indices.Shape.ItemBits {
	case 8:
		return gather(v, dict, indices.fixed.bytes(), isNull)
	case 16:
		return gather(v, dict, cast[uint16](indices.fixed.bytes()), isNull)
	case 32:
		return gather(v, dict, cast[uint32](indices.fixed.bytes()), isNull)
	case 64:
		return gather(v, dict, cast[uint64](indices.fixed.bytes()), isNull)
	default:
		return corrupt(dictSection, "indices of %d bits", indices.Shape.ItemBits)
	}
}

type index interface {
	uint8 | uint16 | uint32 | uint64
}

// checkIndices makes every index usable: one of a null that is out of range becomes 0, any other one is corrupt.
// It reports whether dictionary and indices can be used as they are.
func checkIndices[I index](idx []I, count int, isNull func(i int) bool) (safe bool, err error) {
	if len(idx) == 0 || uint64(largest(idx)) < uint64(count) {
		return true, nil
	}
	for i, x := range idx {
		if uint64(x) < uint64(count) {
			continue
		}
		if !isNull(i) {
			return false, corrupt(dictSection, "index %d of %d values", x, count)
		}
	}
	return false, nil
}

// largest is the largest number; four of them at a time, which the processor compares side by side.
func largest[I index](idx []I) I {
	var a, b, c, d I
	for ; len(idx) >= 4; idx = idx[4:] {
		a, b, c, d = max(a, idx[0]), max(b, idx[1]), max(c, idx[2]), max(d, idx[3])
	}
	for _, x := range idx {
		a = max(a, x)
	}
	return max(a, b, c, d)
}

func gather[I index](dst, dict *Values, idx []I, isNull func(i int) bool) error {
	safe, err := checkIndices(idx, dict.N, isNull)
	if err != nil {
		return err
	}
	if !safe {
		idx = append([]I(nil), idx...)
		for i, x := range idx {
			if uint64(x) >= uint64(dict.N) {
				idx[i] = 0
			}
		}
		if dict.N == 0 {
			dst.AppendZero(len(idx))
			return nil
		}
	}
	switch dst.Shape.Kind {
	case Fixed:
		if dst.Shape.ItemBits == 1 {
			for _, x := range idx {
				dst.appendPlain(dict.bits.words.bytes(), int(x), int(x)+1)
			}
			return nil
		}
		w := dst.Shape.Bits() / 8
		gatherFixed(dst.fixed.tail(len(idx)*w), dict.fixed.bytes(), idx, w)
		dst.fixed.advance(len(idx) * w)
		for d := range dst.items {
			dst.items[d].appendOnes(len(idx) * dst.itemsAt(d))
		}
		dst.N += len(idx)
		return nil
	case Variable:
		if dict.Shape.Wide {
			return gatherVariable(dst, dict, cast[int64](dict.offsets.bytes()), idx)
		}
		return gatherVariable(dst, dict, cast[int32](dict.offsets.bytes()), idx)
	default:
		return unsupported("a dictionary of %s", dst.Shape.describe())
	}
}

func gatherFixed[I index](dst, dict []byte, idx []I, width int) {
	switch width {
	case 1:
		for i, x := range idx {
			dst[i] = dict[x]
		}
	case 2:
		gatherWords(cast[uint16](dst), cast[uint16](dict), idx)
	case 4:
		gatherWords(cast[uint32](dst), cast[uint32](dict), idx)
	case 8:
		gatherWords(cast[uint64](dst), cast[uint64](dict), idx)
	default:
		for i, x := range idx {
			copy(dst[i*width:(i+1)*width], dict[int(x)*width:])
		}
	}
}

func gatherWords[T uint16 | uint32 | uint64, I index](dst, dict []T, idx []I) {
	dst = dst[:len(idx)]
	for i, x := range idx {
		dst[i] = dict[x]
	}
}

// gatherVariable copies in two passes: the offsets first, so that the bytes are reserved once.
func gatherVariable[I index, O int32 | int64](dst, dict *Values, offsets []O, idx []I) error {
	base := int64(dst.data.n)
	end := base
	out := dst.offsets.tail(len(idx) * dst.offsetBytes())
	if dst.Shape.Wide {
		end = gatherEnds(cast[int64](out), offsets, idx, base)
	} else {
		end = gatherEnds(cast[int32](out), offsets, idx, base)
		if end > math.MaxInt32 {
			return errs.New(errs.ErrOverflow, "more than 2 GiB of text or binary in one batch")
		}
	}
	data := dst.data.tail(int(end-base) + dictSlack)
	src := unsafe.Pointer(unsafe.SliceData(dict.data.bytes()))
	to := unsafe.Pointer(unsafe.SliceData(data))
	at := 0
	for _, x := range idx {
		s, n := int(offsets[x]), int(offsets[x+1]-offsets[x])
		if n <= 16 { // both sides have 16 bytes of slack
			*(*[16]byte)(unsafe.Add(to, at)) = *(*[16]byte)(unsafe.Add(src, s))
		} else {
			copy(data[at:at+n], dict.data.bytes()[s:s+n])
		}
		at += n
	}
	dst.offsets.advance(len(idx) * dst.offsetBytes())
	dst.data.advance(at)
	dst.N += len(idx)
	return nil
}

func gatherEnds[T, O int32 | int64, I index](dst []T, offsets []O, idx []I, end int64) int64 {
	dst = dst[:len(idx)]
	for i, x := range idx {
		end += int64(offsets[x+1] - offsets[x])
		dst[i] = T(end)
	}
	return end
}

// AppendIndices appends dictionary indices, moved up by base, to the indices of an Arrow dictionary array (signed or unsigned
// numbers up to limit); an index of a null that is out of range becomes 0. Errors: ErrOverflow where base+index exceeds limit.
func (v *Values) AppendIndices(indices *Values, count, base int, limit uint64, isNull func(i int) bool) error {
	if count > 0 && uint64(base)+uint64(count)-1 > limit {
		return errs.New(errs.ErrOverflow, "dictionary of %d values behind %d others: indices go up to %d", count, base, limit)
	}
	w := v.Shape.ItemBits / 8
	in := indices.Shape.ItemBits / 8
	src := indices.fixed.bytes()
	out := v.fixed.tail(indices.N * w)
	for i := range indices.N {
		x := littleEndian(src[i*in : (i+1)*in])
		if x >= uint64(count) {
			if !isNull(i) {
				return corrupt(dictSection, "index %d of %d values", x, count)
			}
			x = 0
		} else {
			x += uint64(base)
		}
		for k := range w {
			out[i*w+k] = byte(x >> (8 * k))
		}
	}
	v.fixed.advance(indices.N * w)
	v.N += indices.N
	return nil
}

// AppendCodes appends dictionary indices as 32-bit codes; an index of a null that is out of range becomes 0. v holds numbers of 32 bits, count is not 0. indices may be left empty.
func (v *Values) AppendCodes(indices *Values, count int, isNull func(i int) bool) error {
	raw := indices.fixed.bytes()
	switch indices.Shape.ItemBits {
	case 8:
		return appendCodes(v, indices, raw, count, isNull)
	case 16:
		return appendCodes(v, indices, cast[uint16](raw), count, isNull)
	case 32:
		return appendCodes(v, indices, cast[uint32](raw), count, isNull)
	case 64:
		return appendCodes(v, indices, cast[uint64](raw), count, isNull)
	default:
		return corrupt(dictSection, "indices of %d bits", indices.Shape.ItemBits)
	}
}

func appendCodes[I index](v, indices *Values, idx []I, count int, isNull func(i int) bool) error {
	safe, err := checkIndices(idx, count, isNull)
	if err != nil {
		return err
	}
	if safe && v.N == 0 && indices.Shape.ItemBits == 32 { // they are what is wanted
		v.fixed, indices.fixed = indices.fixed, v.fixed
		v.N, indices.N = indices.N, 0
		return nil
	}
	out := cast[uint32](v.fixed.tail(4 * len(idx)))
	for i, x := range idx {
		out[i] = uint32(x)
	}
	if !safe {
		for i, x := range idx {
			if uint64(x) >= uint64(count) {
				out[i] = 0
			}
		}
	}
	v.fixed.advance(4 * len(idx))
	v.N += len(idx)
	return nil
}
