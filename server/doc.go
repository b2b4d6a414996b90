// Package server speaks the MySQL protocol: the listener, sessions, and the path from Arrow batches to the wire.
//
// It owns what a connection may send (packet.go), how a statement is started, timed, cancelled and accounted (handler.go) and how columns become result rows (wire.go).
// It does not own what a statement means (engine).
//
// I1: no byte of a mapped file is handed to the protocol library: values are copied into the batch's own memory first, so that a
// file that shrinks is an error of the statement and never half a packet.
// I2: a statement ends at the next batch when its client is gone, it is killed, or its time is up.
package server
