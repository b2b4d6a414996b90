package write

import (
	"context"
	"errors"
	"io"
	"math/rand"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/vector"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/vec"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/rowset"
)

const ivfDim = 24

var vectorColumns = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64},
	{Name: "v", Type: arrow.FixedSizeListOf(ivfDim, arrow.PrimitiveTypes.Float32), Nullable: true},
}, nil)

// vectorRows yields n rows in one batch; every ninth vector is NULL.
type vectorRows struct {
	n    int
	seed int64
	done bool
}

func (s *vectorRows) Next(context.Context) (arrow.RecordBatch, error) {
	if s.done {
		return nil, io.EOF
	}
	s.done = true
	r := rand.New(rand.NewSource(s.seed))
	ids := array.NewInt64Builder(memory.DefaultAllocator)
	vectors := array.NewFixedSizeListBuilder(memory.DefaultAllocator, ivfDim, arrow.PrimitiveTypes.Float32)
	values := vectors.ValueBuilder().(*array.Float32Builder)
	for i := range s.n {
		ids.Append(s.seed*1_000_000 + int64(i))
		vectors.Append(i%9 != 4)
		for range ivfDim {
			values.Append(float32(r.NormFloat64()))
		}
	}
	return array.NewRecordBatch(vectorColumns, []arrow.Array{ids.NewArray(), vectors.NewArray()}, int64(s.n)), nil
}

// vectorTable is a table of two fragments.
func vectorTable(t *testing.T, store object.Store, opts CreateOptions) (Target, *storage.Table) {
	t.Helper()
	ctx := context.Background()
	target := Target{Store: store, Dir: "t.lance"}
	opts.Parts = []Batches{&vectorRows{n: 1200, seed: 1}}
	if _, err := CreateTable(ctx, target, vectorColumns, opts); err != nil {
		t.Fatal(err)
	}
	appendVectors(t, target, 500, 2)
	table, err := storage.OpenTable(ctx, store, target.Dir, storage.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return target, table
}

func appendVectors(t *testing.T, target Target, n int, seed int64) {
	t.Helper()
	if _, err := Append(context.Background(), target, &vectorRows{n: n, seed: seed}, AppendOptions{}); err != nil {
		t.Fatal(err)
	}
}

// searchBoth compares a search over every segment of v_idx, all lists probed, with an exact search of the fragments that they cover.
func searchBoth(t *testing.T, table *storage.Table, metric index.Metric) (segments int, hits []index.Hit) {
	t.Helper()
	ctx := context.Background()
	snap, err := table.Latest(ctx)
	if err != nil {
		t.Fatal(err)
	}
	query := make([]float32, ivfDim)
	for i := range query {
		query[i] = float32(i%5) - 1.5
	}
	scanner, err := vector.NewScanner(vector.ScanOptions{Metric: metric, Elem: vec.Float32, Vector: query, K: 60})
	if err != nil {
		t.Fatal(err)
	}
	var parts []vector.Part
	var found [][]index.Hit
	for _, info := range snap.Indices() {
		open := func(ctx context.Context, name string) (object.File, error) {
			return snap.OpenIndexFile(ctx, info, name)
		}
		s, err := vector.Open(ctx, open, index.Meta{Name: info.Name, UUID: info.UUID}, index.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		segments++
		if kind, m, known := vector.KindOf(info.Details); !known || kind != index.KindIVFFlat || m != metric || !vector.IsDetails(info.TypeURL) {
			t.Errorf("the details say %s over %s (%v)", kind, m, known)
		}
		one, err := s.Nearest(ctx, index.NearestQuery{Vector: query, Metric: metric, K: 60, MinProbes: s.Lists()})
		if err != nil {
			t.Fatal(err)
		}
		for i := range one {
			addrs, ok, err := snap.ResolveKeys(ctx, []uint64{one[i].Key})
			if err != nil || !ok[0] {
				t.Fatalf("key %d: %v", one[i].Key, err)
			}
			one[i].Key = uint64(addrs[0])
		}
		found = append(found, one)
		for it := info.Covers.Iterator(); it.HasNext(); {
			id := it.Next()
			blocks, err := snap.VectorBlocks(ctx, "v", id)
			if err != nil {
				t.Fatal(err)
			}
			parts = append(parts, vector.Part{KeyBase: uint64(rowset.Addr(id, 0)), Blocks: blocks})
		}
	}
	hits, err = scanner.Nearest(ctx, parts)
	if err != nil {
		t.Fatal(err)
	}
	got := vector.Merge(60, found...)
	if len(got) != len(hits) {
		t.Fatalf("%d hits by index, %d by scan", len(got), len(hits))
	}
	for i := range got {
		if d := got[i].Distance - hits[i].Distance; d > 1e-4 || d < -1e-4 {
			t.Fatalf("hit %d by index %v, by scan %v", i, got[i], hits[i])
		}
		if metric != index.MetricCosine && got[i] != hits[i] { // cosine stores rescaled vectors
			t.Fatalf("hit %d by index %v, by scan %v", i, got[i], hits[i])
		}
	}
	return segments, hits
}

func TestIVFFlatFindsWhatAScanFinds(t *testing.T) {
	for _, c := range []struct {
		name   string
		create CreateOptions
		metric index.Metric
	}{
		{"row addresses, l2", CreateOptions{}, index.MetricL2},
		{"row addresses, cosine, version 2.1", CreateOptions{Version: file.V21}, index.MetricCosine},
		{"stable row ids, dot", CreateOptions{StableRowIDs: true}, index.MetricDot},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := context.Background()
			target, table := vectorTable(t, object.NewMemory("m"), c.create)
			built, err := BuildIVFFlat(ctx, table, "v", IVFFlatOptions{Metric: c.metric, Lists: 9})
			if err != nil {
				t.Fatal(err)
			}
			if want := uint64(1200 + 500 - 133 - 56); built.Rows != want || built.Lists != 9 || built.Version != 3 {
				t.Fatalf("built %+v, want %d rows", built, want)
			}
			searchBoth(t, table, c.metric)

			if _, err := BuildIVFFlat(ctx, table, "v", IVFFlatOptions{Metric: c.metric}); !errors.Is(err, errs.ErrExists) {
				t.Fatalf("a second index of one name: %v", err)
			}
			if again, err := BuildIVFFlat(ctx, table, "v", IVFFlatOptions{Metric: c.metric, Extend: true}); err != nil || again.Version != 3 || again.Lists != 0 {
				t.Fatalf("extending what is covered: %+v %v", again, err)
			}
			appendVectors(t, target, 300, 3)
			if _, err := BuildIVFFlat(ctx, table, "v", IVFFlatOptions{Metric: c.metric, Extend: true, Lists: 4}); err != nil {
				t.Fatal(err)
			}
			if n, hits := searchBoth(t, table, c.metric); n != 2 || !slices.ContainsFunc(hits, func(h index.Hit) bool { return rowset.RowAddr(h.Key).Fragment() == 2 }) {
				t.Fatalf("%d segments after extending", n)
			}
			if _, err := BuildIVFFlat(ctx, table, "v", IVFFlatOptions{Metric: c.metric, Replace: true}); err != nil {
				t.Fatal(err)
			}
			if n, _ := searchBoth(t, table, c.metric); n != 1 {
				t.Fatalf("%d segments after replacing", n)
			}
		})
	}
}

func TestIVFFlatCoversTheFragmentsAskedFor(t *testing.T) {
	ctx := context.Background()
	_, table := vectorTable(t, object.NewMemory("m"), CreateOptions{})
	for _, f := range []uint32{1, 0} {
		if _, err := BuildIVFFlat(ctx, table, "v", IVFFlatOptions{Fragments: []uint32{f}, Lists: 3}); err != nil {
			t.Fatal(err)
		}
	}
	if n, _ := searchBoth(t, table, index.MetricL2); n != 2 {
		t.Fatalf("%d segments", n)
	}
	if _, err := BuildIVFFlat(ctx, table, "v", IVFFlatOptions{Fragments: []uint32{1}}); !errors.Is(err, errs.ErrExists) {
		t.Fatalf("a fragment twice: %v", err)
	}
}

func TestIVFFlatRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		column string
		opts   IVFFlatOptions
		want   error
	}{
		"a column that does not exist":  {"w", IVFFlatOptions{}, errs.ErrNotFound},
		"a column that has no vectors":  {"id", IVFFlatOptions{}, errs.ErrUnsupported},
		"a distance that is none":       {"v", IVFFlatOptions{Metric: "l1"}, errs.ErrInvalid},
		"to replace and to extend":      {"v", IVFFlatOptions{Replace: true, Extend: true}, errs.ErrInvalid},
		"a fragment that is not there":  {"v", IVFFlatOptions{Fragments: []uint32{77}}, errs.ErrInvalid},
		"lists without number or bound": {"v", IVFFlatOptions{Lists: 1 << 30}, errs.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			_, table := vectorTable(t, object.NewMemory("m"), CreateOptions{})
			if _, err := BuildIVFFlat(context.Background(), table, c.column, c.opts); !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
		})
	}
}

// Whatever operation of the store fails, no index is half there, and no file is left but those of a commit.
func TestAFailedIVFFlatBuildLeavesNothing(t *testing.T) {
	ctx := context.Background()
	for n := int64(1); ; n++ {
		memory := object.NewMemory("m")
		_, table := vectorTable(t, memory, CreateOptions{})
		faulty := object.NewFaulty(memory, object.FaultyOptions{FailAt: n})
		broken, err := storage.OpenTable(ctx, faulty, table.Dir(), storage.TableOptions{})
		if err == nil {
			_, err = BuildIVFFlat(ctx, broken, "v", IVFFlatOptions{Lists: 5})
		}
		indices, listErr := memory.List(ctx, object.Join(table.Dir(), "_indices"))
		if listErr != nil {
			t.Fatal(listErr)
		}
		snap, snapErr := table.Latest(ctx)
		if snapErr != nil {
			t.Fatal(snapErr)
		}
		// Where nobody knows whether the version was published the files must stay.
		if len(snap.Indices()) != len(indices) && !errors.Is(err, errOutcome) {
			t.Fatalf("operation %d fails with %v: %d segments in the table, %d folders", n, err, len(snap.Indices()), len(indices))
		}
		if err == nil {
			if len(indices) != 1 {
				t.Fatalf("no error, %d indices", len(indices))
			}
			return
		}
		if n > 500 {
			t.Fatal("the build never ends")
		}
	}
}
