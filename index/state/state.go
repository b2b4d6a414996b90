// Package state is the form in which an opened segment's directory is kept as one piece of bytes, so that it comes back without reading the files again: arrays are
// used where they lie, which may be a mapping.
//
// A state begins with a magic, the kind of what made it and a checksum; arrays are little-endian, each at a multiple of 8 bytes, after its number of elements. It is a
// cache, no format: another version of lakesql may refuse it.
//
// I1: slices that a Reader returns point into its bytes, which nobody may change while they are in use.
package state

import (
	"encoding/binary"
	"hash/crc32"
	"unsafe"

	"github.com/lakesql/lakesql/internal/errs"
)

const (
	magic       = "LKSQSEG1"
	headerBytes = 24 // magic, kind, checksum of what follows
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli) //nolint:gochecknoglobals // a constant

// Writer makes a state.
type Writer struct{ b []byte }

// NewWriter begins a state of a kind, which is at most 8 bytes.
func NewWriter(kind string) *Writer {
	w := &Writer{b: make([]byte, headerBytes, 4096)}
	copy(w.b, magic)
	copy(w.b[8:16], kind)
	return w
}

// Number appends a number.
func (w *Writer) Number(v uint64) { w.b = binary.LittleEndian.AppendUint64(w.b, v) }

// Bytes appends bytes.
func (w *Writer) Bytes(b []byte) {
	w.Number(uint64(len(b)))
	w.b = append(w.b, b...)
	for len(w.b)%8 != 0 {
		w.b = append(w.b, 0)
	}
}

// Words appends numbers of 64 bits.
func (w *Writer) Words(v []uint64) {
	w.Number(uint64(len(v)))
	for _, x := range v {
		w.b = binary.LittleEndian.AppendUint64(w.b, x)
	}
}

// Halves appends numbers of 32 bits.
func (w *Writer) Halves(v []uint32) {
	w.Number(uint64(len(v)))
	for _, x := range v {
		w.b = binary.LittleEndian.AppendUint32(w.b, x)
	}
	for len(w.b)%8 != 0 {
		w.b = append(w.b, 0)
	}
}

// Finish returns the state.
func (w *Writer) Finish() []byte {
	binary.LittleEndian.PutUint64(w.b[16:], uint64(crc32.Checksum(w.b[headerBytes:], castagnoli)))
	return w.b
}

// Reader reads a state. The first fault is kept, and everything after it is zero.
type Reader struct {
	b   []byte
	at  int
	err error
}

// NewReader begins reading a state of a kind. Errors: ErrCorrupt for bytes that are none, or of another kind.
func NewReader(kind string, b []byte) (*Reader, error) {
	if len(b) < headerBytes || len(b)%8 != 0 || string(b[:8]) != magic {
		return nil, errs.Corrupt("segment state", 0, "%d bytes that do not begin as a state", len(b))
	}
	var want [8]byte
	copy(want[:], kind)
	if [8]byte(b[8:16]) != want {
		return nil, errs.Corrupt("segment state", 8, "kind %q, want %q", b[8:16], kind)
	}
	if sum := uint64(crc32.Checksum(b[headerBytes:], castagnoli)); sum != binary.LittleEndian.Uint64(b[16:]) {
		return nil, errs.Corrupt("segment state", 16, "the checksum is %x", sum)
	}
	if uintptr(unsafe.Pointer(unsafe.SliceData(b)))%8 != 0 { // words are read in place
		words := make([]uint64, len(b)/8)
		moved := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(b))
		copy(moved, b)
		b = moved
	}
	return &Reader{b: b, at: headerBytes}, nil
}

// Err returns the first fault, also where bytes are left over.
func (r *Reader) Err() error {
	if r.err == nil && r.at != len(r.b) {
		return errs.Corrupt("segment state", int64(r.at), "%d bytes are left over", len(r.b)-r.at)
	}
	return r.err
}

func (r *Reader) take(count uint64, size int) []byte {
	if r.err != nil {
		return nil
	}
	if count > uint64(len(r.b)-r.at)/uint64(size) {
		r.err = errs.Corrupt("segment state", int64(r.at), "%d elements of %d bytes in %d", count, size, len(r.b)-r.at)
		return nil
	}
	n := int(count) * size
	out := r.b[r.at : r.at+n : r.at+n]
	r.at += (n + 7) / 8 * 8 // within the bytes: their number is a multiple of 8
	return out
}

// Number reads a number.
func (r *Reader) Number() uint64 {
	b := r.take(1, 8)
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}

// Bytes reads bytes.
func (r *Reader) Bytes() []byte { return r.take(r.Number(), 1) }

// Words reads numbers of 64 bits.
func (r *Reader) Words() []uint64 {
	b := r.take(r.Number(), 8)
	if len(b) == 0 {
		return nil
	}
	return littleEndian(unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/8), b, binary.LittleEndian.Uint64)
}

// Halves reads numbers of 32 bits.
func (r *Reader) Halves() []uint32 {
	b := r.take(r.Number(), 4)
	if len(b) == 0 {
		return nil
	}
	return littleEndian(unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4), b, binary.LittleEndian.Uint32)
}

// littleEndian returns v, which views b, or a copy in the order of the machine.
func littleEndian[T uint32 | uint64](v []T, b []byte, get func([]byte) T) []T {
	if one := uint16(1); *(*byte)(unsafe.Pointer(&one)) == 1 {
		return v
	}
	out := make([]T, len(v))
	for i := range out {
		out[i] = get(b[i*int(unsafe.Sizeof(out[0])):])
	}
	return out
}
