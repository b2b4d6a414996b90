package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// meter shows how far a transfer is: one line that changes on a terminal, a line now and then elsewhere.
type meter struct {
	out        io.Writer
	isTerminal bool
	quiet      bool
	now        func() time.Time
	start      time.Time
	last       time.Time
	drawn      bool
}

type meterState struct {
	rows, bytes, size int64 // size 0 = unknown
	file, files       int
}

const (
	redrawEvery = 100 * time.Millisecond
	lineEvery   = 5 * time.Second
	barCells    = 24
)

func newMeter(out io.Writer, quiet bool) *meter {
	m := &meter{out: out, quiet: quiet, now: time.Now}
	if f, ok := out.(*os.File); ok {
		m.isTerminal = term.IsTerminal(int(f.Fd()))
	}
	m.start = m.now()
	m.last = m.start
	return m
}

func (m *meter) show(s meterState) {
	now, every := m.now(), lineEvery
	if m.isTerminal {
		every = redrawEvery
	}
	if m.quiet || now.Sub(m.last) < every {
		return
	}
	m.last = now
	text := m.text(s, now.Sub(m.start))
	if !m.isTerminal {
		fmt.Fprintln(m.out, text)
		return
	}
	m.drawn = true
	fmt.Fprintf(m.out, "\r%s\x1b[K", text)
}

// text is the line: what part is done, rows, speed, file, and the time that is left.
func (m *meter) text(s meterState, took time.Duration) string {
	seconds := max(took.Seconds(), 1e-3)
	var b strings.Builder
	if s.size > 0 {
		part := min(1, float64(s.bytes)/float64(s.size))
		if m.isTerminal {
			full := int(part * barCells)
			b.WriteString("[" + strings.Repeat("#", full) + strings.Repeat(".", barCells-full) + "] ")
		}
		fmt.Fprintf(&b, "%3.0f%%  ", 100*part)
	}
	fmt.Fprintf(&b, "%d rows", s.rows)
	if s.bytes > 0 {
		fmt.Fprintf(&b, "  %.1f MB/s", float64(s.bytes)/1e6/seconds)
	} else {
		fmt.Fprintf(&b, "  %.0f rows/s", float64(s.rows)/seconds)
	}
	if s.files > 1 {
		fmt.Fprintf(&b, "  file %d of %d", s.file, s.files)
	}
	if s.size > 0 && s.bytes > 0 && s.bytes <= s.size {
		left := time.Duration(seconds / float64(s.bytes) * float64(s.size-s.bytes) * float64(time.Second))
		fmt.Fprintf(&b, "  %s left", left.Round(time.Second))
	}
	return b.String()
}

func (m *meter) finish() {
	if m.drawn {
		fmt.Fprint(m.out, "\r\x1b[K")
	}
}
