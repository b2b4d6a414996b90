package lance

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/source"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/rowset"
)

// openRemote opens a test dataset as if it lay in an object store.
func openRemote(t *testing.T, name string) (*Table, *object.Counting) {
	t.Helper()
	local, err := object.OpenLocal(filepath.Join(testutil.Root(t), "testdata", "lance"), object.LocalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	store := object.NewCounting(local, object.CountingOptions{AsRemote: true})
	c := Open("lake", store, Options{Remote: true})
	t.Cleanup(func() {
		if err := errors.Join(c.opts.Segments.Close(), c.Close()); err != nil {
			t.Error(err)
		}
	})
	table, err := c.Table(ctx, name, source.AsOf{})
	if err != nil {
		t.Fatal(err)
	}
	return table.(*Table), store
}

// TestRemoteSearchesEqualMappedOnes: exact searches without a mask, with many candidates and with few, and distances of single rows, give over a store without mappings what they
// give over mappings, and leave nothing reserved.
func TestRemoteSearchesEqualMappedOnes(t *testing.T) {
	for name, metric := range map[string]index.Metric{
		"vec_segments": index.MetricL2, "vec_ivf_flat_l2": index.MetricL2, "vec_ivf_flat_cosine": index.MetricCosine, "vec_ivf_pq_l2": index.MetricDot,
	} {
		t.Run(name, func(t *testing.T) {
			mapped := openDataset(t, name)
			remote, _ := openRemote(t, name)
			budget := mem.NewBudget("query", 0, nil)
			req := exec.SearchRequest{Column: "v", Metric: metric, Query: testQuery(16), Budget: budget}
			live, err := mapped.LiveRows(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			few, many := rowset.NewSet(), rowset.NewSet()
			var addrs []rowset.RowAddr
			for k := range live.All() {
				addrs = append(addrs, rowset.RowAddr(k), rowset.RowAddr(k))
				if k%37 == 0 {
					few.Add(k)
				}
				if k%3 != 0 {
					many.Add(k)
				}
			}
			slices.Reverse(addrs)
			for what, among := range map[string]*rowset.Set{"all rows": nil, "few": few, "many": many, "none": rowset.NewSet()} {
				for _, k := range []int{1, 10, 700, 5000} {
					req.Among, req.K = among, k
					sameHits(t, fmt.Sprintf("%s, k %d", what, k), search(t, remote, req), search(t, mapped, req))
				}
			}
			for _, some := range [][]rowset.RowAddr{addrs, addrs[:7], nil} {
				want, err := mapped.Distances(ctx, req, some)
				if err != nil {
					t.Fatal(err)
				}
				got, err := remote.Distances(ctx, req, some)
				if err != nil {
					t.Fatal(err)
				}
				same := func(a, b float32) bool { return a == b || (math.IsNaN(float64(a)) && math.IsNaN(float64(b))) }
				if !slices.EqualFunc(got, want, same) {
					t.Errorf("distances of %d rows differ", len(some))
				}
			}
			if budget.Used() != 0 || budget.Peak() == 0 {
				t.Errorf("%d bytes are still reserved, %d were at most", budget.Used(), budget.Peak())
			}
		})
	}
}

// TestRemoteVectorsAreHeldToTheLimit: what is fetched for a search, and for a few distances, is refused where the budget has no room for it.
func TestRemoteVectorsAreHeldToTheLimit(t *testing.T) {
	remote, _ := openRemote(t, "vec_ivf_flat_l2")
	budget := mem.NewBudget("query", 2<<10, nil)
	req := exec.SearchRequest{Column: "v", Metric: index.MetricL2, Query: testQuery(16), K: 3, Budget: budget}
	tasks, err := remote.SearchTasks(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := tasks[0].Run(ctx); !errors.Is(err, errs.ErrMemoryLimit) {
		t.Errorf("a search within 2 KiB: %v", err)
	}
	live, err := remote.LiveRows(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	var addrs []rowset.RowAddr
	for k := range live.All() {
		addrs = append(addrs, rowset.RowAddr(k))
	}
	if _, err := remote.Distances(ctx, req, addrs); !errors.Is(err, errs.ErrMemoryLimit) {
		t.Errorf("distances within 2 KiB: %v", err)
	}
	if budget.Used() != 0 {
		t.Errorf("%d bytes are still reserved", budget.Used())
	}
}
