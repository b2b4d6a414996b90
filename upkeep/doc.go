// Package upkeep maintains the tables of lakes while a server runs: it extends indices over rows that they do not cover, merges their segments, compacts small fragments and
// removes old versions, each when a threshold says so, one job at a time.
//
// It owns the decision what is due and when, the budget (cores, memory, bytes and requests a second) and what is told about it. It does not own the work itself (write), nor
// statements (engine), which see its jobs in the process list and may end them.
//
// I1: at most one job runs, so no table has two.
// I2: a job that is ended leaves the table as it was, or with a whole version more; files that it wrote for nothing are removed as far as possible, and are garbage that no version
// names where not.
// I3: a job never waits for another writer: one that loses to it (errs.ErrConflict) is tried again later, each time later than before.
// I4: a version that a statement or a transaction of this process may read stays (lance.Catalog.OldestInUse).
//
// Start at Runner (runner.go), then look.go for what is due and jobs.go for what is done.
package upkeep
