package btree

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/index"
)

func TestSortOfWordsIsThatByComparison(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		n       int
		bits    uint
		ordered bool
	}{{10, 3, false}, {radixMin, 64, true}, {5000, 64, false}, {5000, 9, true}, {5000, 9, false}, {5000, 0, false}} {
		rows := make([]valueRow, c.n)
		for i, at := range rng.Perm(c.n) {
			if c.ordered {
				at = i
			}
			rows[i] = valueRow{word: rng.Uint64() >> 1 >> (63 - c.bits) << 5, row: uint64(at) << 29}
		}
		want := slices.Clone(rows)
		slices.SortFunc(want, func(x, y valueRow) int { return cmp.Or(cmp.Compare(x.word, y.word), cmp.Compare(x.row, y.row)) })
		if got := sortRows(rows, make([]valueRow, c.n), c.ordered); !slices.Equal(got, want) {
			t.Errorf("%+v: the order differs", c)
		}
	}
}

func TestSortOfTextIsThatByComparison(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	shapes := map[string]func() string{
		"short texts, most of them equal":    func() string { return string(rune('a' + rng.IntN(3))) },
		"zeros at the end count":             func() string { return "prefix" + strings.Repeat("\x00", rng.IntN(12)) },
		"long common prefixes":               func() string { return strings.Repeat("same ", 10) + string(rune('a'+rng.IntN(20))) },
		"prefixes of each other":             func() string { return strings.Repeat("abcdefgh", 5)[:rng.IntN(41)] },
		"random bytes":                       func() string { return string(binary.LittleEndian.AppendUint64(nil, rng.Uint64())) },
		"nothing but equal texts, each long": func() string { return strings.Repeat("x", 100) },
	}
	for name, draw := range shapes {
		b, err := NewBuilder("c", arrow.BinaryTypes.String, index.BuildOptions{Rows: 3000})
		if err != nil {
			t.Fatal(err)
		}
		values := array.NewStringBuilder(memory.DefaultAllocator)
		var keys []uint64
		for _, at := range rng.Perm(3000) {
			values.Append(draw())
			keys = append(keys, uint64(at))
		}
		if err := b.Add(t.Context(), values.NewArray(), keys); err != nil {
			t.Fatal(err)
		}
		w := wideSort{b.text}
		want := slices.Clone(b.wide)
		slices.SortFunc(want, func(x, y wideRow) int {
			return cmp.Or(bytes.Compare(w.value(x), w.value(y)), cmp.Compare(x.row, y.row))
		})
		b.sort()
		if !slices.EqualFunc(b.wide, want, func(x, y wideRow) bool { return x.row == y.row }) {
			t.Errorf("%s: the order differs", name)
		}
		b.Free()
	}
}
