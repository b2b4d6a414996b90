// Package cloud is the object.Store of S3, Google Cloud Storage and Azure Blob Storage.
//
// It owns how many requests a read becomes: neighbouring ranges are fetched together, in parallel up to a limit, through a
// bounded cache of blocks. It lies apart from package object so that only programs that open remote stores link their clients.
//
// Invariants beside those of package object:
//
//	I1: a store has at most Options.Parallelism requests for data in flight; further reads wait.
//	I2: cached blocks belong to one size of one path; files of a dataset are never changed in place.
//	I3: what a read returns keeps at most twice its bytes in memory: ranges are copied out of requests that brought more than that.
//	I4: no request waits longer than Options.RequestWait, so that a store that stopped answering is an error.
//	I5: nothing is written on a condition before the store has shown that it keeps conditions.
//
// Start at Open (by URL) or OpenBlob (over any gocloud.dev bucket).
package cloud
