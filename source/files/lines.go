package files

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/lakesql/lakesql/internal/errs"
)

// cutter cuts text into chunks of whole rows.
type cutter struct {
	file string
	in   io.Reader
	path string
	opts Options
	csv  *Dialect // nil = a row is a line
	buf  []byte   // what was read and belongs to no chunk yet
	line int64    // of its first byte
	eof  bool
}

// run emits the chunks of a text.
func (c *cutter) run(ctx context.Context, emit func(*chunk) error) error {
	for {
		next, err := c.next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := emit(next); err != nil {
			return err
		}
	}
}

// next returns a chunk, io.EOF at the end.
func (c *cutter) next(ctx context.Context) (*chunk, error) {
	want := c.opts.ChunkBytes
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := c.fill(want); err != nil {
			return nil, err
		}
		if len(c.buf) == 0 {
			return nil, io.EOF
		}
		end, isOpen := c.rowsEnd()
		switch {
		case end > 0:
			return c.take(end), nil
		case c.eof && !isOpen:
			return c.take(len(c.buf)), nil
		case c.eof:
			return c.drop("a quote is not closed"), nil
		case len(c.buf) > c.opts.MaxRowBytes && isOpen:
			return c.drop("a quote is not closed, or " + errLongRow(c.opts).Error()), nil
		case len(c.buf) > c.opts.MaxRowBytes:
			return c.skip(errLongRow(c.opts).Error())
		}
		want = min(2*len(c.buf), c.opts.MaxRowBytes+1)
	}
}

func errLongRow(opts Options) error {
	return errs.New(errs.ErrBadValue, "the row is longer than %d bytes: --max-row-bytes", opts.MaxRowBytes)
}

// fill reads until buf has size bytes, or to the end.
func (c *cutter) fill(size int) error {
	if cap(c.buf) < size {
		c.buf = append(make([]byte, 0, size), c.buf...)
	}
	for len(c.buf) < size && !c.eof {
		n, err := c.in.Read(c.buf[len(c.buf):size])
		c.buf = c.buf[:len(c.buf)+n]
		if errors.Is(err, io.EOF) {
			c.eof = true
		} else if err != nil {
			return compressed(c.path, err)
		}
	}
	return nil
}

// take makes a chunk of the first bytes; the rest moves to a new buffer.
func (c *cutter) take(n int) *chunk {
	out := &chunk{text: c.buf[:n:n], firstLine: c.line}
	rest := c.buf[n:]
	c.buf = append(make([]byte, 0, max(len(rest), c.opts.ChunkBytes)), rest...)
	c.line += int64(bytes.Count(out.text, []byte{'\n'}))
	return out
}

// drop gives up the first line of what cannot be cut into rows and goes on after it.
func (c *cutter) drop(why string) *chunk {
	n := bytes.IndexByte(c.buf, '\n') + 1
	if n == 0 {
		n = len(c.buf)
	}
	out := c.take(n)
	return &chunk{bad: &BadRow{File: c.file, Line: out.firstLine, Raw: bytes.TrimRight(out.text, "\r\n"), Value: shorten(bytes.TrimRight(out.text, "\r\n")), Err: errs.New(errs.ErrBadValue, "%s", why)}}
}

// skip gives up a row and reads on to the end of its line.
func (c *cutter) skip(why string) (*chunk, error) {
	bad := &BadRow{File: c.file, Line: c.line, Value: shorten(c.buf), Err: errs.New(errs.ErrBadValue, "%s", why)}
	for {
		if at := bytes.IndexByte(c.buf, '\n'); at >= 0 {
			c.take(at + 1)
			break
		}
		c.buf = c.buf[:0]
		if c.eof {
			break
		}
		if err := c.fill(c.opts.ChunkBytes); err != nil {
			return nil, err
		}
	}
	return &chunk{bad: bad}, nil
}

// rowsEnd returns where the last whole row of buf ends, 0 = in none, and whether a quote is open behind it.
func (c *cutter) rowsEnd() (end int, isOpen bool) {
	if c.csv == nil || c.csv.Quote == 0 || bytes.IndexByte(c.buf, c.csv.Quote) < 0 {
		return bytes.LastIndexByte(c.buf, '\n') + 1, false
	}
	return c.csv.rowsEnd(c.buf)
}
