package vector

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lakesql/lakesql/internal/errs"
)

// clusters draws n rows around count centers that lie far apart.
func clusters(r *rand.Rand, n, dim, count int) []float32 {
	rows := make([]float32, n*dim)
	for i := range n {
		c := r.IntN(count)
		for d := range dim {
			rows[i*dim+d] = float32(20*((c>>(d%8))&1)) + float32(r.NormFloat64())
		}
	}
	return rows
}

func TestTrainingFindsClustersThatLieFarApart(t *testing.T) {
	rows := clusters(rand.New(rand.NewPCG(1, 2)), 4000, 8, 16)
	_, loss, err := train(context.Background(), rows, trainOptions{lists: 64, dim: 8, seed: 1, iterations: 50, tolerance: 1e-4})
	if err != nil {
		t.Fatal(err)
	}
	// Within a cluster the expected squared distance to its center is 8.
	if mean := loss / 4000; mean > 8 {
		t.Fatalf("mean squared distance %v, want below 8", mean)
	}
}

func TestTrainingIsTheSameOnAnyNumberOfGoroutines(t *testing.T) {
	for _, dot := range []bool{false, true} {
		rows := clusters(rand.New(rand.NewPCG(3, 4)), 3000, 16, 5)
		var first []float32
		for _, threads := range []int{1, 2, 5} {
			got, _, err := train(context.Background(), rows, trainOptions{lists: 37, dim: 16, dot: dot, seed: 9, iterations: 8, parallelism: threads})
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = got
			} else if !slices.Equal(first, got) {
				t.Fatalf("dot %v: %d goroutines gave other centroids", dot, threads)
			}
		}
		other, _, err := train(context.Background(), rows, trainOptions{lists: 37, dim: 16, dot: dot, seed: 10, iterations: 8})
		if err != nil {
			t.Fatal(err)
		}
		if slices.Equal(first, other) {
			t.Fatalf("dot %v: another seed gave the same centroids", dot)
		}
	}
}

func TestEmptyListsTakeHalfOfTheFullest(t *testing.T) {
	// Three distinct rows only, so that random rows coincide and lists start empty.
	rows := make([]float32, 300*2)
	for i := range 300 {
		rows[2*i], rows[2*i+1] = float32(i%3)+1, float32(i%3)*10
	}
	centroids, loss, err := train(context.Background(), rows, trainOptions{lists: 3, dim: 2, seed: 5, iterations: 60})
	if err != nil {
		t.Fatal(err)
	}
	if loss > 1e-2 {
		t.Fatalf("loss %v with centroids %v", loss, centroids)
	}
}

func TestTrainingNeedsAsManyVectorsAsLists(t *testing.T) {
	if _, _, err := train(context.Background(), make([]float32, 10), trainOptions{lists: 6, dim: 2, iterations: 1}); !errors.Is(err, errs.ErrInvalid) {
		t.Fatalf("got %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := train(ctx, make([]float32, 10), trainOptions{lists: 2, dim: 2, iterations: 1}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
}

func BenchmarkTrain(b *testing.B) {
	const n, dim, lists = 256_000, 128, 1000
	rows := clusters(rand.New(rand.NewPCG(1, 2)), n, dim, 200)
	for b.Loop() {
		rounds := 0
		_, loss, err := train(context.Background(), rows, trainOptions{lists: lists, dim: dim, seed: 1, iterations: 30, tolerance: 5e-4, progress: func(done, _ int) { rounds++ }})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(rounds-1), "rounds")
		b.ReportMetric(loss/n, "loss/row")
	}
}
