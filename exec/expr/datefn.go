package expr

import (
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/lakesql/lakesql/internal/errs"
)

// daysYearZero is TO_DAYS('1970-01-01').
const daysYearZero = 719528

func dateFunctions() []function { //nolint:funlen // a flat table
	num, str := typeInt(), typeString()
	fs := []function{
		{name: "date", min: 1, max: 1, resolve: castFunction(typeDate())},
		{name: "time", min: 1, max: 1, resolve: resolveTime},
		{name: "timestamp", min: 1, max: 2, resolve: resolveTimestampFunction},
		{name: "week", min: 1, max: 2, resolve: fixed(num, weekKernel(false), typeDatetime(), num)},
		{name: "weekofyear", min: 1, max: 1, resolve: fixed(num, fromDate(func(d int64) int64 { w, _ := weekOf(d, 3); return w }), typeDate())},
		{name: "yearweek", min: 1, max: 2, resolve: fixed(num, weekKernel(true), typeDatetime(), num)},
		{name: "dayname", min: 1, max: 1, resolve: fixed(str, nameOf(func(d int64) string { return time.Weekday((floorMod(d+3, 7) + 1) % 7).String() }), typeDate())},
		{name: "monthname", min: 1, max: 1, resolve: fixed(str, nameOf(func(d int64) string { _, m, _ := civilFromDays(d); return time.Month(m).String() }), typeDate())},
		{name: "datediff", min: 2, max: 2, resolve: fixed(num, func(x *call) (vector, error) {
			a, b := &x.args[0], &x.args[1]
			return x.ints(func(i int) (int64, bool, error) { return a.i[a.at(i)] - b.i[b.at(i)], true, nil })
		}, typeDate())},
		{name: "timediff", min: 2, max: 2, resolve: resolveTimeDiff},
		{name: "addtime", min: 2, max: 2, resolve: resolveAddTime(1)},
		{name: "subtime", min: 2, max: 2, resolve: resolveAddTime(-1)},
		{name: "last_day", min: 1, max: 1, resolve: fixed(typeDate(), fromDate(func(d int64) int64 {
			y, m, _ := civilFromDays(d)
			return daysFromCivil(y, m, daysInMonth(y, m))
		}), typeDate())},
		{name: "makedate", min: 2, max: 2, resolve: fixed(typeDate(), makeDate, num)},
		{name: "maketime", min: 3, max: 3, resolve: fixed(typeTime(), makeTime, num, num, rawDecimal(20, 6))},
		{name: "to_days", min: 1, max: 1, resolve: fixed(num, fromDate(func(d int64) int64 { return d + daysYearZero }), typeDate())},
		{name: "from_days", min: 1, max: 1, resolve: fixed(typeDate(), func(x *call) (vector, error) {
			return x.ints(func(i int) (int64, bool, error) {
				d := x.intArg(0, i, 0) - daysYearZero
				return d, d >= -719162 && d <= micros9999()/microsPerDay, nil
			})
		}, num)},
		{name: "to_seconds", min: 1, max: 1, resolve: fixed(num, fromDatetime(func(us int64) int64 { return floorDiv(us, 1e6) + daysYearZero*86400 }), typeDatetime())},
		{name: "time_to_sec", min: 1, max: 1, resolve: fixed(num, fromDatetime(func(us int64) int64 { return us / 1e6 }), typeTime())},
		{name: "sec_to_time", min: 1, max: 1, resolve: resolveSecToTime},
		{name: "unix_timestamp", min: 1, max: 1, resolve: resolveUnixTimestamp},
		{name: "from_unixtime", min: 1, max: 2, resolve: resolveFromUnixtime},
		{name: "convert_tz", min: 3, max: 3, resolve: fixed(typeDatetime(), convertTZ, typeDatetime(), str, str)},
		{name: "period_add", min: 2, max: 2, resolve: fixed(num, func(x *call) (vector, error) {
			return x.ints(func(i int) (int64, bool, error) {
				return monthsPeriod(periodMonths(x.intArg(0, i, 0)) + x.intArg(1, i, 0)), true, nil
			})
		}, num)},
		{name: "period_diff", min: 2, max: 2, resolve: fixed(num, func(x *call) (vector, error) {
			return x.ints(func(i int) (int64, bool, error) {
				return periodMonths(x.intArg(0, i, 0)) - periodMonths(x.intArg(1, i, 0)), true, nil
			})
		}, num)},
		{name: "extract", min: 2, max: 2, resolve: resolveExtract},
		{name: "date_trunc", min: 2, max: 2, resolve: resolveDateTrunc},
		{name: "date_format", min: 2, max: 2, resolve: fixed(str, dateFormat, typeDatetime(), str)},
		{name: "time_format", min: 2, max: 2, resolve: fixed(str, timeFormat, typeTime(), str)},
		{name: "str_to_date", min: 2, max: 2, resolve: resolveStrToDate},
		{name: "date_add", min: 3, max: 3, resolve: resolveDateAdd(1)},
		{name: "adddate", as: "date_add", min: 2, max: 3, resolve: resolveDateAdd(1)},
		{name: "date_sub", min: 3, max: 3, resolve: resolveDateAdd(-1)},
		{name: "subdate", as: "date_sub", min: 2, max: 3, resolve: resolveDateAdd(-1)},
		{name: "timestampadd", min: 3, max: 3, resolve: func(r *request) (impl, error) {
			e, err := NewCall("date_add", r.args[2], r.args[1], r.args[0])
			if err != nil {
				return impl{}, err
			}
			return impl{t: e.Type(), rewrite: e}, nil
		}},
		{name: "timestampdiff", min: 3, max: 3, resolve: resolveTimestampDiff},
	}
	for _, name := range []string{"year", "quarter", "month", "day", "hour", "minute", "second", "microsecond", "dayofweek", "weekday", "dayofyear"} {
		fs = append(fs, function{name: name, min: 1, max: 1, resolve: resolvePart(name)})
	}
	return append(fs, function{name: "dayofmonth", as: "day", min: 1, max: 1, resolve: resolvePart("day")})
}

// castFunction resolves a function that is a cast by another name.
func castFunction(t arrow.DataType) func(*request) (impl, error) {
	return func(r *request) (impl, error) {
		e, err := NewCast(r.args[0], t)
		return impl{t: t, rewrite: e}, err
	}
}

func resolveTime(r *request) (impl, error) {
	e, err := NewCast(r.args[0], timeTypeOf(r, 0))
	if err != nil {
		return impl{}, err
	}
	return impl{t: e.Type(), rewrite: e}, nil
}

// timeTypeOf is TIME with as many digits as the argument shows.
func timeTypeOf(r *request, i int) arrow.DataType {
	if fspOfArg(r, i) == 0 {
		return &arrow.DurationType{Unit: arrow.Second}
	}
	return typeTime()
}

// fspOfArg is how many digits of the second an argument shows: literal text as many as it has.
func fspOfArg(r *request, i int) int {
	switch c := r.class(i); {
	case c == classDate, c.integer():
		return 0
	case c.temporal():
		return fspOf(r.types[i])
	case c == classString:
		if lit, ok := r.literal(i); ok && !strings.Contains(literalText(lit), ".") {
			return 0
		}
	}
	return 6
}

// datetimeTypeOf is DATETIME with as many digits as the argument shows.
func datetimeTypeOf(r *request, i int) arrow.DataType {
	switch fspOfArg(r, i) {
	case 0:
		return &arrow.TimestampType{Unit: arrow.Second}
	case 3:
		return &arrow.TimestampType{Unit: arrow.Millisecond}
	}
	return typeDatetime()
}

func resolveTimestampFunction(r *request) (impl, error) {
	if len(r.args) == 1 {
		e, err := NewCast(r.args[0], datetimeTypeOf(r, 0))
		if err != nil {
			return impl{}, err
		}
		return impl{t: e.Type(), rewrite: e}, nil
	}
	return fixed(typeDatetime(), func(x *call) (vector, error) {
		return x.ints(func(i int) (int64, bool, error) {
			us := x.intArg(0, i, 0) + x.intArg(1, i, 0)
			return us, inRange(us), nil
		})
	}, typeDatetime(), typeTime())(r)
}

func floorMod(x, by int64) int64 { return x - floorDiv(x, by)*by }

// resolvePart is a part of a date (from a datetime) or of a time (from a TIME, so that hours beyond 24 count).
func resolvePart(name string) func(*request) (impl, error) {
	f, clock, ok := datePart(name)
	return func(r *request) (impl, error) {
		if !ok {
			return impl{}, errs.New(errs.ErrInvalid, "%s is no part of a date", name)
		}
		if clock {
			return fixed(typeInt(), fromDatetime(f), typeTime())(r)
		}
		if r.class(0) == classTime {
			return fixed(typeInt(), fromDatetime(f), typeDatetime())(r)
		}
		return fixed(typeInt(), fromDatetime(f), typeDatetime())(r)
	}
}

// datePart returns how a part is computed: from civil microseconds, or with clock from the microseconds of a TIME.
func datePart(name string) (f func(us int64) int64, clock, ok bool) {
	byDate := func(g func(y, m, d int) int64) func(int64) int64 {
		return func(us int64) int64 { return g(civilFromDays(floorDiv(us, microsPerDay))) }
	}
	byTime := func(g func(us int64) int64) func(int64) int64 {
		return func(us int64) int64 { return g(max(us, -us)) }
	}
	switch name {
	case "year":
		return byDate(func(y, _, _ int) int64 { return int64(y) }), false, true
	case "quarter":
		return byDate(func(_, m, _ int) int64 { return int64(m+2) / 3 }), false, true
	case "month":
		return byDate(func(_, m, _ int) int64 { return int64(m) }), false, true
	case "day":
		return byDate(func(_, _, d int) int64 { return int64(d) }), false, true
	case "dayofyear":
		return byDate(func(y, m, d int) int64 { return daysFromCivil(y, m, d) - daysFromCivil(y, 1, 1) + 1 }), false, true
	case "dayofweek":
		return func(us int64) int64 { return floorMod(floorDiv(us, microsPerDay)+4, 7) + 1 }, false, true
	case "weekday":
		return func(us int64) int64 { return floorMod(floorDiv(us, microsPerDay)+3, 7) }, false, true
	case "week":
		return func(us int64) int64 { w, _ := weekOf(floorDiv(us, microsPerDay), 0); return w }, false, true
	case "hour":
		return byTime(func(us int64) int64 { return us / 3600e6 }), true, true
	case "minute":
		return byTime(func(us int64) int64 { return us / 60e6 % 60 }), true, true
	case "second":
		return byTime(func(us int64) int64 { return us / 1e6 % 60 }), true, true
	case "microsecond":
		return byTime(func(us int64) int64 { return us % 1e6 }), true, true
	}
	return nil, false, false
}

func fromDatetime(f func(us int64) int64) kernel {
	return func(x *call) (vector, error) {
		out := x.newVector(x.t, x.n)
		out.valid = x.valid
		for i, us := range x.args[0].i[:x.n] {
			out.i[i] = f(us)
		}
		return out, nil
	}
}

func fromDate(f func(days int64) int64) kernel { return fromDatetime(f) }

func nameOf(f func(days int64) string) kernel {
	return func(x *call) (vector, error) {
		v := &x.args[0]
		return x.strings(func(i int, dst []byte) ([]byte, bool, error) { return append(dst, f(v.i[v.at(i)])...), true, nil })
	}
}

// The bits of MySQL's week mode.
const (
	weekMondayFirst  = 1
	weekYear         = 2
	weekFirstWeekday = 4
)

func daysInYear(y int) int64 {
	if isLeap(y) {
		return 366
	}
	return 365
}

// weekOf is MySQL's WEEK(date, mode) and the year that the week belongs to.
func weekOf(days int64, mode int64) (week int64, year int) {
	mode &= 7
	if mode&weekMondayFirst == 0 {
		mode ^= weekFirstWeekday
	}
	y, m, d := civilFromDays(days)
	first := daysFromCivil(y, 1, 1)
	monday := mode&weekMondayFirst != 0
	byYear, full := mode&weekYear != 0, mode&weekFirstWeekday != 0
	weekday := floorMod(first+3, 7) // of January 1st, Monday = 0
	if !monday {
		weekday = floorMod(first+4, 7)
	}
	late := func() bool { return (full && weekday != 0) || (!full && weekday >= 4) }
	if m == 1 && int64(d) <= 7-weekday {
		if !byYear && late() {
			return 0, y
		}
		byYear = true
		y--
		n := daysInYear(y)
		first -= n
		weekday = (weekday + 53*7 - n) % 7
	}
	since := days - (first - weekday)
	if late() {
		since = days - (first + 7 - weekday)
	}
	if byYear && since >= 52*7 {
		weekday = (weekday + daysInYear(y)) % 7
		if (!full && weekday < 4) || (full && weekday == 0) {
			return 1, y + 1
		}
	}
	return since/7 + 1, y
}

func weekKernel(withYear bool) kernel {
	return func(x *call) (vector, error) {
		return x.ints(func(i int) (int64, bool, error) {
			mode := x.intArg(1, i, 0)
			if withYear {
				mode |= weekYear
			}
			w, y := weekOf(floorDiv(x.intArg(0, i, 0), microsPerDay), mode)
			if withYear {
				return int64(y)*100 + w, true, nil
			}
			return w, true, nil
		})
	}
}

// resolveTimeDiff subtracts two times or two datetimes.
func resolveTimeDiff(r *request) (impl, error) {
	t := typeTime()
	if r.class(0).dated() || r.class(1).dated() || (datetimeText(r, 0) && datetimeText(r, 1)) {
		t = typeDatetime()
	}
	out := arrow.DataType(typeTime())
	if fspOfArg(r, 0) == 0 && fspOfArg(r, 1) == 0 {
		out = &arrow.DurationType{Unit: arrow.Second}
	}
	return impl{t: out, params: []arrow.DataType{t}, run: func(x *call) (vector, error) {
		return x.ints(func(i int) (int64, bool, error) { return clampTime(x.intArg(0, i, 0) - x.intArg(1, i, 0)), true, nil })
	}}, nil
}

// datetimeText reports whether an argument is a literal that spells a date.
func datetimeText(r *request, i int) bool {
	lit, ok := r.literal(i)
	if !ok || r.class(i) != classString {
		return false
	}
	_, ok = parseDatetime([]byte(literalText(lit)))
	return ok && len(literalText(lit)) > 10
}

func resolveAddTime(sign int64) func(*request) (impl, error) {
	return func(r *request) (impl, error) {
		first := typeTime()
		if r.class(0).dated() || datetimeText(r, 0) {
			first = typeDatetime()
		}
		out := first
		if fspOfArg(r, 0) == 0 && fspOfArg(r, 1) == 0 {
			out = timeTypeOf(r, 0)
			if classOf(first) == classDatetime {
				out = datetimeTypeOf(r, 0)
			}
		}
		return impl{t: out, params: []arrow.DataType{first, typeTime()}, run: func(x *call) (vector, error) {
			return x.ints(func(i int) (int64, bool, error) {
				us := x.intArg(0, i, 0) + sign*x.intArg(1, i, 0)
				if classOf(first) == classTime {
					return clampTime(us), true, nil
				}
				return us, inRange(us), nil
			})
		}}, nil
	}
}

// makeDate is MAKEDATE(year, day of the year).
func makeDate(x *call) (vector, error) {
	return x.ints(func(i int) (int64, bool, error) {
		y, n := x.intArg(0, i, 0), x.intArg(1, i, 0)
		if y < 0 || y > yearMax || n < 1 || n > 4000000 {
			return 0, false, nil
		}
		if y < 100 {
			y = int64(fullYear(int(y), 2))
		}
		d := daysFromCivil(int(y), 1, 1) + n - 1
		return d, d <= micros9999()/microsPerDay, nil
	})
}

func makeTime(x *call) (vector, error) {
	return x.ints(func(i int) (int64, bool, error) {
		h, m := x.intArg(0, i, 0), x.intArg(1, i, 0)
		sec := x.args[2].big(i)
		if m < 0 || m > 59 || !sec.IsInt64() || sec.Sign() < 0 || sec.Int64() >= 60e6 {
			return 0, false, nil
		}
		rest := m*60e6 + sec.Int64()
		if h > 838 || h < -838 {
			return clampTime(h * 3600e6), true, nil
		}
		if h < 0 {
			return clampTime(h*3600e6 - rest), true, nil
		}
		return clampTime(h*3600e6 + rest), true, nil
	})
}

func resolveSecToTime(r *request) (impl, error) {
	t := arrow.DataType(typeTime())
	if r.class(0).integer() {
		t = &arrow.DurationType{Unit: arrow.Second}
	}
	return fixed(t, func(x *call) (vector, error) {
		return x.ints(func(i int) (int64, bool, error) {
			n := x.args[0].big(i)
			if !n.IsInt64() {
				return int64(n.Sign()) * timeMicrosMax, true, nil
			}
			return clampTime(n.Int64()), true, nil
		})
	}, rawDecimal(38, 6))(r)
}

// resolveUnixTimestamp counts seconds since 1970 UTC: whole ones where the argument has no fraction.
func resolveUnixTimestamp(r *request) (impl, error) {
	params := []arrow.DataType{typeTimestamp()}
	if err := r.castable(params); err != nil {
		return impl{}, err
	}
	if fspOfArg(r, 0) == 0 {
		return impl{t: typeInt(), params: params, run: fromDatetime(func(us int64) int64 { return max(floorDiv(us, 1e6), 0) })}, nil
	}
	t := rawDecimal(20, 6)
	return impl{t: t, params: params, run: func(x *call) (vector, error) {
		out := x.newVector(t, x.n)
		out.valid = x.valid
		for i, us := range x.args[0].i[:x.n] {
			out.d[i] = decimal128.FromI64(max(us, 0))
		}
		return out, nil
	}}, nil
}

// unixSecondsMax is the last second that FROM_UNIXTIME takes: 3001-01-18 23:59:59.
const unixSecondsMax = 32536771199

func resolveFromUnixtime(r *request) (impl, error) {
	t := arrow.DataType(typeDatetime())
	if r.class(0).integer() {
		t = &arrow.TimestampType{Unit: arrow.Second}
	}
	if len(r.args) == 2 {
		inner, err := NewCall("from_unixtime", r.args[0])
		if err != nil {
			return impl{}, err
		}
		e, err := NewCall("date_format", inner, r.args[1])
		return impl{t: typeString(), rewrite: e}, err
	}
	return fixed(t, func(x *call) (vector, error) {
		loc := x.env.location()
		return x.ints(func(i int) (int64, bool, error) {
			n := x.args[0].big(i)
			if !n.IsInt64() || n.Int64() < 0 || n.Int64() > unixSecondsMax*1e6+999999 {
				return 0, false, nil
			}
			return localMicros(n.Int64(), loc), true, nil
		})
	}, rawDecimal(38, 6))(r)
}

// zone finds a time zone by name or by offset ("+02:00").
func (e *Env) zone(name string) (*time.Location, bool) {
	if len(name) == 6 && (name[0] == '+' || name[0] == '-') {
		us, whole, ok := parseTime([]byte(name[1:] + ":00"))
		if !ok || !whole || us > 14*3600e6 {
			return nil, false
		}
		sec := int(us / 1e6)
		if name[0] == '-' {
			sec = -sec
		}
		return time.FixedZone(name, sec), true
	}
	if strings.EqualFold(name, "SYSTEM") {
		return e.location(), true
	}
	if name == "" || strings.EqualFold(name, "local") {
		return nil, false
	}
	loc, err := time.LoadLocation(name)
	return loc, err == nil
}

func convertTZ(x *call) (vector, error) {
	zones := make(map[string]*time.Location)
	find := func(name []byte) *time.Location {
		loc, ok := zones[string(name)]
		if !ok {
			loc, _ = x.env.zone(string(name))
			zones[string(name)] = loc
		}
		return loc
	}
	return x.ints(func(i int) (int64, bool, error) {
		from, to := find(x.args[1].str(i)), find(x.args[2].str(i))
		if from == nil || to == nil {
			return 0, false, nil
		}
		return localMicros(instantMicros(x.intArg(0, i, 0), from), to), true, nil
	})
}

func periodMonths(p int64) int64 {
	y := p / 100
	if y < 100 {
		y = int64(fullYear(int(y), 2))
	}
	return y*12 + p%100 - 1
}

func monthsPeriod(m int64) int64 { return m/12*100 + m%12 + 1 }
