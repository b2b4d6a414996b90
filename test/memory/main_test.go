package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	arrowmem "github.com/apache/arrow-go/v18/arrow/memory"
	"go.uber.org/goleak"
	"gocloud.dev/blob/fileblob"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/source"
	"github.com/lakesql/lakesql/source/lance"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/object/cloud"
	"github.com/lakesql/lakesql/write"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

const (
	dim       = 8
	wideBytes = 4096
	batchRows = 5000
)

var (
	vectors      = arrow.FixedSizeListOf(dim, arrow.PrimitiveTypes.Float32)
	tableColumns = arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "k", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "labels", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true},
		{Name: "v", Type: vectors, Nullable: true},
	}, nil)
	wideColumns = arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "v", Type: vectors, Nullable: true},
		{Name: "wide", Type: arrow.BinaryTypes.Binary, Nullable: true},
	}, nil)
)

// rows yields rows of a schema, numbered from 0.
type rows struct {
	n, at  int
	schema *arrow.Schema
	add    func(b *array.RecordBuilder, r *rand.Rand, i int)
}

func (s *rows) Next(context.Context) (arrow.RecordBatch, error) {
	if s.at == s.n {
		return nil, io.EOF
	}
	b := array.NewRecordBuilder(arrowmem.DefaultAllocator, s.schema)
	defer b.Release()
	r := rand.New(rand.NewSource(int64(s.at)))
	for end := min(s.at+batchRows, s.n); s.at < end; s.at++ {
		s.add(b, r, s.at)
	}
	return b.NewRecordBatch(), nil
}

func addVector(b array.Builder, r *rand.Rand) {
	list := b.(*array.FixedSizeListBuilder)
	list.Append(true)
	for range dim {
		list.ValueBuilder().(*array.Float32Builder).Append(float32(r.NormFloat64()))
	}
}

func addRow(b *array.RecordBuilder, r *rand.Rand, i int) {
	b.Field(0).(*array.Int64Builder).Append(int64(i))
	b.Field(1).(*array.StringBuilder).Append(fmt.Sprintf("%016x key of row %d", r.Uint64(), i))
	list := b.Field(2).(*array.ListBuilder)
	list.Append(true)
	for k := range 10 {
		if r.Intn(3) == 0 {
			list.ValueBuilder().(*array.StringBuilder).Append("label" + strconv.Itoa(k))
		}
	}
	addVector(b.Field(3), r)
}

func addWide(b *array.RecordBuilder, r *rand.Rand, i int) {
	b.Field(0).(*array.Int64Builder).Append(int64(i))
	addVector(b.Field(1), r)
	value := make([]byte, wideBytes)
	r.Read(value)
	b.Field(2).(*array.BinaryBuilder).Append(value)
}

// makeLake writes table t with indices and table w of wide rows.
func makeLake(t *testing.T, dir string) {
	t.Helper()
	ctx := context.Background()
	store, err := object.OpenLocal(dir, object.LocalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, c := range []struct {
		dir     string
		content *rows
		parts   int64
	}{
		{"t.lance", &rows{n: tableRows, schema: tableColumns, add: addRow}, 4},
		{"w.lance", &rows{n: wideRows, schema: wideColumns, add: addWide}, 3},
	} {
		opts := write.CreateOptions{Parts: []write.Batches{c.content}, Rows: write.RowOptions{FragmentRows: int64(c.content.n) / c.parts}}
		if _, err := write.CreateTable(ctx, write.Target{Store: store, Dir: c.dir}, c.content.schema, opts); err != nil {
			t.Fatal(err)
		}
	}
	table, err := storage.OpenTable(ctx, store, "t.lance", storage.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := write.BuildFilterIndex(ctx, table, write.FilterIndexSpec{Column: "labels", Kind: index.KindLabelList}, write.FilterIndexOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := write.BuildFilterIndex(ctx, table, write.FilterIndexSpec{Column: "id", Kind: index.KindBTree}, write.FilterIndexOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := write.BuildIVFFlat(ctx, table, "v", write.IVFFlatOptions{Lists: 64, Iterations: 4, SampleRate: 64}); err != nil {
		t.Fatal(err)
	}
}

// openStore opens the folder of the lake: its files mapped, or fetched through a bucket, as from an object store.
func openStore(t *testing.T, dir string, remote bool) object.Store {
	t.Helper()
	if remote {
		bucket, err := fileblob.OpenBucket(dir, &fileblob.Options{Metadata: fileblob.MetadataDontWrite})
		if err != nil {
			t.Fatal(err)
		}
		// The cache of blocks is nobody's statement: a small one is full before anything is measured.
		return cloud.OpenBlob(bucket, "file://lake", cloud.Options{CacheBytes: 1 << 20})
	}
	store, err := object.OpenLocal(dir, object.LocalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// openEngine opens an engine over the lake.
func openEngine(t *testing.T, dir string, remote bool) *engine.Engine {
	t.Helper()
	e, err := engine.Open(context.Background(), engine.Config{
		Catalogs: []source.Catalog{lance.Open("lake", openStore(t, dir, remote), lance.Options{Remote: remote})}, QueryMemoryLimitBytes: limitBytes,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// drain reads a result to its end and returns the rows.
func drain(res *engine.Result) (n int64, err error) {
	for res.HasRows() {
		b, err := res.Operator.Next(res.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return n, err
		}
		n += b.NumRows()
		b.Release()
	}
	return n, nil
}

// residentBytes is what the process holds in anonymous memory.
func residentBytes() (int64, error) {
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(raw) {
		if name, value, _ := strings.Cut(string(line), ":"); name == "RssAnon" {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kib << 10, err
		}
	}
	return 0, errors.New("/proc/self/status has no RssAnon")
}

// runtimeBytes is what Go's runtime holds and has not given back.
func runtimeBytes() int64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64() - samples[1].Value.Uint64())
}

// growth runs f and returns how far the resident memory rose above what it was at rest. Meanwhile Go's collector has the statement's limit as its own, as
// the server tells it, so that garbage does not pile up beside what is in use.
func growth(t *testing.T, f func()) (peakBytes int64) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Log("resident memory is read on Linux alone: only what is counted is checked here")
		f()
		return 0
	}
	debug.FreeOSMemory()
	idle, err := residentBytes()
	if err != nil {
		t.Fatal(err)
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(runtimeBytes() + limitBytes))
	ctx, stop := context.WithCancel(context.Background())
	g, _ := spawn.WithContext(ctx, 0)
	g.Go("sample", func() error {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			now, err := residentBytes()
			if err != nil {
				return err
			}
			peakBytes = max(peakBytes, now-idle)
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
		}
	})
	f()
	stop()
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	return peakBytes
}
