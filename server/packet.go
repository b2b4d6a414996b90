package server

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync/atomic"

	"github.com/dolthub/vitess/go/mysql"
)

// Client commands that the filter looks at, and the protocol's limit of one packet's payload.
const (
	comQuery         = 0x03
	comStmtPrepare   = 0x16
	comStmtFetch     = 0x1c
	packetPayloadMax = 1<<24 - 1
	packetHeaderSize = 4
	errorTextMax     = 1 << 16
)

// filterConn looks at each command of an unencrypted MySQL connection before the protocol library sees it. The library parses COM_STMT_PREPARE before any hook
// of ours, with a parser that recurses: a statement that is too deep, or too long, becomes a COM_QUERY of a statement that fails with the
// reason, and our list spellings are rewritten here.
//
// A command is a packet of sequence number 0; longer commands go on in further packets. Everything else passes through.
type filterConn struct {
	net.Conn
	peek       *peeker                            // at the socket; nil where that cannot be
	payloadMax int                                // longest command accepted, in bytes
	prepare    func(query string) (string, error) // rewrites a statement to prepare, or refuses it
	refuse     func(reason error) string          // a statement that fails with the reason

	failure atomic.Pointer[mysql.SQLError] // of the present command where the library would not send it
	// broken is the error of a result whose first rows were sent: it goes out in place of the packet that ends the rows.
	broken  atomic.Pointer[mysql.SQLError]
	oks     okPackets
	release atomic.Bool // the client asked for its connection to end
	command byte        // the present one
	sent    packets     // what was written so far

	out     []byte // bytes ready for Read
	header  [packetHeaderSize]byte
	passing int // payload bytes of the present packet that pass through unread
}

// Read implements net.Conn.
func (c *filterConn) Read(p []byte) (int, error) {
	for {
		if len(c.out) > 0 {
			n := copy(p, c.out)
			c.out = c.out[n:]
			return n, nil
		}
		if c.passing > 0 {
			n, err := c.Conn.Read(p[:min(len(p), c.passing)])
			c.passing -= n
			return n, err
		}
		if err := c.nextPacket(); err != nil {
			return 0, err
		}
	}
}

// lostError ends the packet that the library sends in place of the error of a statement with a server-side cursor.
const lostError = "missing result set"

// brokenWarnings is the number of warnings in the packet that ends the rows of a result that broke, which the library sends as the end of a whole one.
const brokenWarnings = 0xffff

// endsBroken says that the packet which the library is about to send is the last of a result that broke. With a server-side cursor the library sends other
// packets that end rows before: when the cursor is open, and after each piece of the rows.
func (c *filterConn) endsBroken(status uint16) bool {
	isLast := c.command != comStmtFetch || status&mysql.ServerCursorLastRowSent != 0
	return c.broken.Load() != nil && status&mysql.ServerCursorExists == 0 && isLast
}

// Write implements net.Conn.
func (c *filterConn) Write(p []byte) (int, error) {
	if c.sent.left == 0 && c.sent.have == 0 {
		if mended, done := c.oks.mend(p); done {
			c.sent.pass(mended)
			if _, err := c.Conn.Write(mended); err != nil {
				return 0, err
			}
			return len(p), nil
		}
	}
	if broken := c.broken.Load(); broken != nil {
		out := c.sent.replaceEnd(p, func(seq byte) []byte {
			c.broken.Store(nil)
			return errorPacket(broken, seq)
		})
		if _, err := c.Conn.Write(out); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	c.sent.pass(p)
	failure := c.failure.Load()
	if failure == nil || len(p) <= packetHeaderSize || p[packetHeaderSize] != mysql.ErrPacket || !bytes.HasSuffix(p, []byte(lostError)) ||
		len(p) != packetHeaderSize+payloadSize([packetHeaderSize]byte(p)) {
		return c.Conn.Write(p)
	}
	if _, err := c.Conn.Write(errorPacket(failure, p[packetHeaderSize-1])); err != nil {
		return 0, err
	}
	return len(p), nil
}

// errorPacket is an error as the packet of a sequence number.
func errorPacket(e *mysql.SQLError, seq byte) []byte {
	payload := binary.LittleEndian.AppendUint16([]byte{mysql.ErrPacket}, uint16(e.Num))
	payload = append(append(append(payload, '#'), e.State...), e.Message[:min(len(e.Message), errorTextMax)]...)
	packet := frame(nil, payload)
	packet[packetHeaderSize-1] = seq
	return packet
}

// packets follows the packets of a stream of bytes that comes in any pieces.
type packets struct {
	header [packetHeaderSize]byte
	have   int    // bytes of the header that were seen
	left   int    // payload bytes of the present packet to come
	goesOn bool   // the next packet continues the present one
	held   []byte // the beginning of a packet that may have to be replaced
}

// pass takes note of bytes that were sent.
func (s *packets) pass(p []byte) {
	for len(p) > 0 {
		if s.left > 0 {
			n := min(s.left, len(p))
			s.left -= n
			p = p[n:]
			continue
		}
		n := copy(s.header[s.have:], p)
		s.have += n
		p = p[n:]
		if s.have == packetHeaderSize {
			s.begin()
		}
	}
}

// begin starts a packet whose header is complete.
func (s *packets) begin() {
	s.have, s.left = 0, payloadSize(s.header)
	s.goesOn = s.left == packetPayloadMax
}

// replaceEnd returns the bytes to send in place of p: those held back before, then p without the packet that ends a broken result, which end replaces. A
// packet that may be the end is held back until it is complete.
func (s *packets) replaceEnd(p []byte, end func(seq byte) []byte) []byte {
	var out []byte
	for len(p) > 0 {
		if s.left > 0 || s.have > 0 { // within a packet that began to go out
			n := min(s.left, len(p))
			if s.left == 0 {
				n = min(packetHeaderSize-s.have, len(p))
			}
			s.pass(p[:n])
			out, p = append(out, p[:n]...), p[n:]
			continue
		}
		want := packetHeaderSize
		if len(s.held) >= packetHeaderSize {
			want += payloadSize([packetHeaderSize]byte(s.held))
		}
		n := min(want-len(s.held), len(p))
		s.held, p = append(s.held, p[:n]...), p[n:]
		if len(s.held) < packetHeaderSize {
			break
		}
		size := payloadSize([packetHeaderSize]byte(s.held))
		mayEnd := !s.goesOn && (size == eofSize || size == okSize)
		switch {
		case mayEnd && len(s.held) < packetHeaderSize+size:
			continue
		case mayEnd && isBrokenEnd(s.held[packetHeaderSize:]):
			out = append(out, end(s.held[packetHeaderSize-1])...)
		default:
			out = append(out, s.held...)
			s.pass(s.held)
		}
		s.held = s.held[:0]
	}
	return out
}

// Payloads of the packets that end rows: EOF, and OK under CLIENT_DEPRECATE_EOF.
const (
	eofSize = 5
	okSize  = 7
)

// isBrokenEnd recognises the end of the rows of a broken result by its number of warnings.
func isBrokenEnd(payload []byte) bool {
	warnings := payload[1:]
	if len(payload) == okSize {
		warnings = payload[5:]
	}
	return payload[0] == mysql.EOFPacket && binary.LittleEndian.Uint16(warnings) == brokenWarnings
}

func (c *filterConn) nextPacket() error {
	if c.release.Load() {
		return io.EOF
	}
	if _, err := io.ReadFull(c.Conn, c.header[:]); err != nil {
		return err
	}
	size := payloadSize(c.header)
	if c.header[3] != 0 || size == 0 { // not a command: an answer within the handshake or LOAD DATA
		c.out = append(c.out[:0], c.header[:]...)
		c.passing = size
		return nil
	}
	c.failure.Store(nil)
	c.oks.clear()
	var command [1]byte
	if _, err := io.ReadFull(c.Conn, command[:]); err != nil {
		return err
	}
	if c.command = command[0]; c.command != comStmtFetch {
		c.broken.Store(nil)
	}
	if command[0] != comStmtPrepare && size < packetPayloadMax && size <= c.payloadMax {
		c.out = append(append(c.out[:0], c.header[:]...), command[0])
		c.passing = size - 1
		return nil
	}
	payload, tooLong, err := c.readCommand(command[0], size)
	if err != nil {
		return err
	}
	switch {
	case tooLong > 0:
		payload = append([]byte{comQuery}, c.refuse(fmt.Errorf("a command of %d bytes is longer than max_allowed_packet, %d bytes", tooLong, c.payloadMax))...)
	case command[0] == comStmtPrepare:
		query, err := c.prepare(string(payload[1:]))
		if err != nil {
			payload = append([]byte{comQuery}, c.refuse(err)...)
		} else {
			payload = append([]byte{comStmtPrepare}, query...)
		}
	}
	c.out = frame(c.out[:0], payload)
	return nil
}

func payloadSize(h [packetHeaderSize]byte) int {
	return int(h[0]) | int(h[1])<<8 | int(h[2])<<16
}

// readCommand reads the rest of a command whose first byte was read. tooLong is its length where that is over the limit; the bytes are then dropped.
func (c *filterConn) readCommand(command byte, size int) (payload []byte, tooLong int, err error) {
	payload = []byte{command}
	total, rest := size, size-1
	for {
		if total > c.payloadMax {
			payload = nil
			_, err = io.CopyN(io.Discard, c.Conn, int64(rest))
		} else {
			at := len(payload)
			payload = append(payload, make([]byte, rest)...)
			_, err = io.ReadFull(c.Conn, payload[at:])
		}
		if err != nil || size < packetPayloadMax {
			break
		}
		if _, err = io.ReadFull(c.Conn, c.header[:]); err != nil {
			break
		}
		size = payloadSize(c.header)
		rest = size
		total += size
	}
	if total > c.payloadMax {
		return nil, total, err
	}
	return payload, 0, err
}

// frame appends payload as packets of a command.
func frame(dst, payload []byte) []byte {
	for seq := byte(0); ; seq++ {
		n := min(len(payload), packetPayloadMax)
		var h [packetHeaderSize]byte
		binary.LittleEndian.PutUint32(h[:], uint32(n))
		h[3] = seq
		dst = append(append(dst, h[:]...), payload[:n]...)
		payload = payload[n:]
		if n < packetPayloadMax {
			return dst
		}
	}
}

// filterListener gives every connection a filter.
type filterListener struct {
	net.Listener
	wrap func(net.Conn) net.Conn
}

// Accept implements net.Listener.
func (l filterListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.wrap(c), nil
}
