package btree

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"

	"github.com/lakesql/lakesql/index/key"
	"github.com/lakesql/lakesql/index/spill"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/file"
)

// source yields rows: NULLs first, then by value, equal values by row except in a segment whose keys were mapped.
type source struct {
	isNull bool
	key    key.Key // valid until next is called
	row    uint64
	next   func(ctx context.Context, s *source) error // moves to the next row; io.EOF at the end
}

// memory is what the Builder holds in memory, which is sorted.
func (b *Builder) memory() *source {
	at := -1
	return &source{next: func(_ context.Context, s *source) error {
		if at++; at < len(b.nulls) {
			s.isNull, s.row = true, b.nulls[at]
			return nil
		}
		i := at - len(b.nulls)
		if i >= len(b.values)+len(b.wide) {
			return io.EOF
		}
		if s.isNull = false; b.codec.IsWide() {
			r := b.wide[i]
			s.key, s.row = key.Key{Bytes: wideSort{b.text}.value(r)}, r.row
		} else {
			r := b.values[i]
			s.key, s.row = key.Key{Word: r.word}, r.row
		}
		return nil
	}}
}

// run reads a run on disk.
func (b *Builder) run(r *spill.Reader) *source {
	var rest []byte // rows of the same value: settled runs have several in one record
	return &source{next: func(_ context.Context, s *source) error {
		if len(rest) == 0 {
			if err := r.Next(); err != nil {
				return err
			}
			if len(r.Key) == 0 || (len(r.Key) < 9 && (r.Key[0] == runNull || !b.codec.IsWide())) {
				return errs.New(errs.ErrIO, "a spilled run is broken: a key of %d bytes", len(r.Key))
			}
			if s.isNull = r.Key[0] == runNull; s.isNull {
				s.row = binary.BigEndian.Uint64(r.Key[1:])
				return nil
			}
			if s.key = (key.Key{Bytes: r.Key[1:]}); !b.codec.IsWide() {
				s.key = key.Key{Word: binary.BigEndian.Uint64(r.Key[1:])}
			}
			rest = r.Value
		}
		if len(rest) < 8 {
			return errs.New(errs.ErrIO, "a spilled run is broken: a row of %d bytes", len(rest))
		}
		s.row, rest = binary.BigEndian.Uint64(rest), rest[8:]
		return nil
	}}
}

// joinRows puts the rows of one value together, in order.
func joinRows(dst []byte, values [][]byte) []byte {
	if len(values) == 1 {
		return append(dst, values[0]...)
	}
	var rows []uint64
	for _, v := range values {
		for ; len(v) >= 8; v = v[8:] {
			rows = append(rows, binary.BigEndian.Uint64(v))
		}
	}
	slices.Sort(rows)
	for _, r := range rows {
		dst = binary.BigEndian.AppendUint64(dst, r)
	}
	return dst
}

// rowsAtATime is how many rows of a segment are read together.
const rowsAtATime = 8192

// segmentRows reads the rows of a segment that keep names.
func (b *Builder) segmentRows(p segmentPart) *source {
	r := &segmentReader{part: p}
	return &source{next: r.next}
}

type segmentReader struct {
	part  segmentPart
	start uint64 // of the rows to read next

	nulls int // entries that are NULL; they are the first
	dict  *key.Dict
	ids   []uint64
	at    int
}

func (r *segmentReader) next(ctx context.Context, s *source) error {
	for {
		if r.at == len(r.ids) {
			if err := r.read(ctx); err != nil {
				return err
			}
		}
		i := r.at
		r.at++
		row, ok := r.part.keep.Map(r.ids[i])
		if !ok {
			continue
		}
		if s.row, s.isNull = row, i < r.nulls; !s.isNull {
			s.key = r.dict.Key(i - r.nulls)
		}
		return nil
	}
}

// read reads the next rows and checks their order.
func (r *segmentReader) read(ctx context.Context) error {
	seg := r.part.segment
	end := min(r.start+rowsAtATime, seg.bounds.rows)
	if r.start == end {
		return io.EOF
	}
	columns := append(slices.Clone(seg.values), seg.ids...)
	batch, err := seg.data.ReadRange(ctx, columns, r.start, end, file.ReadOptions{Alloc: compute.GetAllocator(ctx)})
	if err != nil {
		return errs.WithPath(err, seg.path)
	}
	defer batch.Release()
	ids, ok := batch.Column(1).(*array.Uint64)
	if !ok || ids.NullN() > 0 {
		return errs.WithPath(errs.Corrupt("ids", -1, "rows %d to %d hold NULLs", r.start, end), seg.path)
	}
	dict := key.NewDict(seg.bounds.codec, nil)
	if err := dict.Append(batch.Column(0)); err != nil {
		return err
	}
	dict.Finish()
	nulls := dict.NullRows()
	if !dict.IsSorted() || len(nulls) > 0 && int(nulls[len(nulls)-1]) != len(nulls)-1 || len(nulls) > 0 && r.start > seg.bounds.nullRows {
		return errs.WithPath(errs.Corrupt("page_data", -1, "rows %d to %d do not ascend", r.start, end), seg.path)
	}
	r.dict, r.nulls, r.at = dict, len(nulls), 0
	r.ids = append(r.ids[:0], ids.Uint64Values()...)
	r.start = end
	return nil
}

// each calls use with every row in order.
func (b *Builder) each(ctx context.Context, use func(ctx context.Context, isNull bool, k key.Key, row uint64) error) (err error) {
	b.sort()
	if err := b.runs.Settle(ctx, joinRows); err != nil {
		return err
	}
	readers, err := b.runs.Open()
	if err != nil {
		return err
	}
	defer func() {
		for _, r := range readers {
			err = errors.Join(err, r.Close())
		}
	}()
	if len(readers)+len(b.segments) == 0 {
		return b.eachHeld(ctx, use)
	}
	sources := []*source{b.memory()}
	for _, r := range readers {
		sources = append(sources, b.run(r))
	}
	for _, p := range b.segments {
		sources = append(sources, b.segmentRows(p))
	}
	h := spill.Heap[*source]{Less: b.less, Next: func(s *source) error { return s.next(ctx, s) }}
	if err := h.Fill(sources); err != nil {
		return err
	}
	for done := uint64(1); ; done++ {
		s, ok := h.Top()
		if !ok {
			return nil
		}
		if err := use(ctx, s.isNull, s.key, s.row); err != nil {
			return err
		}
		if err := h.Step(); err != nil {
			return err
		}
		if done%(64<<10) == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			b.opts.Progress("write index", int64(done), int64(b.added))
		}
	}
}

// eachHeld is each where everything is in memory.
func (b *Builder) eachHeld(ctx context.Context, use func(ctx context.Context, isNull bool, k key.Key, row uint64) error) error {
	done := 0
	tell := func() error {
		if done++; done%(64<<10) != 0 {
			return nil
		}
		b.opts.Progress("write index", int64(done), int64(b.added)) //nolint:gosec // no table has that many
		return ctx.Err()
	}
	for _, row := range b.nulls {
		if err := use(ctx, true, key.Key{}, row); err != nil {
			return err
		}
		if err := tell(); err != nil {
			return err
		}
	}
	for _, r := range b.values {
		if err := use(ctx, false, key.Key{Word: r.word}, r.row); err != nil {
			return err
		}
		if err := tell(); err != nil {
			return err
		}
	}
	w := wideSort{b.text}
	for _, r := range b.wide {
		if err := use(ctx, false, key.Key{Bytes: w.value(r)}, r.row); err != nil {
			return err
		}
		if err := tell(); err != nil {
			return err
		}
	}
	return nil
}

func (b *Builder) less(x, y *source) bool {
	if x.isNull || y.isNull {
		if x.isNull == y.isNull {
			return x.row < y.row
		}
		return x.isNull
	}
	o := 0
	switch {
	case b.codec.IsWide():
		o = bytes.Compare(x.key.Bytes, y.key.Bytes)
	case x.key.Word < y.key.Word:
		o = -1
	case x.key.Word > y.key.Word:
		o = 1
	}
	return o < 0 || o == 0 && x.row < y.row
}
