package spill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"

	"github.com/lakesql/lakesql/internal/errs"
)

func TestManyRunsAreSettledAndReadAsOne(t *testing.T) {
	r := Runs{Parent: t.TempDir()}
	const runs, perRun = 3*runsMax + 5, 7
	want := make(map[string]int)
	for run := range runs {
		err := r.Add(func(put func(key, value []byte) error) error {
			for i := range perRun {
				key := fmt.Sprintf("%04d", i*(1+run%3)) // many of them in several runs
				want[key]++
				if err := put([]byte(key), []byte{1}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	err := r.Settle(context.Background(), func(dst []byte, values [][]byte) []byte {
		for _, v := range values {
			dst = append(dst, v...)
		}
		return dst
	})
	if err != nil || r.Count() > runsMax {
		t.Fatalf("%d runs, %v", r.Count(), err)
	}
	got := make(map[string]int)
	readers, err := r.Open()
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range readers {
		last := ""
		for err = in.Next(); err == nil; err = in.Next() {
			if string(in.Key) <= last {
				t.Fatalf("%q after %q", in.Key, last)
			}
			last = string(in.Key)
			got[last] += len(in.Value)
		}
		if !errors.Is(err, io.EOF) || in.Close() != nil {
			t.Fatal(err)
		}
	}
	for key, n := range want {
		if got[key] != n {
			t.Errorf("key %s has %d values, want %d", key, got[key], n)
		}
	}
	if err := r.Remove(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(r.Parent); err != nil || len(left) > 0 {
		t.Fatalf("%d folders are left, %v", len(left), err)
	}
}

func TestHeapGroupsEqualRecords(t *testing.T) {
	lists := [][]int{{1, 3, 3, 9}, {2, 3}, {}, {1, 9}}
	type cursor struct{ at, list int }
	value := func(c *cursor) int { return lists[c.list][c.at] }
	h := Heap[*cursor]{Less: func(a, b *cursor) bool { return value(a) < value(b) }, Next: func(c *cursor) error {
		if c.at++; c.at >= len(lists[c.list]) {
			return io.EOF
		}
		return nil
	}}
	var all []*cursor
	for i := range lists {
		all = append(all, &cursor{-1, i})
	}
	if err := h.Fill(all); err != nil {
		t.Fatal(err)
	}
	var got []int
	for {
		group := h.Group(nil)
		if len(group) == 0 {
			break
		}
		for _, c := range group {
			got = append(got, value(c))
		}
		got = append(got, 0)
		if err := h.Advance(group); err != nil {
			t.Fatal(err)
		}
	}
	if want := []int{1, 1, 0, 2, 0, 3, 3, 0, 3, 0, 9, 9, 0}; !slices.Equal(got, want) {
		t.Fatalf("%v, want %v", got, want)
	}
}

func TestFaults(t *testing.T) {
	r := Runs{Parent: t.TempDir() + "/nowhere"}
	if err := r.Add(func(func(key, value []byte) error) error { return nil }); !errors.Is(err, errs.ErrIO) {
		t.Errorf("a folder that is not there: %v", err)
	}
	r = Runs{Parent: t.TempDir()}
	failed := errors.New("failed")
	if err := r.Add(func(func(key, value []byte) error) error { return failed }); !errors.Is(err, failed) || r.Count() != 0 {
		t.Errorf("a run that fails: %v, %d runs", err, r.Count())
	}
	if err := r.Add(func(put func(key, value []byte) error) error { return put([]byte("key"), []byte("value")) }); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(r.paths[0], 7); err != nil {
		t.Fatal(err)
	}
	readers, err := r.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := readers[0].Next(); !errors.Is(err, errs.ErrIO) {
		t.Errorf("a run that was cut: %v", err)
	}
	if err := errors.Join(readers[0].Close(), r.Remove()); err != nil {
		t.Error(err)
	}
}
