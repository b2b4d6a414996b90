//go:build soak

package write

import (
	"context"
	"fmt"
	"math/rand"
	"testing"

	"github.com/lakesql/lakesql/storage/object"
)

// A thousand random transactions, compactions and index updates, each checked by scan and by index.
func TestLongHistoriesMatchTheModel(t *testing.T) {
	for _, stable := range []bool{false, true} {
		t.Run(fmt.Sprintf("stable %t", stable), func(t *testing.T) {
			h := &history{
				t: t, r: rand.New(rand.NewSource(99)), stable: stable, rows: make(map[int64]item),
				target: Target{Store: object.NewMemory("test"), Dir: "h.lance"},
			}
			opts := CreateOptions{StableRowIDs: stable, Parts: []Batches{h.fresh(h.rows, 100)}}
			if _, err := CreateTable(context.Background(), h.target, stock, opts); err != nil {
				t.Fatal(err)
			}
			h.reopen()
			for range 1000 {
				h.step()
			}
			noGarbage(t, h.target)
		})
	}
}
