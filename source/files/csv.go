package files

import (
	"bytes"

	"github.com/lakesql/lakesql/internal/errs"
)

// Dialect is how a CSV file is written.
type Dialect struct {
	Delimiter byte
	Quote     byte // 0 = none
	Escape    byte // before a quote in quotes; the quote itself = quotes are doubled
	Header    bool
	SkipLines int
}

// cell is a value of a row.
type cell struct {
	text     []byte
	isQuoted bool
}

// rowsEnd returns where the last whole row ends and whether a quote is open behind it. b begins with a row.
func (d *Dialect) rowsEnd(b []byte) (end int, isOpen bool) {
	for at := 0; at < len(b); {
		if b[at] == d.Quote {
			n := d.closing(b[at+1:])
			if n < 0 {
				return end, true
			}
			at += n + 2
		}
		for at < len(b) && b[at] != d.Delimiter && b[at] != '\n' {
			at++
		}
		if at < len(b) && b[at] == '\n' {
			end = at + 1
		}
		at++
	}
	return end, false
}

// closing returns where the quote that closes a value stands, -1 = nowhere. b begins behind the opening quote.
func (d *Dialect) closing(b []byte) int {
	for at := 0; ; {
		n := bytes.IndexByte(b[at:], d.Quote)
		if n < 0 {
			return -1
		}
		at += n
		switch {
		case d.Escape != d.Quote && d.isEscaped(b[:at]):
			at++
		case d.Escape == d.Quote && at+1 < len(b) && b[at+1] == d.Quote:
			at += 2
		default:
			return at
		}
	}
}

// isEscaped says that an odd number of escapes ends the text.
func (d *Dialect) isEscaped(b []byte) bool {
	n := 0
	for n < len(b) && b[len(b)-1-n] == d.Escape {
		n++
	}
	return n%2 == 1
}

// row parses one row and returns its cells, appended to into, and where the next row begins. The row is whole. Errors: ErrBadValue.
func (d *Dialect) row(b []byte, into []cell) (cells []cell, next int, err error) {
	at := 0
	for {
		var c cell
		if d.Quote != 0 && at < len(b) && b[at] == d.Quote {
			n := d.closing(b[at+1:])
			if n < 0 {
				return into, len(b), errs.New(errs.ErrBadValue, "a quote is not closed")
			}
			c = cell{text: d.unescape(b[at+1 : at+1+n]), isQuoted: true}
			at += n + 2
			from := at
			for at < len(b) && b[at] != d.Delimiter && b[at] != '\n' {
				at++
			}
			if len(bytes.TrimSpace(b[from:at])) > 0 && err == nil {
				err = errs.New(errs.ErrBadValue, "text behind a closing quote: %s", shorten(b[from:at]))
			}
		} else {
			from := at
			for at < len(b) && b[at] != d.Delimiter && b[at] != '\n' {
				at++
			}
			c = cell{text: b[from:at]}
			if at == len(b) || b[at] == '\n' {
				c.text = bytes.TrimSuffix(c.text, []byte{'\r'})
			}
		}
		into = append(into, c)
		if at >= len(b) {
			return into, at, err
		}
		at++
		if b[at-1] == '\n' {
			return into, at, err
		}
	}
}

// unescape returns the value of what stands between quotes. Without an escape it lies in b.
func (d *Dialect) unescape(b []byte) []byte {
	if bytes.IndexByte(b, d.Escape) < 0 {
		return b
	}
	out := make([]byte, 0, len(b))
	for at := 0; at < len(b); at++ {
		if b[at] == d.Escape && at+1 < len(b) && (b[at+1] == d.Quote || b[at+1] == d.Escape) {
			at++
		}
		out = append(out, b[at])
	}
	return out
}
