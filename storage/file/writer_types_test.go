package file

import (
	"fmt"
	"math/rand"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakesql/lakesql/internal/testutil"
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
				want := readStream(t, path)
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
