package object

import (
	"context"
	"errors"
	"testing"
	"time"
)

// clock is a time that passes only where somebody waits.
type clock struct {
	now    time.Time
	waited time.Duration
}

func (c *clock) Now() time.Time { return c.now }

func (c *clock) Wait(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.waited += d
	c.now = c.now.Add(d)
	return nil
}

func TestThrottledStoresTakeWhatTheyMay(t *testing.T) {
	ctx := context.Background()
	c := &clock{now: time.Unix(1000, 0)}
	inner := NewCounting(NewMemory("m"), CountingOptions{AsRemote: true})
	if err := inner.Put(ctx, "big", make([]byte, 10_000), false); err != nil {
		t.Fatal(err)
	}
	limits := NewLimits(LimitOptions{BytesPerSecond: 1000, RequestsPerSecond: 10, Now: c.Now, Wait: c.Wait})
	s := NewThrottled(inner, limits)
	f, err := s.Open(ctx, "big")
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name string
		do   func() error
		want time.Duration // that has been waited for so far
	}{
		{"what a second brings is there at once", func() error { _, err := f.Read(ctx, Range{0, 1000}); return err }, 0},
		{"more waits", func() error { _, err := f.Read(ctx, Range{0, 500}); return err }, 500 * time.Millisecond},
		{"more than a second brings waits longer", func() error { _, err := f.Read(ctx, Range{0, 3000}); return err }, 3500 * time.Millisecond},
		{"neighbours are read as one", func() error { _, err := f.ReadMany(ctx, []Range{{0, 100}, {150, 50}}); return err }, 3700 * time.Millisecond},
		{"so does what is written", func() error { return s.Put(ctx, "x", make([]byte, 1000), false) }, 4700 * time.Millisecond},
		{"a stream", func() error {
			w, err := s.Create(ctx, "y")
			if err != nil {
				return err
			}
			for range 4 {
				if _, err := w.Write(make([]byte, 250)); err != nil {
					return err
				}
			}
			return w.Close()
		}, 5700 * time.Millisecond},
		{"requests", func() error {
			for range 20 { // the bucket holds ten less those of the second before
				if _, err := s.Stat(ctx, "x"); err != nil {
					return err
				}
			}
			return nil
		}, 6700 * time.Millisecond},
		{"lists and deletions are requests", func() error {
			_, err := s.List(ctx, "")
			return errors.Join(err, s.Delete(ctx, "y"))
		}, 6900 * time.Millisecond},
		{"given up work does not wait", func() error {
			limits.Lift(true)
			defer limits.Lift(false)
			_, err := f.Read(ctx, Range{0, 9000})
			return err
		}, 6900 * time.Millisecond},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if got := c.waited.Round(time.Millisecond); got != step.want {
			t.Fatalf("%s: waited %s, want %s", step.name, got, step.want)
		}
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := f.Read(ended, Range{0, 5000}); !errors.Is(err, context.Canceled) {
		t.Errorf("a wait outlives its context: %v", err)
	}
}

func TestThrottledStoresKeepWhatTheStoreCan(t *testing.T) {
	limits := NewLimits(LimitOptions{})
	local, err := OpenLocal(t.TempDir(), LocalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = local.Close() }()
	if _, ok := NewThrottled(local, limits).(Leftovers); !ok {
		t.Error("leftovers of a local store are out of reach")
	}
	if _, ok := NewThrottled(local, limits).(Pager); ok {
		t.Error("a local store lists pages")
	}
	if _, ok := NewThrottled(pagingStore{NewMemory("m")}, limits).(Pager); !ok {
		t.Error("pages are out of reach")
	}
}

type pagingStore struct{ *Memory }

func (pagingStore) ListPage(context.Context, string, int) ([]Entry, bool, error) {
	return nil, true, nil
}
