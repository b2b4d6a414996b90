//go:build !soak

package memory

// How much is measured.
const (
	tableRows  = 600_000
	wideRows   = 30_000
	limitBytes = 64 << 20
)
