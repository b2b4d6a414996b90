package server

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/dolthub/vitess/go/mysql"

	"github.com/lakesql/lakesql/internal/spawn"
)

// through sends bytes through a filter and returns what the library would read.
func through(t *testing.T, limit int, prepare func(string) (string, error), sent []byte) []byte {
	t.Helper()
	client, server := net.Pipe()
	g, _ := spawn.WithContext(t.Context(), 1)
	g.Go("client", func() error {
		_, err := client.Write(sent)
		return errors.Join(err, client.Close())
	})
	f := &filterConn{Conn: server, payloadMax: limit, prepare: prepare, refuse: func(err error) string { return "REFUSE " + err.Error() }}
	got, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestFilterPassesEverythingElse(t *testing.T) {
	handshake := []byte{3, 0, 0, 1, 9, 9, 9}
	query := frame(nil, append([]byte{comQuery}, "SELECT 1"...))
	empty := []byte{0, 0, 0, 3}
	sent := bytes.Join([][]byte{handshake, query, empty, query}, nil)
	got := through(t, 1<<20, nil, sent)
	if !bytes.Equal(got, sent) {
		t.Fatalf("got %q", got)
	}
}

func TestFilterRewritesPrepares(t *testing.T) {
	sent := frame(nil, append([]byte{comStmtPrepare}, "SELECT ['a',?]"...))
	got := through(t, 1<<20, func(q string) (string, error) { return q + "!", nil }, sent)
	if want := frame(nil, append([]byte{comStmtPrepare}, "SELECT ['a',?]!"...)); !bytes.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	got = through(t, 1<<20, func(string) (string, error) { return "", errors.New("too deep") }, sent)
	if want := frame(nil, append([]byte{comQuery}, "REFUSE too deep"...)); !bytes.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
}

func TestFilterRefusesLongCommands(t *testing.T) {
	long := frame(nil, append([]byte{comQuery}, bytes.Repeat([]byte("x"), 17<<20)...))
	next := frame(nil, append([]byte{comQuery}, "SELECT 2"...))
	got := through(t, 1<<20, nil, append(bytes.Clone(long), next...))
	want := append(frame(nil, append([]byte{comQuery}, "REFUSE a command of 17825793 bytes is longer than max_allowed_packet, 1048576 bytes"...)), next...)
	if !bytes.Equal(got, want) {
		t.Fatalf("got %d bytes: %.120q", len(got), got)
	}
	if got := through(t, 64<<20, nil, long); !bytes.Equal(got, long) {
		t.Fatal("a command of two packets was changed")
	}
}

// sink keeps what is written.
type sink struct {
	net.Conn
	buffer bytes.Buffer
}

func (s *sink) Write(p []byte) (int, error) { return s.buffer.Write(p) }

func TestFilterSendsTheErrorThatTheLibraryLoses(t *testing.T) {
	lost := append([]byte{mysql.ErrPacket, 0x51, 0x04}, "#HY000unknown error: missing result set"...)
	for _, c := range []struct {
		name    string
		failure *mysql.SQLError
		sent    []byte
		want    []byte
	}{
		{"the statement's error takes its place", mysql.NewSQLError(1210, "HY000", "no vector"), frame(nil, lost), frame(nil, append([]byte{mysql.ErrPacket, 0xba, 0x04}, "#HY000no vector"...))},
		{"no error is known", nil, frame(nil, lost), frame(nil, lost)},
		{"another packet", mysql.NewSQLError(1210, "HY000", "no vector"), frame(nil, []byte("\x01missing result set")), frame(nil, []byte("\x01missing result set"))},
		{"a part of a packet", mysql.NewSQLError(1210, "HY000", "no vector"), lost, lost},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out sink
			f := &filterConn{Conn: &out}
			f.failure.Store(c.failure)
			if n, err := f.Write(c.sent); err != nil || n != len(c.sent) {
				t.Fatal(n, err)
			}
			if got := out.buffer.Bytes(); !bytes.Equal(got, c.want) {
				t.Errorf("sent %q, want %q", got, c.want)
			}
		})
	}
}

// TestTheEndOfABrokenResultIsReplaced writes packets in all pieces of one length: only the marked end becomes the error, whatever rows look like.
func TestTheEndOfABrokenResultIsReplaced(t *testing.T) {
	packet := func(seq byte, payload ...byte) []byte {
		p := frame(nil, payload)
		p[packetHeaderSize-1] = seq
		return p
	}
	rows := bytes.Join([][]byte{
		packet(4, mysql.EOFPacket, 0, 0, 2, 0),                // behind the columns
		packet(5, 5, mysql.EOFPacket, 0xff, 0xff, 2, 0),       // a row that holds the mark
		packet(6, 0, mysql.EOFPacket, 0xff, 0xff),             // of the length of an end
		packet(7, 6, 0, mysql.EOFPacket, 0xff, 0xff, 0xff, 0), // of the other one
		packet(8),
	}, nil)
	failure := mysql.NewSQLError(1815, "HY000", "broken")
	for _, end := range [][]byte{packet(9, mysql.EOFPacket, 0xff, 0xff, 2, 0), packet(9, mysql.EOFPacket, 0, 0, 2, 0, 0xff, 0xff)} {
		stream := append(bytes.Clone(rows), end...)
		want := append(bytes.Clone(rows), errorPacket(failure, 9)...)
		for size := 1; size <= len(stream); size++ {
			for before := 0; before <= 8; before++ { // bytes that went out before the result broke
				var s packets
				s.pass(stream[:before])
				got := bytes.Clone(stream[:before])
				for rest := stream[before:]; len(rest) > 0; {
					n := min(size, len(rest))
					got = append(got, s.replaceEnd(rest[:n], func(seq byte) []byte { return errorPacket(failure, seq) })...)
					rest = rest[n:]
				}
				if !bytes.Equal(got, want) {
					t.Fatalf("pieces of %d bytes after %d:\n% x\n% x", size, before, got, want)
				}
			}
		}
	}
}
