//go:build interop

package interop

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
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/write"
)

// One wide table per version holds every logical type, nesting, compression and layout that field metadata can ask for; both engines read it alike by scan,
// take and slice.
func TestTheEnginesReadEveryTypeThatWeWrite(t *testing.T) {
	engines := StartPythons(t)
	for _, name := range []string{"types_v21_3", "types_v21_400", "types_v22_3", "types_v22_400", "fslstruct_v22_400"} {
		want := testutil.LoadArrow(t, filepath.Join(testutil.Root(t), "testdata", "file", name+".arrow.gz"))
		versions := []file.Version{file.V22}
		if strings.Contains(name, "_v21_") {
			versions = append(versions, file.V21)
		}
		for _, v := range versions {
			for _, pageBytes := range []int{0, 900} {
				store, dir := local(t)
				opts := write.CreateOptions{
					Version: v, Rows: write.RowOptions{PageBytes: pageBytes},
					Parts: []write.Batches{&batches{rows: sliced(want, 150)}},
				}
				if _, err := write.CreateTable(context.Background(), write.Target{Store: store, Dir: "t.lance"}, want.Schema(), opts); err != nil {
					t.Fatal(err)
				}
				for engine, eng := range engines {
					t.Run(fmt.Sprintf("%s in %s, pages of %d, %s", name, v, pageBytes, engine), func(t *testing.T) {
						checkAnswers(t, eng, filepath.Join(dir, "t.lance"), want)
					})
				}
			}
		}
	}
}

// Whatever field metadata asks for, on columns of every type, is legal for both engines.
func TestTheEnginesReadWhatMetadataAsksFor(t *testing.T) {
	engines := StartPythons(t)
	for _, asked := range []map[string]string{
		{"compression": "zstd", "bss": "on"}, {"compression": "lz4"}, {"compression": "fsst"}, {"compression": "none"},
		{"dict-divisor": "1", "compression": "lz4"}, {"rle-threshold": "0.1"}, {"structural-encoding": "fullzip"},
		{"structural-encoding": "fullzip", "compression": "zstd", "compression-level": "9"}, {"structural-encoding": "miniblock"},
	} {
		for _, v := range []file.Version{file.V21, file.V22} {
			md := map[string]string{}
			for key, value := range asked {
				md["lance-encoding:"+key] = value
			}
			columns := testutil.Columns(v == file.V22)
			for i := range columns {
				columns[i].Metadata = arrow.MetadataFrom(md)
			}
			maker := testutil.RowMaker{R: rand.New(rand.NewSource(1)), Nulls: 0.1, ItemNulls: 0.05, Distinct: 40}
			want := maker.Batch(memory.DefaultAllocator, arrow.NewSchema(columns, nil), 2500)
			store, dir := local(t)
			opts := write.CreateOptions{Version: v, Parts: []write.Batches{&batches{rows: sliced(want, 999)}}}
			if _, err := write.CreateTable(context.Background(), write.Target{Store: store, Dir: "t.lance"}, want.Schema(), opts); err != nil {
				t.Fatal(err)
			}
			for engine, eng := range engines {
				t.Run(fmt.Sprint(asked, " in ", v, ", ", engine), func(t *testing.T) {
					checkAnswers(t, eng, filepath.Join(dir, "t.lance"), want)
				})
			}
		}
	}
}

// JSON text that we store comes back from the engines as text.
func TestTheEnginesReadOurJSON(t *testing.T) {
	engines := StartPythons(t)
	texts := []string{`null`, `true`, `0`, `-70000`, `12345678901234`, `1.5`, `"ä"`, `[]`, `{}`, `[1,"a",null,[2]]`, `{"a":1,"bb":{"c":[true,-1]}}`}
	text := array.NewStringBuilder(memory.DefaultAllocator)
	text.AppendValues(texts, nil)
	text.AppendNull()
	arr := text.NewArray()
	rows := array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: "j", Type: arrow.BinaryTypes.String, Nullable: true}}, nil), []arrow.Array{arr}, int64(arr.Len()))
	md := arrow.MetadataFrom(map[string]string{"ARROW:extension:name": "lance.json"})
	s := arrow.NewSchema([]arrow.Field{{Name: "j", Type: arrow.BinaryTypes.LargeBinary, Nullable: true, Metadata: md}}, nil)
	store, dir := local(t)
	target := write.Target{Store: store, Dir: "t.lance"}
	if _, err := write.CreateTable(context.Background(), target, s, write.CreateOptions{Parts: []write.Batches{&batches{rows: []arrow.RecordBatch{rows}}}}); err != nil {
		t.Fatal(err)
	}
	for _, eng := range engines {
		got := eng.Rows("scan", Request{"path": filepath.Join(dir, "t.lance")})
		j := Column(t, got, "j")
		if ext, ok := j.(array.ExtensionArray); ok {
			j = ext.Storage()
		}
		for i, want := range texts {
			if j.ValueStr(i) != want {
				t.Errorf("row %d is %s, want %s", i, j.ValueStr(i), want)
			}
		}
		if !j.IsNull(len(texts)) {
			t.Error("the NULL is gone")
		}
	}
}
