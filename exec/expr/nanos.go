package expr

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// Vectors of times count microseconds, and digits below them are cut. A comparison must not cut: an index compares what is stored, and both answers have to
// agree. So where a stored column of nanoseconds is compared, its vectors and those of the other side are replaced by numbers that compare as the
// nanoseconds do.

// nanoForm is a form of the times of a comparison.
type nanoForm uint8

const (
	nanoRaw    nanoForm = iota // nanoseconds, for two columns of them
	nanoTwice                  // twice the microseconds, plus one where nanoseconds are left over: for a column and anything of microseconds
	nanoMember                 // microseconds, or noMember where nanoseconds are left over: for membership in a set of microseconds
)

const (
	noMember   = -1<<63 + 1 // no time that can be written
	twiceLimit = 1 << 62    // above twice every microsecond that nanoseconds reach, and in their order there
)

// exactNanos returns n with arguments that compare columns of nanoseconds by all their digits.
func (c *compiler) exactNanos(n *callNode) node {
	switch n.name {
	case "=", "<>", "<", "<=", ">", ">=", "<=>":
	case "in":
		if col, ok := c.nanoColumn(n.args[0]); ok {
			n.args[0] = &nanoNode{in: col, column: col.id, form: nanoMember}
		}
		return n
	default:
		return n
	}
	a, aok := c.nanoColumn(n.args[0])
	b, bok := c.nanoColumn(n.args[1])
	switch {
	case aok && bok:
		n.args[0], n.args[1] = &nanoNode{in: a, column: a.id, form: nanoRaw}, &nanoNode{in: b, column: b.id, form: nanoRaw}
	case aok && classOf(n.args[1].typ()).temporal():
		n.args[0], n.args[1] = &nanoNode{in: a, column: a.id, form: nanoTwice}, &nanoNode{in: n.args[1], column: -1, form: nanoTwice}
	case bok && classOf(n.args[0].typ()).temporal():
		n.args[0], n.args[1] = &nanoNode{in: n.args[0], column: -1, form: nanoTwice}, &nanoNode{in: b, column: b.id, form: nanoTwice}
	}
	return n
}

// nanoColumn says whether n reads a column of nanoseconds.
func (c *compiler) nanoColumn(n node) (*columnNode, bool) {
	col, ok := n.(*columnNode)
	if !ok || c.input == nil {
		return nil, false
	}
	switch t := c.input.Field(col.id).Type.(type) {
	case *arrow.TimestampType:
		return col, t.Unit == arrow.Nanosecond
	case *arrow.Time64Type:
		return col, t.Unit == arrow.Nanosecond
	case *arrow.DurationType:
		return col, t.Unit == arrow.Nanosecond
	}
	return nil, false
}

// nanosOf is the stored nanoseconds of a column that nanoColumn accepts; nil for another array.
func nanosOf(a arrow.Array) []int64 {
	switch a := a.(type) {
	case *array.Timestamp:
		return castSlice[int64](arrow.TimestampTraits.CastToBytes(a.TimestampValues()))
	case *array.Time64:
		return castSlice[int64](arrow.Time64Traits.CastToBytes(a.Time64Values()))
	case *array.Duration:
		return castSlice[int64](arrow.DurationTraits.CastToBytes(a.DurationValues()))
	}
	return nil
}

// nanoNode gives the times of in in a form that compares as nanoseconds do.
type nanoNode struct {
	in     node
	column int // that in reads and that has nanoseconds; -1 = in has microseconds
	form   nanoForm
}

func (n *nanoNode) typ() arrow.DataType { return n.in.typ() }

func (n *nanoNode) eval(s *state) (vector, error) {
	if n.column >= 0 && s.parent != nil { // some rows of the column
		v, err := n.eval(s.parent)
		if err != nil || v.konst {
			return v, err
		}
		return s.gather(&v, s.idx)
	}
	v, err := n.in.eval(s)
	if err != nil || v.c == classNull {
		return v, err
	}
	var raw []int64
	if n.column >= 0 && n.column < len(s.cols) {
		raw = nanosOf(s.cols[n.column])
	}
	out := makeSlice[int64](s.arena, len(v.i))
	for i, micros := range v.i {
		rest := int64(0)
		if raw != nil {
			rest = raw[i] - micros*1000
		}
		out[i] = n.form.of(micros, rest)
	}
	v.i, v.src = out, nil
	return v, nil
}

// of is the form of a time of micros and rest nanoseconds, rest from 0 to 999.
func (f nanoForm) of(micros, rest int64) int64 {
	switch f {
	case nanoRaw:
		return micros*1000 + rest
	case nanoMember:
		if rest > 0 {
			return noMember
		}
		return micros
	}
	twice := max(min(micros, twiceLimit/2), -twiceLimit/2) * 2
	if rest > 0 {
		twice++
	}
	return twice
}
