package encoding

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
)

// The bytes are those that the reference engine stores for these texts.
func TestJSONTextBecomesWhatTheEngineStores(t *testing.T) {
	for text, want := range map[string]string{
		`null`: "2000000000000000", `true`: "2000000040000000", `false`: "2000000030000000",
		`1`: "20000000200000025001", `-3`: "200000002000000240fd", `1.5`: "2000000020000009603ff8000000000000",
		`"x"`: "200000001000000178", `[]`: "80000000", `{}`: "40000000",
		`[1,"a",null]`:              "80000003200000021000000100000000500161",
		`{"bb":{"c":[true]},"a":1}`: "4000000210000001100000022000000250000015616262500140000001100000015000000863" + "8000000140000000",
	} {
		got, err := AppendJSONB(nil, []byte(text))
		if err != nil || hex.EncodeToString(got) != want {
			t.Errorf("%s: %x, %v, want %s", text, got, err, want)
		}
		if !isJSONB(got, 0) {
			t.Errorf("%s: not taken for JSONB", text)
		}
		for n := range got {
			if isJSONB(got[:n], 0) {
				t.Errorf("%s: %d of %d bytes taken for JSONB", text, n, len(got))
			}
		}
	}
	for _, text := range []string{"", "{", "1 2", "nope", strings.Repeat("[", 200) + strings.Repeat("]", 200)} {
		if _, err := AppendJSONB(nil, []byte(text)); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%.20s: %v", text, err)
		}
	}
}

func TestJSONColumnsTakeTextAndJSONB(t *testing.T) {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	defer b.Release()
	b.Append("skipped")
	b.Append(`{"a": [1, 2]}`)
	b.AppendNull()
	whole := b.NewArray()
	defer whole.Release()
	text := array.NewSlice(whole, 1, 3)
	defer text.Release()
	stored, err := JSONColumn(text, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	defer stored.Release()
	if stored.DataType().ID() != arrow.LARGE_BINARY || stored.Len() != 2 || !stored.IsNull(1) {
		t.Fatalf("%s", stored)
	}
	again, err := JSONColumn(stored, memory.DefaultAllocator)
	if err != nil || !array.Equal(stored, again) {
		t.Fatalf("%v, %v", again, err)
	}
	again.Release()
	raw := array.NewBinaryBuilder(memory.DefaultAllocator, arrow.BinaryTypes.LargeBinary)
	defer raw.Release()
	raw.Append([]byte(`{"a": 1}`))
	bad := raw.NewArray()
	defer bad.Release()
	if _, err := JSONColumn(bad, memory.DefaultAllocator); !errors.Is(err, errs.ErrInvalid) {
		t.Fatalf("text in a binary: %v", err)
	}
}

func FuzzJSONB(f *testing.F) {
	f.Add([]byte(`{"a":[1,-2,3.5,"x",null,true]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		isJSONB(b, 0)
		if got, err := AppendJSONB(nil, b); err == nil && !isJSONB(got, 0) {
			t.Fatalf("%q became %x", b, got)
		}
	})
}

// FuzzJSONText: stored values of any bytes become text that parses, or an error; text that comes of what was stored from text is stored the same way again.
func FuzzJSONText(f *testing.F) {
	for _, text := range []string{`{"a":1,"b":[-2,3.5,true,null,"x\"y"]}`, "[]", "70000", `"z"`, "-1", "1e300", "18446744073709551615"} {
		stored, err := AppendJSONB(nil, []byte(text))
		if err != nil {
			f.Fatal(err)
		}
		shown, err := AppendJSONText(nil, stored)
		if err != nil {
			f.Fatalf("%s: %v", text, err)
		}
		if again, err := AppendJSONB(nil, shown); err != nil || !bytes.Equal(again, stored) {
			f.Fatalf("%s shows as %s, which is stored as %x, not %x: %v", text, shown, again, stored, err)
		}
		f.Add(stored)
	}
	f.Add([]byte{0x20, 0, 0, 0, 0x20, 0, 0, 1, 0x40})
	f.Fuzz(func(t *testing.T, stored []byte) {
		shown, err := AppendJSONText(nil, stored)
		if err == nil && !json.Valid(shown) {
			t.Fatalf("%x shows as %s", stored, shown)
		}
	})
}
