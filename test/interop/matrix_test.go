//go:build interop

package interop

import (
	"sync"
	"testing"
)

// TestMatrix runs the pairwise selection, the cases of one engine beside those of the other, and compares what ran with docs/interop.md.
func TestMatrix(t *testing.T) {
	ran := runCases(t, Pairwise())
	if !t.Failed() {
		sameDocument(t, Render(ran))
	}
}

// runCases runs cases and returns those that passed.
func runCases(t *testing.T, cases []Case) (ran []Case) {
	t.Helper()
	var lock sync.Mutex
	passed := make([]bool, len(cases))
	t.Run("engines", func(t *testing.T) {
		for name, eng := range StartPythons(t) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				for i, c := range cases {
					if c.engine() == name && t.Run(c.String(), func(t *testing.T) { runCase(t, c, eng) }) {
						lock.Lock()
						passed[i] = true
						lock.Unlock()
					}
				}
			})
		}
	})
	for i, c := range cases {
		if passed[i] {
			ran = append(ran, c)
		}
	}
	return ran
}
