package dml

import (
	"strconv"
	"strings"
	"time"

	"github.com/lakesql/lakesql/internal/errs"
)

func badTime(what string, c cell) *problem {
	return &problem{kind: errs.ErrBadTime, detail: "Incorrect " + what + " value: '" + short(c.text()) + "'"}
}

// toDatetime gives microseconds of civil time. loc is the session's zone, for instants and texts with an offset.
func toDatetime(c cell, loc *time.Location) (int64, *problem) {
	switch c.kind {
	case kindDatetime:
		return c.i, nil
	case kindDate:
		return c.i * microsOfDay, nil
	case kindInstant:
		return civilMicros(time.UnixMicro(c.i).In(loc)), nil
	case kindText, kindBytes:
		if us, offset, ok := parseDatetime(c.s); ok {
			if offset != nil {
				return civilMicros(time.UnixMicro(us - int64(*offset)*1_000_000).In(loc)), nil
			}
			return us, nil
		}
	case kindInt, kindUint:
		if us, _, ok := parseDatetime(numberDate(c.text())); ok {
			return us, nil
		}
	}
	return 0, badTime("datetime", c)
}

// numberDate writes 20261130 and 20261130235959 as text with separators; anything else stays as it is.
func numberDate(s string) string {
	switch len(s) {
	case 8:
		return s[:4] + "-" + s[4:6] + "-" + s[6:]
	case 14:
		return s[:4] + "-" + s[4:6] + "-" + s[6:8] + " " + s[8:10] + ":" + s[10:12] + ":" + s[12:]
	}
	return "?"
}

func civilMicros(t time.Time) int64 {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC).UnixMicro()
}

// toInstant gives microseconds since the epoch; civil times are the session's.
func toInstant(c cell, loc *time.Location) (int64, *problem) {
	if c.kind == kindInstant {
		return c.i, nil
	}
	if c.kind == kindText || c.kind == kindBytes {
		if us, offset, ok := parseDatetime(c.s); ok && offset != nil {
			return us - int64(*offset)*1_000_000, nil
		}
	}
	us, p := toDatetime(c, loc)
	if p != nil {
		return 0, p
	}
	t := time.UnixMicro(us).UTC()
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), loc).UnixMicro(), nil
}

// toDate gives days since the epoch.
func toDate(c cell, loc *time.Location) (int64, *problem) {
	if c.kind == kindDate {
		return c.i, nil
	}
	us, p := toDatetime(c, loc)
	if p != nil {
		return 0, badTime("date", c)
	}
	return floorDiv(us, microsOfDay), nil
}

// toTime gives microseconds, negative ones too.
func toTime(c cell) (int64, *problem) {
	switch c.kind {
	case kindTime:
		return c.i, nil
	case kindDatetime, kindInstant:
		return c.i - floorDiv(c.i, microsOfDay)*microsOfDay, nil
	case kindText, kindBytes:
		if us, ok := parseTime(c.s); ok {
			return us, nil
		}
		if us, _, ok := parseDatetime(c.s); ok {
			return us - floorDiv(us, microsOfDay)*microsOfDay, nil
		}
	case kindInt:
		n := c.i
		sign := int64(1)
		if n < 0 {
			n, sign = -n, -1
		}
		if h, m, s := n/10_000, n/100%100, n%100; m < 60 && s < 60 && h <= 838 {
			return sign * (h*3600 + m*60 + s) * 1_000_000, nil
		}
	}
	return 0, badTime("time", c)
}

// roundDigits rounds microseconds to digits of a second.
func roundDigits(us int64, digits int) int64 {
	if digits < 0 || digits >= 6 {
		return us
	}
	unit := int64(1)
	for range 6 - digits {
		unit *= 10
	}
	return floorDiv(us+unit/2, unit) * unit
}

// parseDatetime reads '2026-11-30', '2026-11-30 23:59:59.5', with T instead of the blank, with Z or +02:00 behind. Other separators between the numbers of the
// date are allowed, as MySQL allows them.
func parseDatetime(s string) (us int64, offset *int, ok bool) {
	s = strings.TrimSpace(s)
	if len(s) == 8 || len(s) == 14 {
		if _, err := strconv.ParseUint(s, 10, 64); err == nil {
			s = numberDate(s)
		}
	}
	year, s, ok := digits(s, 4, 4)
	if !ok || s == "" || !strings.ContainsRune("-/.:", rune(s[0])) {
		return 0, nil, false
	}
	month, s, ok := digits(s[1:], 1, 2)
	if !ok || s == "" || !strings.ContainsRune("-/.:", rune(s[0])) {
		return 0, nil, false
	}
	day, s, ok := digits(s[1:], 1, 2)
	if !ok || month < 1 || month > 12 || day < 1 || day > time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day() {
		return 0, nil, false
	}
	date := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC).UnixMicro()
	if s == "" {
		return date, nil, true
	}
	if s[0] != ' ' && s[0] != 'T' && s[0] != 't' {
		return 0, nil, false
	}
	clock, rest, ok := parseClock(strings.TrimLeft(s[1:], " "))
	if !ok || clock >= microsOfDay {
		return 0, nil, false
	}
	offset, ok = parseOffset(rest)
	return date + clock, offset, ok
}

func digits(s string, least, most int) (n int, rest string, ok bool) {
	i := 0
	for i < len(s) && i < most && s[i] >= '0' && s[i] <= '9' {
		n = n*10 + int(s[i]-'0')
		i++
	}
	return n, s[i:], i >= least
}

// parseClock reads hours, minutes and seconds; seconds and their fraction may be missing.
func parseClock(s string) (us int64, rest string, ok bool) {
	h, s, ok := digits(s, 1, 3)
	if !ok || s == "" || s[0] != ':' {
		return 0, s, false
	}
	m, s, ok := digits(s[1:], 1, 2)
	if !ok || m > 59 {
		return 0, s, false
	}
	us = (int64(h)*3600 + int64(m)*60) * 1_000_000
	if s == "" || s[0] != ':' {
		return us, s, true
	}
	sec, s, ok := digits(s[1:], 1, 2)
	if !ok || sec > 59 {
		return 0, s, false
	}
	us += int64(sec) * 1_000_000
	if s == "" || s[0] != '.' {
		return us, s, true
	}
	s = s[1:]
	scale, seventh := int64(100_000), false
	for i := 0; s != "" && s[0] >= '0' && s[0] <= '9'; i++ {
		if i == 6 {
			seventh = s[0] >= '5'
		}
		us += int64(s[0]-'0') * scale
		scale /= 10
		s = s[1:]
	}
	if seventh {
		us++
	}
	return us, s, true
}

// parseOffset reads what follows a time: nothing, Z, +HH:MM.
func parseOffset(s string) (*int, bool) {
	switch {
	case s == "":
		return nil, true
	case s == "Z" || s == "z":
		zero := 0
		return &zero, true
	case len(s) == 6 && (s[0] == '+' || s[0] == '-') && s[3] == ':':
		h, err1 := strconv.Atoi(s[1:3])
		m, err2 := strconv.Atoi(s[4:])
		if err1 != nil || err2 != nil || h > 14 || m > 59 {
			return nil, false
		}
		seconds := h*3600 + m*60
		if s[0] == '-' {
			seconds = -seconds
		}
		return &seconds, true
	}
	return nil, false
}

// parseTime reads '-12:34:56.789' and '1 12:00:00' (days first).
func parseTime(s string) (int64, bool) {
	s = strings.TrimSpace(s)
	sign := int64(1)
	if strings.HasPrefix(s, "-") {
		sign, s = -1, s[1:]
	}
	days := 0
	if before, after, found := strings.Cut(s, " "); found {
		n, err := strconv.Atoi(before)
		if err != nil || n < 0 || n > 34 {
			return 0, false
		}
		days, s = n, after
	}
	us, rest, ok := parseClock(s)
	if !ok || rest != "" {
		return 0, false
	}
	us += int64(days) * microsOfDay
	return sign * us, us < 839*3_600_000_000
}
