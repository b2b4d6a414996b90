//go:build interop

package interop

import (
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/write"
)

// One wide table per version holds every logical type, nesting, compression and layout that field metadata can ask for; both engines read it alike by scan,
// take and slice.
func TestTheEnginesReadEveryTypeThatWeWrite(t *testing.T) {
	engines := StartPythons(t)
	for _, name := range []string{"types_v21_3", "types_v21_400", "types_v22_3", "types_v22_400", "fslstruct_v22_400"} {
		want := fixtureRows(t, name)
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

func fixtureRows(t *testing.T, name string) arrow.RecordBatch {
	t.Helper()
	f, err := os.Open(filepath.Join(testutil.Root(t), "testdata", "file", name+".arrow.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	r, err := ipc.NewReader(z)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	if !r.Next() {
		t.Fatal(r.Err())
	}
	b := r.RecordBatch()
	b.Retain()
	return b
}
