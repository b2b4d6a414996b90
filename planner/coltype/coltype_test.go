package coltype

import (
	"errors"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/internal/errs"
)

// TestTextReadsBack: what Text writes is the same type again.
func TestTextReadsBack(t *testing.T) {
	for _, text := range []string{
		"LIST<VARCHAR>", "list< list < decimal(10,2) > >", "VECTOR(128)", "vector(4, float16)", "ARRAY<BIGINT UNSIGNED>", "STRUCT<a INT, `b c`: LIST<VARCHAR>>", "MAP<VARCHAR, DATETIME(6)>",
		"struct<v vector(2), t timestamp(6), d date, k time(6), f float, g double, n boolean, x varbinary, y longblob, z longtext, s smallint, u tinyint unsigned>",
	} {
		typ, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		again, err := Parse(Text(typ.Arrow))
		if err != nil || !arrow.TypeEqual(again.Arrow, typ.Arrow) {
			t.Errorf("%s prints as %s, which is %v, %v", text, Text(typ.Arrow), again.Arrow, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for text, kind := range map[string]error{
		"": errs.ErrInvalid, "nonsense": errs.ErrInvalid, "LIST": errs.ErrInvalid, "LIST<": errs.ErrInvalid, "LIST<INT": errs.ErrInvalid, "VECTOR": errs.ErrInvalid, "VECTOR(0)": errs.ErrInvalid,
		"VECTOR(99999999)": errs.ErrInvalid, "VECTOR(2, TEXT)": errs.ErrInvalid, "DECIMAL(66)": errs.ErrInvalid, "DATETIME(7)": errs.ErrInvalid, "STRUCT<a INT, a INT>": errs.ErrInvalid, "INT what": errs.ErrInvalid,
		"ENUM": errs.ErrUnsupported, "INT ZEROFILL": errs.ErrUnsupported, "VARCHAR(20000)": errs.ErrInvalid,
	} {
		if _, err := Parse(text); !errors.Is(err, kind) {
			t.Errorf("%q: %v, want %v", text, err, kind)
		}
	}
}

// FuzzParse: any text is a type that reads back, or an error of a known kind.
func FuzzParse(f *testing.F) {
	f.Add("STRUCT<a INT, b LIST<VECTOR(3)>>")
	f.Add("list<list<list<")
	f.Fuzz(func(t *testing.T, text string) {
		typ, err := Parse(text)
		if err != nil {
			if !errors.Is(err, errs.ErrInvalid) && !errors.Is(err, errs.ErrUnsupported) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if typ.Arrow == nil {
			t.Fatalf("%q has no type", text)
		}
	})
}

func TestParseColumns(t *testing.T) {
	s, err := ParseColumns("id BIGINT NOT NULL PRIMARY KEY, `a b` LIST<VARCHAR>,\n v VECTOR(3) COMMENT 'it''s', d DECIMAL(5,2) NULL,")
	if err != nil {
		t.Fatal(err)
	}
	if s.NumFields() != 4 || s.Field(0).Nullable || len(Key(s)) != 1 || s.Field(1).Name != "a b" || Comment(s.Field(2)) != "it's" || !s.Field(3).Nullable {
		t.Fatal(s)
	}
	for text, kind := range map[string]error{
		"": errs.ErrInvalid, "id": errs.ErrInvalid, "id BIGINT x": errs.ErrInvalid, "id BIGINT, ID INT": errs.ErrColumnExists, "id BIGINT NOT": errs.ErrInvalid,
		"id BIGINT PRIMARY": errs.ErrInvalid, "id BIGINT COMMENT x": errs.ErrInvalid, "id BIGINT COMMENT 'x": errs.ErrInvalid, "a-b INT": errs.ErrInvalid, "e ENUM": errs.ErrUnsupported,
	} {
		if _, err := ParseColumns(text); !errors.Is(err, kind) {
			t.Errorf("%q: %v, want %v", text, err, kind)
		}
	}
}
