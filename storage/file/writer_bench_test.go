package file

import (
	"context"
	"io"
	"math/rand"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/storage/encoding"
	"github.com/lakesql/lakesql/storage/schema"
)

// discard counts bytes.
type discard struct {
	io.Writer
	size int64
}

func (d *discard) Write(b []byte) (int, error) { d.size += int64(len(b)); return len(b), nil }
func (d *discard) Close() error                { return nil }
func (d *discard) Abort() error                { return nil }
func (d *discard) OffsetBytes() int64          { return d.size }

// BenchmarkWriter writes 64 Ki rows of one column per iteration, MB/s of Arrow values.
func BenchmarkWriter(b *testing.B) {
	cases := []struct {
		name  string
		typ   arrow.DataType
		maker testutil.RowMaker
	}{
		{"int64", arrow.PrimitiveTypes.Int64, testutil.RowMaker{}},
		{"int32 packed", arrow.PrimitiveTypes.Int32, testutil.RowMaker{Distinct: 1000}},
		{"int32 packed with nulls", arrow.PrimitiveTypes.Int32, testutil.RowMaker{Distinct: 1000, Nulls: 0.1}},
		{"float64", arrow.PrimitiveTypes.Float64, testutil.RowMaker{}},
		{"strings", arrow.BinaryTypes.String, testutil.RowMaker{}},
		{"few strings", arrow.BinaryTypes.String, testutil.RowMaker{Distinct: 50}},
		{"labels", arrow.ListOf(arrow.BinaryTypes.String), testutil.RowMaker{Distinct: 200, Nulls: 0.03}},
		{"vectors", arrow.FixedSizeListOf(128, arrow.PrimitiveTypes.Float32), testutil.RowMaker{}},
		{"vectors with nulls", arrow.FixedSizeListOf(128, arrow.PrimitiveTypes.Float32), testutil.RowMaker{Nulls: 0.01}},
		{"wide binary", arrow.BinaryTypes.Binary, testutil.RowMaker{Wide: true}},
	}
	const rows = 1 << 16
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) {
			c.maker.R = rand.New(rand.NewSource(1))
			batch := c.maker.Batch(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{{Name: "c", Type: c.typ, Nullable: true}}, nil), rows)
			defer batch.Release()
			s, err := schema.FromArrow(batch.Schema())
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(encoding.SliceBytes(batch.Column(0), 0, rows))
			b.ReportAllocs()
			for b.Loop() {
				w, err := NewWriter(&discard{}, s, WriterOptions{})
				if err != nil {
					b.Fatal(err)
				}
				if err := w.Write(context.Background(), batch); err != nil {
					b.Fatal(err)
				}
				if _, err := w.Finish(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
