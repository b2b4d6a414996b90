package index_test

import (
	"testing"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/mem"
)

func TestCacheDropsWhatWasUsedLongestAgo(t *testing.T) {
	budget := mem.NewBudget("index cache", 0, nil)
	c := index.NewCache(1000*10, budget)
	s := c.Register()
	for part := range uint64(8) {
		c.Put(s, part, part, 840) // 1000 with its entry
	}
	if _, ok := c.Get(s, 0); !ok {
		t.Fatal("part 0 is gone while there is room")
	}
	for part := uint64(8); part < 12; part++ {
		c.Put(s, part, part, 840)
	}
	for part, want := range map[uint64]bool{0: true, 1: false, 2: false, 3: true, 11: true} {
		if _, ok := c.Get(s, part); ok != want {
			t.Errorf("part %d kept: %v", part, ok)
		}
	}
	if budget.Used() != c.Stats().SizeBytes || budget.Used() != 10_000 {
		t.Fatalf("paid %d, holds %+v", budget.Used(), c.Stats())
	}
	c.Put(s, 99, nil, 5000)
	if _, ok := c.Get(s, 99); ok {
		t.Fatal("one part took half of the cache")
	}
	c.Drop(s)
	if budget.Used() != 0 || c.Stats().Entries != 0 {
		t.Fatalf("paid %d after everything was dropped", budget.Used())
	}
}

func TestCacheKeepsSegmentsApart(t *testing.T) {
	c := index.NewCache(1<<20, nil)
	a, b := c.Register(), c.Register()
	c.Put(a, 7, "a", 10)
	c.Put(b, 7, "b", 10)
	c.Drop(a)
	if _, ok := c.Get(a, 7); ok {
		t.Fatal("a's part outlived it")
	}
	if v, ok := c.Get(b, 7); !ok || v != "b" {
		t.Fatalf("b's part is %v", v)
	}
}

func TestCacheGivesWayWhenTheBudgetRefuses(t *testing.T) {
	budget := mem.NewBudget("index cache", 2500, nil)
	c := index.NewCache(1<<20, budget)
	s := c.Register()
	for part := range uint64(5) {
		c.Put(s, part, part, 840)
	}
	if n := c.Stats().Entries; n != 2 || budget.Used() > 2500 {
		t.Fatalf("%d entries, %d bytes", n, budget.Used())
	}
}
