package encoding

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/storage/pb/encpb"
)

// slowUnpack reads value i of a packed block bit by bit, from the definition of the order.
func slowUnpack[T packWord](words []T, width, wordBits, i int) uint64 {
	lanes := packBlock / wordBits
	for r := range wordBits {
		for lane := range lanes {
			if packOrder[r/8]*16+(r%8)*128+lane != i {
				continue
			}
			var v uint64
			for bit := range width {
				at := r*width + bit
				v |= uint64(words[lanes*(at/wordBits)+lane]>>(at%wordBits)&1) << bit
			}
			return v
		}
	}
	panic("no such value")
}

func checkPacking[T packWord](t *testing.T, wordBits int) {
	t.Helper()
	r := rand.New(rand.NewSource(int64(wordBits)))
	for width := range wordBits + 1 {
		src, dst := make([]T, packBlock), make([]T, packBlock*width/wordBits)
		for i := range src {
			if width > 0 {
				src[i] = T(r.Uint64() >> (64 - width))
			}
		}
		packLanes(dst, src, width, wordBits)
		for _, i := range []int{0, 1, 127, 128, 511, 1000, 1023} {
			if got := slowUnpack(dst, width, wordBits, i); got != uint64(src[i]) {
				t.Fatalf("%d of %d bits, value %d: %#x, want %#x", width, wordBits, i, got, src[i])
			}
		}
	}
}

func TestPackingFollowsTheOrderOfTheFormat(t *testing.T) {
	checkPacking[uint8](t, 8)
	checkPacking[uint16](t, 16)
	checkPacking[uint32](t, 32)
	checkPacking[uint64](t, 64)
}

func TestTheTailOfLevelsIsPackedWhereThatIsSmaller(t *testing.T) {
	for _, c := range []struct{ levels, width, words int }{
		{1, 1, 1}, {63, 1, 63}, {64, 1, 64}, {65, 1, 64}, {1023, 1, 64}, {1024, 1, 64}, {1025, 1, 65}, {2048, 2, 256}, {2048 + 200, 2, 256 + 128},
		{100, 2, 100}, {5, 16, 5},
	} {
		got := appendLevels(nil, make([]uint16, c.levels), c.width)
		if len(got) != 2*c.words {
			t.Errorf("%d levels of %d bits take %d words, want %d", c.levels, c.width, len(got)/2, c.words)
		}
	}
}

// encodeAll encodes one array and describes each page: layout, value encoding, rows.
func encodeAll(t *testing.T, arr arrow.Array, nullable bool, opts EncodeOptions) []string {
	t.Helper()
	c, err := NewColumnEncoder(arrow.Field{Name: "c", Type: arr.DataType(), Nullable: nullable}, opts)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	emit := func(leaf int, p *Page) error {
		out = append(out, fmt.Sprintf("%d: %d rows from %d, %s", leaf, p.Rows, p.FirstRow, describe(p.Layout)))
		return nil
	}
	if err := c.Append(context.Background(), arr, emit); err != nil {
		t.Fatal(err)
	}
	if err := c.Flush(emit); err != nil {
		t.Fatal(err)
	}
	return out
}

func describe(l *encpb.PageLayout) string {
	codes := func(layers []encpb.RepDefLayer) string {
		var parts []string
		for _, c := range layers {
			parts = append(parts, fmt.Sprint(int(c)))
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	switch l := l.GetLayout().(type) {
	case *encpb.PageLayout_MiniBlockLayout:
		m := l.MiniBlockLayout
		name := fmt.Sprintf("%T", m.GetValueCompression().GetCompression())
		name = strings.ToLower(name[strings.LastIndex(name, "_")+1:])
		if m.GetDictionary() != nil {
			name = fmt.Sprintf("dictionary of %d", m.GetNumDictionaryItems())
		}
		return "chunks " + name + " " + codes(m.GetLayers())
	case *encpb.PageLayout_FullZipLayout:
		return "zip " + codes(l.FullZipLayout.GetLayers())
	case *encpb.PageLayout_ConstantLayout:
		return fmt.Sprintf("constant %x %s", l.ConstantLayout.GetInlineValue(), codes(l.ConstantLayout.GetLayers()))
	}
	return "?"
}

func int64s(n int, value func(i int) int64, valid func(i int) bool) arrow.Array {
	b := array.NewInt64Builder(memory.DefaultAllocator)
	defer b.Release()
	for i := range n {
		if valid != nil && !valid(i) {
			b.AppendNull()
			continue
		}
		b.Append(value(i))
	}
	return b.NewArray()
}

func stringsOf(n int, value func(i int) string) arrow.Array {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	defer b.Release()
	for i := range n {
		b.Append(value(i))
	}
	return b.NewArray()
}

func vectors(n, dim int, valid bool) arrow.Array {
	b := array.NewFixedSizeListBuilder(memory.DefaultAllocator, int32(dim), arrow.PrimitiveTypes.Float32)
	defer b.Release()
	items := b.ValueBuilder().(*array.Float32Builder) //nolint:errcheck,forcetypeassert // as built above
	for i := range n {
		if !valid && i%2 == 0 {
			b.AppendNull()
			continue
		}
		b.Append(true)
		for d := range dim {
			items.Append(float32(i * d))
		}
	}
	return b.NewArray()
}

func TestThePageLayoutFitsTheValues(t *testing.T) {
	ident := func(i int) int64 { return int64(i) }
	for _, c := range []struct {
		name string
		arr  arrow.Array
		opts EncodeOptions
		want []string
	}{
		{"small integers", int64s(3000, ident, nil), EncodeOptions{V22: true}, []string{"0: 3000 rows from 0, chunks inlinebitpacking [1]"}},
		{"negative integers", int64s(3000, func(i int) int64 { return -int64(i) }, nil), EncodeOptions{}, []string{"0: 3000 rows from 0, chunks flat [1]"}},
		{
			"integers with nulls", int64s(3000, ident, func(i int) bool { return i%2 == 0 }), EncodeOptions{},
			[]string{"0: 3000 rows from 0, chunks inlinebitpacking [3]"},
		},
		{"one integer", int64s(3000, func(int) int64 { return 7 }, nil), EncodeOptions{V22: true}, []string{"0: 3000 rows from 0, constant 0700000000000000 [1]"}},
		{"one integer in 2.1", int64s(3000, func(int) int64 { return 7 }, nil), EncodeOptions{}, []string{"0: 3000 rows from 0, chunks rle [1]"}},
		{"nulls alone", int64s(10, ident, func(int) bool { return false }), EncodeOptions{}, []string{"0: 10 rows from 0, constant  [3]"}},
		{"different strings", stringsOf(500, func(i int) string { return fmt.Sprint(i) }), EncodeOptions{}, []string{"0: 500 rows from 0, chunks variable [1]"}},
		{
			"few strings", stringsOf(5000, func(i int) string { return fmt.Sprint("tenant-", i%12) }), EncodeOptions{},
			[]string{"0: 5000 rows from 0, chunks dictionary of 12 [1]"},
		},
		{"one string", stringsOf(50, func(int) string { return "same" }), EncodeOptions{V22: true}, []string{"0: 50 rows from 0, constant  [1]"}},
		{"a long string", stringsOf(5, func(i int) string { return strings.Repeat("x", 250+i) + "y" }), EncodeOptions{}, []string{"0: 5 rows from 0, chunks variable [1]"}},
		{"a longer string", stringsOf(6, func(i int) string { return strings.Repeat("x", 250+i) + "y" }), EncodeOptions{}, []string{"0: 6 rows from 0, zip [1]"}},
		{"small vectors", vectors(100, 16, true), EncodeOptions{}, []string{"0: 100 rows from 0, chunks fixedsizelist [1]"}},
		{"large vectors", vectors(100, 64, true), EncodeOptions{}, []string{"0: 100 rows from 0, zip [1]"}},
		{"large vectors with nulls", vectors(100, 64, false), EncodeOptions{}, []string{"0: 100 rows from 0, zip [3]"}},
		{
			"pages by bytes", int64s(10_000, func(i int) int64 { return -int64(i) }, nil), EncodeOptions{PageBytes: 40_000},
			[]string{"0: 4608 rows from 0, chunks flat [1]", "0: 4915 rows from 4608, chunks flat [1]", "0: 477 rows from 9523, chunks flat [1]"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer c.arr.Release()
			got := encodeAll(t, c.arr, true, c.opts)
			if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
				t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// The repetition index counts, per chunk, the rows that finish in it and the levels left over, whatever the border falls on.
func TestRepetitionIndexAtChunkBorders(t *testing.T) {
	w := chunkWriter{lv: pageLevels{rep: []uint16{1, 0, 0, 1, 1, 0, 0, 0, 0, 1, 0}, maxRep: 1}}
	for _, span := range [][2]int{{0, 3}, {3, 6}, {6, 8}, {8, 11}} {
		w.countRows(span[0], span[1])
	}
	raw := w.repIndex()
	want := [][2]uint64{{1, 0}, {1, 2}, {0, 2}, {2, 0}}
	total := uint64(0)
	for i, row := range want {
		got := [2]uint64{binary.LittleEndian.Uint64(raw[16*i:]), binary.LittleEndian.Uint64(raw[16*i+8:])}
		if got != row {
			t.Errorf("chunk %d: %v, want %v", i, got, row)
		}
		total += got[0]
	}
	if total != 4 {
		t.Errorf("%d rows in all, want 4", total)
	}
}

// Between calls a column keeps less than a page, however large the arrays are.
func TestAColumnKeepsAtMostAPage(t *testing.T) {
	const pageBytes = 50_000
	arr := stringsOf(60_000, func(i int) string { return strings.Repeat("x", i%300) })
	defer arr.Release()
	c, err := NewColumnEncoder(arrow.Field{Name: "c", Type: arr.DataType()}, EncodeOptions{PageBytes: pageBytes})
	if err != nil {
		t.Fatal(err)
	}
	pages, rows := 0, uint64(0)
	err = c.Append(context.Background(), arr, func(_ int, p *Page) error {
		for _, b := range p.Buffers {
			if len(b) > 4*pageBytes {
				t.Fatalf("page of %d rows has a buffer of %d bytes", p.Rows, len(b))
			}
		}
		pages++
		rows += p.Rows
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if kept := c.leaves[0].sizeBytes(); kept >= pageBytes || pages < 100 || rows+uint64(c.leaves[0].rows) != 60_000 {
		t.Fatalf("%d bytes kept after %d pages of %d rows", kept, pages, rows)
	}
}
