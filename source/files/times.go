package files

import (
	"time"

	"github.com/lakesql/lakesql/internal/errs"
)

// stamp is a date, a date with a time, or a time, as it was written.
type stamp struct {
	hasDate, hasTime, hasZone bool
	orders                    DateOrder // that the date fits
	parts                     [3]int    // of the date, in the order that they stand in
	seconds                   int64     // since midnight
	nanos                     int64
	digits                    int // of the fraction, without zeros at its end
	zoneSeconds               int64
}

// date returns the year, the month and the day in one of the orders that fit.
func (s *stamp) date(o DateOrder) (y, m, d int) {
	switch o {
	case OrderDMY:
		return s.parts[2], s.parts[1], s.parts[0]
	case OrderMDY:
		return s.parts[2], s.parts[0], s.parts[1]
	}
	return s.parts[0], s.parts[1], s.parts[2]
}

// days counts from 1970-01-01.
func (s *stamp) days(o DateOrder) int64 {
	y, m, d := s.date(o)
	return time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC).Unix() / 86_400
}

// unix returns the instant; a time without a zone is UTC.
func (s *stamp) unix(o DateOrder) (seconds, nanos int64) {
	return s.days(o)*86_400 + s.seconds - s.zoneSeconds, s.nanos
}

func isDate(y, m, d int) bool {
	return y >= 1 && y <= 9999 && m >= 1 && m <= 12 && d >= 1 && d <= 31 && time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC).Day() == d
}

// number reads up to most digits.
func number(b []byte, most int) (n, digits int) {
	for digits < len(b) && digits < most && b[digits] >= '0' && b[digits] <= '9' {
		n = n*10 + int(b[digits]-'0')
		digits++
	}
	return n, digits
}

// parseStamp reads 2024-05-31, 2024/5/31, 31.05.2024, 31/05/2024, 05/31/2024, with a time after a blank or a T, and 10:20, 10:20:30.123 alone. A zone is Z, UTC, +02,
// +02:00 or +0200.
func parseStamp(b []byte) (s stamp, ok bool) {
	if n, digits := number(b, 2); digits > 0 && digits < len(b) && b[digits] == ':' && n < 24 {
		return s, s.time(b) == len(b)
	}
	at := s.dateOf(b)
	switch {
	case at == 0:
		return s, false
	case at == len(b):
		return s, true
	case b[at] != ' ' && b[at] != 'T' && b[at] != 't':
		return s, false
	}
	n := s.time(b[at+1:])
	if n == 0 {
		return s, false
	}
	at += 1 + n
	return s, at == len(b) || s.zone(b[at:])
}

// dateOf reads a date and returns how long it is, 0 = there is none.
func (s *stamp) dateOf(b []byte) int {
	at, widths := 0, [3]int{}
	var separator byte
	for i := range s.parts {
		n, digits := number(b[at:], 4)
		if digits == 0 {
			return 0
		}
		s.parts[i], widths[i] = n, digits
		at += digits
		if i == 2 {
			break
		}
		if at >= len(b) || b[at] != '-' && b[at] != '/' && b[at] != '.' || i > 0 && b[at] != separator {
			return 0
		}
		separator = b[at]
		at++
	}
	s.hasDate = true
	if widths[0] == 4 && widths[1] <= 2 && widths[2] <= 2 {
		if isDate(s.parts[0], s.parts[1], s.parts[2]) {
			s.orders = OrderYMD
			return at
		}
		return 0
	}
	if widths[0] > 2 || widths[1] > 2 || widths[2] != 4 {
		return 0
	}
	if isDate(s.parts[2], s.parts[1], s.parts[0]) {
		s.orders |= OrderDMY
	}
	if separator != '.' && isDate(s.parts[2], s.parts[0], s.parts[1]) {
		s.orders |= OrderMDY
	}
	if s.orders == 0 {
		return 0
	}
	return at
}

// time reads a time and returns how long it is, 0 = there is none.
func (s *stamp) time(b []byte) int {
	h, n := number(b, 2)
	if n == 0 || n >= len(b) || b[n] != ':' || h > 23 {
		return 0
	}
	m, w := number(b[n+1:], 2)
	if w != 2 || m > 59 {
		return 0
	}
	at := n + 3
	s.hasTime = true
	s.seconds = int64(h)*3600 + int64(m)*60
	if at >= len(b) || b[at] != ':' {
		return at
	}
	sec, w := number(b[at+1:], 2)
	if w != 2 || sec > 59 {
		return 0
	}
	at += 3
	s.seconds += int64(sec)
	if at >= len(b) || b[at] != '.' && b[at] != ',' {
		return at
	}
	frac, w := number(b[at+1:], 9)
	if w == 0 {
		return 0
	}
	at += 1 + w
	s.digits = w
	for ; w < 9; w++ {
		frac *= 10
	}
	s.nanos = int64(frac)
	for rest := s.nanos; s.digits > 0; s.digits-- {
		scale := int64(1)
		for i := s.digits; i < 9; i++ {
			scale *= 10
		}
		if rest/scale%10 != 0 {
			break
		}
	}
	return at
}

// zone reads what is left of the text.
func (s *stamp) zone(b []byte) bool {
	if b[0] == ' ' {
		b = b[1:]
	}
	switch string(b) {
	case "Z", "z", "UTC", "GMT":
		s.hasZone = true
		return true
	}
	if len(b) < 3 || b[0] != '+' && b[0] != '-' {
		return false
	}
	h, n := number(b[1:], 2)
	rest := b[1+n:]
	m := 0
	if n != 2 || h > 15 {
		return false
	}
	if len(rest) > 0 {
		if rest[0] == ':' {
			rest = rest[1:]
		}
		if m, n = number(rest, 2); n != 2 || len(rest) != 2 || m > 59 {
			return false
		}
	}
	s.zoneSeconds = int64(h)*3600 + int64(m)*60
	if b[0] == '-' {
		s.zoneSeconds = -s.zoneSeconds
	}
	s.hasZone = true
	return true
}

// order chooses how a date is read: the one way that it and the column's other dates fit.
func (s *stamp) order(of DateOrder) (DateOrder, error) {
	fit := s.orders
	if of != 0 {
		fit &= of
	}
	switch fit {
	case OrderYMD, OrderDMY, OrderMDY:
		return fit, nil
	case 0:
		return 0, errs.New(errs.ErrInvalid, "a date of another form than the column's others: see --date-order")
	case OrderDMY | OrderMDY:
		y, m, d := s.date(OrderDMY)
		if y2, m2, d2 := s.date(OrderMDY); y == y2 && m == m2 && d == d2 {
			return OrderDMY, nil
		}
	}
	return 0, errs.New(errs.ErrInvalid, "day or month first? --date-order dmy or mdy says it")
}
