package files

import (
	"path"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
)

// Format is a file format.
type Format string

// The formats.
const (
	FormatUnknown     Format = ""
	FormatParquet     Format = "parquet"
	FormatArrow       Format = "arrow"  // IPC file
	FormatArrowStream Format = "arrows" // IPC stream
	FormatCSV         Format = "csv"
	FormatNDJSON      Format = "ndjson"
)

// ParseFormat reads the name of a format; "" is "find out".
func ParseFormat(text string) (Format, error) {
	switch f := Format(strings.ToLower(text)); f {
	case FormatUnknown, FormatParquet, FormatArrow, FormatArrowStream, FormatCSV, FormatNDJSON:
		return f, nil
	case "tsv":
		return FormatCSV, nil
	case "json", "jsonl":
		return FormatNDJSON, nil
	case "ipc", "feather":
		return FormatArrow, nil
	}
	return FormatUnknown, errs.New(errs.ErrInvalid, "format %q; parquet, arrow, arrows, csv and ndjson are possible", text)
}

// FormatOfName tells the format by a file's name; FormatUnknown where it does not.
func FormatOfName(name string) Format { return formatOfName(name) }

// formatOfName tells the format by a file's name, without the suffix of a compression.
func formatOfName(name string) Format {
	name = strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(name), ".gz"), ".zst")
	switch path.Ext(name) {
	case ".parquet", ".parq", ".pq":
		return FormatParquet
	case ".arrow", ".ipc", ".feather":
		return FormatArrow
	case ".arrows":
		return FormatArrowStream
	case ".csv", ".tsv", ".psv":
		return FormatCSV
	case ".ndjson", ".jsonl", ".json":
		return FormatNDJSON
	}
	return FormatUnknown
}

// DateOrder is how days, months and years follow each other in dates.
type DateOrder byte

// The orders; a date may fit more than one.
const (
	OrderYMD DateOrder = 1 << iota
	OrderDMY
	OrderMDY
)

// ParseDateOrder reads ymd, dmy or mdy; "" is "find out".
func ParseDateOrder(text string) (DateOrder, error) {
	switch strings.ToLower(text) {
	case "":
		return 0, nil
	case "ymd":
		return OrderYMD, nil
	case "dmy":
		return OrderDMY, nil
	case "mdy":
		return OrderMDY, nil
	}
	return 0, errs.New(errs.ErrInvalid, "date order %q; ymd, dmy and mdy are possible", text)
}

// Options tunes Inspect and Open. The zero value is the default: what it does not say is found out from a sample.
type Options struct {
	Format    Format
	Delimiter byte     // CSV; 0 = find out
	Quote     byte     // CSV; 0 = find out
	Escape    byte     // CSV: before a quote in quotes; 0 = find out
	Header    *bool    // CSV: the first line has names; nil = find out
	SkipLines int      // CSV: before the header
	Nulls     []string // CSV: spellings of NULL without quotes, in place of those that are found out; nil = find out
	DateOrder DateOrder

	SampleRows    int   // rows to look at; 0 = 20,480
	VectorMin     int   // a list of numbers of one length of at least this many is a vector; 0 = 8, -1 = never
	MaxRowBytes   int   // longest row of text; 0 = 16 MiB
	BatchRows     int   // most rows of a batch; 0 = 8,192
	ChunkBytes    int   // of text that is parsed at one time; 0 = 1 MiB
	Parallel      int   // chunks or groups of columns read at one time; 0 = one per core
	IgnoreUnknown bool  // columns of the file that are not wanted are left out
	Columns       Names // which columns of the file go where; nil = by name

	Alloc  memory.Allocator // nil = memory.DefaultAllocator
	Budget *mem.Budget      // pays for chunks; nil = nobody
}

// Names maps columns of a table to those of a file.
type Names []Name

// Name is a column of the table and what the file calls it.
type Name struct{ Column, Source string }

func (o Options) withDefaults() Options {
	if o.SampleRows == 0 {
		o.SampleRows = 20_480
	}
	switch o.VectorMin {
	case 0:
		o.VectorMin = 8
	case -1:
		o.VectorMin = 0
	}
	if o.MaxRowBytes == 0 {
		o.MaxRowBytes = 16 << 20
	}
	if o.BatchRows == 0 {
		o.BatchRows = 8192
	}
	if o.ChunkBytes == 0 {
		o.ChunkBytes = 1 << 20
	}
	if o.Alloc == nil {
		o.Alloc = memory.DefaultAllocator
	}
	return o
}

// Validate refuses what makes no sense.
func (o Options) Validate() error {
	if o.SampleRows < 0 || o.VectorMin < -1 || o.MaxRowBytes < 0 || o.MaxRowBytes > 1<<30 || o.BatchRows < 0 || o.ChunkBytes < 0 || o.Parallel < 0 || o.SkipLines < 0 {
		return errs.New(errs.ErrInvalid, "sample of %d rows, vectors of %d and more, rows of %d bytes, batches of %d rows, %d lines to skip: out of range",
			o.SampleRows, o.VectorMin, o.MaxRowBytes, o.BatchRows, o.SkipLines)
	}
	for _, c := range []byte{o.Delimiter, o.Quote, o.Escape} {
		if c == '\n' || c == '\r' || c >= 0x80 {
			return errs.New(errs.ErrInvalid, "delimiter, quote and escape are one ASCII character each, and no line end")
		}
	}
	if o.Delimiter != 0 && o.Delimiter == o.Quote {
		return errs.New(errs.ErrInvalid, "delimiter and quote are both %q", o.Delimiter)
	}
	return nil
}

// BadRow is a row that cannot be read in the wanted columns.
type BadRow struct {
	File   string // URL
	Line   int64  // from 1, of text formats; where the row begins
	Row    int64  // from 1, of the others
	Column string // "" = the row as a whole
	Value  string // shortened
	Err    error  // what is wrong, and the remedy
	Raw    []byte // the row's text, where there is one
}

// Place names file and line or row.
func (b *BadRow) Place() string {
	if b.Line > 0 {
		return b.File + ":" + itoa(b.Line)
	}
	return b.File + " row " + itoa(b.Row)
}

func (b *BadRow) Error() string {
	text := b.Place()
	if b.Column != "" {
		text += " column " + b.Column
	}
	if b.Value != "" {
		text += " value " + b.Value
	}
	return text + ": " + b.Err.Error()
}

// Unwrap makes a bad row an error of its cause's kind.
func (b *BadRow) Unwrap() error { return b.Err }
