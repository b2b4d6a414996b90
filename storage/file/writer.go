package file

import (
	"context"
	"fmt"
	"maps"
	"runtime"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/invariants"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/storage/encoding"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/pb/filepb"
	"github.com/lakesql/lakesql/storage/schema"
)

// sliceBytesMax is about how much of a batch is encoded before its pages are written out.
const sliceBytesMax = 8 << 20

// WriterOptions tunes NewWriter. The zero value is the default.
type WriterOptions struct {
	Version   Version           // V21 or V22; zero = V22
	Metadata  map[string][]byte // schema metadata beside that of the schema
	PageBytes int               // about how many bytes of values a page holds; 0 = 6 MiB
	Parallel  int               // columns encoded at one time; 0 = GOMAXPROCS
	Budget    *mem.Budget       // pays for what the writer keeps; nil = nobody
}

func (o WriterOptions) withDefaults() WriterOptions {
	if o.Version == (Version{}) {
		o.Version = V22
	}
	if o.Parallel <= 0 {
		o.Parallel = runtime.GOMAXPROCS(0)
	}
	return o
}

// Validate refuses a version that is not written and negative sizes.
func (o WriterOptions) Validate() error {
	if o.Version != (Version{}) && o.Version != V21 && o.Version != V22 {
		return errs.New(errs.ErrUnsupported, "writing file version %s", o.Version)
	}
	if o.PageBytes < 0 || o.Parallel < 0 {
		return errs.New(errs.ErrInvalid, "page bytes %d and parallel %d must not be negative", o.PageBytes, o.Parallel)
	}
	return nil
}

// Writer writes one data or index file from batches. It keeps about one page of values per column, and the pages of the last batch; the bytes go out in the order of the columns,
// so the same batches give the same file. It is used by one goroutine at a time. After an error only Abort may follow.
type Writer struct {
	out      *container
	schema   *schema.Schema
	opts     WriterOptions
	metadata map[string][]byte
	columns  []*writerColumn
	leaves   []*filepb.ColumnMetadata // by physical column
	memory   *mem.Reservation         // nil without a budget
	check    *writeCheck              // invariant builds: what is compared at the end
	pending  []columnPage             // made by the last call, written while the next one makes more
	rows     uint64
	err      error
}

type writerColumn struct {
	field     *schema.Field
	encoder   *encoding.ColumnEncoder
	firstLeaf int
	pages     []columnPage
}

type columnPage struct {
	column *writerColumn
	leaf   int
	page   *encoding.Page
}

// Written describes a finished file.
type Written struct {
	Rows      uint64
	SizeBytes int64
	ColumnOf  map[int32]int // id of each field that owns a column (leaves, packed structs) to its physical column
}

// NewWriter starts a file of that schema, whose ids go into the file. The Writer owns w: Finish publishes it, Abort drops it. Errors:
// ErrUnsupported naming the column whose type is not written, ErrInvalid for a field without an id.
func NewWriter(w object.Writer, s *schema.Schema, opts WriterOptions) (*Writer, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	out := &Writer{out: &container{w: w}, schema: s, opts: opts.withDefaults(), metadata: make(map[string][]byte)}
	maps.Copy(out.metadata, s.Metadata)
	maps.Copy(out.metadata, opts.Metadata)
	if out.opts.Budget != nil {
		out.memory = out.opts.Budget.Reserve()
	}
	enc := encoding.EncodeOptions{PageBytes: out.opts.PageBytes, V22: out.opts.Version == V22}
	for _, f := range s.Fields {
		for d := range f.All() {
			if err := checkField(d); err != nil {
				return nil, err
			}
		}
		c, err := encoding.NewColumnEncoder(f.Arrow(), enc)
		if err != nil {
			return nil, err
		}
		if c.Leaves() != len(ownedLeaves(f)) {
			return nil, errs.New(errs.ErrUnsupported, "column %q: type %s cannot be written", f.Name, f.Type)
		}
		out.columns = append(out.columns, &writerColumn{field: f, encoder: c, firstLeaf: len(out.leaves)})
		for range c.Leaves() {
			out.leaves = append(out.leaves, &filepb.ColumnMetadata{Encoding: columnEncoding()})
		}
	}
	if invariants.Enabled && w != nil {
		out.check = newWriteCheck(w, len(out.columns))
		out.out.w = out.check
	}
	return out, nil
}

// ownedLeaves are the fields that own a physical column, in its order: the leaves, and packed structs in place of theirs.
func ownedLeaves(f *schema.Field) []*schema.Field {
	if len(f.Children) == 0 || isPacked(f) {
		return []*schema.Field{f}
	}
	var out []*schema.Field
	for _, c := range f.Children {
		out = append(out, ownedLeaves(c)...)
	}
	return out
}

// checkField refuses fields whose metadata asks for a layout that readers then expect and that is not written.
func checkField(f *schema.Field) error {
	if f.ID < 0 {
		return errs.New(errs.ErrInvalid, "column %q has no field id", f.Name)
	}
	const blob = "lance-encoding:blob"
	if f.Metadata[blob] == "true" {
		return errs.New(errs.ErrUnsupported, "column %q: writing columns with %s", f.Name, blob)
	}
	if isBlobV2(f) {
		return errs.New(errs.ErrUnsupported, "column %q: writing columns of type %s", f.Name, f.Metadata[extensionName])
	}
	return nil
}

// CheckWritable says whether files of that schema can be written. Errors: as NewWriter.
func CheckWritable(s *schema.Schema, v Version) error {
	_, err := NewWriter(nil, s, WriterOptions{Version: v})
	return err
}

// Write appends the rows of a batch, whose columns are found by name. JSON columns take text or JSONB. It keeps no reference to the batch. Errors: ErrInvalid for a missing,
// unknown or differently typed column and for a null where the schema has none, ErrUnsupported for a value too large, ErrIO, ErrDiskFull.
func (w *Writer) Write(ctx context.Context, batch arrow.RecordBatch) error {
	if w.err != nil {
		return fmt.Errorf("a write failed before: %w", w.err)
	}
	w.err = w.write(ctx, batch)
	return w.err
}

func (w *Writer) write(ctx context.Context, batch arrow.RecordBatch) error {
	arrays, err := w.match(batch)
	if err != nil {
		return err
	}
	rows := int(batch.NumRows())
	if rows == 0 {
		return nil
	}
	done, err := w.storeJSON(arrays)
	defer done()
	if err != nil {
		return err
	}
	step, stepBytes := w.stepRows(arrays, rows)
	if err := w.charge(stepBytes); err != nil {
		return err
	}
	for lo := 0; lo < rows; lo += step {
		if err := w.writeSlice(ctx, arrays, lo, min(lo+step, rows)); err != nil {
			return err
		}
	}
	w.rows += uint64(rows)
	if w.check != nil {
		w.check.add(arrays, rows)
	}
	return w.charge(0)
}

// storeJSON replaces the arrays of JSON columns by what is stored for them, until done.
func (w *Writer) storeJSON(arrays []arrow.Array) (done func(), err error) {
	var made []arrow.Array
	done = func() {
		for _, a := range made {
			a.Release()
		}
	}
	for i, c := range w.columns {
		if !c.field.HasJSON() {
			continue
		}
		a, err := c.field.MapJSON(arrays[i], arrow.BinaryTypes.LargeBinary, func(arr arrow.Array) (arrow.Array, error) {
			return encoding.JSONColumn(arr, memory.DefaultAllocator)
		})
		if err != nil {
			return done, fmt.Errorf("column %q: %w", c.field.Name, err)
		}
		made = append(made, a)
		arrays[i] = a
	}
	return done, nil
}

// charge resizes the reservation to what the columns keep and what adding more bytes of values takes while pages are made: both once more.
func (w *Writer) charge(more int64) error {
	if w.memory == nil {
		return nil
	}
	n := more
	for _, c := range w.columns {
		n += c.encoder.KeptBytes()
	}
	for _, p := range w.pending {
		n += p.page.SizeBytes()
	}
	if more > 0 {
		n *= 2
	}
	return w.memory.Resize(n)
}

func (w *Writer) match(batch arrow.RecordBatch) ([]arrow.Array, error) {
	arrays := make([]arrow.Array, len(w.columns))
	for i, c := range w.columns {
		at := batch.Schema().FieldIndices(c.field.Name)
		if len(at) != 1 {
			return nil, errs.New(errs.ErrInvalid, "the batch has %d columns named %q", len(at), c.field.Name)
		}
		arrays[i] = batch.Column(at[0])
		if int64(arrays[i].Len()) != batch.NumRows() {
			return nil, errs.New(errs.ErrInvalid, "column %q has %d rows, the batch %d", c.field.Name, arrays[i].Len(), batch.NumRows())
		}
	}
	if int(batch.NumCols()) != len(w.columns) {
		for _, f := range batch.Schema().Fields() {
			if _, ok := w.schema.Lookup(f.Name); !ok {
				return nil, errs.New(errs.ErrInvalid, "the batch has a column %q that the schema lacks", f.Name)
			}
		}
	}
	return arrays, nil
}

// stepRows is how many rows of the batch are encoded before their pages are written, and about how many bytes they take.
func (w *Writer) stepRows(arrays []arrow.Array, rows int) (step int, bytes int64) {
	var size int64
	for _, a := range arrays {
		size += encoding.SliceBytes(a, 0, rows)
	}
	if size <= sliceBytesMax {
		return rows, size
	}
	return max(1, int(int64(rows)*sliceBytesMax/size)), sliceBytesMax
}

func (w *Writer) writeSlice(ctx context.Context, arrays []arrow.Array, lo, hi int) error {
	group, ctx := spawn.WithContext(ctx, w.opts.Parallel)
	group.Go("write pages", w.writePages)
	for i, c := range w.columns {
		group.Go("encode "+c.field.Name, func() error {
			arr := array.NewSlice(arrays[i], int64(lo), int64(hi))
			defer arr.Release()
			return c.encoder.Append(ctx, arr, c.keep)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	w.collect()
	return nil
}

func (c *writerColumn) keep(leaf int, p *encoding.Page) error {
	c.pages = append(c.pages, columnPage{column: c, leaf: c.firstLeaf + leaf, page: p})
	return nil
}

// collect takes the new pages in the order of the columns, so that the file does not depend on who was first.
func (w *Writer) collect() {
	for _, c := range w.columns {
		w.pending = append(w.pending, c.pages...)
		clear(c.pages)
		c.pages = c.pages[:0]
	}
}

func (w *Writer) writePages() error {
	for _, p := range w.pending {
		meta, err := w.out.writePage(p.page)
		if err != nil {
			return fmt.Errorf("column %q: %w", p.column.field.Name, err)
		}
		p.page.Recycle()
		w.leaves[p.leaf].Pages = append(w.leaves[p.leaf].Pages, meta)
	}
	clear(w.pending)
	w.pending = w.pending[:0]
	return nil
}

// AddGlobalBuffer writes a global buffer and returns its number; number 0 is the schema, so the first is 1.
func (w *Writer) AddGlobalBuffer(b []byte) (int, error) {
	if w.err != nil {
		return 0, fmt.Errorf("a write failed before: %w", w.err)
	}
	var i int
	i, w.err = w.out.writeGlobal(b)
	return i, w.err
}

// SetMetadata sets a key of the file's schema metadata.
func (w *Writer) SetMetadata(key string, value []byte) { w.metadata[key] = value }

// Rows is the number of rows written so far.
func (w *Writer) Rows() uint64 { return w.rows }

// Finish writes what is left and publishes the file.
func (w *Writer) Finish(ctx context.Context) (Written, error) {
	if w.err != nil {
		return Written{}, fmt.Errorf("a write failed before: %w", w.err)
	}
	w.err = w.finish(ctx)
	w.free()
	if w.err != nil {
		return Written{}, w.err
	}
	w.err = errs.New(errs.ErrInternal, "the file is finished")
	return Written{Rows: w.rows, SizeBytes: w.out.w.OffsetBytes(), ColumnOf: w.columnOf()}, nil
}

func (w *Writer) finish(ctx context.Context) error {
	group, _ := spawn.WithContext(ctx, w.opts.Parallel)
	group.Go("write pages", w.writePages)
	for _, c := range w.columns {
		group.Go("encode "+c.field.Name, func() error { return c.encoder.Flush(c.keep) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	w.collect()
	if err := w.writePages(); err != nil {
		return err
	}
	descriptor := &filepb.FileDescriptor{
		Schema: &filepb.Schema{Fields: w.schema.ToProto(), Metadata: w.metadata},
		Length: w.rows,
	}
	if err := w.out.writeTail(descriptor, w.leaves, w.opts.Version); err != nil {
		return err
	}
	if w.check != nil {
		if err := w.check.compare(context.WithoutCancel(ctx)); err != nil { // the end of ctx is no fault of the file
			panic(fmt.Sprintf("a written file does not read back: %v", err))
		}
	}
	return w.out.w.Close()
}

func (w *Writer) free() {
	for _, c := range w.columns {
		c.encoder.Release()
	}
	if w.memory != nil {
		w.memory.Free()
	}
}

// Abort drops the file. After Finish it does nothing.
func (w *Writer) Abort() error {
	w.free()
	if w.err == nil {
		w.err = errs.New(errs.ErrInternal, "the file was given up")
	}
	return w.out.w.Abort()
}

func (w *Writer) columnOf() map[int32]int {
	out := make(map[int32]int, len(w.leaves))
	for _, c := range w.columns {
		for i, leaf := range ownedLeaves(c.field) {
			out[leaf.ID] = c.firstLeaf + i
		}
	}
	return out
}
