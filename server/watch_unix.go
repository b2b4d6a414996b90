//go:build unix

package server

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// watchInterval is how often a connection is looked at while its statement runs.
const watchInterval = 200 * time.Millisecond

var errClientGone = errors.New("the client is gone")

// watchClient cancels when the client has closed its end of the connection. It peeks, so bytes of a next command stay where they are.
func watchClient(ctx context.Context, c net.Conn, cancel context.CancelCauseFunc) {
	if f, ok := c.(*filterConn); ok {
		c = f.Conn
	}
	sc, ok := c.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return
	}
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		gone := false
		var one [1]byte
		err := raw.Control(func(fd uintptr) {
			n, _, err := unix.Recvfrom(int(fd), one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
			gone = n == 0 && err == nil || errors.Is(err, unix.ECONNRESET)
		})
		if gone || err != nil {
			cancel(errClientGone)
			return
		}
	}
}
