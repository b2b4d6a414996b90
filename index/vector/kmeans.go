package vector

import (
	"context"
	"math"
	"math/rand/v2"
	"runtime"
	"sync/atomic"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/internal/vec"
)

// trainOptions says how centroids are found.
type trainOptions struct {
	lists       int
	dim         int
	dot         bool // nearest = largest inner product, else smallest Euclidean distance
	seed        uint64
	iterations  int     // at most
	tolerance   float64 // stop when the loss falls by less than this share
	parallelism int
	progress    func(done, total int)
}

const (
	assignChunk = 1024       // rows that a worker assigns at a time
	splitShift  = 1.0 / 1024 // how far the halves of a split list move apart, relative
)

// train finds lists centroids of rows [n*dim]float32, n >= lists, by k-means (Lloyd 1982) from distinct random rows. The result depends on rows
// and seed alone, not on parallelism: every row is assigned on its own and every sum is added up in row order.
func train(ctx context.Context, rows []float32, o trainOptions) (centroids []float32, loss float64, err error) {
	n := len(rows) / o.dim
	if o.lists < 1 || n < o.lists {
		return nil, 0, errs.New(errs.ErrInvalid, "%d lists cannot be trained from %d vectors", o.lists, n)
	}
	if o.parallelism <= 0 {
		o.parallelism = runtime.GOMAXPROCS(0)
	}
	centroids = make([]float32, o.lists*o.dim)
	random := rand.New(rand.NewPCG(o.seed, 0x6c616b6573716c)) //nolint:gosec // reproducible, no secret
	for i, row := range random.Perm(n)[:o.lists] {
		copy(centroids[i*o.dim:(i+1)*o.dim], rows[row*o.dim:(row+1)*o.dim])
	}
	which, score := make([]int32, n), make([]float32, n)
	norms := 0.0
	if !o.dot {
		for i := range n {
			norms += float64(vec.Norm2(rows[i*o.dim : (i+1)*o.dim]))
		}
	}
	loss = math.Inf(1)
	for round := range o.iterations {
		if err := assignAll(ctx, vec.NewPanels(centroids, o.dim, o.dot), rows, which, score, o); err != nil {
			return nil, 0, err
		}
		before := loss
		loss = totalLoss(score, norms, o.dot)
		counts, err := means(ctx, centroids, rows, which, o)
		if err != nil {
			return nil, 0, err
		}
		split := splitEmpty(centroids, counts, o.dim)
		if o.progress != nil {
			o.progress(round+1, o.iterations)
		}
		if split == 0 && before-loss < o.tolerance*math.Abs(before) {
			break
		}
	}
	if o.progress != nil {
		o.progress(o.iterations, o.iterations)
	}
	return centroids, loss, nil
}

func totalLoss(score []float32, norms float64, dot bool) float64 {
	var sum float64
	for _, s := range score {
		sum += float64(s)
	}
	if dot {
		return -sum
	}
	return max(norms-2*sum, 0)
}

func assignAll(ctx context.Context, p *vec.Panels, rows []float32, which []int32, score []float32, o trainOptions) error {
	n := len(which)
	chunks := (n + assignChunk - 1) / assignChunk
	return forEach(ctx, "assign vectors", chunks, o.parallelism, func(c int) error {
		lo, hi := c*assignChunk, min((c+1)*assignChunk, n)
		p.Assign(which[lo:hi], score[lo:hi], rows[lo*o.dim:hi*o.dim])
		return nil
	})
}

// means moves each centroid to the mean of its rows; one without rows stays. Each worker owns a range of lists and walks all rows.
func means(ctx context.Context, centroids, rows []float32, which []int32, o trainOptions) (counts []int, err error) {
	counts = make([]int, o.lists)
	shares := min(o.parallelism, o.lists)
	err = forEach(ctx, "average vectors", shares, shares, func(s int) error {
		lo, hi := o.lists*s/shares, o.lists*(s+1)/shares
		sums := make([]float64, (hi-lo)*o.dim)
		for i, list := range which {
			l := int(list) - lo
			if l < 0 || l >= hi-lo {
				continue
			}
			counts[list]++
			sum := sums[l*o.dim : (l+1)*o.dim]
			for d, x := range rows[i*o.dim : (i+1)*o.dim] {
				sum[d] += float64(x)
			}
		}
		for l := lo; l < hi; l++ {
			if counts[l] == 0 {
				continue
			}
			inverse := 1 / float64(counts[l])
			for d := range o.dim {
				centroids[l*o.dim+d] = float32(sums[(l-lo)*o.dim+d] * inverse)
			}
		}
		return nil
	})
	return counts, err
}

// splitEmpty gives each list without rows half of the fullest one: both centroids move apart a little. It returns how many were split.
func splitEmpty(centroids []float32, counts []int, dim int) int {
	split := 0
	for empty, count := range counts {
		if count > 0 {
			continue
		}
		full := 0
		for l, c := range counts {
			if c > counts[full] {
				full = l
			}
		}
		if counts[full] < 2 {
			return split
		}
		for d := range dim {
			shift := float32(splitShift)
			if d%2 == 1 {
				shift = -shift
			}
			x := centroids[full*dim+d]
			centroids[empty*dim+d] = x * (1 + shift)
			centroids[full*dim+d] = x * (1 - shift)
		}
		counts[empty] = counts[full] / 2
		counts[full] -= counts[empty]
		split++
	}
	return split
}

// forEach runs f(0) .. f(n-1) on up to parallelism goroutines and stops at the first error or when ctx ends.
func forEach(ctx context.Context, name string, n, parallelism int, f func(i int) error) error {
	if n == 0 {
		return ctx.Err()
	}
	workers := min(max(parallelism, 1), n)
	var next atomic.Int64
	group, ctx := spawn.WithContext(ctx, workers)
	for range workers {
		group.Go(name, func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return nil
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := f(i); err != nil {
					return err
				}
			}
		})
	}
	return group.Wait()
}
