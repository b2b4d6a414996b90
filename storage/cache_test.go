package storage

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/storage/object"
)

// growing is a cached value that gets larger with use.
type growing struct{ bytes atomic.Int64 }

func (g *growing) heldBytes() int64 { return g.bytes.Load() }

func load[T any](v T, size int64) func(context.Context) (T, int64, error) {
	return func(context.Context) (T, int64, error) { return v, size, nil }
}

func TestTheCacheDropsWhatWasNotUsedForLongest(t *testing.T) {
	ctx := context.Background()
	c := NewCache(CacheOptions{LimitBytes: 100})
	get := func(name string, size int64) {
		got, err := cached(ctx, c, cacheKey{path: name}, load(name, size))
		if err != nil || got != name {
			t.Fatalf("%s: %v %v", name, got, err)
		}
	}
	get("a", 40)
	get("b", 40)
	get("a", 40)
	get("c", 40) // b goes
	if s := c.Stats(); s.UsedBytes != 80 || s.Items != 2 || s.Hits != 1 || s.Misses != 3 {
		t.Fatalf("%+v", s)
	}
	get("a", 40)
	get("huge", 101) // is not kept, and pushes nothing out
	if s := c.Stats(); s.UsedBytes != 80 || s.Hits != 2 {
		t.Fatalf("%+v", s)
	}
	must(t, c.Close())
	if s := c.Stats(); s.UsedBytes != 0 || s.Items != 0 {
		t.Fatalf("%+v", s)
	}
}

func TestAValueThatGrowsPushesOthersOut(t *testing.T) {
	ctx := context.Background()
	c := NewCache(CacheOptions{LimitBytes: 100})
	g := &growing{}
	g.bytes.Store(10)
	get := func(name string) {
		_, err := cached(ctx, c, cacheKey{path: name}, load(g, 10))
		must(t, err)
	}
	_, err := cached(ctx, c, cacheKey{path: "other"}, load("x", 50))
	must(t, err)
	get("g")
	g.bytes.Store(70)
	get("g")
	if s := c.Stats(); s.UsedBytes != 70 || s.Items != 1 {
		t.Fatalf("%+v", s)
	}
	g.bytes.Store(90) // and where it grows while it is used, once that ends
	c.settle(cacheKey{path: "g"})
	c.settle(cacheKey{path: "gone"})
	if s := c.Stats(); s.UsedBytes != 90 || s.Items != 1 {
		t.Fatalf("%+v", s)
	}
}

func TestOneLoadServesAllThatAsk(t *testing.T) {
	c := NewCache(CacheOptions{})
	var loads atomic.Int64
	start := make(chan struct{})
	g, ctx := spawn.WithContext(context.Background(), 0)
	for range 8 {
		g.Go("get", func() error {
			_, err := cached(ctx, c, cacheKey{path: "p"}, func(context.Context) (int, int64, error) {
				<-start
				return int(loads.Add(1)), 1, nil
			})
			return err
		})
	}
	close(start)
	must(t, g.Wait())
	if loads.Load() != 1 {
		t.Fatalf("%d loads", loads.Load())
	}
}

func TestAFailedLoadIsNotKept(t *testing.T) {
	ctx := context.Background()
	c := NewCache(CacheOptions{})
	key := cacheKey{path: "p"}
	if _, err := cached(ctx, c, key, func(context.Context) (int, int64, error) { return 0, 0, errs.ErrIO }); !errors.Is(err, errs.ErrIO) {
		t.Fatal(err)
	}
	err := spawn.Guard(func() error {
		_, err := cached(ctx, c, key, func(context.Context) (int, int64, error) { panic("bug") })
		return err
	})
	if !errors.Is(err, errs.ErrInternal) {
		t.Fatal(err)
	}
	if v, err := cached(ctx, c, key, load(7, 1)); err != nil || v != 7 {
		t.Fatalf("%d %v", v, err)
	}
}

// TestALoadGivenUpByOneIsDoneByAnother: the context of the caller that loads ends; others that wait load themselves.
func TestALoadGivenUpByOneIsDoneByAnother(t *testing.T) {
	c := NewCache(CacheOptions{})
	key := cacheKey{path: "p"}
	first, cancel := context.WithCancel(context.Background())
	loading := make(chan struct{})
	g, ctx := spawn.WithContext(context.Background(), 0)
	g.Go("first", func() error {
		_, err := cached(first, c, key, func(ctx context.Context) (int, int64, error) {
			close(loading)
			<-ctx.Done()
			return 0, 0, ctx.Err()
		})
		if !errors.Is(err, context.Canceled) {
			return fmt.Errorf("the first got %w", err)
		}
		return nil
	})
	<-loading
	g.Go("second", func() error {
		v, err := cached(ctx, c, key, load(7, 1))
		if v != 7 {
			return fmt.Errorf("the second got %d, %w", v, err)
		}
		return err
	})
	cancel()
	must(t, g.Wait())
}

func TestStoresOfBasePathsAreOpenedOnce(t *testing.T) {
	ctx := context.Background()
	opened := 0
	c := NewCache(CacheOptions{OpenStore: func(context.Context, string) (object.Store, error) {
		opened++
		return object.NewMemory("base"), nil
	}})
	a, err := c.openStore(ctx, "x://a")
	must(t, err)
	b, err := c.openStore(ctx, "x://a")
	must(t, err)
	if a != b || opened != 1 {
		t.Fatalf("opened %d times", opened)
	}
	must(t, c.Close())
	if _, err := a.Open(ctx, "f"); !errors.Is(err, errs.ErrInvalid) {
		t.Fatalf("open after Close: %v", err)
	}
}
