//go:build soak

package churn

import (
	"fmt"
	"testing"
)

// TestSoakChurn runs other seeds than the tests do, without an engine; test/interop has the thousand steps that the engine looks at.
func TestSoakChurn(t *testing.T) {
	for seed := range int64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			c := Run(t, t.TempDir(), Options{Seed: 100 + seed, Steps: 150, Version: []string{"2.2", "2.1"}[seed/2%2], StableIDs: seed%2 == 1})
			t.Logf("%d answers compared, steps %v", c.Asked, c.Counts)
		})
	}
}
