package server

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"

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
