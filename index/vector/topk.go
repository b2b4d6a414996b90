package vector

import (
	"cmp"
	"math"
	"slices"

	"github.com/lakesql/lakesql/index"
)

// hitBytes is what a kept hit costs.
const hitBytes = 16

// topK keeps the k nearest of the hits pushed, ties by key: the kept set depends on the hits alone, not on their order. It collects up to
// twice k and then drops the farther half, which costs less than a heap.
type topK struct {
	k     int
	room  int // prune when this many are held
	hits  []index.Hit
	limit float32 // a hit farther than this is not among the nearest
}

func newTopK(k int) *topK {
	return &topK{k: k, room: max(2*k, k+64), limit: float32(math.Inf(1))}
}

// push takes a hit whose distance is not NaN.
func (t *topK) push(key uint64, distance float32) {
	t.hits = append(t.hits, index.Hit{Key: key, Distance: distance})
	if len(t.hits) >= t.room {
		t.prune()
	}
}

func (t *topK) prune() {
	if len(t.hits) <= t.k {
		return
	}
	selectNearest(t.hits, t.k)
	t.hits = t.hits[:t.k]
	t.limit = t.hits[0].Distance
	for _, h := range t.hits[1:] {
		t.limit = max(t.limit, h.Distance)
	}
}

// sorted returns the kept hits, nearest first; t is not used after it.
func (t *topK) sorted() []index.Hit {
	t.prune()
	slices.SortFunc(t.hits, compareHits)
	return t.hits
}

func compareHits(a, b index.Hit) int {
	return cmp.Or(cmp.Compare(a.Distance, b.Distance), cmp.Compare(a.Key, b.Key))
}

func nearer(a, b index.Hit) bool {
	return a.Distance < b.Distance || (a.Distance == b.Distance && a.Key < b.Key)
}

// selectNearest reorders hits so that the k nearest come first, in any order (quickselect, median of three; 0 < k < len).
func selectNearest(hits []index.Hit, k int) {
	for len(hits) > 12 {
		pivot := medianOfThree(hits[0], hits[len(hits)/2], hits[len(hits)-1])
		i, j := 0, len(hits)-1
		for i <= j {
			for nearer(hits[i], pivot) {
				i++
			}
			for nearer(pivot, hits[j]) {
				j--
			}
			if i <= j {
				hits[i], hits[j] = hits[j], hits[i]
				i++
				j--
			}
		}
		// [0,j] are at most the pivot, [i,len) at least; between them lie copies of the pivot.
		switch {
		case k <= j:
			hits = hits[:j+1]
		case k > i:
			hits, k = hits[i:], k-i
		default:
			return
		}
	}
	slices.SortFunc(hits, compareHits)
}

func medianOfThree(a, b, c index.Hit) index.Hit {
	if nearer(b, a) {
		a, b = b, a
	}
	if nearer(c, b) {
		b = c
		if nearer(b, a) {
			b = a
		}
	}
	return b
}

// Merge returns the k nearest of sorted or unsorted lists, nearest first, ties by key. Keys that occur in several lists stay in: segments
// of one index are disjoint.
func Merge(k int, lists ...[]index.Hit) []index.Hit {
	top := newTopK(k)
	for _, l := range lists {
		for _, h := range l {
			if h.Distance <= top.limit {
				top.push(h.Key, h.Distance)
			}
		}
	}
	return top.sorted()
}
