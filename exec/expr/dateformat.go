package expr

import (
	"bytes"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
)

func dateFormat(x *call) (vector, error) {
	return x.strings(func(i int, dst []byte) ([]byte, bool, error) {
		return formatDate(dst, x.intArg(0, i, 0), x.args[1].str(i)), true, nil
	})
}

// timeFormat is DATE_FORMAT for TIME: hours may exceed 23.
func timeFormat(x *call) (vector, error) {
	return x.strings(func(i int, dst []byte) ([]byte, bool, error) {
		us := x.intArg(0, i, 0)
		f := x.args[1].str(i)
		if us < 0 {
			dst = append(dst, '-')
			us = -us
		}
		c := civil{hour: int(us / hourMicros), min: int(us / minuteMicros % 60), sec: int(us / secondMicros % 60), micros: int(us % secondMicros)}
		for k := 0; k < len(f); k++ {
			if f[k] != '%' || k+1 == len(f) {
				dst = append(dst, f[k])
				continue
			}
			k++
			var ok bool
			if dst, ok = formatClock(dst, c, f[k]); !ok {
				dst = append(dst, f[k])
			}
		}
		return dst, true, nil
	})
}

// formatDate prints a civil time by MySQL's format letters.
func formatDate(dst []byte, us int64, f []byte) []byte {
	c := civilFromMicros(us)
	days := floorDiv(us, microsPerDay)
	for k := 0; k < len(f); k++ {
		if f[k] != '%' || k+1 == len(f) {
			dst = append(dst, f[k])
			continue
		}
		k++
		var ok bool
		if dst, ok = formatClock(dst, c, f[k]); ok {
			continue
		}
		dst = formatDay(dst, c, days, f[k])
	}
	return dst
}

func formatClock(dst []byte, c civil, letter byte) ([]byte, bool) {
	twelve := (c.hour+11)%12 + 1
	half := "AM"
	if c.hour%24 >= 12 {
		half = "PM"
	}
	switch letter {
	case 'f':
		dst = appendFraction(dst, c.micros, 6)
		n := len(dst)
		copy(dst[n-7:], dst[n-6:])
		dst = dst[:n-1]
	case 'H':
		if c.hour > 99 {
			dst = append(dst, itoa(int64(c.hour))...)
		} else {
			dst = append2(dst, c.hour)
		}
	case 'h', 'I':
		dst = append2(dst, twelve)
	case 'i':
		dst = append2(dst, c.min)
	case 'k':
		dst = append(dst, itoa(int64(c.hour))...)
	case 'l':
		dst = append(dst, itoa(int64(twelve))...)
	case 'p':
		dst = append(dst, half...)
	case 'r':
		dst = append2(append(append2(append(append2(dst, twelve), ':'), c.min), ':'), c.sec)
		dst = append(append(dst, ' '), half...)
	case 'S', 's':
		dst = append2(dst, c.sec)
	case 'T':
		dst = append2(append(append2(append(append2(dst, c.hour), ':'), c.min), ':'), c.sec)
	default:
		return dst, false
	}
	return dst, true
}

func formatDay(dst []byte, c civil, days int64, letter byte) []byte { //nolint:funlen // a flat switch
	weekday := time.Weekday((floorMod(days+3, 7) + 1) % 7)
	week := func(mode int64) []byte { w, _ := weekOf(days, mode); return append2(dst, int(w)) }
	weekYearOf := func(mode int64) []byte { _, y := weekOf(days, mode|weekYear); return append4(dst, y) }
	switch letter {
	case 'a':
		return append(dst, weekday.String()[:3]...)
	case 'b':
		return append(dst, time.Month(c.month).String()[:3]...)
	case 'c':
		return append(dst, itoa(int64(c.month))...)
	case 'D':
		return append(append(dst, itoa(int64(c.day))...), ordinal(c.day)...)
	case 'd':
		return append2(dst, c.day)
	case 'e':
		return append(dst, itoa(int64(c.day))...)
	case 'j':
		n := daysFromCivil(c.year, c.month, c.day) - daysFromCivil(c.year, 1, 1) + 1
		return append2(append(dst, byte('0'+n/100)), int(n%100))
	case 'M':
		return append(dst, time.Month(c.month).String()...)
	case 'm':
		return append2(dst, c.month)
	case 'U':
		return week(0)
	case 'u':
		return week(1)
	case 'V':
		return week(2)
	case 'v':
		return week(3)
	case 'W':
		return append(dst, weekday.String()...)
	case 'w':
		return append(dst, byte('0'+weekday))
	case 'X':
		return weekYearOf(2)
	case 'x':
		return weekYearOf(3)
	case 'Y':
		return append4(dst, c.year)
	case 'y':
		return append2(dst, c.year%100)
	}
	return append(dst, letter)
}

func ordinal(d int) string {
	if d/10 == 1 {
		return "th"
	}
	switch d % 10 {
	case 1:
		return "st"
	case 2:
		return "nd"
	case 3:
		return "rd"
	}
	return "th"
}

// resolveStrToDate types STR_TO_DATE by its format: a date, a time, or a datetime.
func resolveStrToDate(r *request) (impl, error) {
	params := []arrow.DataType{typeString()}
	if err := r.castable(params); err != nil {
		return impl{}, err
	}
	t := arrow.DataType(typeDatetime())
	if lit, ok := r.literal(1); ok {
		f := literalText(lit)
		hasDate, hasTime, hasFraction := formatParts(f)
		switch {
		case hasDate && !hasTime:
			t = typeDate()
		case hasTime && !hasDate && hasFraction:
			t = typeTime()
		case hasTime && !hasDate:
			t = &arrow.DurationType{Unit: arrow.Second}
		case !hasFraction:
			t = &arrow.TimestampType{Unit: arrow.Second}
		}
	}
	return impl{t: t, params: params, run: func(x *call) (vector, error) {
		return x.ints(func(i int) (int64, bool, error) {
			v, ok := parseByFormat(x.args[0].str(i), x.args[1].str(i), classOf(t))
			return v, ok, nil
		})
	}}, nil
}

func formatParts(f string) (hasDate, hasTime, hasFraction bool) {
	for k := 0; k+1 < len(f); k++ {
		if f[k] != '%' {
			continue
		}
		k++
		switch {
		case strings.IndexByte("fHhIiklprSsT", f[k]) >= 0:
			hasTime = true
			hasFraction = hasFraction || f[k] == 'f'
		case strings.IndexByte("abcDdejMmUuVvWwXxYy", f[k]) >= 0:
			hasDate = true
		}
	}
	return hasDate, hasTime, hasFraction
}

// parsedByFormat collects what the letters of a format say.
type parsedByFormat struct {
	c                         civil
	half                      int // 0 none, 1 AM, 2 PM
	twelve                    bool
	yearDay                   int
	week, weekday             int
	weekMode                  int64
	weekYear                  int
	hasWeek, hasDay, hasMonth bool
}

// parseByFormat reads text by a format into a value of a class; ok is false where they do not match or the date does not exist.
func parseByFormat(s, f []byte, to class) (int64, bool) {
	p := scanner{s: s}
	var out parsedByFormat
	for k := 0; k < len(f); k++ {
		switch {
		case isSpace(f[k]):
			p.spaces()
			continue
		case f[k] != '%' || k+1 == len(f):
			p.spaces()
			if !p.is(f[k]) {
				return 0, false
			}
			continue
		}
		k++
		if f[k] != '%' {
			p.spaces()
		}
		if p.i == len(s) {
			break // text that ends early leaves the rest zero
		}
		if !out.letter(&p, f[k]) {
			return 0, false
		}
	}
	return out.value(to)
}

func (o *parsedByFormat) letter(p *scanner, letter byte) bool { //nolint:funlen // a flat switch
	number := func(dst *int, width int) bool {
		n, count := p.number(width)
		*dst = n
		return count > 0
	}
	switch letter {
	case 'Y':
		n, count := p.number(4)
		o.c.year = fullYear(n, count)
		return count > 0
	case 'y':
		n, count := p.number(2)
		o.c.year = fullYear(n, 2)
		return count > 0
	case 'm', 'c':
		o.hasMonth = true
		return number(&o.c.month, 2)
	case 'M', 'b':
		o.hasMonth = true
		return p.name(&o.c.month, letter == 'M', 12, func(i int) string { return time.Month(i).String() })
	case 'd', 'e':
		o.hasDay = true
		return number(&o.c.day, 2)
	case 'D':
		o.hasDay = true
		ok := number(&o.c.day, 2)
		p.i = min(p.i+2, len(p.s))
		return ok
	case 'j':
		return number(&o.yearDay, 3)
	case 'H', 'k':
		return number(&o.c.hour, 2)
	case 'h', 'I', 'l':
		o.twelve = true
		return number(&o.c.hour, 2) && o.c.hour >= 1 && o.c.hour <= 12
	case 'i':
		return number(&o.c.min, 2)
	case 'S', 's':
		return number(&o.c.sec, 2)
	case 'f':
		from := p.i
		o.c.micros = p.fraction()
		return p.i > from
	case 'p':
		return o.ampm(p)
	case 'T':
		return number(&o.c.hour, 2) && p.is(':') && number(&o.c.min, 2) && p.is(':') && number(&o.c.sec, 2)
	case 'r':
		o.twelve = true
		ok := number(&o.c.hour, 2) && p.is(':') && number(&o.c.min, 2) && p.is(':') && number(&o.c.sec, 2)
		p.spaces()
		return ok && o.ampm(p)
	case 'W', 'a':
		ok := p.name(&o.weekday, letter == 'W', 7, func(i int) string { return time.Weekday(i % 7).String() })
		return ok
	case 'w':
		ok := number(&o.weekday, 1)
		if o.weekday == 0 {
			o.weekday = 7
		}
		return ok
	case 'U', 'u', 'V', 'v':
		o.hasWeek = true
		o.weekMode = map[byte]int64{'U': 0, 'u': 1, 'V': 2, 'v': 3}[letter]
		return number(&o.week, 2) && o.week <= 53
	case 'X', 'x':
		return number(&o.weekYear, 4)
	case '%':
		return p.is('%')
	}
	return false
}

func (o *parsedByFormat) ampm(p *scanner) bool {
	if len(p.s)-p.i < 2 || p.s[p.i+1]|0x20 != 'm' {
		return false
	}
	switch p.s[p.i] | 0x20 {
	case 'a':
		o.half = 1
	case 'p':
		o.half = 2
	default:
		return false
	}
	p.i += 2
	return true
}

// name reads one of n names, in full or its first three letters, in any case.
func (p *scanner) name(dst *int, full bool, n int, nameOf func(i int) string) bool {
	for i := 1; i <= n; i++ {
		want := nameOf(i)
		if !full {
			want = want[:3]
		}
		if len(p.s)-p.i >= len(want) && bytes.EqualFold(p.s[p.i:p.i+len(want)], []byte(want)) {
			*dst = i
			p.i += len(want)
			return true
		}
	}
	return false
}

func (o *parsedByFormat) value(to class) (int64, bool) {
	if o.twelve {
		o.c.hour %= 12
		if o.half == 2 {
			o.c.hour += 12
		}
	}
	if o.c.hour > 23 || o.c.min > 59 || o.c.sec > 59 {
		return 0, false
	}
	if o.c.micros >= 1e6 {
		o.c.micros = 999999
	}
	clock := (int64(o.c.hour)*3600+int64(o.c.min)*60+int64(o.c.sec))*1e6 + int64(o.c.micros)
	if to == classTime {
		return clock, true
	}
	days, ok := o.days()
	if !ok {
		return 0, false
	}
	if to == classDate {
		return days, true
	}
	return days*microsPerDay + clock, true
}

func (o *parsedByFormat) days() (int64, bool) {
	switch {
	case o.yearDay > 0:
		if int64(o.yearDay) > daysInYear(o.c.year) {
			return 0, false
		}
		return daysFromCivil(o.c.year, 1, 1) + int64(o.yearDay) - 1, true
	case o.hasWeek && o.weekday > 0:
		return o.weekDays()
	}
	c := o.c
	c.hour, c.min, c.sec = 0, 0, 0
	if !c.valid() {
		return 0, false
	}
	return daysFromCivil(c.year, c.month, c.day), true
}

// weekDays finds the day of a week and weekday: the first day of the year whose week and weekday are those.
func (o *parsedByFormat) weekDays() (int64, bool) {
	year := o.c.year
	if o.weekMode&weekYear != 0 {
		year = o.weekYear
	}
	if year < 1 || year > yearMax {
		return 0, false
	}
	first := daysFromCivil(year, 1, 1) - 7
	for d := first; d < first+380; d++ {
		w, y := weekOf(d, o.weekMode)
		if int(w) == o.week && y == year && int(floorMod(d+3, 7))+1 == o.weekday {
			return d, true
		}
	}
	return 0, false
}
