//go:build amd64 && !purego

package vec

import "testing"

// testISAs returns the kernel sets that this processor runs, the portable one included.
func testISAs(t testing.TB) []isa {
	t.Helper()
	switch best() {
	case avx512:
		return []isa{portable, avx2, avx512}
	case avx2:
		return []isa{portable, avx2}
	}
	return []isa{portable}
}
