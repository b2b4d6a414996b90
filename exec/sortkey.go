package exec

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
)

// SortKey is one ordering. NULLs come first ascending and last descending, as in MySQL; NullsLast puts them last either way. NaN is above all
// numbers; strings compare byte by byte.
type SortKey struct {
	Expr      expr.Expr
	Desc      bool
	NullsLast bool
}

func (k SortKey) String() string {
	s := k.Expr.String()
	if k.Desc {
		s += " DESC"
	} else if k.NullsLast {
		s += " NULLS LAST"
	}
	return s
}

func sortKeysText(keys []SortKey) string {
	parts := make([]string, len(keys))
	for i, k := range keys {
		parts[i] = k.String()
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// checkSortKeys checks keys against schema and adds the row address as the last one where the schema has it, so that ties have one order.
func checkSortKeys(node string, keys []SortKey, schema *arrow.Schema) error {
	for _, k := range keys {
		if err := checkExpr(node, k.Expr, schema); err != nil {
			return err
		}
		if !isOrderable(k.Expr.Type()) {
			return errs.New(errs.ErrUnsupported, "%s by %s: values of type %s have no order", node, k.Expr, k.Expr.Type())
		}
	}
	return nil
}

// withTieBreak appends the row address where the input has it.
func withTieBreak(keys []SortKey, schema *arrow.Schema) []SortKey {
	for i, f := range schema.Fields() {
		if f.Name == RowAddrColumn && f.Type.ID() == arrow.UINT64 {
			return append(slices.Clip(keys), SortKey{Expr: &expr.Column{ID: i, Name: f.Name, T: f.Type}})
		}
	}
	return keys
}

// sortItem stands for a row while it is sorted: the rank and prefix order rows by the first key as far as 8 bytes tell.
type sortItem struct {
	prefix uint64
	row    uint32
	rank   uint8 // 0 = NULL that comes first, 1 = a value, 2 = NULL that comes last
}

const sortItemBytes = 16

func (a sortItem) compareFirst(b sortItem) int {
	if a.rank != b.rank {
		return cmp.Compare(a.rank, b.rank)
	}
	return cmp.Compare(a.prefix, b.prefix)
}

// sortKeys holds the keys of rows in a form that compares as bytes: see sortItem for the first key; rest has, per row, what the prefix does not
// tell, such that bytes.Compare orders it.
type sortKeys struct {
	keys    []SortKey
	exact   bool // the prefix tells all of the first key
	eval    *evaluator
	res     *mem.Reservation
	items   []sortItem
	rest    []byte
	ends    []int64 // rest of row i is rest[ends[i]:ends[i+1]]; empty where there is no rest
	scratch []uint64
	cols    []arrow.Array
}

func newSortKeys(env *Env, schema *arrow.Schema, keys []SortKey, res *mem.Reservation) (*sortKeys, error) {
	exprs := make([]expr.Expr, len(keys))
	for i, k := range keys {
		exprs[i] = k.Expr
	}
	eval, err := newEvaluator(env, schema, exprs...)
	if err != nil {
		return nil, err
	}
	s := &sortKeys{keys: keys, eval: eval, res: res, exact: len(keys) == 0}
	if len(keys) > 0 {
		s.exact = exactPrefix(plainType(keys[0].Expr.Type()))
	}
	return s, nil
}

// exactPrefix says whether orderedPrefix tells all values of the type apart.
func exactPrefix(t arrow.DataType) bool {
	if d, ok := t.(*arrow.Decimal128Type); ok {
		return d.Precision <= 18
	}
	return isWordKey(t) || t.ID() == arrow.DECIMAL32 || t.ID() == arrow.DECIMAL64
}

// hasRest says whether rows are told apart by more than their prefix.
func (s *sortKeys) hasRest() bool { return !s.exact || len(s.keys) > 1 }

func (s *sortKeys) restOf(row uint32) []byte { return s.rest[s.ends[row]:s.ends[row+1]] }

// compareItems orders a row of s and a row of t by the keys alone.
func compareItems(s *sortKeys, a sortItem, t *sortKeys, b sortItem) int {
	if c := a.compareFirst(b); c != 0 || !s.hasRest() {
		return c
	}
	return bytes.Compare(s.restOf(a.row), t.restOf(b.row))
}

// reset drops all rows and keeps the memory.
func (s *sortKeys) reset() {
	s.items, s.rest, s.ends = s.items[:0], s.rest[:0], s.ends[:0]
}

// append adds the rows of b.
func (s *sortKeys) append(b arrow.RecordBatch) error {
	if err := s.evaluate(b); err != nil {
		return err
	}
	defer func() { releaseArrays(s.cols) }()
	if err := s.appendItems(int(b.NumRows())); err != nil || !s.hasRest() {
		return err
	}
	return s.appendRest(int(b.NumRows()))
}

// evaluate leaves the key columns of b in s.cols, which the caller releases.
func (s *sortKeys) evaluate(b arrow.RecordBatch) error {
	var err error
	if s.cols, err = s.eval.columns(b, s.cols[:0]); err != nil {
		return err
	}
	if err = decode(s.eval.env.Alloc, s.cols); err != nil {
		releaseArrays(s.cols)
	}
	return err
}

// appendItems adds n rows, whose first key is s.cols[0].
func (s *sortKeys) appendItems(n int) error {
	if len(s.items)+n > rowsMax {
		return errs.New(errs.ErrUnsupported, "sorting more than %d rows", rowsMax)
	}
	first := len(s.items)
	var err error
	if s.items, err = grown(s.res, s.items, n, sortItemBytes); err != nil {
		return err
	}
	for i := range s.items[first:] {
		s.items[first+i] = sortItem{row: uint32(first + i), rank: 1}
	}
	if len(s.cols) > 0 {
		s.prefixes(s.cols[0], s.items[first:])
	}
	return nil
}

// grown extends s by n elements, its growth reserved.
func grown[T any](res *mem.Reservation, s []T, n int, elementBytes int64) ([]T, error) {
	need := len(s) + n
	if need > cap(s) {
		size := max(need, 2*cap(s))
		if err := res.Grow(int64(size) * elementBytes); err != nil {
			return s, err
		}
		old := cap(s)
		t := make([]T, len(s), size)
		copy(t, s)
		s = t
		res.Shrink(int64(old) * elementBytes)
	}
	return s[:need], nil
}

// prefixes fills rank and prefix of items from the first key's column.
func (s *sortKeys) prefixes(c arrow.Array, items []sortItem) {
	s.scratch = resized(s.scratch, len(items))
	orderedPrefix(c, s.scratch)
	k := s.keys[0]
	var flip uint64
	if k.Desc {
		flip = math.MaxUint64
	}
	for i, p := range s.scratch {
		items[i].prefix = p ^ flip
	}
	bits, offset := validity(c)
	if bits == nil {
		return
	}
	null := k.nullRank()
	for i := range items {
		if !bitutil.BitIsSet(bits, offset+i) {
			items[i].prefix, items[i].rank = 0, null
		}
	}
}

func (k SortKey) nullRank() uint8 {
	if k.Desc || k.NullsLast {
		return 2
	}
	return 0
}

// orderedPrefix writes for every value a word that never orders two values the other way round than they are.
func orderedPrefix(c arrow.Array, out []uint64) {
	const sign = 1 << 63
	switch c.DataType().ID() {
	case arrow.INT8:
		signedWords(fixedValues[int8](c), out)
	case arrow.INT16:
		signedWords(fixedValues[int16](c), out)
	case arrow.INT32, arrow.DATE32, arrow.TIME32, arrow.DECIMAL32:
		signedWords(fixedValues[int32](c), out)
	case arrow.INT64, arrow.DATE64, arrow.TIME64, arrow.TIMESTAMP, arrow.DURATION, arrow.DECIMAL64:
		signedWords(fixedValues[int64](c), out)
	case arrow.FLOAT32:
		for i, v := range fixedValues[float32](c) {
			out[i] = orderedFloat(float64(v))
		}
	case arrow.FLOAT64:
		for i, v := range fixedValues[float64](c) {
			out[i] = orderedFloat(v)
		}
	case arrow.DECIMAL128:
		for i, v := range fixedValues[decimal128.Num](c) {
			switch {
			case fitsWord(v):
				out[i] = v.LowBits() ^ sign
			case v.HighBits() < 0:
				out[i] = 0
			default:
				out[i] = math.MaxUint64
			}
		}
	case arrow.DECIMAL256:
		for i, v := range fixedValues[decimal256.Num](c) {
			out[i] = v.Array()[3] ^ sign
		}
	case arrow.BOOL, arrow.UINT8, arrow.UINT16, arrow.UINT32, arrow.UINT64:
		keyWords(c, out)
	default:
		value := bytesAt(c)
		for i := range out {
			out[i] = prefixOf(value(i))
		}
	}
}

func signedWords[T int8 | int16 | int32 | int64](values []T, out []uint64) {
	for i, v := range values {
		out[i] = uint64(int64(v)) ^ 1<<63
	}
}

// orderedFloat maps floats to words of the same order; -0 equals 0 and NaN is above all.
func orderedFloat(v float64) uint64 {
	b := math.Float64bits(canonical(v))
	if b>>63 != 0 {
		return ^b
	}
	return b | 1<<63
}

func prefixOf(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.BigEndian.Uint64(b)
	}
	var buf [8]byte
	copy(buf[:], b)
	return binary.BigEndian.Uint64(buf[:])
}

// bytesAt returns a reader of byte strings; values under NULL are empty. The dictionary of a dictionary array is looked through.
func bytesAt(c arrow.Array) func(i int) []byte {
	switch a := c.(type) {
	case *array.FixedSizeBinary:
		return a.Value
	case *array.Null:
		return func(int) []byte { return nil }
	}
	if isLarge(c.DataType()) {
		k := stringKeys[int64](c)
		return func(i int) []byte { return k.data[k.offsets[i]:k.offsets[i+1]] }
	}
	k := stringKeys[int32](c)
	return func(i int) []byte { return k.data[k.offsets[i]:k.offsets[i+1]] }
}

// appendRest encodes, for the last n rows, the keys that the prefix does not tell: for each a rank byte, then the value in a form that
// compares as bytes and is no prefix of another (strings end in 00 00, a 00 inside is 00 ff), inverted where descending.
func (s *sortKeys) appendRest(n int) error {
	keys, cols := s.keys, s.cols
	if s.exact {
		keys, cols = keys[1:], cols[1:]
	}
	if err := s.reserveRest(cols, n); err != nil {
		return err
	}
	if len(s.ends) == 0 {
		s.ends = append(s.ends, 0)
	}
	writers := make([]func(dst []byte, i int) []byte, len(cols))
	for j, c := range cols {
		writers[j] = orderedAppender(c)
	}
	for i := range n {
		for j, c := range cols {
			if c.IsNull(i) {
				s.rest = append(s.rest, keys[j].nullRank())
				continue
			}
			s.rest = append(s.rest, 1)
			at := len(s.rest)
			s.rest = writers[j](s.rest, i)
			if keys[j].Desc {
				for p := at; p < len(s.rest); p++ {
					s.rest[p] = ^s.rest[p]
				}
			}
		}
		s.ends = append(s.ends, int64(len(s.rest)))
	}
	return s.res.Resize(int64(cap(s.items))*sortItemBytes + int64(cap(s.rest)) + int64(cap(s.ends))*8)
}

// reserveRest makes room for what appendRest writes.
func (s *sortKeys) reserveRest(cols []arrow.Array, n int) error {
	size := 0
	for _, c := range cols {
		size += n * (1 + 2 + 32) // the rank, the end of a string, and the widest number
		if isStringKey(c.DataType()) {
			size += escapedBytes(c)
		} else if w, ok := c.DataType().(*arrow.FixedSizeBinaryType); ok {
			size += n * w.ByteWidth
		}
	}
	rest, err := grown(s.res, s.rest, size, 1)
	if err != nil {
		return err
	}
	s.rest = rest[:len(s.rest)]
	ends, err := grown(s.res, s.ends, n+1, 8)
	if err != nil {
		return err
	}
	s.ends = ends[:len(s.ends)]
	return nil
}

// escapedBytes is the size of all values, each zero byte counted twice as appendEscaped writes it.
func escapedBytes(c arrow.Array) int {
	var data []byte
	if isLarge(c.DataType()) {
		k := stringKeys[int64](c)
		data = k.data[k.offsets[0]:k.offsets[c.Len()]]
	} else {
		k := stringKeys[int32](c)
		data = k.data[k.offsets[0]:k.offsets[c.Len()]]
	}
	return len(data) + bytes.Count(data, []byte{0})
}

// orderedAppender returns a function that appends row i, which is not NULL, as bytes that compare as the values do.
func orderedAppender(c arrow.Array) func(dst []byte, i int) []byte {
	switch a := c.(type) {
	case *array.Decimal128:
		return func(dst []byte, i int) []byte {
			v := a.Value(i)
			dst = binary.BigEndian.AppendUint64(dst, uint64(v.HighBits())^1<<63)
			return binary.BigEndian.AppendUint64(dst, v.LowBits())
		}
	case *array.Decimal256:
		return func(dst []byte, i int) []byte {
			w := a.Value(i).Array()
			dst = binary.BigEndian.AppendUint64(dst, w[3]^1<<63)
			for _, x := range []uint64{w[2], w[1], w[0]} {
				dst = binary.BigEndian.AppendUint64(dst, x)
			}
			return dst
		}
	case *array.FixedSizeBinary:
		return func(dst []byte, i int) []byte { return append(dst, a.Value(i)...) }
	}
	if isStringKey(c.DataType()) {
		value := bytesAt(c)
		return func(dst []byte, i int) []byte { return appendEscaped(dst, value(i)) }
	}
	words := make([]uint64, c.Len())
	orderedPrefix(c, words)
	return func(dst []byte, i int) []byte { return binary.BigEndian.AppendUint64(dst, words[i]) }
}

func appendEscaped(dst, v []byte) []byte {
	for {
		z := bytes.IndexByte(v, 0)
		if z < 0 {
			dst = append(dst, v...)
			return append(dst, 0, 0)
		}
		dst = append(dst, v[:z]...)
		dst = append(dst, 0, 0xff)
		v = v[z+1:]
	}
}
