package files

import (
	"context"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/lakesql/lakesql/internal/errs"
)

// ipcSource reads an Arrow IPC file or stream, in batches of at most rows rows.
type ipcSource struct {
	file   *ipc.FileReader // nil = a stream
	stream *ipc.Reader
	bytes  *fileBytes
	next1  int // batch of the file
	rows   int64
	batch  arrow.RecordBatch
	at     int64 // rows of batch that were taken
}

func openIPCSource(ctx context.Context, f File, format Format, opts Options) (*ipcSource, error) {
	b, err := openBytes(ctx, f)
	if err != nil {
		return nil, err
	}
	s := &ipcSource{bytes: b, rows: int64(opts.BatchRows)}
	err = guarded(f, func() (err error) {
		if format == FormatArrow {
			s.file, err = ipc.NewFileReader(b, ipc.WithAllocator(opts.Alloc))
		} else {
			s.stream, err = ipc.NewReader(b, ipc.WithAllocator(opts.Alloc))
		}
		return err
	})
	return s, err
}

func (s *ipcSource) schema() *arrow.Schema {
	if s.file != nil {
		return s.file.Schema()
	}
	return s.stream.Schema()
}

func (s *ipcSource) next() (arrow.RecordBatch, error) {
	for s.batch == nil || s.at == s.batch.NumRows() {
		if s.batch != nil {
			s.batch.Release()
		}
		s.batch, s.at = nil, 0
		if err := s.advance(); err != nil {
			return nil, err
		}
	}
	n := min(s.rows, s.batch.NumRows()-s.at)
	out := s.batch.NewSlice(s.at, s.at+n)
	s.at += n
	return out, nil
}

func (s *ipcSource) advance() error {
	if s.file != nil {
		if s.next1 == s.file.NumRecords() {
			return io.EOF
		}
		b, err := s.file.RecordBatchAt(s.next1)
		if err != nil {
			return err
		}
		s.next1++
		s.batch = b
		s.bytes.read.Store(s.bytes.size * int64(s.next1) / int64(s.file.NumRecords()))
		return nil
	}
	if !s.stream.Next() {
		if err := s.stream.Err(); err != nil && err != io.EOF { //nolint:errorlint // the library returns the bare value
			return err
		}
		return io.EOF
	}
	s.batch = s.stream.RecordBatch()
	s.batch.Retain()
	return nil
}

func (s *ipcSource) close() {
	if s.batch != nil {
		s.batch.Release()
		s.batch = nil
	}
	if s.stream != nil {
		s.stream.Release()
	}
	if s.file != nil {
		_ = s.file.Close() // reads alone
	}
}

// pickSource gives the columns of a source that are wanted.
type pickSource struct {
	*ipcSource
	have []int
}

func (p *pickSource) next() (arrow.RecordBatch, error) {
	b, err := p.ipcSource.next()
	if err != nil {
		return nil, err
	}
	defer b.Release()
	return pick(b, p.have), nil
}

func openIPC(ctx context.Context, f File, format Format, columns *arrow.Schema, opts Options) (Reader, error) {
	s, err := openIPCSource(ctx, f, format, opts)
	if err != nil {
		return nil, err
	}
	plan, err := newTypedPlan(f, s.schema(), columns, opts)
	if err != nil {
		s.close()
		return nil, err
	}
	var wanted []int
	for at, from := range plan.source {
		if from >= 0 {
			wanted = append(wanted, at)
		}
	}
	if len(wanted) == 0 {
		s.close()
		return nil, noColumns()
	}
	r := &typedReader{plan: plan, read: &s.bytes.read}
	r.start(ctx, [][]int{wanted}, func(_ context.Context, have []int) (typedSource, error) {
		return &pickSource{ipcSource: s, have: have}, nil
	})
	return r, nil
}

// formatOfBytes tells the formats that begin with a mark.
func formatOfBytes(head []byte) Format {
	switch {
	case len(head) >= 4 && string(head[:4]) == "PAR1":
		return FormatParquet
	case len(head) >= 6 && string(head[:6]) == "ARROW1":
		return FormatArrow
	case len(head) >= 4 && string(head[:4]) == "\xFF\xFF\xFF\xFF":
		return FormatArrowStream
	}
	return FormatUnknown
}

// errFormat is why a file cannot be read at all.
func errFormat(f File) error {
	return errs.New(errs.ErrInvalid, "%s: the name does not tell the format: --format parquet, arrow, arrows, csv or ndjson says it", f.URL)
}
