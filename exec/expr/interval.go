package expr

import (
	"bytes"
	"math"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/internal/errs"
)

// unitOf describes the unit of an INTERVAL.
type unitOf struct {
	name   string
	months int64   // length in months, or
	micros int64   // in microseconds
	date   bool    // leaves the time of day alone
	parts  []int64 // composite units: microseconds of each part, the last one first; of YEAR_MONTH months
	frac   bool    // the last part is microseconds, written as a fraction
}

const (
	secondMicros = int64(1e6)
	minuteMicros = 60 * secondMicros
	hourMicros   = 60 * minuteMicros
	dayMicros    = 24 * hourMicros
)

// intervalUnit finds a unit by name, in any case; SQL_TSI_ names too.
func intervalUnit(name string) (unitOf, bool) { //nolint:funlen // a flat switch
	name = strings.TrimPrefix(strings.ToLower(strings.TrimSpace(name)), "sql_tsi_")
	u := unitOf{name: name}
	switch name {
	case "microsecond", "frac_second":
		u.micros = 1
	case "second":
		u.micros = secondMicros
	case "minute":
		u.micros = minuteMicros
	case "hour":
		u.micros = hourMicros
	case "day":
		u.micros, u.date = dayMicros, true
	case "week":
		u.micros, u.date = 7*dayMicros, true
	case "month":
		u.months, u.date = 1, true
	case "quarter":
		u.months, u.date = 3, true
	case "year":
		u.months, u.date = 12, true
	case "year_month":
		u.parts, u.months, u.date = []int64{1, 12}, 1, true
	case "second_microsecond":
		u.parts, u.frac = []int64{1, secondMicros}, true
	case "minute_microsecond":
		u.parts, u.frac = []int64{1, secondMicros, minuteMicros}, true
	case "minute_second":
		u.parts = []int64{secondMicros, minuteMicros}
	case "hour_microsecond":
		u.parts, u.frac = []int64{1, secondMicros, minuteMicros, hourMicros}, true
	case "hour_second":
		u.parts = []int64{secondMicros, minuteMicros, hourMicros}
	case "hour_minute":
		u.parts = []int64{minuteMicros, hourMicros}
	case "day_microsecond":
		u.parts, u.frac = []int64{1, secondMicros, minuteMicros, hourMicros, dayMicros}, true
	case "day_second":
		u.parts = []int64{secondMicros, minuteMicros, hourMicros, dayMicros}
	case "day_minute":
		u.parts = []int64{minuteMicros, hourMicros, dayMicros}
	case "day_hour":
		u.parts = []int64{hourMicros, dayMicros}
	default:
		return u, false
	}
	return u, true
}

// amount is an interval: months, and microseconds.
type amount struct{ months, micros int64 }

func (a amount) times(sign int64) amount { return amount{a.months * sign, a.micros * sign} }

// amountLimit keeps products within 64 bits; larger intervals leave MySQL's years anyway.
const amountLimit = int64(1) << 53

// parse reads the amount of a composite unit: numbers with anything between, the last one belonging to the smallest part.
func (u *unitOf) parse(s []byte) (amount, bool) {
	s = bytes.TrimSpace(s)
	sign := int64(1)
	if len(s) > 0 && (s[0] == '-' || s[0] == '+') {
		if s[0] == '-' {
			sign = -1
		}
		s = s[1:]
	}
	var nums []int64
	var last []byte
	for i := 0; i < len(s); {
		if !isDigit(s[i]) {
			i++
			continue
		}
		n, from := int64(0), i
		for ; i < len(s) && isDigit(s[i]); i++ {
			if n = n*10 + int64(s[i]-'0'); n > amountLimit {
				return amount{}, false
			}
		}
		nums, last = append(nums, n), s[from:i]
	}
	if len(nums) > len(u.parts) {
		return amount{}, false
	}
	if u.frac && len(nums) > 0 { // the digits are a fraction: .5 is 500000 microseconds
		n := int64(0)
		for k := range 6 {
			n *= 10
			if k < len(last) {
				n += int64(last[k] - '0')
			}
		}
		nums[len(nums)-1] = n
	}
	total := int64(0)
	for k := range nums {
		part := u.parts[k]
		n := nums[len(nums)-1-k]
		if n > math.MaxInt64/4/part {
			return amount{}, false
		}
		total += n * part
	}
	if u.months > 0 {
		return amount{months: sign * total}, true
	}
	return amount{micros: sign * total}, true
}

// resolveDateAdd is DATE_ADD(x, n, 'unit') and DATE_SUB: what INTERVAL n unit parses to.
func resolveDateAdd(sign int64) func(*request) (impl, error) {
	return func(r *request) (impl, error) {
		if len(r.args) == 2 { // ADDDATE(x, days)
			day, err := NewLiteral("day")
			if err != nil {
				return impl{}, err
			}
			return rewriteTo(r.name, r.args[0], r.args[1], day)
		}
		var unit unitOf
		lit, ok := r.literal(2)
		if ok {
			unit, ok = intervalUnit(literalText(lit))
		}
		if !ok {
			return impl{}, errs.New(errs.ErrInvalid, "%s: %s is no unit of an interval", r.name, r.args[2])
		}
		c := r.class(0)
		if c == classNested || r.class(1) == classNested {
			return impl{}, r.typesError(nil)
		}
		add := dateAdder{unit: unit, sign: sign}
		amountType := add.amountType(r)
		switch {
		case c == classTime && unit.months == 0:
			return impl{t: add.timeType(r), params: []arrow.DataType{typeTime(), amountType, nil}, run: add.times}, nil
		case c == classDate && unit.date:
			return impl{t: typeDate(), params: []arrow.DataType{typeDate(), amountType, nil}, run: add.dates}, nil
		case c == classString:
			if lit, ok := r.literal(0); ok {
				return add.literalText(r, lit, amountType)
			}
			return impl{t: typeString(), params: []arrow.DataType{typeString(), amountType, nil}, run: add.texts}, nil
		}
		return impl{t: add.datetimeType(r), params: []arrow.DataType{typeDatetime(), amountType, nil}, run: add.datetimes}, nil
	}
}

type dateAdder struct {
	unit unitOf
	sign int64
}

// amountType is what the amount is read as: text for composite units, microseconds' digits for seconds, whole numbers otherwise.
func (d *dateAdder) amountType(r *request) arrow.DataType {
	switch {
	case d.unit.parts != nil:
		return typeString()
	case d.unit.name == "second":
		return rawDecimal(38, 6)
	}
	return rawDecimal(38, 0)
}

// fine reports whether adding the interval may give fractions of a second.
func (d *dateAdder) fine(r *request) bool {
	return d.unit.frac || d.unit.name == "microsecond" || (d.unit.name == "second" && !r.class(1).integer() && fspOfArg(r, 1) > 0)
}

func (d *dateAdder) datetimeType(r *request) arrow.DataType {
	if d.fine(r) {
		return typeDatetime()
	}
	return datetimeTypeOf(r, 0)
}

func (d *dateAdder) timeType(r *request) arrow.DataType {
	if d.fine(r) {
		return typeTime()
	}
	return timeTypeOf(r, 0)
}

// literalText types a literal by what it spells: a date stays a date under date units.
func (d *dateAdder) literalText(r *request, lit *Literal, amountType arrow.DataType) (impl, error) {
	if lit.Value.IsValid() {
		if p, ok := parseDatetime([]byte(literalText(lit))); ok && !p.hasTime && d.unit.date {
			return impl{t: typeDate(), params: []arrow.DataType{typeDate(), amountType, nil}, run: d.dates}, nil
		}
	}
	return impl{t: d.datetimeType(r), params: []arrow.DataType{typeDatetime(), amountType, nil}, run: d.datetimes}, nil
}

// amount reads the interval of row i; ok is false where it is out of any range.
func (d *dateAdder) amount(x *call, i int) (amount, bool) {
	v := &x.args[1]
	if d.unit.parts != nil {
		a, ok := d.unit.parse(v.str(i))
		return a.times(d.sign), ok
	}
	n, ok := v.small(i)
	if !ok || n > amountLimit || n < -amountLimit {
		return amount{}, false
	}
	m := n * d.sign
	switch {
	case d.unit.name == "second":
		return amount{micros: m}, true
	case d.unit.months > 0:
		return amount{months: m * d.unit.months}, m < 200000 && m > -200000
	case m > math.MaxInt64/4/d.unit.micros || m < -math.MaxInt64/4/d.unit.micros:
		return amount{}, false
	}
	return amount{micros: m * d.unit.micros}, true
}

// addAmount moves a civil time; the day is cut to the length of the month.
func addAmount(us int64, a amount) (int64, bool) {
	if a.months != 0 {
		days := floorDiv(us, microsPerDay)
		y, m, day := civilFromDays(days)
		total := int64(y)*12 + int64(m-1) + a.months
		ny, nm := floorDiv(total, 12), int(floorMod(total, 12))+1
		if ny < yearMin || ny > yearMax {
			return 0, false
		}
		us += (daysFromCivil(int(ny), nm, min(day, daysInMonth(int(ny), nm))) - days) * microsPerDay
	}
	us += a.micros
	return us, inRange(us)
}

func (d *dateAdder) datetimes(x *call) (vector, error) {
	return x.ints(func(i int) (int64, bool, error) {
		a, ok := d.amount(x, i)
		if !ok {
			return 0, false, nil
		}
		us, ok := addAmount(x.intArg(0, i, 0), a)
		return us, ok, nil
	})
}

func (d *dateAdder) dates(x *call) (vector, error) {
	return x.ints(func(i int) (int64, bool, error) {
		a, ok := d.amount(x, i)
		if !ok {
			return 0, false, nil
		}
		us, ok := addAmount(x.intArg(0, i, 0)*microsPerDay, a)
		return floorDiv(us, microsPerDay), ok, nil
	})
}

func (d *dateAdder) times(x *call) (vector, error) {
	return x.ints(func(i int) (int64, bool, error) {
		a, ok := d.amount(x, i)
		us := x.intArg(0, i, 0) + a.micros
		return us, ok && us <= timeMicrosMax && us >= -timeMicrosMax, nil
	})
}

// texts keeps the shape of the text: a date without time stays one under date units, a fraction shows where there is one.
func (d *dateAdder) texts(x *call) (vector, error) {
	return x.strings(func(i int, dst []byte) ([]byte, bool, error) {
		p, ok := parseDatetime(x.args[0].str(i))
		if !ok {
			return dst, false, nil
		}
		a, ok := d.amount(x, i)
		if !ok {
			return dst, false, nil
		}
		us, ok := addAmount(p.us, a)
		switch {
		case !ok:
			return dst, false, nil
		case !p.hasTime && d.unit.date:
			return appendDate(dst, floorDiv(us, microsPerDay)), true, nil
		case floorMod(us, 1e6) != 0:
			return appendDatetime(dst, us, 6), true, nil
		}
		return appendDatetime(dst, us, 0), true, nil
	})
}

// resolveTimestampDiff is TIMESTAMPDIFF(unit, a, b): whole units from a to b.
func resolveTimestampDiff(r *request) (impl, error) {
	lit, ok := r.literal(0)
	var unit unitOf
	if ok {
		unit, ok = intervalUnit(literalText(lit))
	}
	if !ok || unit.parts != nil {
		return impl{}, errs.New(errs.ErrInvalid, "timestampdiff: %s is no unit", r.args[0])
	}
	params := []arrow.DataType{nil, typeDatetime(), typeDatetime()}
	if err := r.castable(params); err != nil {
		return impl{}, err
	}
	return impl{t: typeInt(), params: params, run: func(x *call) (vector, error) {
		return x.ints(func(i int) (int64, bool, error) {
			a, b := x.intArg(1, i, 0), x.intArg(2, i, 0)
			if unit.months > 0 {
				return monthsBetween(a, b) / unit.months, true, nil
			}
			return (b - a) / unit.micros, true, nil
		})
	}}, nil
}

// monthsBetween counts the whole months from a to b, negative if b is before.
func monthsBetween(a, b int64) int64 {
	if a > b {
		return -monthsBetween(b, a)
	}
	ca, cb := civilFromMicros(a), civilFromMicros(b)
	n := int64(cb.year-ca.year)*12 + int64(cb.month-ca.month)
	timeOf := func(us int64) int64 { return us - floorDiv(us, microsPerDay)*microsPerDay }
	if cb.day < ca.day || (cb.day == ca.day && timeOf(b) < timeOf(a)) {
		n--
	}
	return n
}

// resolveExtract is EXTRACT(unit FROM x), written extract('unit', x).
func resolveExtract(r *request) (impl, error) {
	lit, ok := r.literal(0)
	var unit unitOf
	if ok {
		unit, ok = intervalUnit(literalText(lit))
	}
	if !ok {
		return impl{}, errs.New(errs.ErrInvalid, "extract: %s is no unit", r.args[0])
	}
	if unit.parts == nil {
		name := unit.name
		if e, err := NewCall(name, r.args[1]); err == nil {
			return impl{t: e.Type(), rewrite: e}, nil
		}
		return impl{}, r.typesError(nil)
	}
	param := typeDatetime()
	if r.class(1) == classTime || !unit.date && !strings.HasPrefix(unit.name, "day") {
		param = typeTime()
	}
	params := []arrow.DataType{nil, param}
	if err := r.castable(params); err != nil {
		return impl{}, err
	}
	return impl{t: typeInt(), params: params, run: func(x *call) (vector, error) {
		return x.ints(func(i int) (int64, bool, error) {
			return extractParts(unit, x.intArg(1, i, 0), classOf(param) == classTime), true, nil
		})
	}}, nil
}

// extractParts writes the parts of a composite unit one after the other, as MySQL does: DAY_MINUTE of ...-02 01:02:03 is 20102.
func extractParts(u unitOf, us int64, isTime bool) int64 {
	if u.months > 0 {
		y, m, _ := civilFromDays(floorDiv(us, microsPerDay))
		return int64(y)*100 + int64(m)
	}
	sign := int64(1)
	day := int64(0)
	if isTime {
		if us < 0 {
			sign, us = -1, -us
		}
	} else {
		_, _, d := civilFromDays(floorDiv(us, microsPerDay))
		day = int64(d)
		us = floorMod(us, microsPerDay)
	}
	sec := us / 1e6
	out := int64(0)
	for k := len(u.parts) - 1; k >= 0; k-- {
		switch u.parts[k] {
		case dayMicros:
			out = day
		case hourMicros:
			out = out*100 + sec/3600
		case minuteMicros:
			out = out*100 + sec/60%60
		case secondMicros:
			out = out*100 + sec%60
		case 1:
			out = out*1e6 + us%1e6
		}
	}
	return sign * out
}

// resolveDateTrunc is DATE_TRUNC('unit', x): the start of the year, quarter, month, week (Monday), day, hour, minute or second.
func resolveDateTrunc(r *request) (impl, error) {
	lit, ok := r.literal(0)
	var unit unitOf
	if ok {
		unit, ok = intervalUnit(literalText(lit))
	}
	if !ok || unit.parts != nil {
		return impl{}, errs.New(errs.ErrInvalid, "date_trunc: %s is no unit", r.args[0])
	}
	t := arrow.DataType(typeDatetime())
	if r.class(1) == classDate && unit.date {
		t = typeDate()
	} else if r.class(1).dated() && r.class(1) != classTimestamp {
		t = datetimeTypeOf(r, 1)
	}
	params := []arrow.DataType{nil, typeDatetime()}
	if err := r.castable(params); err != nil {
		return impl{}, err
	}
	return impl{t: t, params: params, run: func(x *call) (vector, error) {
		return x.ints(func(i int) (int64, bool, error) {
			us := truncateTo(unit, x.intArg(1, i, 0))
			if classOf(t) == classDate {
				us = floorDiv(us, microsPerDay)
			}
			return us, true, nil
		})
	}}, nil
}

func truncateTo(u unitOf, us int64) int64 {
	days := floorDiv(us, microsPerDay)
	switch {
	case u.months > 0:
		y, m, _ := civilFromDays(days)
		step := int(u.months)
		return daysFromCivil(y, (m-1)/step*step+1, 1) * microsPerDay
	case u.name == "week":
		return (days - floorMod(days+3, 7)) * microsPerDay
	}
	return floorDiv(us, u.micros) * u.micros
}
