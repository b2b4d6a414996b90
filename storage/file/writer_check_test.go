package file

import (
	"context"
	"errors"
	"math/rand"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/storage/schema"
)

func drawn(t *testing.T, rows int, fields ...arrow.Field) (arrow.RecordBatch, *schema.Schema) {
	t.Helper()
	maker := testutil.RowMaker{R: rand.New(rand.NewSource(int64(rows))), Nulls: 0.1, ItemNulls: 0.1}
	b := maker.Batch(memory.DefaultAllocator, arrow.NewSchema(fields, nil), rows)
	s, err := schema.FromArrow(b.Schema())
	if err != nil {
		t.Fatal(err)
	}
	return b, s
}

// What invariant builds compare after each file must notice a value that is not the one written.
func TestTheCheckNoticesADifferentValue(t *testing.T) {
	for _, f := range testutil.Columns(true) {
		if f.Name == "nothing" {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			b, s := drawn(t, 300, f)
			defer b.Release()
			other, _ := drawn(t, 301, f)
			defer other.Release()
			out := &discard{}
			w, err := NewWriter(out, s, WriterOptions{})
			if err != nil {
				t.Fatal(err)
			}
			kept := newWriteCheck(out, 1)
			w.check, w.out.w = nil, kept
			if err := w.Write(context.Background(), b); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Finish(context.Background()); err != nil {
				t.Fatal(err)
			}
			kept.add(b.Columns(), 300)
			if err := kept.compare(context.Background()); err != nil {
				t.Fatalf("a sound file: %v", err)
			}
			kept.sums[0], kept.rows = 0, 0
			part := other.NewSlice(0, 300)
			defer part.Release()
			kept.add(part.Columns(), 300)
			if err := kept.compare(context.Background()); err == nil {
				t.Fatal("other values were not noticed")
			}
		})
	}
}

func TestTheWriterPaysForWhatItKeeps(t *testing.T) {
	b, s := drawn(t, 5000, testutil.Columns(true)...)
	defer b.Release()
	peak := func(batches int) int64 {
		budget := mem.NewBudget("test", 1<<30, nil)
		w, err := NewWriter(&discard{}, s, WriterOptions{Budget: budget, PageBytes: 100_000})
		if err != nil {
			t.Fatal(err)
		}
		for range batches {
			if err := w.Write(context.Background(), b); err != nil {
				t.Fatal(err)
			}
		}
		if budget.Used() == 0 {
			t.Fatal("nothing is paid for")
		}
		if _, err := w.Finish(context.Background()); err != nil {
			t.Fatal(err)
		}
		if budget.Used() != 0 {
			t.Fatalf("%d bytes were not given back", budget.Used())
		}
		return budget.Peak()
	}
	if few, many := peak(4), peak(16); many > few+few/4 {
		t.Fatalf("%d bytes after 4 batches, %d after 16", few, many)
	}
	budget := mem.NewBudget("test", 1<<20, nil)
	w, err := NewWriter(&discard{}, s, WriterOptions{Budget: budget})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(context.Background(), b); !errors.Is(err, errs.ErrMemoryLimit) {
		t.Fatalf("got %v", err)
	}
	if err := w.Abort(); err != nil || budget.Used() != 0 {
		t.Fatalf("%v, %d bytes were not given back", err, budget.Used())
	}
}
