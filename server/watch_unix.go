//go:build unix

package server

import (
	"errors"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// peeker looks at a client's socket; nil where there is none to look at.
type peeker struct{ raw syscall.RawConn }

func newPeeker(c net.Conn) *peeker {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	return &peeker{raw: raw}
}

// gone says that the client has closed its end. It peeks, so bytes of a next command stay where they are.
func (p *peeker) gone() bool {
	gone := false
	var one [1]byte
	err := p.raw.Control(func(fd uintptr) {
		n, _, err := unix.Recvfrom(int(fd), one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		gone = n == 0 && err == nil || errors.Is(err, unix.ECONNRESET)
	})
	return gone || err != nil
}
