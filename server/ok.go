package server

import (
	"encoding/binary"
	"sync"

	"github.com/dolthub/vitess/go/mysql"
)

// okPacket is what the answer to a statement without rows says. The library writes it with a wrong length before the text, and to prepared statements
// without warnings and text: the filter puts it right.
type okPacket struct {
	affected, insertID uint64
	warnings           uint16
	info               string
}

// okSuffix are the status flags and the number of warnings.
const okSuffix = 4

// okPackets are those of the present command that were not sent yet, in their order.
type okPackets struct {
	mu      sync.Mutex
	pending []okPacket
}

func (o *okPackets) add(p okPacket) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pending = append(o.pending, p)
}

func (o *okPackets) clear() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pending = nil
}

// mend returns the packets of p with ours in the place of those that the library made of them; false where p holds none.
func (o *okPackets) mend(p []byte) (out []byte, done bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	from := 0 // what was copied to out
	for at := 0; len(o.pending) > 0 && at+packetHeaderSize <= len(p); {
		end := at + packetHeaderSize + payloadSize([packetHeaderSize]byte(p[at:]))
		if end > len(p) {
			break
		}
		if payload, ok := o.pending[0].payload(p[at+packetHeaderSize : end]); ok {
			packet := frame(nil, payload)
			packet[packetHeaderSize-1] = p[at+packetHeaderSize-1]
			out = append(append(out, p[from:at]...), packet...)
			from, o.pending = end, o.pending[1:]
		}
		at = end
	}
	if from == 0 {
		return p, false
	}
	return append(out, p[from:]...), true
}

// payload makes the right packet of the library's; false where that is another one.
func (o *okPacket) payload(theirs []byte) ([]byte, bool) {
	out := appendLength(appendLength([]byte{mysql.OKPacket}, o.affected), o.insertID)
	n := len(out)
	if len(theirs) < n+okSuffix || string(theirs[:n]) != string(out) {
		return nil, false
	}
	if rest := string(theirs[n+okSuffix:]); rest != "" && rest != "#"+o.info {
		return nil, false
	}
	out = append(out, theirs[n:n+2]...)
	out = binary.LittleEndian.AppendUint16(out, o.warnings)
	if o.info != "" {
		out = append(appendLength(out, uint64(len(o.info))), o.info...)
	}
	return out, true
}

// appendLength appends a length-encoded integer.
func appendLength(b []byte, n uint64) []byte {
	switch {
	case n < 251:
		return append(b, byte(n))
	case n < 1<<16:
		return binary.LittleEndian.AppendUint16(append(b, 0xfc), uint16(n))
	case n < 1<<24:
		return append(b, 0xfd, byte(n), byte(n>>8), byte(n>>16))
	}
	return binary.LittleEndian.AppendUint64(append(b, 0xfe), n)
}
