//go:build unix

package vector

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/vec"
	"github.com/lakesql/lakesql/storage/object"
)

func TestASegmentThatIsTruncatedUnderItsMappingIsAnError(t *testing.T) {
	dir := t.TempDir()
	store, err := object.OpenLocal(dir, object.LocalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	tab := randomTable(rand.New(rand.NewPCG(51, 52)), vec.Float32, 4000, 80)
	s := built(t, store, source(nil, tab), BuildOptions{Metric: index.MetricL2, Elem: vec.Float32, Dim: 80, Lists: 4})
	q := index.NearestQuery{Vector: make([]float32, 80), Metric: index.MetricL2, K: 5, MinProbes: 4}
	if hits, err := s.Nearest(context.Background(), q); err != nil || len(hits) != 5 {
		t.Fatalf("%v, %v", hits, err)
	}
	if err := os.Truncate(filepath.Join(dir, AuxiliaryFile), 64); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Nearest(context.Background(), q); !errors.Is(err, errs.ErrIO) {
		t.Fatalf("got %v, want an I/O error", err)
	}
	if err := s.CheckList(context.Background(), 0); !errors.Is(err, errs.ErrIO) {
		t.Fatalf("got %v, want an I/O error", err)
	}
}

func TestCancelStopsASearchAndABuild(t *testing.T) {
	tab := randomTable(rand.New(rand.NewPCG(53, 54)), vec.Float32, 500, 8)
	options := BuildOptions{Metric: index.MetricL2, Elem: vec.Float32, Dim: 8, Lists: 4}
	s := built(t, object.NewMemory("m"), source(nil, tab), options)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Nearest(ctx, index.NearestQuery{Vector: make([]float32, 8), Metric: index.MetricL2, K: 5}); !errors.Is(err, context.Canceled) {
		t.Errorf("search: got %v", err)
	}
	if _, err := BuildFlat(ctx, object.NewMemory("m").Create, source(nil, tab), options); !errors.Is(err, context.Canceled) {
		t.Errorf("build: got %v", err)
	}
}
