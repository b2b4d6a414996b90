// Package faults takes files away from running statements: truncated below their mappings, deleted, gone from a store. Each is a clear error of kind ErrIO or the
// right answer, and the server serves on.
package faults
