package exec

import (
	"cmp"
	"slices"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
)

// ConcatSpec says how GROUP_CONCAT joins values. The aggregate's arguments are the text of a row (NULL = it has none), then Distinct values that tell rows apart
// (0 = all rows count), then the sort keys.
type ConcatSpec struct {
	Separator string
	BytesMax  uint64 // longer texts are cut, with a warning; 0 = no limit
	Distinct  int
	Desc      []bool // of the sort keys
}

func (s *ConcatSpec) text(args []expr.Expr) string {
	out := args[0].String()
	if s.Distinct > 0 {
		out = "DISTINCT " + out
	}
	for i, desc := range s.Desc {
		sep := ", "
		if i == 0 {
			sep = " ORDER BY "
		}
		out += sep + SortKey{Expr: args[len(args)-len(s.Desc)+i], Desc: desc}.String()
	}
	return out + " SEPARATOR '" + s.Separator + "'"
}

func (s *ConcatSpec) check(types []arrow.DataType) error {
	if s == nil || s.Distinct < 0 || len(types) != 1+s.Distinct+len(s.Desc) {
		return errs.New(errs.ErrInternal, "group_concat with %d arguments", len(types))
	}
	for _, t := range types[1 : 1+s.Distinct] {
		if err := checkKeyType(t); err != nil {
			return err
		}
	}
	for _, t := range types[1+s.Distinct:] {
		if !isOrderable(t) {
			return errs.New(errs.ErrUnsupported, "group_concat ordered by values of type %s", t)
		}
	}
	return nil
}

// cutWarning is what MySQL says of a text that was cut.
const cutWarning = 1260

// collectAcc is GROUP_CONCAT, JSON_ARRAYAGG and JSON_OBJECTAGG: it keeps the arguments of all rows and writes the text of each group at the end.
//
// JSON_ARRAYAGG has the value as JSON text, NULL for null; JSON_OBJECTAGG the key as a JSON string and the value as JSON text.
type collectAcc struct {
	env    *Env
	res    *mem.Reservation
	spec   AggSpec
	groups int
	ids    []uint32
	args   [][]arrow.Array // by argument: chunks

	starts, order []int32 // rows by group, in order of arrival; made by list
	text          []byte
	ends          []int64 // text of group g ends there; it is NULL where empty says so
	empty         []bool
}

func newCollectAcc(env *Env, res *mem.Reservation, a AggSpec) *collectAcc {
	return &collectAcc{env: env, res: res, spec: a, args: make([][]arrow.Array, len(a.Args))}
}

func (c *collectAcc) resize(n int) error {
	c.groups = max(c.groups, n)
	return nil
}

func (c *collectAcc) update(ids []uint32, args []arrow.Array) error {
	var keep []int32 // GROUP_CONCAT leaves out rows without a text
	if c.spec.Func == AggConcat && args[0].NullN() > 0 {
		for i := range ids {
			if args[0].IsValid(i) {
				keep = append(keep, int32(i))
			}
		}
		if len(keep) == 0 {
			return nil
		}
	}
	if len(c.ids)+len(ids) > rowsMax {
		return errs.New(errs.ErrUnsupported, "%s of more than %d rows", c.spec.Func, rowsMax)
	}
	at := len(c.ids)
	n := len(ids)
	if keep != nil {
		n = len(keep)
	}
	var err error
	if c.ids, err = grown(c.res, c.ids, n, 4); err != nil {
		return err
	}
	for i := range n {
		row := i
		if keep != nil {
			row = int(keep[i])
		}
		c.ids[at+i] = ids[row]
	}
	for j, a := range args {
		a.Retain()
		if keep != nil {
			taken, err := expr.TakeArray(c.env.Alloc, a, keep)
			a.Release()
			if err != nil {
				return err
			}
			a = taken
		}
		c.args[j] = append(c.args[j], a)
	}
	return nil
}

// list joins the chunks and lists the rows of each group.
func (c *collectAcc) list() error {
	if c.starts != nil {
		return nil
	}
	for j, chunks := range c.args {
		if len(chunks) < 2 {
			continue
		}
		whole, err := concatArrays(c.env.Alloc, c.spec.Args[j].Type(), chunks)
		if err != nil {
			return err
		}
		releaseArrays(chunks)
		c.args[j] = []arrow.Array{whole}
	}
	if err := c.res.Grow(4 * int64(len(c.ids)+c.groups+1)); err != nil {
		return err
	}
	c.starts = groupStarts(c.ids, nil, c.groups)
	next := append([]int32(nil), c.starts...)
	c.order = make([]int32, len(c.ids))
	for row, g := range c.ids {
		c.order[next[g]] = int32(row)
		next[g]++
	}
	return nil
}

func (c *collectAcc) seal() error { return c.list() }

func (c *collectAcc) merge(src accumulator, from, to []uint32) error {
	s := src.(*collectAcc)
	var rows []int32
	var ids []uint32
	for i, g := range from {
		if int(g)+1 >= len(s.starts) {
			continue
		}
		for _, row := range s.order[s.starts[g]:s.starts[g+1]] {
			rows, ids = append(rows, row), append(ids, to[i])
		}
	}
	if len(rows) == 0 {
		return nil
	}
	cols := make([]arrow.Array, len(s.args))
	for j, chunks := range s.args {
		cols[j] = chunks[0]
	}
	taken, err := takeColumns(c.env.Alloc, cols, rows, make([]arrow.Array, 0, len(cols)))
	if err != nil {
		return err
	}
	defer releaseArrays(taken)
	return c.update(ids, taken)
}

// finish writes all texts.
func (c *collectAcc) finish() error {
	if err := c.list(); err != nil {
		return err
	}
	if len(c.order) == 0 {
		c.ends, c.empty = make([]int64, c.groups), make([]bool, c.groups)
		for g := range c.empty {
			c.empty[g] = true
		}
		return nil
	}
	if err := c.sort(); err != nil {
		return err
	}
	write, err := c.writer()
	if err != nil {
		return err
	}
	for g := range c.groups {
		rows := c.order[c.starts[g]:c.starts[g+1]]
		c.empty = append(c.empty, len(rows) == 0)
		if len(rows) > 0 {
			if err := write(rows); err != nil {
				return err
			}
		}
		c.ends = append(c.ends, int64(len(c.text)))
	}
	for j := range c.args {
		releaseArrays(c.args[j])
		c.args[j] = nil
	}
	return nil
}

// sort orders the rows of each group by the sort keys.
func (c *collectAcc) sort() error {
	if c.spec.Concat == nil || len(c.spec.Concat.Desc) == 0 {
		return nil
	}
	first := len(c.args) - len(c.spec.Concat.Desc)
	keys := make([]SortKey, len(c.spec.Concat.Desc))
	cols := make([]arrow.Array, len(keys))
	fs := make([]arrow.Field, len(keys))
	for i, desc := range c.spec.Concat.Desc {
		cols[i] = c.args[first+i][0]
		cols[i].Retain()
		fs[i] = arrow.Field{Type: cols[i].DataType(), Nullable: true}
		keys[i] = SortKey{Expr: &expr.Column{ID: i, T: cols[i].DataType()}, Desc: desc}
	}
	schema := arrow.NewSchema(fs, nil)
	batch := newBatch(schema, cols, len(c.ids))
	defer batch.Release()
	res := c.env.Budget.Reserve()
	defer res.Free()
	k, err := newSortKeys(c.env, schema, keys, res)
	if err != nil {
		return err
	}
	if err := k.append(batch); err != nil {
		return err
	}
	for g := range c.groups {
		rows := c.order[c.starts[g]:c.starts[g+1]]
		slices.SortFunc(rows, func(a, b int32) int { return k.compareTotal(k.items[a], k.items[b]) })
	}
	return nil
}

// writer returns what appends the text of a group's rows.
func (c *collectAcc) writer() (func(rows []int32) error, error) {
	first := bytesAt(c.args[0][0])
	switch c.spec.Func {
	case AggConcat:
		return c.concatWriter(first)
	case AggJSONArray:
		return func(rows []int32) error {
			c.text = append(c.text, '[')
			for i, row := range rows {
				if i > 0 {
					c.text = append(c.text, ", "...)
				}
				if err := c.write(jsonOrNull(c.args[0][0], first, row)); err != nil {
					return err
				}
			}
			c.text = append(c.text, ']')
			return nil
		}, nil
	}
	return func(rows []int32) error { return c.object(rows, first, bytesAt(c.args[1][0])) }, nil
}

func jsonOrNull(a arrow.Array, value func(int) []byte, row int32) []byte {
	if a.IsNull(int(row)) {
		return []byte("null")
	}
	return value(int(row))
}

// write appends b, its room reserved.
func (c *collectAcc) write(b []byte) error {
	const slack = 16 // for separators and brackets
	text, err := grown(c.res, c.text, len(b)+slack, 1)
	if err != nil {
		return err
	}
	c.text = append(text[:len(c.text)], b...)
	return nil
}

// object writes the members ordered as MySQL does, by length, then bytes; of members of one name the last counts.
func (c *collectAcc) object(rows []int32, key, value func(int) []byte) error {
	last := make(map[string]int32, len(rows))
	for _, row := range rows {
		if c.args[0][0].IsNull(int(row)) {
			return errs.New(errs.ErrJSONName, "JSON documents may not contain NULL member names.")
		}
		last[string(key(int(row)))] = row
	}
	names := make([]string, 0, len(last))
	for name := range last {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
	c.text = append(c.text, '{')
	for i, name := range names {
		if i > 0 {
			c.text = append(c.text, ", "...)
		}
		if err := c.write([]byte(name)); err != nil {
			return err
		}
		c.text = append(c.text, ": "...)
		if err := c.write(jsonOrNull(c.args[1][0], value, last[name])); err != nil {
			return err
		}
	}
	c.text = append(c.text, '}')
	return nil
}

func (c *collectAcc) concatWriter(value func(int) []byte) (func(rows []int32) error, error) {
	s := c.spec.Concat
	var tellApart byteKeys[int64]
	var enc rowEncoder
	if s.Distinct > 0 {
		cols := make([]arrow.Array, s.Distinct)
		for i := range cols {
			cols[i] = c.args[1+i][0]
		}
		var err error
		if tellApart, err = enc.encode(cols, len(c.ids)); err != nil {
			return nil, err
		}
		if err := c.res.Grow(int64(cap(enc.data)) + 16*int64(len(c.ids))); err != nil {
			return nil, err
		}
	}
	return func(rows []int32) error {
		begin, seen := len(c.text), map[string]bool{}
		for i, row := range rows {
			if s.Distinct > 0 {
				key := tellApart.data[tellApart.offsets[row]:tellApart.offsets[row+1]]
				if seen[string(key)] {
					continue
				}
				seen[string(key)] = true
			}
			if i > 0 {
				if err := c.write([]byte(s.Separator)); err != nil {
					return err
				}
			}
			if err := c.write(value(int(row))); err != nil {
				return err
			}
			if s.BytesMax > 0 && uint64(len(c.text)-begin) > s.BytesMax {
				c.cut(begin)
				return nil
			}
		}
		return nil
	}, nil
}

// cut shortens the text that begins at begin to the limit, at the end of a character.
func (c *collectAcc) cut(begin int) {
	at := begin + int(c.spec.Concat.BytesMax)
	for n := 0; n < utf8.UTFMax && at > begin && !utf8.RuneStart(c.text[at]); n++ {
		at--
	}
	c.text = c.text[:at]
	c.env.warn(Warning{About: "group_concat", Code: cutWarning, Text: "Row 1 was cut by GROUP_CONCAT()"})
}

func (c *collectAcc) result(alloc memory.Allocator, t arrow.DataType, from, to int) (arrow.Array, error) {
	b := array.NewBuilder(alloc, t)
	defer b.Release()
	begin := int64(0)
	if from > 0 {
		begin = c.ends[from-1]
	}
	for g := from; g < to; g++ {
		text := c.text[begin:c.ends[g]]
		begin = c.ends[g]
		if c.empty[g] {
			b.AppendNull()
			continue
		}
		switch b := b.(type) {
		case *array.StringBuilder:
			b.BinaryBuilder.Append(text)
		case *array.BinaryBuilder:
			b.Append(text)
		default:
			return nil, errs.New(errs.ErrInternal, "%s as %s", c.spec.Func, t)
		}
	}
	return b.NewArray(), nil
}

func (c *collectAcc) close() {
	for j := range c.args {
		releaseArrays(c.args[j])
		c.args[j] = nil
	}
	c.text, c.ids, c.order = nil, nil, nil
}
