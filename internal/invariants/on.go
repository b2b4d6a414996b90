//go:build invariants

// Package invariants switches costly self-checks on with the build tag "invariants".
package invariants

// Enabled says whether the checks are compiled in.
const Enabled = true
