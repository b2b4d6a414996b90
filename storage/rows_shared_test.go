//go:build shared

package storage

const takeRows = 1_000_000
