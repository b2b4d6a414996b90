package churn

import (
	"fmt"
	"testing"
)

// TestChurn runs random steps, with row addresses in 2.2 files and with stable row ids in 2.1; test/interop runs more of them.
func TestChurn(t *testing.T) {
	steps := 30
	if testing.Short() {
		steps = 6
	}
	for i, version := range []string{"2.2", "2.1"} {
		stable := i == 1
		t.Run(fmt.Sprintf("files %s, stable ids %t", version, stable), func(t *testing.T) {
			t.Parallel()
			c := Run(t, t.TempDir(), Options{Seed: int64(i + 11), Steps: steps, Version: version, StableIDs: stable})
			if c.Asked < 50*steps {
				t.Errorf("%d answers were compared, steps %v", c.Asked, c.Counts)
			}
		})
	}
}
