package bitmap

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/key"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/rowset"
)

// FileName is the only file of a bitmap segment.
const FileName = "bitmap_page_lookup.lance"

const (
	keysColumn    = "keys"
	bitmapsColumn = "bitmaps"

	openRows  = 8192     // keys read at a time
	takeRows  = 1024     // most bitmaps read at a time,
	takeBytes = 16 << 20 // and about how many bytes of them
)

// File is an opened bitmap file. It is safe for concurrent use.
type File struct {
	path    string
	reader  *file.Reader
	bitmaps []file.Column
	keys    *key.Dict
	atOnce  int // bitmaps read at a time
	cache   *index.Cache
	id      uint64 // of this file in cache
	opts    index.OpenOptions
	more    []byte // see StateMore
}

// OpenFile reads the keys of the bitmap file that open finds; no bitmap is read. Errors: ErrNotFound, ErrCorrupt, ErrUnsupported
// for keys without an order, ErrMemoryLimit, ErrIO.
func OpenFile(ctx context.Context, open index.OpenFile, opts index.OpenOptions) (*File, error) {
	f, err := open(ctx, FileName)
	if err != nil {
		return nil, err
	}
	reader, err := file.Open(ctx, f, file.Options{})
	if err != nil {
		return nil, err
	}
	out := &File{path: f.Path(), reader: reader, opts: opts}
	read := out.readKeys
	if opts.State != nil {
		read = out.readState
	}
	if err := read(ctx); err != nil {
		out.keys.Free()
		return nil, fmt.Errorf("%s: %w", f.Path(), errs.WithPath(err, f.Path()))
	}
	out.cache = opts.OwnCache()
	out.id = out.cache.Register()
	return out, nil
}

// columns finds the columns and returns the keys' codec.
func (f *File) columns() (cols []file.Column, codec key.Codec, err error) {
	if cols, err = index.Columns(f.reader, keysColumn, bitmapsColumn); err != nil {
		return nil, codec, err
	}
	if codec, err = key.NewCodec(cols[0].Field.Type); err != nil {
		return nil, codec, err
	}
	if t := cols[1].Field.Type; t.ID() != arrow.BINARY && t.ID() != arrow.LARGE_BINARY {
		return nil, codec, errs.Corrupt("schema", -1, "column %q is %s", bitmapsColumn, t)
	}
	f.bitmaps = cols[1:]
	f.atOnce = takeRows
	if size := f.reader.ColumnBytes(cols[1]); size > 0 {
		average := float64(size) / float64(max(f.reader.Rows(), 1))
		f.atOnce = max(1, int(min(takeRows, takeBytes/average)))
	}
	return cols, codec, nil
}

func (f *File) readKeys(ctx context.Context) error {
	cols, codec, err := f.columns()
	if err != nil {
		return err
	}
	f.keys = key.NewDict(codec, f.opts.Budget)
	alloc := compute.GetAllocator(ctx)
	for row := uint64(0); row < f.reader.Rows(); row += openRows {
		if err := ctx.Err(); err != nil {
			return err
		}
		batch, err := f.reader.ReadRange(ctx, cols[:1], row, min(row+openRows, f.reader.Rows()), file.ReadOptions{Alloc: alloc})
		if err != nil {
			return err
		}
		err = f.keys.Append(batch.Column(0))
		batch.Release()
		if err != nil {
			return err
		}
	}
	f.keys.Finish()
	return nil
}

// Keys are the keys of the file with their rows.
func (f *File) Keys() *key.Dict { return f.keys }

// Reader is the file itself, for metadata and global buffers.
func (f *File) Reader() *file.Reader { return f.reader }

// Path names the file for people.
func (f *File) Path() string { return f.path }

// Close drops what the file keeps in memory.
func (f *File) Close() {
	f.cache.Drop(f.id)
	f.keys.Free()
}

// Rows returns the set of one row of the file.
func (f *File) Rows(ctx context.Context, row uint32) (*rowset.Set, error) {
	if set, ok := f.cached(row); ok {
		return set, nil
	}
	var out *rowset.Set
	err := f.read(ctx, []uint32{row}, true, func(_ uint32, set *rowset.Set) { out = set })
	return out, err
}

// Union returns the union of the sets of rows.
func (f *File) Union(ctx context.Context, rows []uint32) (*rowset.Set, error) {
	switch len(rows) {
	case 0:
		return &rowset.Set{}, nil
	case 1:
		return f.Rows(ctx, rows[0])
	}
	var out *rowset.Set // of the rows read so far
	var sets []*rowset.Set
	missing := make([]uint32, 0, len(rows))
	for _, row := range rows {
		if set, ok := f.cached(row); ok {
			sets = append(sets, set)
		} else {
			missing = append(missing, row)
		}
	}
	keep := len(missing) <= takeRows // a long list would push everything else out of the cache
	for part := range slices.Chunk(missing, f.atOnce) {
		if err := f.read(ctx, part, keep, func(_ uint32, set *rowset.Set) { sets = append(sets, set) }); err != nil {
			return nil, err
		}
		out = rowset.Union(append(sets, out)...)
		sets = sets[:0]
	}
	if len(sets) > 0 {
		out = rowset.Union(append(sets, out)...)
	}
	return out, nil
}

// Sets returns the set of each row, in the order of rows; those that are not cached are read together.
func (f *File) Sets(ctx context.Context, rows []uint32) ([]*rowset.Set, error) {
	out := make([]*rowset.Set, len(rows))
	var missing []uint32
	places := make(map[uint32][]int)
	for i, row := range rows {
		if set, ok := f.cached(row); ok {
			out[i] = set
			continue
		}
		if places[row] == nil {
			missing = append(missing, row)
		}
		places[row] = append(places[row], i)
	}
	for part := range slices.Chunk(missing, f.atOnce) {
		err := f.read(ctx, part, true, func(row uint32, set *rowset.Set) {
			for _, i := range places[row] {
				out[i] = set
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (f *File) cached(row uint32) (*rowset.Set, bool) {
	v, ok := f.cache.Get(f.id, uint64(row))
	if !ok {
		return nil, false
	}
	return v.(*rowset.Set), true
}

// read takes the bitmaps of rows and hands each to use; keep puts them into the cache.
func (f *File) read(ctx context.Context, rows []uint32, keep bool, use func(row uint32, set *rowset.Set)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	wanted := make([]uint64, len(rows))
	for i, row := range rows {
		wanted[i] = uint64(row)
	}
	batch, err := f.reader.Take(ctx, f.bitmaps, wanted, file.ReadOptions{Alloc: compute.GetAllocator(ctx)})
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	defer batch.Release()
	value, err := binaryValues(batch.Column(0))
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	for i, row := range rows {
		if batch.Column(0).IsNull(i) {
			return errs.WithPath(errs.Corrupt(fmt.Sprintf("bitmap of row %d", row), -1, "it is NULL"), f.path)
		}
		set, err := DecodeRows(value(i), f.opts.FragmentRows)
		if err != nil {
			return fmt.Errorf("bitmap of row %d: %w", row, errs.WithPath(err, f.path))
		}
		if keep {
			f.cache.Put(f.id, uint64(row), set, set.SizeBytes())
		}
		use(row, set)
	}
	return nil
}

func binaryValues(arr arrow.Array) (func(i int) []byte, error) {
	switch a := arr.(type) {
	case *array.Binary:
		return a.Value, nil
	case *array.LargeBinary:
		return a.Value, nil
	default:
		return nil, errs.New(errs.ErrInternal, "bitmaps of type %s", arr.DataType())
	}
}
