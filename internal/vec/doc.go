// Package vec compares vectors: one float32 query against many stored rows in one call, by assembly where the processor has AVX2 or AVX-512
// and by plain Go elsewhere (or everywhere, with the build tag purego).
//
// It owns the arithmetic only: squared L2, dot product, norms, Hamming, the assignment of points to centroids, and the table lookups of
// quantized codes. It does not own metrics (1-cos, 1-dot), heaps, masks or files: those are index/vector's.
//
// I1: a kernel reads the bytes of the rows it is asked for and not one beyond; rows need no alignment, so a row may follow a control byte.
// I2: assembly and Go agree within 1e-5 of the sum of the absolute terms; NaN and infinities come out in the same places.
// I3: assembly is NOSPLIT with an empty frame, so that a fault of a truncated mapping surfaces as a Go panic (spawn.Guard).
//
// Start at Block and L2. The assembly is made by asm/ (a module of its own): run `go generate ./internal/vec` and commit what it writes.
package vec

//go:generate sh -c "cd asm && GOFLAGS=-mod=mod go run . -out ../kernels_amd64.s -stubs ../kernels_amd64.go -pkg vec"
