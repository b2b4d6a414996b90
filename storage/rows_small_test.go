//go:build !shared

package storage

const takeRows = 100_000
