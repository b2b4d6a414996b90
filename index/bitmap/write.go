package bitmap

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"

	"github.com/lakesql/lakesql/index/key"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/rowset"
	"github.com/lakesql/lakesql/storage/schema"
)

const (
	statsKey = "lance:index_stats"

	writeRows  = 2048    // most keys in a batch
	writeBytes = 4 << 20 // a batch ends when its bitmaps reach this
)

// WriteOptions says how a bitmap file is written.
type WriteOptions struct {
	Version file.Version // of the file, 2.1 or 2.2; zero = 2.2
	// NullLists, for LABEL_LIST alone, are the rows whose list is NULL; they go to a global buffer that the metadata key NullsKey names.
	NullLists *rowset.Set
	NullsKey  string
}

// Write writes what was collected, values ascending, NULL first, and publishes w; after an error w is dropped.
func (c *Collector) Write(ctx context.Context, w object.Writer, opts WriteOptions) (file.Written, error) {
	arrowSchema := arrow.NewSchema([]arrow.Field{
		{Name: keysColumn, Type: c.codec.Type(), Nullable: true},
		{Name: bitmapsColumn, Type: arrow.BinaryTypes.Binary, Nullable: true},
	}, nil)
	fields, err := schema.FromArrow(arrowSchema)
	if err != nil {
		return file.Written{}, errors.Join(err, w.Abort())
	}
	out, err := file.NewWriter(w, fields, file.WriterOptions{Version: opts.Version})
	if err != nil {
		return file.Written{}, errors.Join(err, w.Abort())
	}
	if err := c.write(ctx, out, arrowSchema, opts); err != nil {
		return file.Written{}, errors.Join(err, out.Abort())
	}
	written, err := out.Finish(ctx)
	if err != nil {
		return file.Written{}, errors.Join(err, out.Abort())
	}
	return written, nil
}

func (c *Collector) write(ctx context.Context, out *file.Writer, s *arrow.Schema, opts WriteOptions) error {
	if opts.NullLists != nil {
		b, err := rowset.AppendTree(nil, opts.NullLists)
		if err != nil {
			return err
		}
		buffer, err := out.AddGlobalBuffer(b)
		if err != nil {
			return err
		}
		out.SetMetadata(opts.NullsKey, fmt.Append(nil, buffer))
	}
	return c.writeBatches(ctx, out, s)
}

func (c *Collector) writeBatches(ctx context.Context, out *file.Writer, s *arrow.Schema) error {
	b := batchWriter{codec: c.codec, schema: s, out: out}
	b.bitmaps = array.NewBinaryBuilder(compute.GetAllocator(ctx), arrow.BinaryTypes.Binary)
	defer b.bitmaps.Release()
	count := 0
	err := c.each(ctx, func(isNull bool, k key.Key, rows *rowset.Set) error {
		count++
		return b.append(ctx, isNull, k, rows)
	})
	if err != nil {
		return err
	}
	out.SetMetadata(statsKey, fmt.Appendf(nil, `{"num_bitmaps":%d}`, count))
	return b.flush(ctx)
}

// batchWriter cuts entries into batches.
type batchWriter struct {
	codec   key.Codec
	schema  *arrow.Schema
	out     *file.Writer
	nulls   int
	keys    []key.Key
	texts   []byte // what the keys of wide codecs point into
	bitmaps *array.BinaryBuilder
	scratch []byte
}

func (b *batchWriter) append(ctx context.Context, isNull bool, k key.Key, rows *rowset.Set) error {
	if isNull {
		b.nulls++
	} else {
		if b.codec.IsWide() {
			start := len(b.texts)
			b.texts = append(b.texts, k.Bytes...) // when it moves, earlier keys keep the old memory
			k.Bytes = b.texts[start:len(b.texts):len(b.texts)]
		}
		b.keys = append(b.keys, k)
	}
	var err error
	if b.scratch, err = rowset.AppendTree(b.scratch[:0], rows); err != nil {
		return err
	}
	b.bitmaps.Append(b.scratch)
	if b.bitmaps.Len() < writeRows && b.bitmaps.DataLen() < writeBytes && len(b.texts) < writeBytes {
		return nil
	}
	return b.flush(ctx)
}

func (b *batchWriter) flush(ctx context.Context) error {
	if b.bitmaps.Len() == 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	keys, err := b.codec.Array(compute.GetAllocator(ctx), b.nulls, b.keys)
	if err != nil {
		return err
	}
	defer keys.Release()
	bitmaps := b.bitmaps.NewArray()
	defer bitmaps.Release()
	batch := array.NewRecordBatch(b.schema, []arrow.Array{keys, bitmaps}, int64(keys.Len()))
	defer batch.Release()
	b.nulls, b.keys, b.texts = 0, b.keys[:0], b.texts[:0]
	return b.out.Write(ctx, batch)
}
