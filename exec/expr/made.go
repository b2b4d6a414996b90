package expr

import "github.com/apache/arrow-go/v18/arrow"

// made keeps an array that was made on the way to the result, and pays for it where it is no small one. It panics where there is no memory for it, as an allocator does.
func (s *state) made(arr arrow.Array) arrow.Array {
	s.keep(arr)
	if n := dataBytes(arr.Data()); n > arenaChunkBytes/2 {
		if err := s.held.Grow(n); err != nil {
			panic(err)
		}
	}
	return arr
}

// dataBytes is the memory of an array's buffers, those below it included.
func dataBytes(d arrow.ArrayData) int64 {
	var n int64
	for _, b := range d.Buffers() {
		if b != nil {
			n += int64(b.Cap())
		}
	}
	for _, c := range d.Children() {
		n += dataBytes(c)
	}
	return n
}
