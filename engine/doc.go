// Package engine is one embedded lakesql: it opens catalogs, keeps sessions, and runs statements. The server, the command line and tests use it alike;
// it needs no network.
//
// It owns: go-mysql-server's engine and its configuration, memory budgets, sessions, the way of one statement from text to a Result, limits of time and
// memory, EXPLAIN. It does not own the wire (server), planning (planner) or files (storage).
//
// I1: a Result's batches come straight from our plan where the whole statement was translated (Result.Vectorized).
// I2: table versions are pinned from the first name resolved until Result.Close.
// I3: a statement's memory is counted against its own budget, a child of the engine's; Close frees it.
//
// Start reading at Open, then Engine.Run.
package engine
