package file

import (
	"bytes"
	"context"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakesql/lakesql/storage/schema"
)

// TestFixedBlocksEqualReadRange compares the raw values of every fixed-width column with its arrays.
func TestFixedBlocksEqualReadRange(t *testing.T) {
	checked := 0
	for _, path := range allFiles(t) {
		r := openFile(t, path)
		cols, err := r.Columns()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cols {
			if width := fixedWidth(c.Field); width > 0 {
				checked++
				for _, s := range []span{{0, r.Rows()}, {r.Rows() / 3, r.Rows() - r.Rows()/5}} {
					compareBlocks(t, r, c, s, width)
				}
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d columns were checked", checked)
	}
}

// fixedWidth returns the bytes of a value of a field that FixedBlocks takes, else 0.
func fixedWidth(f *schema.Field) int {
	n := 1
	typ := f.Type
	for {
		list, ok := typ.(*arrow.FixedSizeListType)
		if !ok {
			break
		}
		n, typ = n*int(list.Len()), list.Elem()
	}
	if w, ok := typ.(arrow.FixedWidthDataType); ok && typ.ID() != arrow.DICTIONARY && typ.ID() != arrow.BOOL && len(f.Children) == 0 {
		return n * w.BitWidth() / 8
	}
	return 0
}

func compareBlocks(t *testing.T, r *Reader, c Column, s span, width int) {
	t.Helper()
	blocks, err := r.FixedBlocks(context.Background(), c, s.from, s.to)
	if err != nil {
		t.Fatal(err)
	}
	batch, err := r.ReadRange(context.Background(), []Column{c}, s.from, s.to, ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer batch.Release()
	data := batch.Column(0).Data()
	valid := batch.Column(0)
	for data.DataType().ID() == arrow.FIXED_SIZE_LIST {
		data = data.Children()[0]
	}
	plain := data.Buffers()[1].Bytes()
	next := s.from
	for _, b := range blocks {
		if b.FirstRow != next {
			t.Fatalf("%s %s: block at row %d, want %d", r.file.Path(), c.Field.Name, b.FirstRow, next)
		}
		for i := range b.Rows {
			at := int(next - s.from)
			ok := b.Validity == nil || b.Validity(i)
			if want := valid.IsValid(at) && itemsValid(valid, at); ok != want {
				t.Fatalf("%s %s row %d: valid %t, want %t", r.file.Path(), c.Field.Name, next, ok, want)
			}
			if value := b.Data[b.OffsetBytes+i*b.StrideBytes:][:b.ValueBytes]; ok && !bytes.Equal(value, plain[at*width:][:width]) {
				t.Fatalf("%s %s row %d: %x, want %x", r.file.Path(), c.Field.Name, next, value, plain[at*width:][:width])
			}
			next++
		}
	}
	if next != s.to {
		t.Fatalf("%s %s: blocks end at row %d, want %d", r.file.Path(), c.Field.Name, next, s.to)
	}
}

// itemsValid reports whether no item of a fixed-size list is null.
func itemsValid(a arrow.Array, i int) bool {
	list, ok := a.(*array.FixedSizeList)
	if !ok {
		return true
	}
	from, to := list.ValueOffsets(i)
	for j := from; j < to; j++ {
		if list.ListValues().IsNull(int(j)) || !itemsValid(list.ListValues(), int(j)) {
			return false
		}
	}
	return true
}
