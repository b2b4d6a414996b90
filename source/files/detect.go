package files

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/lakesql/lakesql/internal/errs"
)

// sniffBytes is how much of a file is looked at to find out how it is written.
const sniffBytes = 256 << 10

// sniffRows is how many rows of it count.
const sniffRows = 1000

// text is a text file that is being read.
type text struct {
	file  *fileBytes
	close func()
	cut   cutter
	names []string // of CSV with a header
	first *chunk   // what came with the header
}

// openText opens a text file and reads its header. d nil = NDJSON.
func openText(ctx context.Context, f File, d *Dialect, opts Options) (*text, error) {
	b, err := openBytes(ctx, f)
	if err != nil {
		return nil, err
	}
	in, closer, err := b.plain(f.Path)
	if err != nil {
		return nil, err
	}
	t := &text{file: b, close: closer, cut: cutter{file: f.URL, in: in, path: f.URL, opts: opts, csv: d, line: 1}}
	if err := t.start(ctx); err != nil {
		closer()
		return nil, err
	}
	return t, nil
}

// start skips a mark and lines, and reads the header.
func (t *text) start(ctx context.Context) error {
	c := &t.cut
	if err := c.fill(min(c.opts.ChunkBytes, sniffBytes)); err != nil {
		return err
	}
	if isText16(c.buf) {
		return errs.New(errs.ErrUnsupported, "%s is UTF-16: convert it, as with iconv -f UTF-16 -t UTF-8", t.cut.file)
	}
	c.buf = bytes.TrimPrefix(c.buf, []byte("\xEF\xBB\xBF"))
	if c.csv == nil {
		return nil
	}
	for range c.csv.SkipLines {
		if _, err := c.skip(""); err != nil {
			return err
		}
		if err := c.fill(c.opts.ChunkBytes); err != nil {
			return err
		}
	}
	if !c.csv.Header {
		return nil
	}
	first, err := c.next(ctx)
	if errors.Is(err, io.EOF) {
		return nil // no row, not even of names
	}
	if err != nil {
		return err
	}
	if first.bad != nil {
		return first.bad
	}
	cells, n, err := c.csv.row(first.text, nil)
	if err != nil {
		return &BadRow{File: c.file, Line: first.firstLine, Err: err}
	}
	t.names = headerNames(cells)
	t.first = &chunk{text: first.text[n:], firstLine: first.firstLine + int64(bytes.Count(first.text[:n], []byte{'\n'}))}
	return nil
}

// run is the cutter's, with what came with the header first.
func (t *text) run(ctx context.Context, emit func(*chunk) error) error {
	if t.first != nil && len(t.first.text) > 0 {
		if err := emit(t.first); err != nil {
			return err
		}
	}
	return t.cut.run(ctx, emit)
}

// headerNames makes names of a header: none is empty, none stands twice.
func headerNames(cells []cell) []string {
	names := make([]string, len(cells))
	seen := make(map[string]bool)
	for i, c := range cells {
		name := strings.TrimSpace(strings.ToValidUTF8(string(c.text), "_"))
		if name == "" {
			name = "column" + strconv.Itoa(i)
		}
		for base, n := name, 1; seen[strings.ToLower(name)]; n++ {
			name = base + "_" + strconv.Itoa(n)
		}
		seen[strings.ToLower(name)] = true
		names[i] = name
	}
	return names
}

// detectDialect finds out how a CSV file is written, as far as the options do not say it.
func detectDialect(ctx context.Context, f File, opts Options) (Dialect, error) {
	b, err := openBytes(ctx, f)
	if err != nil {
		return Dialect{}, err
	}
	in, closer, err := b.plain(f.Path)
	if err != nil {
		return Dialect{}, err
	}
	defer closer()
	sample, err := io.ReadAll(io.LimitReader(in, sniffBytes))
	if err != nil {
		return Dialect{}, compressed(f.URL, err)
	}
	isWhole := len(sample) < sniffBytes
	sample = bytes.TrimPrefix(sample, []byte("\xEF\xBB\xBF"))
	for range opts.SkipLines {
		sample = sample[bytes.IndexByte(sample, '\n')+1:]
	}
	d := Dialect{Delimiter: opts.Delimiter, Quote: opts.Quote, Escape: opts.Escape, SkipLines: opts.SkipLines}
	if d.Quote == 0 {
		d.Quote = '"'
		if bytes.IndexByte(sample, '"') < 0 && looksQuoted(sample) {
			d.Quote = '\''
		}
	}
	if d.Escape == 0 {
		d.Escape = d.Quote
		if bytes.Contains(sample, []byte{'\\', d.Quote}) && !bytes.Contains(sample, []byte{'\\', d.Quote, '\n'}) {
			d.Escape = '\\'
		}
	}
	if d.Delimiter == 0 {
		d.Delimiter = bestDelimiter(sample, d, strings.Contains(strings.ToLower(f.Path), ".tsv"))
	}
	if opts.Header != nil {
		d.Header = *opts.Header
		return d, nil
	}
	d.Header = hasHeader(rowsOf(sample, d, isWhole))
	return d, nil
}

// looksQuoted says that values stand in single quotes.
func looksQuoted(b []byte) bool {
	opens, closes := len(b) > 0 && b[0] == '\'', false
	for _, c := range []byte(",;\t|\n\r") {
		opens = opens || bytes.Contains(b, []byte{c, '\''})
		closes = closes || bytes.Contains(b, []byte{'\'', c})
	}
	return opens && closes
}

// rowsOf parses the whole rows of a sample.
func rowsOf(b []byte, d Dialect, isWhole bool) [][]cell {
	if !isWhole {
		end := bytes.LastIndexByte(b, '\n') + 1
		if bytes.IndexByte(b, d.Quote) >= 0 {
			end, _ = d.rowsEnd(b)
		}
		b = b[:end]
	}
	var out [][]cell
	for len(b) > 0 && len(out) < sniffRows {
		cells, n, err := d.row(b, nil)
		b = b[n:]
		if err == nil && (len(cells) > 1 || len(cells[0].text) > 0) {
			out = append(out, cells)
		}
	}
	return out
}

// bestDelimiter is the one that cuts most rows into the same number of cells, more than one.
func bestDelimiter(sample []byte, d Dialect, isTSV bool) byte {
	best, bestScore := byte(','), 0.0
	for _, c := range []byte{',', '\t', ';', '|'} {
		d.Delimiter = c
		counts := make(map[int]int)
		rows := rowsOf(sample, d, true)
		if len(rows) > 1 && len(sample) >= sniffBytes {
			rows = rows[:len(rows)-1] // it was cut
		}
		for _, r := range rows {
			counts[len(r)]++
		}
		for cells, n := range counts {
			if cells < 2 {
				continue
			}
			score := float64(n)/float64(len(rows)) + float64(min(cells, 100))/1000
			if isTSV && c == '\t' {
				score++
			}
			if score > bestScore {
				best, bestScore = c, score
			}
		}
	}
	return best
}

// hasHeader says that the first row has names: text, no value twice, which looks like names or stands above values of another kind.
func hasHeader(rows [][]cell) bool {
	if len(rows) == 0 {
		return false
	}
	first := rows[0]
	seen := make(map[string]bool)
	for _, c := range first {
		name := strings.ToLower(strings.TrimSpace(string(c.text)))
		if name == "" && len(first) > 1 || seen[name] {
			return false
		}
		seen[name] = true
	}
	j, areNames := &jsonText{}, true
	for _, c := range first {
		var name guess
		name.addText(c.text, c.isQuoted, j)
		if name.strings == 0 {
			return false // a value, not a name
		}
		areNames = areNames && isName(c.text)
	}
	return areNames || differs(rows, j)
}

// differs says that some column has no text below its first row, which has.
func differs(rows [][]cell, j *jsonText) bool {
	for i := range rows[0] {
		var rest guess
		for _, r := range rows[1:] {
			if i < len(r) && len(r[i].text) > 0 && string(r[i].text) != `\N` {
				rest.addText(r[i].text, r[i].isQuoted, j)
			}
		}
		if rest.values > 0 && rest.strings == 0 {
			return true
		}
	}
	return false
}

// isName says that text could be a column's name.
func isName(b []byte) bool {
	if len(b) == 0 || len(b) > 64 {
		return false
	}
	for i, c := range b {
		isLetter := c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c >= 0x80
		if !isLetter && (i == 0 || (c < '0' || c > '9') && !strings.ContainsRune(" .-()/", rune(c))) {
			return false
		}
	}
	return true
}
