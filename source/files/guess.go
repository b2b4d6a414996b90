package files

import (
	"bytes"
	"math/bits"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/internal/errs"
)

// guess is what the values of a column that were seen have in common. The zero value has seen none.
type guess struct {
	values int64 // not NULL
	// How many of the values are each of these. Numbers of text with leading zeros are text.
	ints, negatives, uints, floats, bools, strings, lists, objects int64
	dates, stamps, zoned, times, nanos                             int64
	orders                                                         DateOrder         // that all dates fit
	nulls                                                          map[string]int64  // words that may mean NULL, of text formats
	item                                                           *guess            // of lists
	lengths                                                        [2]int32          // least and most items of a list
	fields                                                         map[string]*guess // of objects
	order                                                          []string          // of the fields
	tooMany                                                        bool              // fields
}

// fieldsMax bounds how many fields a struct gets.
const fieldsMax = 1000

// nullWords may stand for NULL where a column has values of another kind beside them.
var nullWords = map[string]bool{"NULL": true, "null": true, "Null": true, "NA": true, "N/A": true, "n/a": true, "None": true, "none": true, "nan": true, "NaN": true, "-": true} //nolint:gochecknoglobals // a table

// addText looks at a value of a text format that is not empty and not NULL.
func (g *guess) addText(b []byte, isQuoted bool, j *jsonText) {
	if !isQuoted && nullWords[string(b)] {
		if g.nulls == nil {
			g.nulls = make(map[string]int64)
		}
		g.nulls[string(b)]++
		return
	}
	g.values++
	b = bytes.TrimSpace(b)
	if len(b) == 0 {
		g.strings++
		return
	}
	switch c := b[0]; {
	case c == '[' || c == '{':
		j.lenient = true
		j.reset()
		if n, err := j.parse(b); err == nil {
			g.values--
			g.addNode(j, n)
			return
		}
	case c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.':
		if g.addNumber(b, true) || g.addStamp(b) {
			return
		}
	default:
		switch strings.ToLower(string(b)) {
		case "true", "false":
			g.bools++
			return
		case "inf", "infinity":
			g.floats++
			return
		}
	}
	g.strings++
}

// addNumber counts a number; isText asks for care: leading zeros mean something.
func (g *guess) addNumber(b []byte, isText bool) bool {
	digits := bytes.TrimLeft(b, "+-")
	if isText && len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9' {
		return false
	}
	if v, err := strconv.ParseInt(string(b), 10, 64); err == nil {
		if v < 0 {
			g.negatives++
		}
		g.ints++
		return true
	}
	if _, err := strconv.ParseUint(string(b), 10, 64); err == nil {
		g.uints++
		return true
	}
	if bytes.ContainsAny(digits, "xX_pP") {
		return false
	}
	isInt := len(bytes.Trim(digits, "0123456789")) == 0
	if _, err := strconv.ParseFloat(string(b), 64); err != nil || isInt { // an integer too large for any type of integers
		return false
	}
	g.floats++
	return true
}

func (g *guess) addStamp(b []byte) bool {
	s, ok := parseStamp(b)
	if !ok {
		return false
	}
	if s.hasDate {
		if g.dates+g.stamps == 0 {
			g.orders = s.orders
		}
		g.orders &= s.orders
	}
	switch {
	case s.hasDate && s.hasTime:
		g.stamps++
	case s.hasDate:
		g.dates++
	default:
		g.times++
	}
	if s.hasZone {
		g.zoned++
	}
	if s.digits > 6 {
		g.nanos++
	}
	return true
}

// addNode looks at a value of JSON.
func (g *guess) addNode(j *jsonText, at int32) {
	n := &j.nodes[at]
	if n.kind == jsonNull {
		return
	}
	g.values++
	switch n.kind {
	case jsonTrue, jsonFalse:
		g.bools++
	case jsonNumber:
		if !g.addNumber(n.text, false) {
			g.strings++
		}
	case jsonString:
		if len(n.text) == 0 || n.text[0] < '0' || n.text[0] > '9' || !g.addStamp(n.text) {
			g.strings++
		}
	case jsonArray:
		g.addList(j, n)
	case jsonObject:
		g.objects++
		if g.fields == nil {
			g.fields = make(map[string]*guess)
		}
		for m := n.first; m != 0; m = j.nodes[m].next {
			f, ok := g.fields[string(j.nodes[m].key)]
			if !ok {
				if len(g.fields) == fieldsMax {
					g.tooMany = true
					continue
				}
				f = &guess{}
				g.fields[string(j.nodes[m].key)] = f
				g.order = append(g.order, string(j.nodes[m].key))
			}
			f.addNode(j, m)
		}
	}
}

func (g *guess) addList(j *jsonText, n *node) {
	if g.lists == 0 {
		g.lengths = [2]int32{n.count, n.count}
	}
	g.lengths[0], g.lengths[1] = min(g.lengths[0], n.count), max(g.lengths[1], n.count)
	g.lists++
	if g.item == nil {
		g.item = &guess{}
	}
	for m := n.first; m != 0; m = j.nodes[m].next {
		if j.nodes[m].kind == jsonNull {
			g.item.addNull()
		}
		g.item.addNode(j, m)
	}
}

// addNull notes a NULL among the items of a list: a vector has none.
func (g *guess) addNull() {
	if g.nulls == nil {
		g.nulls = make(map[string]int64)
	}
	g.nulls["null"]++
}

// settled is the type that a guess comes to.
type settled struct {
	typ   arrow.DataType
	order DateOrder
	nulls []string // words that mean NULL in this column
	note  string   // what the user should know; "" = nothing
}

// settle finds the type that holds every value that was seen.
func (g *guess) settle(opts Options) (settled, error) {
	t, err := g.kind(opts)
	if err != nil || t.typ == nil || t.typ.ID() == arrow.STRING {
		return t, err
	}
	for w := range g.nulls {
		if isFloat(t.typ) && strings.EqualFold(w, "nan") {
			continue // a number like others
		}
		t.nulls = append(t.nulls, w)
	}
	return t, nil
}

func (g *guess) kind(opts Options) (settled, error) { //nolint:gocyclo // a flat list of kinds
	text := settled{typ: arrow.BinaryTypes.String}
	nan := g.nulls["NaN"] + g.nulls["nan"]
	times := g.dates + g.stamps
	switch all := g.values; {
	case all == 0:
		return text, nil
	case g.bools == all:
		return settled{typ: arrow.FixedWidthTypes.Boolean}, nil
	case g.ints+g.floats == all && (g.floats > 0 || nan > 0):
		return settled{typ: arrow.PrimitiveTypes.Float64}, nil
	case g.ints == all:
		return settled{typ: arrow.PrimitiveTypes.Int64}, nil
	case g.ints+g.uints == all && g.negatives == 0:
		return settled{typ: arrow.PrimitiveTypes.Uint64}, nil
	case g.times == all && g.zoned == 0:
		if g.nanos > 0 {
			return settled{typ: arrow.FixedWidthTypes.Time64ns}, nil
		}
		return settled{typ: arrow.FixedWidthTypes.Time64us}, nil
	case times == all && (g.zoned == 0 || g.zoned == g.stamps && g.dates == 0):
		return g.time(opts)
	case g.lists == all:
		return g.list(opts)
	case g.objects == all:
		return g.object(opts)
	}
	return text, nil
}

// time is the type of dates and timestamps.
func (g *guess) time(opts Options) (settled, error) {
	fit := g.orders
	if opts.DateOrder != 0 {
		fit &= opts.DateOrder
	}
	if bits.OnesCount8(uint8(fit)) != 1 {
		out := settled{typ: arrow.BinaryTypes.String}
		if fit != 0 {
			out.note = "dates stay text: day or month first? --date-order dmy or mdy says it"
		}
		return out, nil
	}
	if g.stamps == 0 {
		return settled{typ: arrow.FixedWidthTypes.Date32, order: fit}, nil
	}
	t := &arrow.TimestampType{Unit: arrow.Microsecond}
	if g.nanos > 0 {
		t.Unit = arrow.Nanosecond
	}
	if g.zoned > 0 {
		t.TimeZone = "UTC"
	}
	return settled{typ: t, order: fit}, nil
}

func (g *guess) list(opts Options) (settled, error) {
	item, err := g.item.kind(opts)
	if err != nil {
		return settled{}, err
	}
	if item.typ.ID() == arrow.FLOAT64 && len(g.item.nulls) == 0 && isVectorLength(g.lengths, opts.VectorMin) {
		return settled{typ: arrow.FixedSizeListOf(g.lengths[0], arrow.PrimitiveTypes.Float32)}, nil
	}
	return settled{typ: arrow.ListOf(item.typ), order: item.order, note: item.note}, nil
}

// vectorMax is the most dimensions that a vector has.
const vectorMax = 65_535

func isVectorLength(lengths [2]int32, least int) bool {
	return least > 0 && lengths[0] == lengths[1] && int(lengths[0]) >= least && lengths[0] <= vectorMax
}

func (g *guess) object(opts Options) (settled, error) {
	if g.tooMany {
		return settled{}, errs.New(errs.ErrInvalid, "objects with more than %d keys: --schema 'COLUMN MAP<VARCHAR, VARCHAR>' or 'COLUMN JSON' reads them", fieldsMax)
	}
	if len(g.order) == 0 {
		return settled{typ: arrow.BinaryTypes.String}, nil // a struct has fields
	}
	var out settled
	fields := make([]arrow.Field, len(g.order))
	for i, name := range g.order {
		f, err := g.fields[name].kind(opts)
		if err != nil {
			return settled{}, err
		}
		if f.order != 0 && out.order != 0 && f.order != out.order {
			return settled{typ: arrow.BinaryTypes.String, note: "objects whose dates have several forms stay text"}, nil
		}
		out.order |= f.order
		fields[i] = arrow.Field{Name: name, Type: f.typ, Nullable: true}
	}
	out.typ = arrow.StructOf(fields...)
	return out, nil
}
