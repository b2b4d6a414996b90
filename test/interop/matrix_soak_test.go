//go:build interop && soak

package interop

import "testing"

// TestSoakMatrix runs the full product.
func TestSoakMatrix(t *testing.T) {
	ran := runCases(t, Full())
	t.Logf("%d of %d cases passed", len(ran), len(Full()))
}
