package main

import (
	"bufio"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
)

// rowWriter prints one result. Header comes first, Row once per row with nil for NULL, Finish last.
type rowWriter interface {
	Header(fields []arrow.Field) error
	Row(cells [][]byte) error
	Finish() error
}

func newRowWriter(format string, w io.Writer) (rowWriter, error) {
	buffered := bufio.NewWriterSize(w, 64<<10)
	switch format {
	case "table":
		return &tableWriter{w: buffered}, nil
	case "tsv":
		return &tsvWriter{w: buffered}, nil
	case "csv":
		return &csvWriter{w: buffered, csv: csv.NewWriter(buffered)}, nil
	case "json":
		return &jsonWriter{w: buffered}, nil
	case "vertical":
		return &verticalWriter{w: buffered}, nil
	}
	return nil, errs.New(errs.ErrInvalid, "format %q is none of table, tsv, csv, json, vertical", format)
}

// printable shows bytes that are no text as hex, as the MySQL client does with --binary-as-hex.
func printable(f arrow.Field, cell []byte) string {
	switch f.Type.ID() {
	case arrow.BINARY, arrow.LARGE_BINARY, arrow.FIXED_SIZE_BINARY:
		return fmt.Sprintf("0x%X", cell)
	}
	return string(cell)
}

// tableRowsMax is how many rows a table holds back to find its widths; longer results are printed in several tables.
const tableRowsMax = 10_000

type tableWriter struct {
	w      *bufio.Writer
	fields []arrow.Field
	t      table.Writer
	rows   int  // of t
	isOpen bool // something was printed
}

func (o *tableWriter) Header(fields []arrow.Field) error {
	o.fields = fields
	o.start()
	return nil
}

func (o *tableWriter) start() {
	o.t, o.rows = table.NewWriter(), 0
	head := make(table.Row, len(o.fields))
	configs := make([]table.ColumnConfig, len(o.fields))
	for i, f := range o.fields {
		head[i] = f.Name
		configs[i] = table.ColumnConfig{Number: i + 1, AlignHeader: text.AlignLeft}
		if isNumber(f.Type) {
			configs[i].Align = text.AlignRight
		}
	}
	o.t.AppendHeader(head)
	o.t.SetColumnConfigs(configs)
	style := table.StyleDefault
	style.Format.Header = text.FormatDefault
	o.t.SetStyle(style)
}

func isNumber(t arrow.DataType) bool {
	return arrow.IsInteger(t.ID()) || arrow.IsFloating(t.ID()) || arrow.IsDecimal(t.ID())
}

func (o *tableWriter) Row(cells [][]byte) error {
	row := make(table.Row, len(cells))
	for i, c := range cells {
		if c == nil {
			row[i] = "NULL"
		} else {
			row[i] = printable(o.fields[i], c)
		}
	}
	o.t.AppendRow(row)
	o.rows++
	if o.rows == tableRowsMax {
		return o.flush()
	}
	return nil
}

func (o *tableWriter) flush() error {
	_, err := fmt.Fprintln(o.w, o.t.Render())
	o.isOpen = true
	o.start()
	return err
}

func (o *tableWriter) Finish() error {
	if len(o.fields) > 0 && (o.rows > 0 || !o.isOpen) { // without a row the names of the columns say that there is a result
		if err := o.flush(); err != nil {
			return err
		}
	}
	return o.w.Flush()
}

type tsvWriter struct {
	w      *bufio.Writer
	fields []arrow.Field
}

func (o *tsvWriter) Header(fields []arrow.Field) error {
	o.fields = fields
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = escapeTSV(f.Name)
	}
	_, err := fmt.Fprintln(o.w, strings.Join(names, "\t"))
	return err
}

// escapeTSV escapes as `mysql --batch` does.
func escapeTSV(s string) string {
	return strings.NewReplacer("\\", `\\`, "\t", `\t`, "\n", `\n`, "\x00", `\0`).Replace(s)
}

func (o *tsvWriter) Row(cells [][]byte) error {
	for i, c := range cells {
		if i > 0 {
			_ = o.w.WriteByte('\t')
		}
		if c == nil {
			_, _ = o.w.WriteString("NULL")
		} else {
			_, _ = o.w.WriteString(escapeTSV(printable(o.fields[i], c)))
		}
	}
	return o.w.WriteByte('\n') // a buffered writer keeps its first error
}

func (o *tsvWriter) Finish() error { return o.w.Flush() }

type csvWriter struct {
	w      *bufio.Writer
	csv    *csv.Writer
	fields []arrow.Field
	row    []string
}

func (o *csvWriter) Header(fields []arrow.Field) error {
	o.fields, o.row = fields, make([]string, len(fields))
	for i, f := range fields {
		o.row[i] = f.Name
	}
	return o.csv.Write(o.row)
}

func (o *csvWriter) Row(cells [][]byte) error {
	for i, c := range cells {
		o.row[i] = ""
		if c != nil {
			o.row[i] = printable(o.fields[i], c)
		}
	}
	return o.csv.Write(o.row)
}

func (o *csvWriter) Finish() error {
	o.csv.Flush()
	return errors.Join(o.csv.Error(), o.w.Flush())
}

// jsonWriter prints one array of objects per statement, columns in order.
type jsonWriter struct {
	w      *bufio.Writer
	fields []arrow.Field
	keys   [][]byte
	rows   int
}

func (o *jsonWriter) Header(fields []arrow.Field) error {
	o.fields = fields
	for _, f := range fields {
		key, err := json.Marshal(f.Name)
		if err != nil {
			return err
		}
		o.keys = append(o.keys, key)
	}
	return o.w.WriteByte('[')
}

func (o *jsonWriter) Row(cells [][]byte) error {
	if o.rows > 0 {
		_ = o.w.WriteByte(',')
	}
	o.rows++
	_, _ = o.w.WriteString("\n  {")
	for i, c := range cells {
		if i > 0 {
			_, _ = o.w.WriteString(", ")
		}
		_, _ = o.w.Write(o.keys[i])
		_, _ = o.w.WriteString(": ")
		v, err := jsonValue(o.fields[i].Type, c)
		if err != nil {
			return err
		}
		_, _ = o.w.Write(v)
	}
	return o.w.WriteByte('}')
}

// jsonValue spells a cell: integers and floats as numbers, decimals as strings, lists and vectors as arrays, binary as base64, the rest as MySQL text.
func jsonValue(t arrow.DataType, cell []byte) ([]byte, error) {
	switch id := t.ID(); {
	case cell == nil:
		return []byte("null"), nil
	case arrow.IsInteger(id) || id == arrow.BOOL:
		return cell, nil
	case arrow.IsFloating(id):
		if json.Valid(cell) {
			return cell, nil
		}
		return []byte("null"), nil // NaN and infinities
	case id == arrow.BINARY || id == arrow.LARGE_BINARY || id == arrow.FIXED_SIZE_BINARY:
		return json.Marshal(base64.StdEncoding.EncodeToString(cell))
	case arrow.IsNested(id):
		return cell, nil
	}
	return json.Marshal(string(cell))
}

func (o *jsonWriter) Finish() error {
	if o.keys != nil {
		if o.rows > 0 {
			_ = o.w.WriteByte('\n')
		}
		_, _ = o.w.WriteString("]\n")
	}
	return o.w.Flush()
}

type verticalWriter struct {
	w      *bufio.Writer
	fields []arrow.Field
	width  int
	rows   int
}

func (o *verticalWriter) Header(fields []arrow.Field) error {
	o.fields = fields
	for _, f := range fields {
		o.width = max(o.width, text.StringWidthWithoutEscSequences(f.Name))
	}
	return nil
}

func (o *verticalWriter) Row(cells [][]byte) error {
	o.rows++
	_, err := fmt.Fprintf(o.w, "*************************** %d. row ***************************\n", o.rows)
	for i, c := range cells {
		value := "NULL"
		if c != nil {
			value = printable(o.fields[i], c)
		}
		name := o.fields[i].Name
		_, err = fmt.Fprintf(o.w, "%s%s: %s\n", strings.Repeat(" ", max(0, o.width-text.StringWidthWithoutEscSequences(name))), name, value)
	}
	return err
}

func (o *verticalWriter) Finish() error { return o.w.Flush() }

// textRows gives the cells of each row of batches as MySQL text.
type textRows struct {
	columns *expr.TextColumns
}

func newTextRows(schema *arrow.Schema) (*textRows, error) {
	columns, err := expr.NewTextColumns(schema)
	return &textRows{columns: columns}, err
}

func (t *textRows) each(env *expr.Env, b arrow.RecordBatch, row func([][]byte) error) error {
	cols := make([]arrow.Array, b.NumCols())
	for i := range cols {
		col, err := t.columns.Column(env, b, i)
		if err != nil {
			return err
		}
		defer col.Release()
		cols[i] = col
	}
	cells := make([][]byte, len(cols))
	for r := range int(b.NumRows()) {
		for i, c := range cols {
			cells[i] = cellBytes(c, r)
		}
		if err := row(cells); err != nil {
			return err
		}
	}
	return nil
}

// cellBytes returns the bytes of a text or binary value, nil for NULL.
func cellBytes(c arrow.Array, r int) []byte {
	if c.IsNull(r) {
		return nil
	}
	switch c := c.(type) {
	case *array.String:
		return append([]byte{}, c.Value(r)...)
	case *array.LargeString:
		return append([]byte{}, c.Value(r)...)
	case *array.Binary:
		return append([]byte{}, c.Value(r)...)
	case *array.LargeBinary:
		return append([]byte{}, c.Value(r)...)
	}
	return []byte(c.ValueStr(r))
}
