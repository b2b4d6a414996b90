//go:build !unix

package server

import (
	"context"
	"net"
)

// watchClient does nothing where a socket cannot be peeked at: the loss of a client is seen when its rows cannot be sent.
func watchClient(context.Context, net.Conn, context.CancelCauseFunc) {}
