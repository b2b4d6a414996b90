package expr

import (
	"math"
	"time"
)

// civil is a calendar time without zone.
type civil struct {
	year                               int
	month, day, hour, min, sec, micros int
}

// The years that MySQL's dates have.
const (
	yearMin = 0
	yearMax = 9999
)

// daysFromCivil counts days since 1970-01-01 in the proleptic Gregorian calendar; month 1..12.
func daysFromCivil(y, m, d int) int64 {
	if m <= 2 {
		y--
	}
	era := floorDiv(int64(y), 400)
	yoe := int64(y) - era*400
	doy := int64((153*((m+9)%12)+2)/5 + d - 1)
	return era*146097 + yoe*365 + yoe/4 - yoe/100 + doy - 719468
}

// civilFromDays is the inverse of daysFromCivil.
func civilFromDays(days int64) (y, m, d int) {
	days += 719468
	era := floorDiv(days, 146097)
	doe := days - era*146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	d = int(doy - (153*mp+2)/5 + 1)
	m = int(mp) + 3
	if m > 12 {
		m -= 12
	}
	y = int(yoe + era*400)
	if m <= 2 {
		y++
	}
	return y, m, d
}

func isLeap(y int) bool { return y%4 == 0 && (y%100 != 0 || y%400 == 0) }

func daysInMonth(y, m int) int {
	switch m {
	case 2:
		if isLeap(y) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

func (c civil) valid() bool {
	return c.year >= yearMin && c.year <= yearMax && c.month >= 1 && c.month <= 12 && c.day >= 1 && c.day <= daysInMonth(c.year, c.month) &&
		c.hour >= 0 && c.hour < 24 && c.min >= 0 && c.min < 60 && c.sec >= 0 && c.sec < 60
}

func (c civil) dateMicros() int64 { return daysFromCivil(c.year, c.month, c.day) * microsPerDay }

func (c civil) toMicros() int64 {
	return c.dateMicros() + (int64(c.hour)*3600+int64(c.min)*60+int64(c.sec))*1e6 + int64(c.micros)
}

func civilFromMicros(us int64) civil {
	days := floorDiv(us, microsPerDay)
	var c civil
	c.year, c.month, c.day = civilFromDays(days)
	c.setClock(us - days*microsPerDay)
	return c
}

func (c *civil) setClock(us int64) {
	c.micros = int(us % 1e6)
	sec := us / 1e6
	c.hour, c.min, c.sec = int(sec/3600), int(sec/60%60), int(sec%60)
}

// The microseconds that DATETIME can hold: years 0 to 9999.
func micros9999() int64 { return daysFromCivil(yearMax+1, 1, 1)*microsPerDay - 1 }
func micros0000() int64 { return daysFromCivil(yearMin, 1, 1) * microsPerDay }

func inRange(us int64) bool { return us >= micros0000() && us <= micros9999() }

func append2(dst []byte, n int) []byte { return append(dst, byte('0'+n/10%10), byte('0'+n%10)) }

func append4(dst []byte, n int) []byte {
	if n < 0 || n > 9999 {
		return append(dst, itoa(int64(n))...)
	}
	return append2(append2(dst, n/100), n%100)
}

func appendDate(dst []byte, days int64) []byte {
	y, m, d := civilFromDays(days)
	dst = append(append4(dst, y), '-')
	dst = append(append2(dst, m), '-')
	return append2(dst, d)
}

func appendFraction(dst []byte, micros, fsp int) []byte {
	if fsp == 0 {
		return dst
	}
	dst = append(dst, '.')
	for p := 100000; fsp > 0; fsp-- {
		dst = append(dst, byte('0'+micros/p%10))
		p /= 10
	}
	return dst
}

func appendDatetime(dst []byte, us int64, fsp int) []byte {
	c := civilFromMicros(us)
	dst = append(append4(dst, c.year), '-')
	dst = append(append2(dst, c.month), '-')
	dst = append(append2(dst, c.day), ' ')
	dst = append(append2(dst, c.hour), ':')
	dst = append(append2(dst, c.min), ':')
	return appendFraction(append2(dst, c.sec), c.micros, fsp)
}

// appendTime prints TIME: hours may exceed 24 and be negative.
func appendTime(dst []byte, us int64, fsp int) []byte {
	if us < 0 {
		dst = append(dst, '-')
		us = -us
	}
	sec := us / 1e6
	if h := sec / 3600; h > 99 {
		dst = append(dst, itoa(h)...)
	} else {
		dst = append2(dst, int(h))
	}
	dst = append2(append(dst, ':'), int(sec/60%60))
	dst = append2(append(dst, ':'), int(sec%60))
	return appendFraction(dst, int(us%1e6), fsp)
}

// timeMicrosMax is 838:59:59, the largest TIME.
const timeMicrosMax = (838*3600 + 59*60 + 59) * 1000000

func clampTime(us int64) int64 { return max(min(us, timeMicrosMax), -timeMicrosMax) }

// localMicros is the civil time of an instant in loc.
func localMicros(us int64, loc *time.Location) int64 {
	if loc == time.UTC {
		return us
	}
	_, offset := time.UnixMicro(us).In(loc).Zone()
	return us + int64(offset)*1e6
}

// instantMicros is the instant of a civil time in loc. A time that a clock change skips becomes the moment of the change; of two moments with the
// same civil time the first is meant.
func instantMicros(local int64, loc *time.Location) int64 {
	if loc == time.UTC {
		return local
	}
	before := offsetAt(local-microsPerDay, loc)
	after := offsetAt(local+microsPerDay, loc)
	if before == after {
		if u := local - before; offsetAt(u, loc) == before {
			return u
		}
	}
	first, second := local-max(before, after), local-min(before, after)
	if localMicros(first, loc) == local {
		return first
	}
	if localMicros(second, loc) == local {
		return second
	}
	return gapEnd(first, second, loc)
}

func offsetAt(us int64, loc *time.Location) int64 {
	_, offset := time.UnixMicro(us).In(loc).Zone()
	return int64(offset) * 1e6
}

// gapEnd finds the change of the clock between two instants.
func gapEnd(lo, hi int64, loc *time.Location) int64 {
	if lo > hi {
		lo, hi = hi, lo
	}
	start := offsetAt(lo, loc)
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; offsetAt(mid, loc) == start {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// scanner walks the text of a date.
type scanner struct {
	s []byte
	i int
}

func (p *scanner) spaces() {
	for p.i < len(p.s) && isSpace(p.s[p.i]) {
		p.i++
	}
}

// number reads up to width digits.
func (p *scanner) number(width int) (n, count int) {
	for count < width && p.i < len(p.s) && isDigit(p.s[p.i]) {
		n = n*10 + int(p.s[p.i]-'0')
		p.i++
		count++
	}
	return n, count
}

func (p *scanner) is(c byte) bool {
	if p.i < len(p.s) && p.s[p.i] == c {
		p.i++
		return true
	}
	return false
}

func isPunct(c byte) bool {
	return c > ' ' && c < 0x7f && !isDigit(c) && !(c|0x20 >= 'a' && c|0x20 <= 'z')
}

// fraction reads the digits after a point as microseconds, rounding the seventh.
func (p *scanner) fraction() int {
	micros, scale := 0, 100000
	for first := true; p.i < len(p.s) && isDigit(p.s[p.i]); p.i++ {
		d := int(p.s[p.i] - '0')
		if scale > 0 {
			micros += d * scale
			scale /= 10
		} else if first {
			if d >= 5 {
				micros++
			}
			first = false
		}
	}
	return micros
}

// parsedTime is what text of a date or datetime says.
type parsedTime struct {
	us        int64 // civil microseconds; with an offset: UTC
	hasTime   bool
	hasOffset bool
	whole     bool // nothing but blanks follows
}

func fullYear(y, digits int) int {
	if digits > 2 {
		return y
	}
	if y < 70 {
		return 2000 + y
	}
	return 1900 + y
}

// parseDatetime reads MySQL's spellings of DATE and DATETIME: 2026-03-29, 26-3-29, 20260329, 2026-03-29 01:30:00.5, 20260329013000, with T between
// and with an offset behind.
func parseDatetime(s []byte) (parsedTime, bool) {
	p := scanner{s: s}
	p.spaces()
	run := 0
	for p.i+run < len(s) && isDigit(s[p.i+run]) {
		run++
	}
	var c civil
	var out parsedTime
	var ok bool
	if run >= 5 && (p.i+run == len(s) || !isDateDelimiter(s[p.i+run]) || s[p.i+run] == '.') {
		ok = p.compact(&c, run, &out)
	} else {
		ok = p.delimited(&c, &out)
	}
	if !ok {
		return out, false
	}
	carry := c.micros >= 1e6
	if carry {
		c.micros -= 1e6
	}
	if !c.valid() {
		return out, false
	}
	out.us = c.toMicros()
	if carry {
		out.us += 1e6
	}
	p.offset(&out)
	p.spaces()
	out.whole = p.i == len(s)
	return out, true
}

func isDateDelimiter(c byte) bool { return isPunct(c) }

// compact reads YYYYMMDD, YYMMDD and both with hhmmss.
func (p *scanner) compact(c *civil, run int, out *parsedTime) bool {
	yearDigits := 4
	if run == 6 || run == 12 || run == 5 {
		yearDigits = 2
	}
	y, n := p.number(yearDigits)
	c.year = fullYear(y, n)
	c.month, _ = p.number(2)
	c.day, _ = p.number(2)
	if run < yearDigits+3 {
		return false
	}
	if run > yearDigits+4 {
		out.hasTime = true
		c.hour, _ = p.number(2)
		c.min, _ = p.number(2)
		c.sec, _ = p.number(2)
		if p.is('.') {
			c.micros = p.fraction()
		}
		return true
	}
	return p.clock(c, out)
}

func (p *scanner) delimited(c *civil, out *parsedTime) bool {
	y, n := p.number(4)
	if n == 0 {
		return false
	}
	c.year = fullYear(y, n)
	for _, dst := range []*int{&c.month, &c.day} {
		if p.i >= len(p.s) || !isPunct(p.s[p.i]) {
			return false
		}
		p.i++
		if *dst, n = p.number(2); n == 0 {
			return false
		}
	}
	return p.clock(c, out)
}

// clock reads [T| ]hh[:mm[:ss[.ffffff]]] if it is there.
func (p *scanner) clock(c *civil, out *parsedTime) bool {
	from := p.i
	if !p.is('T') {
		p.spaces()
	}
	if p.i == from || p.i >= len(p.s) || !isDigit(p.s[p.i]) {
		p.i = from
		return true
	}
	out.hasTime = true
	c.hour, _ = p.number(2)
	for _, dst := range []*int{&c.min, &c.sec} {
		if p.i >= len(p.s) || !isPunct(p.s[p.i]) || p.i+1 >= len(p.s) || !isDigit(p.s[p.i+1]) || p.s[p.i] == '-' || p.s[p.i] == '+' {
			return true
		}
		p.i++
		*dst, _ = p.number(2)
	}
	if p.is('.') {
		c.micros = p.fraction()
	}
	return true
}

// offset reads Z, +01:00 or -05:30 behind a time.
func (p *scanner) offset(out *parsedTime) {
	if !out.hasTime || p.i >= len(p.s) {
		return
	}
	if p.is('Z') {
		out.hasOffset = true
		return
	}
	sign := int64(1)
	from := p.i
	switch p.s[p.i] {
	case '+':
	case '-':
		sign = -1
	default:
		return
	}
	p.i++
	h, n := p.number(2)
	if n != 2 || !p.is(':') {
		p.i = from
		return
	}
	m, n := p.number(2)
	if n != 2 || m > 59 || h > 14 {
		p.i = from
		return
	}
	out.hasOffset = true
	out.us -= sign * (int64(h)*3600 + int64(m)*60) * 1e6
}

// parseTime reads MySQL's spellings of TIME: 10:11:12.5, -838:59:59, 2 10:11, 101112, or the time of a datetime.
func parseTime(s []byte) (us int64, whole, ok bool) {
	if t, isDatetime := parseDatetime(s); isDatetime && t.hasTime && !t.hasOffset && len(s) >= 14 {
		return t.us - floorDiv(t.us, microsPerDay)*microsPerDay, t.whole, true
	}
	p := scanner{s: s}
	p.spaces()
	neg := p.is('-')
	a, n := p.number(9)
	if n == 0 {
		return 0, false, false
	}
	var h, m, sec int
	switch {
	case p.i < len(s) && s[p.i] == ' ' && p.i+1 < len(s) && isDigit(s[p.i+1]):
		p.spaces()
		b, _ := p.number(2)
		h = a*24 + b
		m, sec = p.minutes()
	case p.i < len(s) && s[p.i] == ':':
		h = a
		m, sec = p.minutes()
	default:
		h, m, sec = a/10000, a/100%100, a%100
	}
	frac := 0
	if p.is('.') {
		frac = p.fraction()
	}
	if m > 59 || sec > 59 || h > math.MaxInt32/3600 {
		return 0, false, false
	}
	us = clampTime((int64(h)*3600+int64(m)*60+int64(sec))*1e6 + int64(frac))
	if neg {
		us = -us
	}
	p.spaces()
	return us, p.i == len(s), true
}

func (p *scanner) minutes() (m, sec int) {
	if p.is(':') {
		m, _ = p.number(2)
		if p.is(':') {
			sec, _ = p.number(2)
		}
	}
	return m, sec
}

// datetimeOfNumber reads YYYYMMDD, YYMMDD, YYYYMMDDhhmmss and YYMMDDhhmmss.
func datetimeOfNumber(n int64) (parsedTime, bool) {
	if n < 101 || n > 99991231235959 {
		return parsedTime{}, false
	}
	text := itoa(n)
	width := 8
	switch {
	case n <= 991231:
		width = 6
	case n <= 99991231:
	case n <= 991231235959:
		width = 12
	default:
		width = 14
	}
	for len(text) < width {
		text = "0" + text
	}
	return parseDatetime([]byte(text))
}
