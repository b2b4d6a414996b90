package server

import (
	"bytes"
	"strings"
	"testing"

	"github.com/dolthub/vitess/go/mysql"
)

// numbered makes a packet with a sequence number.
func numbered(seq byte, payload ...byte) []byte {
	p := frame(nil, payload)
	p[packetHeaderSize-1] = seq
	return p
}

// TestAnswersWithoutRows: the text gets its length, a prepared statement its warnings, and packets around stay as they are.
func TestAnswersWithoutRows(t *testing.T) {
	const info = "Rows matched: 3  Changed: 2  Warnings: 1"
	length := byte(len(info))
	suffix := append([]byte{2, 0, 1, 0, length}, info...)
	row := numbered(1, 0, 'x', 0, 0)
	for name, c := range map[string]struct {
		ok        okPacket
		got, want []byte
	}{
		"text": {
			okPacket{affected: 2, warnings: 1, info: info},
			numbered(1, append([]byte{0, 2, 0, 2, 0, 1, 0}, "#"+info...)...), numbered(1, append([]byte{0, 2, 0}, suffix...)...),
		},
		"prepared": {
			okPacket{affected: 300, warnings: 1, info: info},
			numbered(1, 0, 0xfc, 44, 1, 0, 2, 0, 0, 0), numbered(1, append([]byte{0, 0xfc, 44, 1, 0}, suffix...)...),
		},
		"behind the rows of another statement": {
			okPacket{affected: 2, warnings: 1, info: info},
			append(bytes.Clone(row), numbered(5, append([]byte{0, 2, 0, 2, 0, 1, 0}, "#"+info...)...)...), append(bytes.Clone(row), numbered(5, append([]byte{0, 2, 0}, suffix...)...)...),
		},
		"another text":  {okPacket{affected: 2, info: "x"}, numbered(1, append([]byte{0, 2, 0, 2, 0, 1, 0}, "#y"...)...), nil},
		"another count": {okPacket{affected: 1}, numbered(1, 0, 2, 0, 2, 0, 0, 0), nil},
		"half a packet": {okPacket{affected: 2}, numbered(1, 0, 2, 0, 2, 0, 0, 0)[:8], nil},
		"an error":      {okPacket{}, numbered(1, mysql.ErrPacket, 0, 0, 2, 0, 0, 0), nil},
	} {
		var o okPackets
		o.add(c.ok)
		got, done := o.mend(c.got)
		if want := c.want; done != (want != nil) || done && !bytes.Equal(got, want) || !done && !bytes.Equal(got, c.got) {
			t.Errorf("%s: %v %q, want %q", name, done, got, want)
		}
		if len(o.pending) != 1 && !done || done && len(o.pending) != 0 {
			t.Errorf("%s: %d pending", name, len(o.pending))
		}
	}
}

func TestCarriedStatements(t *testing.T) {
	const text = "CREATE TABLE t AS SELECT '?', ? -- 'ü"
	c := carry(text, 2)
	if got := carried(c); got != text || !strings.HasSuffix(c, ", ?, ?") || parses(c) != nil {
		t.Errorf("%q became %q", c, got)
	}
	for _, plain := range []string{"SELECT 1", carrierPrefix, carrierPrefix + "zz'", carrierPrefix + "00"} {
		if carried(plain) != plain {
			t.Errorf("%q became %q", plain, carried(plain))
		}
	}
}
