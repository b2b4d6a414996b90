package expr

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/internal/errs"
)

func FuzzDecodeExpr(f *testing.F) {
	col := &Column{ID: 3, Name: "c", T: arrow.ListOf(arrow.BinaryTypes.String)}
	for _, e := range []Expr{
		col, lit(f, nil), lit(f, "x"), lit(f, dec("1.50")), lit(f, []string{"a", "b"}), lit(f, []float32{1, 2}), fn(f, "array_has", col, "x"), fn(f, "+", 1, 2), fn(f, "in", &Column{T: typeInt()}, 1, 2, nil),
		fn(f, "case", true, 1, dec("2.5")), Null(arrow.StructOf(arrow.Field{Name: "a", Type: typeDate()})), fn(f, "l2_distance", &Column{T: arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32)}, "[1,2]"),
	} {
		b, err := Encode(e)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := Decode(b)
		if err != nil {
			if !errors.Is(err, errs.ErrCorrupt) {
				t.Fatalf("%v", err)
			}
			return
		}
		again, err := Encode(e)
		if err != nil {
			t.Fatalf("%s decodes but does not encode: %v", e, err)
		}
		back, err := Decode(again)
		if err != nil {
			t.Fatalf("%s does not come back: %v", e, err)
		}
		third, err := Encode(back)
		if err != nil || string(third) != string(again) {
			t.Fatalf("%s changes on the way: %v", e, err)
		}
		if len(Columns(e)) == 0 && len(b) < 200 { // evaluating what strangers sent must not panic either
			if _, err := Fold(e, testEnv(nil)); err != nil && errors.Is(err, errs.ErrInternal) {
				t.Fatal(err)
			}
		}
	})
}

// likeByRegexp is LIKE by the book: every wildcard as a regular expression.
func likeByRegexp(t testing.TB, pattern string) *regexp.Regexp {
	t.Helper()
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	runes := []rune(pattern)
	for i := 0; i < len(runes); i++ {
		switch {
		case runes[i] == '\\' && i+1 < len(runes):
			i++
			b.WriteString(regexp.QuoteMeta(string(runes[i])))
		case runes[i] == '%':
			b.WriteString(".*")
		case runes[i] == '_':
			b.WriteString(".")
		default:
			b.WriteString(regexp.QuoteMeta(string(runes[i])))
		}
	}
	b.WriteString(`\z`)
	re, err := regexp.Compile(b.String())
	if err != nil {
		t.Fatalf("%q: %v", b.String(), err)
	}
	return re
}

func FuzzLikePattern(f *testing.F) {
	for _, s := range [][2]string{{"a%b", "axxb"}, {"%", ""}, {"a_c", "aäc"}, {"%iss%ip%", "mississippi"}, {"%_b", "ab"}, {"_%_", "ab"}, {"a\\%", "a%"}, {"%a%_%b", "aaab"}, {"%%x", "yx"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pattern, s string) {
		if !utf8.ValidString(pattern) || !utf8.ValidString(s) || len(pattern) > 200 || len(s) > 2000 || strings.HasSuffix(pattern, "\\") {
			return
		}
		want := likeByRegexp(t, pattern).MatchString(s)
		if got := newLike([]byte(pattern), '\\').match([]byte(s)); got != want {
			t.Fatalf("%q LIKE %q = %v", s, pattern, got)
		}
	})
}

func FuzzDates(f *testing.F) {
	for _, s := range []string{"2026-03-29", "2026-03-29 01:30:00.123456", "20260329013000", "26-3-9", "10:11:12", "-838:59:59", "1 2:3:4", "2026-03-29T01:30:00+02:00", "9999-12-31 23:59:59.9999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if p, ok := parseDatetime([]byte(s)); ok && !p.hasOffset {
			text := appendDatetime(nil, p.us, 6)
			q, ok := parseDatetime(text)
			if inRange(p.us) && (!ok || q.us != p.us) {
				t.Fatalf("%q reads as %s, which reads as %v", s, text, q)
			}
		}
		if us, _, ok := parseTime([]byte(s)); ok {
			text := appendTime(nil, us, 6)
			back, _, ok := parseTime(text)
			if !ok || back != us {
				t.Fatalf("%q reads as %s, which reads as %d", s, text, back)
			}
		}
		for _, format := range []string{"%Y-%m-%d %H:%i:%s.%f", "%X%V %W", "%d %b %y %r", s} {
			if us, ok := parseByFormat([]byte(s), []byte(format), classDatetime); ok {
				formatDate(nil, us, []byte(format))
			}
		}
		for _, unit := range []string{"day_microsecond", "year_month", "minute_second"} {
			u, _ := intervalUnit(unit)
			if a, ok := u.parse([]byte(s)); ok {
				addAmount(0, a)
			}
		}
	})
}

func FuzzNumbers(f *testing.F) {
	for _, s := range []string{"1.50", "-1e10", "1e-200", ".5", "12abc", "[1,2.5]", "99999999999999999999999999", "0x10", "1e999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, scale, _ := parseDecimal([]byte(s))
		if scale < 0 {
			t.Fatalf("%q: scale %d", s, scale)
		}
		if len(s) < 30 && scale <= 20 {
			m, sc, whole := parseDecimal(appendBig(nil, n, scale))
			if !whole || sc != scale || m.Cmp(n) != 0 {
				t.Fatalf("%q: %s/%d comes back as %s/%d", s, n, scale, m, sc)
			}
		}
		parseFloat([]byte(s))
		integerPrefix([]byte(s))
		if q, err := parseVector(nil, []byte(s)); err == nil {
			l, err := vectorLiteralOf(q, arrow.Null)
			if err != nil {
				t.Fatalf("%q: %v", s, err)
			}
			arr, err := literalArray(l)
			if err != nil {
				t.Fatalf("%q: %v", s, err)
			}
			back, err := parseVector(nil, AppendJSON(nil, arr, 0, nil))
			if err != nil || len(back) != len(q) {
				t.Fatalf("%q: %v comes back as %v, %v", s, q, back, err)
			}
		}
		jsonItems([]byte(s))
		if v, err := parseJSON([]byte(s)); err == nil {
			if _, err := parseJSON(appendAny(nil, v)); err != nil {
				t.Fatalf("%q prints as what is no JSON: %v", s, err)
			}
		}
	})
}
