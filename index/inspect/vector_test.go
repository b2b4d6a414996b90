package inspect

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/vector"
	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/storage/object"
)

// vectorSegments opens the folders of the vector segments of a dataset, of all its versions, by name.
func vectorSegments(t *testing.T, dataset string) []object.Store {
	t.Helper()
	folders, err := filepath.Glob(filepath.Join(testutil.Lance(t, dataset), "_indices", "*", vector.IndexFile))
	if err != nil || len(folders) == 0 {
		t.Fatalf("%v, %v", folders, err)
	}
	var out []object.Store
	for _, f := range folders {
		store, err := object.OpenLocal(filepath.Dir(f), object.LocalOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		out = append(out, store)
	}
	return out
}

func TestVectorSegmentsPrintTheirLists(t *testing.T) {
	for _, c := range []struct{ dataset, want string }{
		{"vec_ivf_flat_cosine", `IVF_FLAT, v_idx, version 1
  rows: 2474 in 8 lists, cosine over 16 dimensions of float32, vectors as they are
    list 0: 206 rows from row 0
    list 1: 413 rows from row 206
    ... 6 more
`},
		{"vec_ivf_pq4_l2", `IVF_PQ, v_idx, version 1
  rows: 2474 in 4 lists, l2 over 16 dimensions of float32, 8 sub-vectors of 2 dimensions, 4 bits each, transposed true
    list 0: 617 rows from row 0
    list 1: 206 rows from row 617
    ... 2 more
`},
		{"vec_hnsw_sq_l2", `IVF_HNSW_SQ, v_idx, version 1
  rows: 2474 in 2 lists, l2 over 16 dimensions of float32, 8 bits a dimension from -12.735990524291992 to 10.262430191040039
    list 0: 1078 rows from row 0
    list 1: 1396 rows from row 1078
`},
		{"vec_ivf_rq_l2", `IVF_RQ, v_idx, version 1
  rows: 2474 in 8 lists, l2 over 16 dimensions of float32, codes of the rotated residual, bits a dimension: 1
    list 0: 618 rows from row 0
    list 1: 208 rows from row 618
    ... 6 more
`},
	} {
		t.Run(c.dataset, func(t *testing.T) {
			var out bytes.Buffer
			faults, err := Segment(context.Background(), &out, vectorSegments(t, c.dataset)[0].Open, index.Meta{Name: "v_idx", Version: 1}, Options{KeysMax: 2})
			if err != nil || faults != 0 || out.String() != c.want {
				t.Fatalf("%d faults, %v\n%s\nwant\n%s", faults, err, &out, c.want)
			}
		})
	}
}

func TestATruncatedVectorSegmentIsAFault(t *testing.T) {
	ctx := context.Background()
	source := vectorSegments(t, "vec_ivf_flat_l2")[0]
	broken := object.NewMemory("broken")
	for _, name := range []string{vector.IndexFile, vector.AuxiliaryFile} {
		f, err := source.Open(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		b, err := f.Read(ctx, object.Range{Size: f.SizeBytes()})
		if err != nil {
			t.Fatal(err)
		}
		if name == vector.AuxiliaryFile {
			b = b[:len(b)-1]
		}
		if err := broken.Put(ctx, name, b, true); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	faults, err := Segment(ctx, &out, broken.Open, index.Meta{}, Options{})
	if err != nil || faults != 1 || !bytes.Contains(out.Bytes(), []byte("FAULT: ")) {
		t.Fatalf("%d faults, %v\n%s", faults, err, &out)
	}
}
