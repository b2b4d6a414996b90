package files

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/float16"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner/coltype"
)

// valueReader appends values of text and JSON to builders of one type. Whatever it is given it appends exactly one value: NULL with an error, so that the columns
// of a chunk stay of one length and the row can be taken out afterwards.
type valueReader struct {
	name     string
	typ      arrow.DataType
	nullable bool
	order    DateOrder
	ignore   bool // keys that the struct lacks
	children []*valueReader
	slots    []int32        // of a struct's fields: the members that hold them
	index    map[string]int // of a struct's fields
}

// newValueReader returns the reader of a field. Errors: ErrUnsupported for types that text cannot be read as.
func newValueReader(f arrow.Field, order DateOrder, ignoreUnknown bool) (*valueReader, error) {
	r := &valueReader{name: f.Name, typ: f.Type, nullable: f.Nullable, order: order, ignore: ignoreUnknown}
	var children []arrow.Field
	switch t := f.Type.(type) {
	case *arrow.ListType:
		children = []arrow.Field{t.ElemField()}
	case *arrow.LargeListType:
		children = []arrow.Field{t.ElemField()}
	case *arrow.FixedSizeListType:
		children = []arrow.Field{t.ElemField()}
	case *arrow.MapType:
		children = []arrow.Field{t.KeyField(), t.ItemField()}
	case *arrow.StructType:
		children = t.Fields()
		r.slots, r.index = make([]int32, len(children)), make(map[string]int, len(children))
		for i, c := range children {
			r.index[c.Name] = i
		}
	default:
		if !isReadable(f.Type) {
			return nil, errs.New(errs.ErrUnsupported, "column %s: text cannot be read as %s", f.Name, f.Type)
		}
	}
	for _, c := range children {
		child, err := newValueReader(c, order, ignoreUnknown)
		if err != nil {
			return nil, err
		}
		r.children = append(r.children, child)
	}
	return r, nil
}

func isReadable(t arrow.DataType) bool {
	switch t.ID() {
	case arrow.NULL, arrow.BOOL, arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64, arrow.UINT8, arrow.UINT16, arrow.UINT32, arrow.UINT64, arrow.FLOAT16, arrow.FLOAT32, arrow.FLOAT64,
		arrow.STRING, arrow.LARGE_STRING, arrow.BINARY, arrow.LARGE_BINARY, arrow.FIXED_SIZE_BINARY, arrow.DATE32, arrow.DATE64, arrow.TIME32, arrow.TIME64,
		arrow.TIMESTAMP, arrow.DECIMAL128, arrow.DECIMAL256:
		return true
	}
	return false
}

// clone returns a reader for another goroutine.
func (r *valueReader) clone() *valueReader {
	c := *r
	c.slots = make([]int32, len(r.slots))
	c.children = nil
	for _, child := range r.children {
		c.children = append(c.children, child.clone())
	}
	return &c
}

// typeName writes a type as SQL does.
func typeName(t arrow.DataType) string {
	text := strings.TrimSuffix(strings.TrimPrefix(coltype.Text(arrow.ListOf(t)), "list<"), ">")
	parts := strings.Split(text, "`") // names are between
	for i := 0; i < len(parts); i += 2 {
		parts[i] = strings.ToUpper(parts[i])
	}
	return strings.Join(parts, "`")
}

func (r *valueReader) null(b array.Builder) error {
	b.AppendNull()
	if !r.nullable {
		return errs.New(errs.ErrNull, "NULL where the column is NOT NULL")
	}
	return nil
}

func (r *valueReader) no(b array.Builder) error {
	b.AppendNull()
	return r.isNo()
}

func (r *valueReader) isNo() error { return errs.New(errs.ErrBadValue, "no %s", typeName(r.typ)) }

// isNested says that values are read as JSON.
func (r *valueReader) isNested() bool { return len(r.children) > 0 }

// text appends the value of a text format.
func (r *valueReader) text(b array.Builder, cell []byte, j *jsonText) error {
	if !r.isNested() {
		return r.scalar(b, cell)
	}
	j.lenient = true
	j.reset()
	n, err := j.parse(cell)
	if err != nil {
		b.AppendNull()
		return err
	}
	return r.json(b, j, n)
}

// json appends a value of JSON.
func (r *valueReader) json(b array.Builder, j *jsonText, at int32) error {
	n := &j.nodes[at]
	if n.kind == jsonNull {
		return r.null(b)
	}
	switch b := b.(type) {
	case *array.ListBuilder:
		return r.list(b, b, j, n)
	case *array.LargeListBuilder:
		return r.list(b, b, j, n)
	case *array.FixedSizeListBuilder:
		want := r.typ.(*arrow.FixedSizeListType).Len() //nolint:forcetypeassert // the builder is of this type
		if n.kind == jsonArray && n.count != want {
			b.AppendNull()
			return errs.New(errs.ErrBadValue, "a list of %d where the column is %s: import it with --vector-min -1 or --schema as a list, or mend the row", n.count, typeName(r.typ))
		}
		return r.list(b, b, j, n)
	case *array.StructBuilder:
		return r.structure(b, j, n)
	case *array.MapBuilder:
		return r.mapping(b, j, n)
	case *array.StringBuilder, *array.LargeStringBuilder:
		if n.kind != jsonString {
			return r.scalar(b, n.raw)
		}
		return r.scalar(b, n.text)
	}
	if n.kind == jsonArray || n.kind == jsonObject {
		return r.no(b)
	}
	return r.scalar(b, n.text)
}

// lister is what builders of lists have in common.
type lister interface {
	Append(bool)
	ValueBuilder() array.Builder
}

func (r *valueReader) list(b array.Builder, l lister, j *jsonText, n *node) error {
	if n.kind != jsonArray {
		return r.no(b)
	}
	l.Append(true)
	items := l.ValueBuilder()
	items.Reserve(int(n.count))
	var first error
	child := r.children[0]
	for m := n.first; m != 0; m = j.nodes[m].next {
		if err := child.json(items, j, m); err != nil && first == nil {
			first = errs.New(errs.ErrBadValue, "item %s: %w", shorten(j.nodes[m].raw), err)
		}
	}
	return first
}

// assign finds the members of an object that hold the fields. Errors: ErrBadValue for a key that no field has or that stands twice.
func (r *valueReader) assign(j *jsonText, n *node) error {
	clear(r.slots)
	next := 0
	for m := n.first; m != 0; m = j.nodes[m].next {
		key := j.nodes[m].key
		at := next
		if at >= len(r.children) || r.children[at].name != string(key) {
			var ok bool
			if at, ok = r.index[string(key)]; !ok {
				if r.ignore || j.nodes[m].kind == jsonNull {
					continue
				}
				return errs.New(errs.ErrBadValue, "key %q is no column: --columns or --schema says which are wanted", key)
			}
		}
		if r.slots[at] != 0 {
			return errs.New(errs.ErrBadValue, "key %q stands twice", key)
		}
		r.slots[at], next = m, at+1
	}
	return nil
}

func (r *valueReader) structure(b *array.StructBuilder, j *jsonText, n *node) error {
	if n.kind != jsonObject {
		return r.no(b)
	}
	if err := r.assign(j, n); err != nil {
		b.AppendNull()
		return err
	}
	b.Append(true)
	var first error
	for i, c := range r.children {
		var err error
		if at := r.slots[i]; at != 0 {
			err = c.json(b.FieldBuilder(i), j, at)
		} else {
			err = c.null(b.FieldBuilder(i))
		}
		if err != nil && first == nil {
			first = errs.New(errs.ErrBadValue, "field %s: %w", c.name, err)
		}
	}
	return first
}

// mapping reads {"a": 1}, and lists of {"key": ..., "value": ...} as other engines write.
func (r *valueReader) mapping(b *array.MapBuilder, j *jsonText, n *node) error {
	if n.kind != jsonObject && n.kind != jsonArray {
		return r.no(b)
	}
	b.Append(true)
	var first error
	note := func(err error) {
		if err != nil && first == nil {
			first = err
		}
	}
	for m := n.first; m != 0; m = j.nodes[m].next {
		if n.kind == jsonObject {
			note(r.children[0].scalar(b.KeyBuilder(), j.nodes[m].key))
			note(r.children[1].json(b.ItemBuilder(), j, m))
			continue
		}
		var key, value int32
		for e := j.nodes[m].first; e != 0 && j.nodes[m].kind == jsonObject; e = j.nodes[e].next {
			switch string(j.nodes[e].key) {
			case "key":
				key = e
			case "value":
				value = e
			}
		}
		if key == 0 || value == 0 {
			note(errs.New(errs.ErrBadValue, `an entry of a map is {"key": ..., "value": ...}`))
			continue
		}
		note(r.children[0].json(b.KeyBuilder(), j, key))
		note(r.children[1].json(b.ItemBuilder(), j, value))
	}
	return first
}

// scalar appends a value of a plain type.
func (r *valueReader) scalar(b array.Builder, cell []byte) error { //nolint:funlen,gocyclo // a flat switch
	switch b := b.(type) {
	case *array.StringBuilder:
		if !utf8.Valid(cell) {
			b.AppendNull()
			return errNotUTF8(cell)
		}
		b.BinaryBuilder.Append(cell)
		return nil
	case *array.LargeStringBuilder:
		if !utf8.Valid(cell) {
			b.AppendNull()
			return errNotUTF8(cell)
		}
		b.BinaryBuilder.Append(cell)
		return nil
	case *array.BinaryBuilder:
		b.Append(cell)
		return nil
	case *array.FixedSizeBinaryBuilder:
		if len(cell) != r.typ.(*arrow.FixedSizeBinaryType).ByteWidth { //nolint:forcetypeassert // the builder is of this type
			b.AppendNull()
			return errs.New(errs.ErrBadValue, "%d bytes where the column has %d", len(cell), r.typ.(*arrow.FixedSizeBinaryType).ByteWidth) //nolint:forcetypeassert // as above
		}
		b.Append(cell)
		return nil
	case *array.Decimal128Builder, *array.Decimal256Builder:
		return r.decimal(b, bytes.TrimSpace(cell))
	case *array.Date32Builder, *array.Date64Builder, *array.TimestampBuilder, *array.Time32Builder, *array.Time64Builder:
		return r.temporal(b, bytes.TrimSpace(cell))
	}
	cell = bytes.TrimSpace(cell)
	switch b := b.(type) {
	case *array.Int64Builder:
		return appendInt(r, b, cell, math.MinInt64, math.MaxInt64)
	case *array.Int32Builder:
		return appendInt(r, b, cell, math.MinInt32, math.MaxInt32)
	case *array.Int16Builder:
		return appendInt(r, b, cell, math.MinInt16, math.MaxInt16)
	case *array.Int8Builder:
		return appendInt(r, b, cell, math.MinInt8, math.MaxInt8)
	case *array.Uint64Builder:
		return appendUint(r, b, cell, math.MaxUint64)
	case *array.Uint32Builder:
		return appendUint(r, b, cell, math.MaxUint32)
	case *array.Uint16Builder:
		return appendUint(r, b, cell, math.MaxUint16)
	case *array.Uint8Builder:
		return appendUint(r, b, cell, math.MaxUint8)
	case *array.Float64Builder:
		return appendFloat(r, b, cell, 64, b.Append)
	case *array.Float32Builder:
		return appendFloat(r, b, cell, 32, func(v float64) { b.Append(float32(v)) })
	case *array.Float16Builder:
		return appendFloat(r, b, cell, 32, func(v float64) { b.Append(float16.New(float32(v))) })
	case *array.BooleanBuilder:
		switch strings.ToLower(string(cell)) {
		case "true", "t", "yes", "y", "1":
			b.Append(true)
		case "false", "f", "no", "n", "0":
			b.Append(false)
		default:
			return r.no(b)
		}
		return nil
	}
	return r.no(b)
}

func errNotUTF8(cell []byte) error {
	for i := 0; i < len(cell); {
		c, n := utf8.DecodeRune(cell[i:])
		if c == utf8.RuneError && n == 1 {
			return errs.New(errs.ErrBadValue, "byte 0x%02X is not UTF-8: convert the file, as with iconv -f LATIN1 -t UTF-8", cell[i])
		}
		i += n
	}
	return errs.New(errs.ErrBadValue, "not UTF-8")
}

// number is a builder of integers.
type numberBuilder[T any] interface {
	array.Builder
	Append(T)
}

func appendInt[T int8 | int16 | int32 | int64](r *valueReader, b numberBuilder[T], cell []byte, least, most int64) error {
	v, err := strconv.ParseInt(string(cell), 10, 64)
	if err != nil {
		return r.noNumber(b, cell)
	}
	if v < least || v > most {
		b.AppendNull()
		return errs.New(errs.ErrOutOfRange, "out of the range of %s", typeName(r.typ))
	}
	b.Append(T(v))
	return nil
}

func appendUint[T uint8 | uint16 | uint32 | uint64](r *valueReader, b numberBuilder[T], cell []byte, most uint64) error {
	v, err := strconv.ParseUint(string(bytes.TrimPrefix(cell, []byte("+"))), 10, 64)
	if err != nil {
		return r.noNumber(b, cell)
	}
	if v > most {
		b.AppendNull()
		return errs.New(errs.ErrOutOfRange, "out of the range of %s", typeName(r.typ))
	}
	b.Append(T(v))
	return nil
}

// noNumber tells an integer that is too large from what is none.
func (r *valueReader) noNumber(b array.Builder, cell []byte) error {
	b.AppendNull()
	if digits := bytes.TrimLeft(cell, "+-"); len(digits) > 0 && len(bytes.Trim(digits, "0123456789")) == 0 {
		return errs.New(errs.ErrOutOfRange, "out of the range of %s", typeName(r.typ))
	}
	return r.isNo()
}

func appendFloat(r *valueReader, b array.Builder, cell []byte, bits int, add func(float64)) error {
	v, err := strconv.ParseFloat(string(cell), bits)
	if err != nil || bytes.ContainsAny(cell, "xX_") {
		b.AppendNull()
		if math.IsInf(v, 0) && err != nil {
			return errs.New(errs.ErrOutOfRange, "out of the range of %s", typeName(r.typ))
		}
		return r.isNo()
	}
	add(v)
	return nil
}

// decimal appends an exact number.
func (r *valueReader) decimal(b array.Builder, cell []byte) error {
	t := r.typ.(arrow.DecimalType) //nolint:forcetypeassert // the builder is of this type
	digits := cell
	if len(digits) > 0 && (digits[0] == '-' || digits[0] == '+') {
		digits = digits[1:]
	}
	whole, frac, _ := bytes.Cut(digits, []byte("."))
	if len(whole)+len(frac) == 0 || len(bytes.Trim(whole, "0123456789"))+len(bytes.Trim(frac, "0123456789")) > 0 {
		return r.no(b)
	}
	frac = bytes.TrimRight(frac, "0")
	whole = bytes.TrimLeft(whole, "0")
	if len(frac) > int(t.GetScale()) || len(whole) > int(t.GetPrecision()-t.GetScale()) {
		b.AppendNull()
		return errs.New(errs.ErrOutOfRange, "%d digits before the point and %d behind it do not fit %s", len(whole), len(frac), typeName(r.typ))
	}
	all := append(append(append(make([]byte, 0, len(whole)+int(t.GetScale())+1), '0'), whole...), frac...)
	all = append(all, bytes.Repeat([]byte("0"), int(t.GetScale())-len(frac))...)
	v, ok := new(big.Int).SetString(string(all), 10)
	if !ok {
		return r.no(b)
	}
	if cell[0] == '-' {
		v.Neg(v)
	}
	switch b := b.(type) {
	case *array.Decimal128Builder:
		b.Append(decimal128.FromBigInt(v))
	case *array.Decimal256Builder:
		b.Append(decimal256.FromBigInt(v))
	}
	return nil
}

// temporal appends a date, a time or both.
func (r *valueReader) temporal(b array.Builder, cell []byte) error { //nolint:gocyclo // a flat switch
	s, ok := parseStamp(cell)
	isClock := r.typ.ID() == arrow.TIME32 || r.typ.ID() == arrow.TIME64
	if !ok || s.hasDate == isClock || isClock && s.hasZone {
		return r.no(b)
	}
	var order DateOrder
	if s.hasDate {
		var err error
		if order, err = s.order(r.order); err != nil {
			b.AppendNull()
			return err
		}
	}
	fail := func(text string) error {
		b.AppendNull()
		return errs.New(errs.ErrBadValue, "%s", text)
	}
	unit := int64(1)
	if t, ok := r.typ.(arrow.TemporalWithUnit); ok {
		unit = int64(t.TimeUnit().Multiplier())
	}
	if isClock {
		v := s.seconds*1e9 + s.nanos
		if v%unit != 0 {
			return fail("more digits of a second than the column keeps")
		}
		switch b := b.(type) {
		case *array.Time32Builder:
			b.Append(arrow.Time32(v / unit))
		case *array.Time64Builder:
			b.Append(arrow.Time64(v / unit))
		}
		return nil
	}
	switch b := b.(type) {
	case *array.TimestampBuilder:
		seconds, nanos := s.unix(order)
		zone := r.typ.(*arrow.TimestampType).TimeZone //nolint:forcetypeassert // the builder is of this type
		switch {
		case s.hasZone && zone == "":
			return fail("a time with a zone where the column has none: declare the column TIMESTAMP")
		case nanos%unit != 0:
			return fail("more digits of a second than the column keeps")
		case unit == 1 && (seconds > math.MaxInt64/1_000_000_000-1 || seconds < math.MinInt64/1_000_000_000+1):
			return fail("out of the range of nanoseconds")
		}
		b.Append(arrow.Timestamp(seconds*(1_000_000_000/unit) + nanos/unit))
		return nil
	case *array.Date32Builder:
		if s.seconds != 0 || s.nanos != 0 {
			return fail("a time of day where the column is DATE")
		}
		b.Append(arrow.Date32(s.days(order)))
	case *array.Date64Builder:
		if s.seconds != 0 || s.nanos != 0 {
			return fail("a time of day where the column is DATE")
		}
		b.Append(arrow.Date64(s.days(order) * 86_400_000))
	}
	return nil
}

// shownMax is how much of a value a message shows.
const shownMax = 60

// shorten writes a value for a message.
func shorten(b []byte) string {
	if len(b) <= shownMax {
		return strconv.Quote(string(b))
	}
	return strconv.Quote(string(b[:shownMax])) + "... (" + strconv.Itoa(len(b)) + " bytes)"
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// isText16 says that a file begins as UTF-16 does.
func isText16(b []byte) bool {
	return len(b) >= 2 && (binary.BigEndian.Uint16(b) == 0xFEFF || binary.LittleEndian.Uint16(b) == 0xFEFF)
}

// TypeName writes a type as SQL does.
func TypeName(t arrow.DataType) string { return typeName(t) }
