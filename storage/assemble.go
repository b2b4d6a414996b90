package storage

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/schema"
)

// fragmentPlan is how the wanted columns are read in one fragment: one call per file, then the columns are put in order.
type fragmentPlan struct {
	fragment *Fragment
	sources  []source
	files    []filePlan
}

// filePlan is what one file is asked for.
type filePlan struct {
	file    int
	columns []file.Column
	of      []partRef
}

// partRef says that a column of a filePlan is part number part of output column number column.
type partRef struct{ column, part int }

// plan finds the columns of fields; those of codes (by field, nil = none) may be read as dictionary codes.
func (f *Fragment) plan(fields []*schema.Field, codes []bool) *fragmentPlan {
	p := &fragmentPlan{fragment: f, sources: make([]source, len(fields))}
	byFile := make(map[int]int)
	for c, field := range fields {
		p.sources[c] = f.source(field)
		for k, part := range p.sources[c].parts {
			at, ok := byFile[part.file]
			if !ok {
				at = len(p.files)
				byFile[part.file] = at
				p.files = append(p.files, filePlan{file: part.file})
			}
			column := part.column
			column.Codes = codes != nil && codes[c]
			p.files[at].columns = append(p.files[at].columns, column)
			p.files[at].of = append(p.files[at].of, partRef{column: c, part: k})
		}
	}
	return p
}

// rowsWanted is either the range [start, end), or rows in any order.
type rowsWanted struct {
	start, end uint64
	rows       []uint64 // nil = the range
}

func (w rowsWanted) count() int {
	if w.rows != nil {
		return len(w.rows)
	}
	return int(w.end - w.start)
}

// read returns one array per output column. The caller releases them.
func (p *fragmentPlan) read(ctx context.Context, want rowsWanted, alloc memory.Allocator) (out []arrow.Array, err error) {
	parts := make([][]arrow.Array, len(p.sources))
	for c, s := range p.sources {
		parts[c] = make([]arrow.Array, len(s.parts))
	}
	defer func() {
		for _, ps := range parts {
			releaseAll(ps)
		}
		if err != nil {
			releaseAll(out)
		}
	}()
	for _, fp := range p.files {
		if err := p.readFile(ctx, fp, want, alloc, parts); err != nil {
			return nil, err
		}
	}
	out = make([]arrow.Array, len(p.sources))
	for c, s := range p.sources {
		if out[c], err = s.join(parts[c], want.count(), alloc); err != nil {
			return out, err
		}
	}
	return out, nil
}

func releaseAll(as []arrow.Array) {
	for _, a := range as {
		if a != nil {
			a.Release()
		}
	}
}

func (p *fragmentPlan) readFile(ctx context.Context, fp filePlan, want rowsWanted, alloc memory.Allocator, parts [][]arrow.Array) error {
	s := p.fragment.snapshot
	r, err := p.fragment.open(ctx, fp.file)
	if err != nil {
		return err
	}
	var batch arrow.RecordBatch
	if want.rows != nil {
		batch, err = r.Take(ctx, fp.columns, want.rows, file.ReadOptions{Alloc: alloc})
	} else {
		batch, err = r.ReadRange(ctx, fp.columns, want.start, want.end, file.ReadOptions{Alloc: alloc})
	}
	p.fragment.settle(r)
	if err != nil {
		return s.missing(err, "data file "+p.fragment.pb.GetFiles()[fp.file].GetPath())
	}
	defer batch.Release()
	for i, ref := range fp.of {
		col := batch.Column(i)
		col.Retain()
		parts[ref.column][ref.part] = col
	}
	return nil
}

// join makes the field of its parts.
func (s source) join(parts []arrow.Array, rows int, alloc memory.Allocator) (arrow.Array, error) {
	switch len(parts) {
	case 0:
		return array.MakeArrayOfNull(alloc, s.field.Type, rows), nil
	case 1:
		parts[0].Retain()
		return parts[0], nil
	}
	indexes := make([]map[int32]int, len(parts))
	for i := range parts {
		indexes[i] = s.parts[i].column.Index
	}
	d, err := merge(s.field, parts, indexes)
	if err != nil {
		return nil, err
	}
	defer d.Release()
	return array.MakeFromData(d), nil
}

// merge takes each leaf of a field from the part that holds it. Structs merge; their nulls are those of the first part.
func merge(f *schema.Field, parts []arrow.Array, indexes []map[int32]int) (arrow.ArrayData, error) {
	holder, holders := 0, 0
	for i := range parts {
		for _, leaf := range f.Leaves() {
			if _, ok := indexes[i][leaf.ID]; ok {
				if holders == 0 {
					holder = i
				}
				holders++
				break
			}
		}
	}
	if holders < 2 { // none: every part has it as NULL
		d := parts[holder].Data()
		d.Retain()
		return d, nil
	}
	st, ok := parts[holder].(*array.Struct)
	if !ok || st.Data().Offset() != 0 {
		return nil, errs.New(errs.ErrUnsupported, "column %q: a %s of which parts were added later is not supported", f.Name, f.Logical)
	}
	children := make([]arrow.ArrayData, 0, len(f.Children))
	defer func() {
		for _, c := range children {
			c.Release()
		}
	}()
	for k, c := range f.Children {
		below := make([]arrow.Array, len(parts))
		for i, p := range parts {
			below[i] = p.(*array.Struct).Field(k)
		}
		d, err := merge(c, below, indexes)
		if err != nil {
			return nil, err
		}
		children = append(children, d)
	}
	return array.NewData(f.Type, st.Len(), []*memory.Buffer{st.Data().Buffers()[0]}, children, st.NullN(), 0), nil
}
