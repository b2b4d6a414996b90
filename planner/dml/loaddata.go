package dml

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
)

// Format says how LOAD DATA finds fields and lines. Empty strings are none; the zero value is not MySQL's default.
type Format struct {
	FieldEnd   string // TERMINATED BY
	Enclosed   string // ENCLOSED BY, one byte
	Escape     string // ESCAPED BY, one byte
	LineStart  string // STARTING BY
	LineEnd    string // TERMINATED BY
	IgnoreRows int64
}

const (
	fieldBytesMax = 64 << 20 // of one field
	fieldsMax     = 100_000  // of one line
	loadRows      = 8192
	loadBytes     = 4 << 20 // of text in a batch
)

// Load reads delimited text for LOAD DATA. Its input columns, named Fields in order, are text; Values computes the table's columns over them.
type Load struct {
	Source io.ReadCloser
	Format Format
	Fields int           // of a line
	Values []LoadValue   // one for each column of the table
	Env    *exec.Env     //
	Warn   func(error)   // nil = nobody listens
	Strict bool          // a line with too few or too many fields is an error
	in     *bufio.Reader // of Source
	lines  int64
	done   bool
}

// LoadValue is a column of the table: a field of the line, or a program over all of them; neither = NULL.
type LoadValue struct {
	Field   int // -1 = none
	Program *expr.Program
}

var _ Reader = (*Load)(nil)

// Close implements Reader.
func (l *Load) Close() error { return l.Source.Close() }

// Next implements Reader.
func (l *Load) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if l.in == nil {
		l.in = bufio.NewReaderSize(l.Source, 1<<20)
		for range l.Format.IgnoreRows {
			if _, err := l.line(); err != nil {
				return nil, err
			}
		}
		l.lines = 0
	}
	if l.done {
		return nil, io.EOF
	}
	text, err := l.batch(ctx)
	if err != nil {
		return nil, err
	}
	defer text.Release()
	cols := make([]arrow.Array, 0, len(l.Values))
	defer func() {
		for _, c := range cols {
			c.Release()
		}
	}()
	fields := make([]arrow.Field, len(l.Values))
	for i, v := range l.Values {
		var col arrow.Array
		switch {
		case v.Program != nil:
			if col, err = v.Program.Eval(&l.Env.Expr, text); err != nil {
				return nil, err
			}
		case v.Field >= 0:
			col = text.Column(v.Field)
			col.Retain()
		default:
			col = array.NewNull(int(text.NumRows()))
		}
		cols = append(cols, col)
		fields[i] = arrow.Field{Name: "c", Type: col.DataType(), Nullable: true}
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, text.NumRows()), nil
}

// batch reads lines into a batch of text.
func (l *Load) batch(ctx context.Context) (arrow.RecordBatch, error) {
	builders := make([]*array.StringBuilder, l.Fields)
	alloc := l.Env.Alloc
	if alloc == nil {
		alloc = memory.DefaultAllocator
	}
	for i := range builders {
		builders[i] = array.NewStringBuilder(alloc)
		defer builders[i].Release()
	}
	rows, size := int64(0), 0
	for rows < loadRows && size < loadBytes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		fields, err := l.line()
		if errors.Is(err, io.EOF) {
			l.done = true
			break
		}
		if err != nil {
			return nil, err
		}
		if err := l.count(len(fields)); err != nil {
			return nil, err
		}
		for i, b := range builders {
			if i >= len(fields) || fields[i].null {
				b.AppendNull()
				continue
			}
			b.Append(fields[i].text)
			size += len(fields[i].text)
		}
		rows++
	}
	if rows == 0 {
		return nil, io.EOF
	}
	cols := make([]arrow.Array, l.Fields)
	named := make([]arrow.Field, l.Fields)
	for i, b := range builders {
		cols[i] = b.NewArray()
		defer cols[i].Release()
		named[i] = arrow.Field{Name: "field", Type: arrow.BinaryTypes.String, Nullable: true}
	}
	return array.NewRecordBatch(arrow.NewSchema(named, nil), cols, rows), nil
}

// count complains about lines with another number of fields.
func (l *Load) count(n int) error {
	var err error
	switch {
	case n < l.Fields:
		err = errs.New(errs.ErrFewFields, "Row %d doesn't contain data for all columns", l.lines)
	case n > l.Fields:
		err = errs.New(errs.ErrManyFields, "Row %d was truncated; it contained more data than there were input columns", l.lines)
	default:
		return nil
	}
	if l.Strict {
		return err
	}
	if l.Warn != nil {
		l.Warn(err)
	}
	return nil
}

// field is one value of a line.
type field struct {
	text string
	null bool
}

// line reads the fields of the next line; io.EOF at the end.
func (l *Load) line() ([]field, error) {
	if _, err := l.in.Peek(1); err != nil {
		return nil, err
	}
	if l.Format.LineStart != "" {
		if err := l.skipTo(l.Format.LineStart); err != nil {
			return nil, err
		}
	}
	l.lines++
	var out []field
	for {
		f, end, err := l.field()
		if err != nil {
			return nil, err
		}
		out = append(out, f)
		if end {
			return out, nil
		}
		if len(out) > fieldsMax {
			return nil, errs.New(errs.ErrInvalid, "row %d has more than %d fields: are FIELDS and LINES TERMINATED BY right?", l.lines, fieldsMax)
		}
	}
}

// skipTo drops everything up to and including a text.
func (l *Load) skipTo(want string) error {
	for {
		have, err := l.in.Peek(len(want))
		if err != nil {
			return io.EOF // what is left is no line
		}
		if string(have) == want {
			_, _ = l.in.Discard(len(want)) // it was seen just now
			return nil
		}
		_, _ = l.in.Discard(1)
	}
}

// at takes a delimiter if it comes next.
func (l *Load) at(delimiter string) bool {
	if delimiter == "" {
		return false
	}
	have, err := l.in.Peek(len(delimiter))
	if err != nil || string(have) != delimiter {
		return false
	}
	_, _ = l.in.Discard(len(delimiter))
	return true
}

// field reads one field. end says that it was the last of its line.
func (l *Load) field() (f field, end bool, err error) {
	var b bytes.Buffer
	enclosed := l.Format.Enclosed != "" && l.at(l.Format.Enclosed)
	escaped, marked := false, false // \N alone is NULL
	for {
		if b.Len() > fieldBytesMax {
			return f, false, errs.New(errs.ErrTooLong, "row %d has a field of more than %d bytes", l.lines, fieldBytesMax)
		}
		if enclosed {
			if l.at(l.Format.Enclosed) {
				if l.at(l.Format.Enclosed) { // doubled: the character itself
					b.WriteString(l.Format.Enclosed)
					continue
				}
				enclosed = false
				marked = true
				continue
			}
		} else {
			if l.at(l.Format.LineEnd) {
				end = true
				break
			}
			if l.at(l.Format.FieldEnd) {
				break
			}
		}
		c, err := l.in.ReadByte()
		if errors.Is(err, io.EOF) {
			end = true
			break
		}
		if err != nil {
			return f, false, errs.New(errs.ErrIO, "row %d: %w", l.lines, err)
		}
		if l.Format.Escape != "" && c == l.Format.Escape[0] {
			if c, err = l.in.ReadByte(); err != nil {
				end = true
				break
			}
			escaped = escaped || c == 'N' && b.Len() == 0 && !enclosed
			b.WriteByte(unescape(c))
			continue
		}
		b.WriteByte(c)
	}
	f.text = b.String()
	if l.Format.LineEnd == "\n" && end && !marked {
		f.text = strings.TrimSuffix(f.text, "\r")
	}
	if escaped && f.text == "N" && !marked || l.Format.Escape == "" && f.text == "NULL" && l.Format.Enclosed != "" && !marked {
		return field{null: true}, end, nil
	}
	return f, end, nil
}

func unescape(c byte) byte {
	switch c {
	case '0':
		return 0
	case 'b':
		return '\b'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'Z':
		return 26
	}
	return c
}
