package encoding

import (
	"bytes"
	"fmt"
	"math/rand"
	"testing"

	"pgregory.net/rapid"
)

func values(list [][]byte) (data []byte, ends []uint32) {
	for _, v := range list {
		data = append(data, v...)
		ends = append(ends, uint32(len(data)))
	}
	return data, ends
}

// Whatever a table was trained on, every value comes back, through the decoder that reads files.
func TestFSSTValuesComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		trained := rapid.SliceOfN(rapid.SliceOfN(rapid.SampledFrom([]byte("abc\x00\xff ")), 0, 40), 1, 200).Draw(t, "trained on")
		e := trainFSST(values(trained))
		table, err := parseFSST(e.table())
		if err != nil {
			t.Fatal(err)
		}
		for _, value := range append(trained, rapid.SliceOf(rapid.Byte()).Draw(t, "other")) {
			coded := e.appendValue(nil, value)
			out := make([]byte, table.expandedMax(len(coded)))
			if got := out[:table.decode(out, coded)]; !bytes.Equal(got, value) {
				t.Fatalf("%q came back as %q", value, got)
			}
		}
	})
}

func TestFSSTShrinksText(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	words := []string{"parcel", "damage", "warehouse", "label", "torn", "wet", "route"}
	var list [][]byte
	for range 5000 {
		list = append(list, fmt.Appendf(nil, "%s %s at %s %d", words[r.Intn(7)], words[r.Intn(7)], words[r.Intn(7)], r.Intn(100)))
	}
	data, ends := values(list)
	e := trainFSST(data, ends)
	size := 0
	for _, v := range list {
		size += len(e.appendValue(nil, v))
	}
	if size*3 > len(data) {
		t.Fatalf("%d bytes of %d", size, len(data))
	}
	again := trainFSST(data, ends)
	if !bytes.Equal(e.table(), again.table()) {
		t.Fatal("the same values gave two tables")
	}
}

func TestRandomBytesAreNotWorthFSST(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	var list [][]byte
	for range 1000 {
		v := make([]byte, 50)
		r.Read(v)
		list = append(list, v)
	}
	data, ends := values(list)
	if e := trainFSST(data, ends); e.saves(list) {
		t.Fatal("random bytes shrank")
	}
}
