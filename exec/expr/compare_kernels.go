package expr

// Kernels that compare slices and write one bit a row, eight rows a step so that the shifts are constants. Generic over the three word types;
// each is instantiated with its own machine code.

type ordered interface{ int64 | uint64 | float64 }

func b2u(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// constLess sets bit i of dst where a[i] < c.
func constLess[T ordered](dst []byte, a []T, c T) {
	n := len(a) / 8
	for k := range n {
		x := (*[8]T)(a[k*8:])
		dst[k] = b2u(x[0] < c) | b2u(x[1] < c)<<1 | b2u(x[2] < c)<<2 | b2u(x[3] < c)<<3 | b2u(x[4] < c)<<4 | b2u(x[5] < c)<<5 | b2u(x[6] < c)<<6 | b2u(x[7] < c)<<7
	}
	tail := byte(0)
	for j, x := range a[n*8:] {
		tail |= b2u(x < c) << (j & 7)
	}
	if len(a)%8 != 0 {
		dst[n] = tail
	}
}

// eachLess sets bit i of dst where a[i] < b[i].
func eachLess[T ordered](dst []byte, a, b []T) {
	n := len(a) / 8
	for k := range n {
		x, y := (*[8]T)(a[k*8:]), (*[8]T)(b[k*8:])
		dst[k] = b2u(x[0] < y[0]) | b2u(x[1] < y[1])<<1 | b2u(x[2] < y[2])<<2 | b2u(x[3] < y[3])<<3 | b2u(x[4] < y[4])<<4 | b2u(x[5] < y[5])<<5 | b2u(x[6] < y[6])<<6 | b2u(x[7] < y[7])<<7
	}
	tail := byte(0)
	b = b[n*8:]
	for j, x := range a[n*8:] {
		tail |= b2u(x < b[j]) << (j & 7)
	}
	if len(a)%8 != 0 {
		dst[n] = tail
	}
}

// constLessEq sets bit i of dst where a[i] <= c.
func constLessEq[T ordered](dst []byte, a []T, c T) {
	n := len(a) / 8
	for k := range n {
		x := (*[8]T)(a[k*8:])
		dst[k] = b2u(x[0] <= c) | b2u(x[1] <= c)<<1 | b2u(x[2] <= c)<<2 | b2u(x[3] <= c)<<3 | b2u(x[4] <= c)<<4 | b2u(x[5] <= c)<<5 | b2u(x[6] <= c)<<6 | b2u(x[7] <= c)<<7
	}
	tail := byte(0)
	for j, x := range a[n*8:] {
		tail |= b2u(x <= c) << (j & 7)
	}
	if len(a)%8 != 0 {
		dst[n] = tail
	}
}

// eachLessEq sets bit i of dst where a[i] <= b[i].
func eachLessEq[T ordered](dst []byte, a, b []T) {
	n := len(a) / 8
	for k := range n {
		x, y := (*[8]T)(a[k*8:]), (*[8]T)(b[k*8:])
		dst[k] = b2u(x[0] <= y[0]) | b2u(x[1] <= y[1])<<1 | b2u(x[2] <= y[2])<<2 | b2u(x[3] <= y[3])<<3 | b2u(x[4] <= y[4])<<4 | b2u(x[5] <= y[5])<<5 | b2u(x[6] <= y[6])<<6 | b2u(x[7] <= y[7])<<7
	}
	tail := byte(0)
	b = b[n*8:]
	for j, x := range a[n*8:] {
		tail |= b2u(x <= b[j]) << (j & 7)
	}
	if len(a)%8 != 0 {
		dst[n] = tail
	}
}

// constGreater sets bit i of dst where a[i] > c.
func constGreater[T ordered](dst []byte, a []T, c T) {
	n := len(a) / 8
	for k := range n {
		x := (*[8]T)(a[k*8:])
		dst[k] = b2u(x[0] > c) | b2u(x[1] > c)<<1 | b2u(x[2] > c)<<2 | b2u(x[3] > c)<<3 | b2u(x[4] > c)<<4 | b2u(x[5] > c)<<5 | b2u(x[6] > c)<<6 | b2u(x[7] > c)<<7
	}
	tail := byte(0)
	for j, x := range a[n*8:] {
		tail |= b2u(x > c) << (j & 7)
	}
	if len(a)%8 != 0 {
		dst[n] = tail
	}
}

// constGreaterEq sets bit i of dst where a[i] >= c.
func constGreaterEq[T ordered](dst []byte, a []T, c T) {
	n := len(a) / 8
	for k := range n {
		x := (*[8]T)(a[k*8:])
		dst[k] = b2u(x[0] >= c) | b2u(x[1] >= c)<<1 | b2u(x[2] >= c)<<2 | b2u(x[3] >= c)<<3 | b2u(x[4] >= c)<<4 | b2u(x[5] >= c)<<5 | b2u(x[6] >= c)<<6 | b2u(x[7] >= c)<<7
	}
	tail := byte(0)
	for j, x := range a[n*8:] {
		tail |= b2u(x >= c) << (j & 7)
	}
	if len(a)%8 != 0 {
		dst[n] = tail
	}
}

// constEqual sets bit i of dst where a[i] == c.
func constEqual[T ordered](dst []byte, a []T, c T) {
	n := len(a) / 8
	for k := range n {
		x := (*[8]T)(a[k*8:])
		dst[k] = b2u(x[0] == c) | b2u(x[1] == c)<<1 | b2u(x[2] == c)<<2 | b2u(x[3] == c)<<3 | b2u(x[4] == c)<<4 | b2u(x[5] == c)<<5 | b2u(x[6] == c)<<6 | b2u(x[7] == c)<<7
	}
	tail := byte(0)
	for j, x := range a[n*8:] {
		tail |= b2u(x == c) << (j & 7)
	}
	if len(a)%8 != 0 {
		dst[n] = tail
	}
}

// eachEqual sets bit i of dst where a[i] == b[i].
func eachEqual[T ordered](dst []byte, a, b []T) {
	n := len(a) / 8
	for k := range n {
		x, y := (*[8]T)(a[k*8:]), (*[8]T)(b[k*8:])
		dst[k] = b2u(x[0] == y[0]) | b2u(x[1] == y[1])<<1 | b2u(x[2] == y[2])<<2 | b2u(x[3] == y[3])<<3 | b2u(x[4] == y[4])<<4 | b2u(x[5] == y[5])<<5 | b2u(x[6] == y[6])<<6 | b2u(x[7] == y[7])<<7
	}
	tail := byte(0)
	b = b[n*8:]
	for j, x := range a[n*8:] {
		tail |= b2u(x == b[j]) << (j & 7)
	}
	if len(a)%8 != 0 {
		dst[n] = tail
	}
}

// compareWords compares n values of one word type; either side may be constant, not both.
func compareWords[T ordered](dst []byte, a, b []T, aConst, bConst bool, op compareOp) {
	if aConst {
		a, b, bConst, op = b, a, true, op.swapped()
	}
	if bConst {
		c := b[0]
		switch op {
		case opLess:
			constLess(dst, a, c)
		case opLessEq:
			constLessEq(dst, a, c)
		case opGreater:
			constGreater(dst, a, c)
		case opGreaterEq:
			constGreaterEq(dst, a, c)
		case opEqual:
			constEqual(dst, a, c)
		case opNotEqual:
			constEqual(dst, a, c)
			invert(dst)
		}
		return
	}
	switch op {
	case opLess:
		eachLess(dst, a, b)
	case opLessEq:
		eachLessEq(dst, a, b)
	case opGreater:
		eachLess(dst, b, a)
	case opGreaterEq:
		eachLessEq(dst, b, a)
	case opEqual:
		eachEqual(dst, a, b)
	case opNotEqual:
		eachEqual(dst, a, b)
		invert(dst)
	}
}

func invert(b []byte) {
	for w := range len(b) / 8 {
		putWord(b, w, ^word(b, w))
	}
}
