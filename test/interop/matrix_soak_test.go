//go:build interop && soak

package interop

import "testing"

// TestSoakMatrix runs the full product.
func TestSoakMatrix(t *testing.T) {
	ran := runCases(t, Full())
	t.Logf("%d of %d cases passed", len(ran), len(Full()))
}

// TestSoakChurnedTable runs a thousand steps, four times.
func TestSoakChurnedTable(t *testing.T) { churned(t, 1000, 7) }
