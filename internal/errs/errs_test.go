package errs

import (
	"errors"
	"fmt"
	"io"
	"testing"
)

func TestKindsSurviveWrapping(t *testing.T) {
	err := fmt.Errorf("fragment 3: %w", New(ErrNotFound, "column %q: %w", "a", io.ErrUnexpectedEOF))
	if !errors.Is(err, ErrNotFound) || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("kind or cause lost: %v", err)
	}
	if got, want := err.Error(), `fragment 3: column "a": unexpected EOF`; got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
}

func TestCorruptErrorNamesThePlace(t *testing.T) {
	err := fmt.Errorf("open: %w", WithPath(Corrupt("footer", 40, "magic is %q", "ABCD"), "t.lance/data/x.lance"))
	if !errors.Is(err, ErrCorrupt) {
		t.Fatal("not an ErrCorrupt")
	}
	if got, want := err.Error(), `open: corrupt file t.lance/data/x.lance: footer at offset 40: magic is "ABCD"`; got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
}
