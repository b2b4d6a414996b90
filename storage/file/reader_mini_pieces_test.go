package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/object"
)

// pieceRows has columns whose chunks say in different ways how many values they have.
func pieceRows(rows int) arrow.RecordBatch {
	s := arrow.NewSchema([]arrow.Field{
		{Name: "flat", Type: arrow.FixedSizeListOf(8, arrow.PrimitiveTypes.Float32), Nullable: true},
		{Name: "levels", Type: arrow.FixedSizeListOf(8, arrow.PrimitiveTypes.Float32), Nullable: true},
		{Name: "text", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "compressed", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "noise", Type: arrow.BinaryTypes.Binary, Nullable: true},
		{Name: "double", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
		{Name: "packed", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, s)
	defer b.Release()
	r := rand.New(rand.NewPCG(1, 2))
	for i := range rows {
		appendVector(b.Field(0), i, 8, true)
		appendVector(b.Field(1), i, 8, i%3 != 0)
		b.Field(2).(*array.StringBuilder).Append(fmt.Sprint(i * i))
		b.Field(3).(*array.StringBuilder).Append(fmt.Sprintf("the same words before number %d each time", i))
		noise := make([]byte, r.IntN(90))
		for k := range noise {
			noise[k] = byte(r.Uint32())
		}
		b.Field(4).(*array.BinaryBuilder).Append(noise)
		b.Field(5).(*array.Float64Builder).Append(r.NormFloat64())
		b.Field(6).(*array.Int64Builder).Append(int64(i) * 3)
	}
	return b.NewRecordBatch()
}

// rangesFile remembers what was read, and is not mapped.
type rangesFile struct {
	bytesFile
	ranges []object.Range
}

func (f *rangesFile) IsMapped() bool { return false }

func (f *rangesFile) ReadMany(ctx context.Context, rs []object.Range) ([][]byte, error) {
	f.ranges = append(f.ranges, rs...)
	return f.bytesFile.ReadMany(ctx, rs)
}

func pieceFile(t *testing.T, v Version, want arrow.RecordBatch) (*rangesFile, *Reader) {
	t.Helper()
	ctx := context.Background()
	store := writeFile(t, want, want.NumRows(), WriterOptions{Version: v, PageBytes: onePage})
	o, err := store.Open(ctx, "f.lance")
	if err != nil {
		t.Fatal(err)
	}
	b, err := o.Read(ctx, object.Range{Size: o.SizeBytes()})
	if err != nil {
		t.Fatal(err)
	}
	return openPieces(t, b)
}

func openPieces(t *testing.T, b bytesFile) (*rangesFile, *Reader) {
	t.Helper()
	f := &rangesFile{bytesFile: b}
	r, err := Open(context.Background(), f, Options{TableBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	return f, r
}

// TestTakesReadTheChunkTableInPieces takes random rows of columns whose tables are read in pieces: the rows are right, a row alone costs at most about half of
// the table, and what was read is not read again.
func TestTakesReadTheChunkTableInPieces(t *testing.T) {
	const rows = 40_000
	want := pieceRows(rows)
	defer want.Release()
	for _, v := range []Version{V21, V22} {
		f, r := pieceFile(t, v, want)
		cols, err := r.Columns()
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range cols {
			t.Run(v.String()+" "+c.Field.Name, func(t *testing.T) {
				rnd := rand.New(rand.NewPCG(uint64(i), 3))
				page := r.columns[i].pages[0]
				table, tableRead, halves := page.buffers[miniMetadata], int64(0), 0
				wordBytes := 2
				if v == V22 {
					wordBytes = 4
				}
				words := int(table.Size) / wordBytes
				for k := range 60 {
					n := 1
					if k%3 == 2 {
						n = 1 + rnd.IntN(5)
					}
					f.ranges = nil
					checkTake(t, r, want, i, rnd, n)
					got := tableBytes(f.ranges, table)
					tableRead += got
					if got > 0 && got < table.Size {
						halves++
					}
					if limit := int64(words*52/100+2*pieceSlack+1) * int64(wordBytes); n == 1 && got > limit {
						t.Fatalf("take %d: %d bytes of a table of %d", k, got, table.Size)
					}
				}
				if words > 8*pieceSlack && halves == 0 {
					t.Errorf("the table of %d words was never read in pieces", words)
				}
				if limit := table.Size * 5 / 2; tableRead > limit {
					t.Errorf("%d bytes of a table of %d were read", tableRead, table.Size)
				}
			})
		}
		if held := r.CachedBytes(); held < 0 || held > 4<<20 {
			t.Errorf("%d bytes are counted as kept", held)
		}
	}
}

// checkTake takes n random rows of column i and compares them.
func checkTake(t *testing.T, r *Reader, want arrow.RecordBatch, i int, rnd *rand.Rand, n int) {
	t.Helper()
	cols, err := r.Columns()
	if err != nil {
		t.Fatal(err)
	}
	at := make([]uint64, n)
	for k := range at {
		at[k] = rnd.Uint64N(r.Rows())
	}
	got, err := r.Take(context.Background(), cols[i:i+1], at, ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer got.Release()
	for k, row := range at {
		g, w := array.NewSlice(got.Column(0), int64(k), int64(k)+1), array.NewSlice(want.Column(i), int64(row), int64(row)+1)
		if !array.Equal(g, w) {
			t.Fatalf("row %d: %v, want %v", row, g, w)
		}
		g.Release()
		w.Release()
	}
}

func tableBytes(rs []object.Range, table object.Range) int64 {
	var n int64
	for _, r := range rs {
		if r.Offset >= table.Offset && r.Offset < table.Offset+table.Size {
			n += r.Size
		}
	}
	return n
}

// TestPiecesFromTheEndAreCheckedAgainstTheirChunks takes rows of a page whose chunks do not fill their buffer, so that places counted from
// its end are wrong: rows are right, or the file is corrupt.
func TestPiecesFromTheEndAreCheckedAgainstTheirChunks(t *testing.T) {
	want := pieceRows(20_000)
	defer want.Release()
	for _, v := range []Version{V21, V22} {
		f, _ := pieceFile(t, v, want)
		for i := range int(want.NumCols()) {
			refused := 0
			for row := uint64(0); row < 20_000; row += 977 {
				_, r := openPieces(t, f.bytesFile)
				cols, err := r.Columns()
				if err != nil {
					t.Fatal(err)
				}
				r.columns[i].pages[0].buffers[miniChunks].Size += 8
				got, err := r.Take(context.Background(), cols[i:i+1], []uint64{row}, ReadOptions{})
				if err != nil {
					if !errors.Is(err, errs.ErrCorrupt) {
						t.Fatal(err)
					}
					refused++
					continue
				}
				w := array.NewSlice(want.Column(i), int64(row), int64(row)+1)
				if !array.Equal(got.Column(0), w) {
					t.Fatalf("%s column %d row %d: %v, want %v", v, i, row, got.Column(0), w)
				}
				w.Release()
				got.Release()
			}
			if refused > 12 {
				t.Errorf("%s column %d: %d of 21 rows refused", v, i, refused)
			}
		}
	}
}

// TestTakesFromAFullCacheNeedNoPieces takes rows where no piece can be kept.
func TestTakesFromAFullCacheNeedNoPieces(t *testing.T) {
	want := pieceRows(20_000)
	defer want.Release()
	f, _ := pieceFile(t, V22, want)
	r, err := Open(context.Background(), f, Options{TableBytes: -1, CacheBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(5, 5))
	for range 30 {
		for i := range int(want.NumCols()) {
			checkTake(t, r, want, i, rnd, 1)
		}
	}
	if r.CachedBytes() != 0 {
		t.Errorf("%d bytes kept", r.CachedBytes())
	}
}

// TestDamagedTablesInPieces changes single bytes of the chunk tables: takes give rows or corruption, never a panic.
func TestDamagedTablesInPieces(t *testing.T) {
	want := pieceRows(6000)
	defer want.Release()
	f, r := pieceFile(t, V22, want)
	rnd := rand.New(rand.NewPCG(7, 7))
	for i := range int(want.NumCols()) {
		table := r.columns[i].pages[0].buffers[miniMetadata]
		for range 120 {
			b := bytes.Clone(f.bytesFile)
			b[table.Offset+rnd.Int64N(table.Size)] = byte(rnd.Uint32())
			damaged, err := Open(context.Background(), &rangesFile{bytesFile: b}, Options{TableBytes: -1})
			if err != nil {
				t.Fatal(err)
			}
			cols, err := damaged.Columns()
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				got, err := damaged.Take(context.Background(), cols[i:i+1], slices.Repeat([]uint64{rnd.Uint64N(6000)}, 2), ReadOptions{})
				if err == nil {
					got.Release()
				} else if unexpected(err) != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
