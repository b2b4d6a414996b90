package file

import (
	"context"
	"fmt"
	"math/rand"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/schema"
)

// Every column that the reference engine wrote into the fixtures, its metadata included, is written by us and comes back: all logical types, nestings,
// compressions and layouts that metadata asks for.
func TestEveryTypeOfTheReferenceEngineIsWritten(t *testing.T) {
	answers, err := filepath.Glob(filepath.Join(testutil.Root(t), "testdata", "file", "*.arrow.gz"))
	if err != nil || len(answers) < 8 {
		t.Fatalf("%d answers: %v", len(answers), err)
	}
	for _, path := range answers {
		base := filepath.Base(path)
		for _, v := range []Version{V21, V22} {
			if v == V21 && !strings.Contains(base, "_v21_") && !strings.Contains(base, "_v20_") {
				continue // types that need 2.2
			}
			t.Run(fmt.Sprint(strings.TrimSuffix(base, ".arrow.gz"), " in ", v), func(t *testing.T) {
				want := testutil.LoadArrow(t, path)
				defer want.Release()
				for i, f := range want.Schema().Fields() {
					t.Run(f.Name, func(t *testing.T) {
						one := array.NewRecordBatch(arrow.NewSchema([]arrow.Field{f}, nil), want.Columns()[i:i+1], want.NumRows())
						defer one.Release()
						for _, opts := range []WriterOptions{{Version: v}, {Version: v, PageBytes: 700}} {
							checkRoundTrip(t, rand.New(rand.NewSource(int64(i))), one, writeFile(t, one, 150, opts))
						}
					})
				}
			})
		}
	}
}

func TestJSONTextIsStoredAsTheEngineStoresIt(t *testing.T) {
	md := arrow.MetadataFrom(map[string]string{"ARROW:extension:name": "lance.json"})
	fields := []arrow.Field{{Name: "j", Type: arrow.BinaryTypes.LargeBinary, Nullable: true, Metadata: md}}
	s, err := schema.FromArrow(arrow.NewSchema(fields, nil))
	if err != nil {
		t.Fatal(err)
	}
	text := array.NewStringBuilder(memory.DefaultAllocator)
	defer text.Release()
	text.AppendValues([]string{`{"a":1}`, "", "[true]"}, []bool{true, false, true})
	arr := text.NewArray()
	defer arr.Release()
	b := array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: "j", Type: arrow.BinaryTypes.String, Nullable: true}}, nil), []arrow.Array{arr}, 3)
	defer b.Release()
	store := object.NewMemory("test")
	out, err := store.Create(context.Background(), "f.lance")
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewWriter(out, s, WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Finish(context.Background()); err != nil {
		t.Fatal(err)
	}
	r := openWritten(t, store)
	cols, err := r.Columns()
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.ReadRange(context.Background(), cols, 0, 3, ReadOptions{Alloc: memory.DefaultAllocator})
	if err != nil {
		t.Fatal(err)
	}
	defer got.Release()
	if text := got.Column(0).String(); text != `["@\x00\x00\x01\x10\x00\x00\x01 \x00\x00\x02aP\x01" (null) "\x80\x00\x00\x01@\x00\x00\x00"]` {
		t.Fatalf("%s", text)
	}
}
