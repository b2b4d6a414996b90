package rowset

import (
	"math/rand"
	"testing"
)

func TestRemapFollowsEveryRow(t *testing.T) {
	r := rand.New(rand.NewSource(7))
	for range 50 {
		m := &Remap{}
		want := make(map[RowAddr]RowAddr)
		next := Addr(100, 0)
		for f := range uint32(4) {
			m.Retire(f)
			for at := uint32(0); at < 200; {
				run := uint32(r.Intn(20))
				if r.Intn(3) > 0 && run > 0 {
					if err := m.Move(Addr(f, at), next, run); err != nil {
						t.Fatal(err)
					}
					for i := range run {
						want[Addr(f, at+i)] = next + RowAddr(i)
					}
					next += RowAddr(run)
				}
				at += run
			}
		}
		old := &Set{}
		expected := &Set{}
		for f := range uint32(6) {
			for at := range uint32(220) {
				a := Addr(f, at)
				got, ok := m.Map(a)
				now, moved := want[a]
				if f >= 4 {
					now, moved = a, true // not rewritten
				}
				if ok != moved || (ok && got != now) {
					t.Fatalf("%s: %s, %t, want %s, %t", a, got, ok, now, moved)
				}
				if r.Intn(2) == 0 {
					old.Add(uint64(a))
					if moved {
						expected.Add(uint64(now))
					}
				}
			}
		}
		if !Equal(m.MapSet(old), expected) {
			t.Fatal("a mapped set is not the set of mapped rows")
		}
		if m.Rows() != uint64(len(want)) || len(m.Retired()) != 4 || m.IsRetired(4) || !m.IsRetired(3) {
			t.Fatalf("%d rows of %d, retired %v", m.Rows(), len(want), m.Retired())
		}
	}
	m := &Remap{}
	last := Addr(1, 1<<32-2)
	if err := m.Move(last, Addr(2, 5), 2); err != nil {
		t.Fatal(err)
	}
	if got, ok := m.Map(last + 1); !ok || got != Addr(2, 6) {
		t.Fatalf("the last row went to %s, %t", got, ok)
	}
	if err := m.Move(Addr(1, 0), Addr(2, 9), 1); err == nil {
		t.Fatal("a move out of order was taken")
	}
}
