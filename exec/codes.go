package exec

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/mem"
)

// Text of few distinct values is stored as codes into a dictionary, and an operator that only groups it or passes it on can work with the codes. It says so
// by withCodes before it opens its input; from then on a column of text may come as a dictionary array of codesType, in one batch and not in
// the next, each with a dictionary of its own. Who did not ask never meets one. Expressions take both forms.

// codesType is how a column of text of type t comes as codes; a row is NULL where its code is.
func codesType(t arrow.DataType) *arrow.DictionaryType {
	return &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint32, ValueType: t}
}

// planColumn is an output column of a plan.
type planColumn struct {
	plan   Plan
	column int
}

// withCodes returns an Env that tells p and the plans below that output column i of p may come as codes.
func (e *Env) withCodes(p Plan, i int) *Env {
	if i < 0 || i >= p.Schema().NumFields() || !isStringKey(p.Schema().Field(i).Type) {
		return e
	}
	var found []planColumn
	for p != nil {
		switch q := p.(type) {
		case *Scan:
			found = append(found, planColumn{q, i})
			p = nil
		case *Filter:
			p = q.Input
		case *Project:
			c, ok := q.Exprs[i].(*expr.Column)
			if !ok {
				return e
			}
			p, i = q.Input, c.ID
		case *HashJoin:
			found = append(found, planColumn{q, i})
			p, i = q.codedSide(i)
		default:
			p = nil
		}
	}
	if len(found) == 0 {
		return e
	}
	out := *e
	out.codes = append(slices.Clone(e.codes), found...)
	return &out
}

// withUnseen is withCodes for the text columns of p that nobody looks at but through expressions: those that are no expression of values themselves.
func (e *Env) withUnseen(p Plan, values []expr.Expr) *Env {
	for i := range p.Schema().NumFields() {
		isValue := slices.ContainsFunc(values, func(x expr.Expr) bool {
			c, ok := x.(*expr.Column)
			return ok && c.ID == i
		})
		if !isValue {
			e = e.withCodes(p, i)
		}
	}
	return e
}

// wantsCodes says whether output column i of p may come as codes.
func (e *Env) wantsCodes(p Plan, i int) bool { return slices.Contains(e.codes, planColumn{p, i}) }

// isCoded says whether a is text that came as codes, where its plan has it as t.
func isCoded(a arrow.Array, t arrow.DataType) bool {
	return a.DataType().ID() == arrow.DICTIONARY && t.ID() != arrow.DICTIONARY
}

// codesOf returns the dictionary of coded text and the code of each row, which means nothing under NULL.
func codesOf(a arrow.Array) (arrow.Array, []uint32) {
	d := a.(*array.Dictionary)
	return d.Dictionary(), fixedValues[uint32](d.Indices())
}

// fitSchema is s with the types that cols have, where text came as codes.
func fitSchema(s *arrow.Schema, cols []arrow.Array) *arrow.Schema {
	var fields []arrow.Field
	for i, c := range cols {
		if !isCoded(c, s.Field(i).Type) {
			continue
		}
		if fields == nil {
			fields = s.Fields() // a copy
		}
		fields[i].Type = c.DataType()
	}
	if fields == nil {
		return s
	}
	md := s.Metadata()
	return arrow.NewSchema(fields, &md)
}

// expand replaces coded text by its values, where types are the types that the columns should have.
func expand(alloc memory.Allocator, types []arrow.DataType, cols []arrow.Array) error {
	for i, c := range cols {
		if !isCoded(c, types[i]) {
			continue
		}
		if err := decode(alloc, cols[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// expandAll replaces coded arrays of one column by their values.
func expandAll(alloc memory.Allocator, t arrow.DataType, parts []arrow.Array) error {
	for i, p := range parts {
		if isCoded(p, t) {
			if err := decode(alloc, parts[i:i+1]); err != nil {
				return err
			}
		}
	}
	return nil
}

// expandBatch gives b the types of schema: coded text becomes its values, but for the columns of keep. It takes b over.
func expandBatch(alloc memory.Allocator, schema *arrow.Schema, b arrow.RecordBatch, keep []bool) (arrow.RecordBatch, error) {
	var cols []arrow.Array
	for i, c := range b.Columns() {
		if !isCoded(c, schema.Field(i).Type) || (keep != nil && keep[i]) {
			continue
		}
		if cols == nil {
			cols = slices.Clone(b.Columns())
			for _, c := range cols {
				c.Retain()
			}
		}
		if err := decode(alloc, cols[i:i+1]); err != nil {
			releaseArrays(cols)
			b.Release()
			return nil, err
		}
	}
	if cols == nil {
		return b, nil
	}
	out := newBatch(schema, cols, int(b.NumRows()))
	b.Release()
	return out, nil
}

// codeMaps remembers, for the dictionaries seen of late, what each of their values was found to be. It is used by one goroutine.
type codeMaps struct {
	res  *mem.Reservation // pays; nil = nobody
	maps map[arrow.ArrayData][]uint32
	used int64
}

const (
	codeMapsMax = 64 // dictionaries
	unknownCode = noGroup - 1
)

// of returns the notes on dict, all unknownCode at first. A dictionary is known by its address, which stays its own while the map has it.
func (m *codeMaps) of(dict arrow.Array) ([]uint32, error) {
	d := dict.Data()
	if ids, ok := m.maps[d]; ok {
		return ids, nil
	}
	if m.maps == nil || len(m.maps) >= codeMapsMax {
		if m.res != nil {
			m.res.Shrink(m.used)
		}
		m.maps, m.used = make(map[arrow.ArrayData][]uint32), 0
	}
	size := 4 * int64(dict.Len())
	if m.res != nil {
		if err := m.res.Grow(size); err != nil {
			return nil, err
		}
	}
	m.used += size
	ids := make([]uint32, dict.Len())
	for i := range ids {
		ids[i] = unknownCode
	}
	m.maps[d] = ids
	return ids, nil
}

// assignCodes numbers coded text.
func (g *stringGrouper) assignCodes(a arrow.Array, ids []uint32) error {
	dict, codes := codesOf(a)
	known, err := g.codes.of(dict)
	if err != nil {
		return err
	}
	bits, offset := validity(a)
	ids = ids[:len(codes)]
	for i, code := range codes {
		if bits != nil && !bitutil.BitIsSet(bits, offset+i) {
			if ids[i], err = g.null(); err != nil {
				return err
			}
			continue
		}
		id := known[code]
		if id == unknownCode {
			if id, err = g.insertValue(dict, int(code)); err != nil {
				return err
			}
			known[code] = id
		}
		ids[i] = id
	}
	return nil
}

func (g *stringGrouper) null() (uint32, error) {
	if g.table.nullID == noGroup {
		if err := g.table.addNull(); err != nil {
			return 0, err
		}
	}
	return g.table.nullID, nil
}

// insertValue numbers one value of a dictionary.
func (g *stringGrouper) insertValue(dict arrow.Array, i int) (uint32, error) {
	if dict.IsNull(i) {
		return g.null()
	}
	v := bytesAt(dict)(i)
	return g.table.insert(v, 0, len(v))
}

// findCodes looks coded text up: each value of a dictionary once.
func (g *stringGrouper) findCodes(s *findScratch, a arrow.Array, ids []uint32) error {
	dict, codes := codesOf(a)
	known, err := s.codes.of(dict)
	if err != nil {
		return err
	}
	bits, offset := validity(a)
	ids = ids[:len(codes)]
	var one [1]uint32
	for i, code := range codes {
		if bits != nil && !bitutil.BitIsSet(bits, offset+i) {
			ids[i] = g.table.nullID
			continue
		}
		id := known[code]
		if id == unknownCode {
			v := array.NewSlice(dict, int64(code), int64(code)+1)
			err := g.find(s, []arrow.Array{v}, 1, one[:])
			v.Release()
			if err != nil {
				return err
			}
			id = one[0]
			known[code] = id
		}
		ids[i] = id
	}
	return nil
}
