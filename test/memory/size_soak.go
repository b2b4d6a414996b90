//go:build soak

package memory

// How much is measured.
const (
	tableRows  = 4_000_000
	wideRows   = 300_000
	limitBytes = 384 << 20
)
