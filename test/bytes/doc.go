// Package bytes counts, at the object store, what statements read: late fetches against early reads, label lookups, searches without candidates. Each figure is
// taken on an engine that was just opened, so that no cache hides a read.
package bytes
