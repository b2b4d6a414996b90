// Package server speaks the MySQL protocol: the listener, sessions, and the path from Arrow batches to the wire.
//
// It owns who may log in (login.go), what a connection may send (packet.go), how a statement is started, timed, cancelled and accounted (handler.go) and how columns become result rows (wire.go).
// It does not own what a statement means (engine).
//
// I1: no byte of a mapped file is handed to the protocol library: values are copied into the batch's own memory first, so that a
// file that shrinks is an error of the statement and never half a packet.
// I2: a statement ends at the next batch when its client is gone, it is killed, or its time is up.
// I3: an error after the first rows takes the place of the packet that ends them (handler.send, filterConn.Write), so that the connection goes on.
package server
