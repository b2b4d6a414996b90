//go:build !amd64 || purego

package vec

import "testing"

func testISAs(t testing.TB) []isa {
	t.Helper()
	return []isa{portable}
}
