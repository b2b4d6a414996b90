package files

import (
	"bytes"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakesql/lakesql/internal/errs"
)

// build makes columns of what was parsed and takes bad rows out.
func (w *textWorker) build() result {
	if len(w.rows) == 0 {
		return result{}
	}
	cols := make([]arrow.Array, len(w.readers))
	defer releaseAll(cols)
	for i, r := range w.readers {
		b := array.NewBuilder(w.opts.Alloc, w.built.Field(i).Type)
		b.Reserve(len(w.rows))
		if w.dialect != nil {
			w.column(b, r, i)
		} else {
			w.member(b, r, i)
		}
		cols[i] = b.NewArray()
		b.Release()
	}
	f := finisher{schema: w.schema, limits: w.limits, alloc: w.opts.Alloc}
	for i := range cols {
		err := f.finish(cols, i, func(row int, value []byte, err error) { w.note(row, w.schema.Field(i).Name, value, err) })
		if err != nil {
			return result{err: err}
		}
	}
	var bad []BadRow
	isBad := make([]bool, len(w.rows))
	for i := range w.rows {
		if row := &w.rows[i]; row.bad != nil {
			isBad[i] = true
			b := BadRow{File: w.file.URL, Line: row.line, Column: row.column, Err: row.bad, Raw: bytes.Clone(row.raw)}
			if row.column != "" {
				b.Value = shorten(row.value)
			} else {
				b.Value = shorten(row.raw)
			}
			bad = append(bad, b)
		}
	}
	rows, err := keepGood(w.schema, cols, isBad, w.opts.Alloc)
	return result{rows: rows, bad: bad, err: err}
}

// note remembers the first thing that is wrong with a row.
func (w *textWorker) note(row int, column string, value []byte, err error) {
	if r := &w.rows[row]; r.bad == nil {
		r.bad, r.column, r.value = err, column, value
	}
}

// column appends the cells of a column of CSV.
func (w *textWorker) column(b array.Builder, r *valueReader, at int) {
	from, name := -1, w.schema.Field(at).Name
	if w.source != nil {
		from = w.source[at]
	}
	width := len(w.names)
	id := b.Type().ID()
	isText := id == arrow.STRING || id == arrow.LARGE_STRING || id == arrow.BINARY || id == arrow.LARGE_BINARY
	for row := range w.rows {
		if from < 0 || w.rows[row].bad != nil {
			b.AppendNull()
			continue
		}
		c := w.cells[row*width+from]
		var err error
		if w.isNull(c, isText, at) {
			err = r.null(b)
		} else {
			err = r.text(b, c.text, &w.scratch)
		}
		if err != nil {
			w.note(row, name, c.text, err)
		}
	}
}

// isNull says that a cell means NULL: empty without quotes, or a spelling of the column.
func (w *textWorker) isNull(c cell, isText bool, at int) bool {
	if len(c.text) == 0 && !isText {
		return true
	}
	if c.isQuoted {
		return false
	}
	if w.opts.Nulls == nil && (len(c.text) == 0 || string(c.text) == `\N`) {
		return true
	}
	return len(w.nulls[at]) > 0 && slices.Contains(w.nulls[at], string(c.text))
}

// member appends the members of a column of NDJSON.
func (w *textWorker) member(b array.Builder, r *valueReader, at int) {
	name, width := w.schema.Field(at).Name, len(w.readers)
	for row := range w.rows {
		if w.rows[row].bad != nil {
			b.AppendNull()
			continue
		}
		n := w.slots[row*width+at]
		var err error
		if n == 0 {
			err = r.null(b)
		} else {
			err = r.json(b, &w.json, n)
		}
		if err != nil {
			var value []byte
			if n != 0 {
				value = w.json.nodes[n].raw
			}
			w.note(row, name, value, err)
		}
	}
}

func releaseAll(cols []arrow.Array) {
	for _, c := range cols {
		if c != nil {
			c.Release()
		}
	}
}

// keepGood makes a batch of the rows that are not bad; nil where none is left.
func keepGood(schema *arrow.Schema, cols []arrow.Array, isBad []bool, alloc allocator) (arrow.RecordBatch, error) {
	type span struct{ lo, hi int }
	var spans []span
	good := 0
	for i := 0; i < len(isBad); {
		if isBad[i] {
			i++
			continue
		}
		lo := i
		for i < len(isBad) && !isBad[i] {
			i++
		}
		spans = append(spans, span{lo, i})
		good += i - lo
	}
	if good == 0 {
		return nil, nil //nolint:nilnil // nil is "none"
	}
	fields := schema.Fields()
	for i, c := range cols { // text for JSON columns
		fields[i].Type = c.DataType()
	}
	schema = arrow.NewSchema(fields, nil)
	if len(spans) == 1 && good == len(isBad) {
		return array.NewRecordBatch(schema, cols, int64(good)), nil
	}
	kept := make([]arrow.Array, len(cols))
	defer releaseAll(kept)
	for i, c := range cols {
		parts := make([]arrow.Array, len(spans))
		for k, s := range spans {
			parts[k] = array.NewSlice(c, int64(s.lo), int64(s.hi))
		}
		var err error
		kept[i], err = array.Concatenate(parts, alloc)
		releaseAll(parts)
		if err != nil {
			return nil, errs.New(errs.ErrInternal, "column %q: %w", schema.Field(i).Name, err)
		}
	}
	return array.NewRecordBatch(schema, kept, int64(good)), nil
}
