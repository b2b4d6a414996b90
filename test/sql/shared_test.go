//go:build shared

package sql

import (
	"context"
	"fmt"
	"testing"

	"github.com/lakesql/lakesql/internal/testutil"
)

func sharedFolder(t *testing.T) folder {
	t.Helper()
	return openFolder(t, testutil.Shared(t, "fixtures", "lance"))
}

func TestSharedFilters(t *testing.T) { checkFilters(t, sharedFolder(t)) }

func TestSharedSearches(t *testing.T) { checkSearches(t, sharedFolder(t)) }

func TestSharedRows(t *testing.T) {
	checkRows(t, sharedFolder(t), "scalars_", "labels_", "history", "wide_", "vec_")
}

func TestSharedHistory(t *testing.T) { checkHistory(t, sharedFolder(t)) }

// TestSharedBigann compares searches of all rows, and of those with a label, with the ground truth of the pack.
func TestSharedBigann(t *testing.T) {
	f := openFolder(t, testutil.Shared(t, "fixtures", "bigann_tiny"))
	ask := func(text string) []string {
		got, err := f.lake.Doors()[0].Ask(context.Background(), text)
		if err != nil {
			t.Fatalf("%.200s: %v", text, err)
		}
		return got
	}
	for truth, where := range map[string]string{"groundtruth_all_top10": "", "groundtruth_label1_top10": "WHERE label = 1 "} {
		for q := range 32 {
			vector := ask(fmt.Sprintf("SELECT vec FROM queries WHERE qid = %d", q))[0]
			want := ask(fmt.Sprintf("SELECT id, distance FROM %s WHERE qid = %d ORDER BY `rank`", truth, q))
			var hits []hit
			for _, line := range want {
				var h hit
				if _, err := fmt.Sscan(line, &h.ID, &h.Distance); err != nil {
					t.Fatal(err)
				}
				hits = append(hits, h)
			}
			got := ask(fmt.Sprintf("SELECT id, l2sq_distance(vec, '%s') AS d FROM base %sORDER BY d, id LIMIT 10", vector, where))
			sameHits(t, fmt.Sprintf("%s query %d", truth, q), got, hits)
			if len(hits) != 10 {
				t.Errorf("%s has %d neighbours of query %d", truth, len(hits), q)
			}
		}
	}
}
