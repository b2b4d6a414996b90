package storage

import (
	"context"
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/pb/filepb"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
	"github.com/lakesql/lakesql/storage/rowset"
	"github.com/lakesql/lakesql/storage/schema"
)

// millionRows writes one fragment of a million rows of narrow and wide columns; row i of each column is a function of i.
func millionRows(tb testing.TB, store object.Store, v file.Version, rows int) {
	tb.Helper()
	ctx := context.Background()
	fields := []*filepb.Field{
		pbField(0, -1, "id", "int64"), pbField(1, -1, "score", "double"), pbField(2, -1, "name", "string"),
		pbField(3, -1, "tags", "list"), pbField(4, 3, "item", "string"), pbField(5, -1, "v", "fixed_size_list:float:96"),
		pbField(6, -1, "maybe", "int32"),
	}
	s, err := schema.FromProto(fields, nil)
	must(tb, err)
	out, err := store.Create(ctx, "big/data/f.lance")
	must(tb, err)
	w, err := file.NewWriter(out, s, file.WriterOptions{Version: v})
	must(tb, err)
	const step = 50_000
	for at := 0; at < rows; at += step {
		b := bigBatch(s.Arrow(), at, min(step, rows-at))
		must(tb, w.Write(ctx, b))
		b.Release()
	}
	done, err := w.Finish(ctx)
	must(tb, err)
	d := &tablepb.DataFile{Path: "f.lance", FileMajorVersion: uint32(v.Major), FileMinorVersion: uint32(v.Minor), FileSizeBytes: uint64(done.SizeBytes)}
	for f := range s.All() {
		if c, ok := done.ColumnOf[f.ID]; ok {
			d.Fields, d.ColumnIndices = append(d.Fields, f.ID), append(d.ColumnIndices, int32(c))
		}
	}
	b := newBuilder(tb, store, "big", fields...)
	b.m.DataFormat.Version = v.String()
	b.fragment(0, uint64(rows), d)
	b.commit(manifest.NamingV2)
}

func bigBatch(s *arrow.Schema, first, n int) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, s)
	defer b.Release()
	tags := b.Field(3).(*array.ListBuilder)
	v := b.Field(4).(*array.FixedSizeListBuilder)
	for i := first; i < first+n; i++ {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.Float64Builder).Append(float64(i*7919%1_000_003) / 7)
		b.Field(2).(*array.StringBuilder).Append(fmt.Sprintf("name of row %d", i))
		tags.Append(true)
		for k := range i % 4 {
			tags.ValueBuilder().(*array.StringBuilder).Append(fmt.Sprintf("tag%d", (i+k)%100))
		}
		v.Append(true)
		for k := range 96 {
			v.ValueBuilder().(*array.Float32Builder).Append(float32(i + k))
		}
		if i%3 == 0 {
			b.Field(5).AppendNull()
		} else {
			b.Field(5).(*array.Int32Builder).Append(int32(i % 1000))
		}
	}
	return b.NewRecordBatch()
}

func TestTakingOneRowOfManyReadsLittle(t *testing.T) { checkTakeBytes(t, 60_000) }

// checkTakeBytes counts at the store: one row of each column, each time with a new cache but after the footer, costs at most 4 requests
// and less than 64 KiB a column.
func checkTakeBytes(t *testing.T, rows int) {
	t.Helper()
	ctx := context.Background()
	for _, v := range []file.Version{file.V21, file.V22} {
		t.Run(v.String(), func(t *testing.T) {
			store := object.NewMemory("m")
			millionRows(t, store, v, rows)
			c := object.NewCounting(store, object.CountingOptions{AsRemote: true})
			r := rand.New(rand.NewSource(7))
			for _, name := range []string{"id", "score", "name", "tags", "v", "maybe"} {
				table, err := OpenTable(ctx, c, "big", TableOptions{})
				must(t, err)
				s, err := table.Latest(ctx)
				must(t, err)
				_, err = s.Fragments()[0].OpenFile(ctx, 0)
				must(t, err)
				for k := range 3 {
					row := r.Intn(rows)
					c.Reset()
					got, err := s.Take(ctx, []rowset.RowAddr{rowset.Addr(0, uint32(row))}, TakeOptions{Columns: []string{name}})
					must(t, err)
					n := c.ByPath()["big/data/f.lance"]
					t.Logf("column %s: %d requests, %d bytes", name, n.Requests, n.Bytes)
					if n.Requests > 4 || n.Bytes >= 64<<10 || n.Bytes == 0 {
						t.Errorf("column %s, take %d: %d requests, %d bytes", name, k, n.Requests, n.Bytes)
					}
					checkBigRow(t, got, s.ArrowSchema(), row)
					got.Release()
				}
			}
		})
	}
}

// checkBigRow holds a taken value against the function that made it.
func checkBigRow(t *testing.T, got arrow.RecordBatch, whole *arrow.Schema, row int) {
	t.Helper()
	want := bigBatch(whole, row, 1)
	defer want.Release()
	name := got.ColumnName(0)
	w := want.Column(whole.FieldIndices(name)[0])
	if g, x := testutil.Spell(got.Column(0), 0), testutil.Spell(w, 0); !testutil.SameSpelling(g, x) {
		t.Fatalf("row %d: %s is %v, want %v", row, name, g, x)
	}
}

// BenchmarkScan reads a million rows with one reader.
func BenchmarkScan(b *testing.B) {
	ctx := context.Background()
	store := object.NewMemory("m")
	millionRows(b, store, file.V22, 1_000_000)
	table, err := OpenTable(ctx, store, "big", TableOptions{})
	must(b, err)
	s, err := table.Latest(ctx)
	must(b, err)
	for _, columns := range []string{"id", "name", "tags", "v", "id,score,maybe"} {
		b.Run(columns, func(b *testing.B) {
			for b.Loop() {
				c, err := s.Scan(ctx, ScanOptions{Columns: strings.Split(columns, ",")})
				must(b, err)
				r := c.Reader()
				rows := int64(0)
				for rows < 1_000_000 {
					rec, err := r.Next(ctx)
					must(b, err)
					rows += rec.NumRows()
					rec.Release()
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1e6, "ns/row")
		})
	}
}
