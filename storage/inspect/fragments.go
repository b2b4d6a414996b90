package inspect

import (
	"context"
	"fmt"
	"io"

	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
	"github.com/lakesql/lakesql/storage/schema"
)

// Fragments prints the fragments of a dataset's latest version and opens every file of them: data files, deletion sets, row ids. Errors: those
// of storage.OpenTable, and what writing returns.
func Fragments(ctx context.Context, w io.Writer, store object.Store, dir string) (faults int, err error) {
	t, err := storage.OpenTable(ctx, store, dir, storage.TableOptions{})
	if err != nil {
		return 0, err
	}
	s, err := t.Latest(ctx)
	if err != nil {
		return 0, err
	}
	p := newPrinter(w)
	p.line("%s, version %d: %d fragments, %d live rows", dir, s.Version(), len(s.Fragments()), s.Rows())
	p.depth++
	names := make(map[int32]string)
	for _, f := range s.Schema().Fields {
		namePaths(f, "", names)
	}
	for _, f := range s.Fragments() {
		if err := ctx.Err(); err != nil {
			return p.faults, err
		}
		p.section(fmt.Sprintf("fragment %d: %d rows, %d live", f.ID(), f.PhysicalRows(), f.Rows()), func() {
			for i, d := range f.Proto().GetFiles() {
				p.section(fmt.Sprintf("%s, format %d.%d", d.GetPath(), d.GetFileMajorVersion(), d.GetFileMinorVersion()), func() {
					p.dataFile(ctx, f, i, names)
				})
			}
			p.deletions(ctx, f)
			p.rowIDs(ctx, f, s.HasStableRowIDs())
		})
	}
	return p.end()
}

// namePaths collects "labels.item" for the field and its descendants.
func namePaths(f *schema.Field, prefix string, into map[int32]string) {
	into[f.ID] = prefix + f.Name
	for _, c := range f.Children {
		namePaths(c, into[f.ID]+".", into)
	}
}

// dataFile opens data file i of a fragment and says which fields it holds.
func (p *printer) dataFile(ctx context.Context, f *storage.Fragment, i int, names map[int32]string) {
	d := f.Proto().GetFiles()[i]
	for k, id := range d.GetFields() {
		column := "?"
		if k < len(d.GetColumnIndices()) {
			column = fmt.Sprint(d.GetColumnIndices()[k])
		}
		name, ok := names[id]
		switch {
		case id == -2:
			p.line("column %s: dropped", column)
		case !ok:
			p.line("column %s: field %d, which the schema no longer has", column, id)
		default:
			p.line("column %s: field %d %s", column, id, name)
		}
	}
	r, err := f.OpenFile(ctx, i)
	if err != nil {
		p.fault("%v", err)
		return
	}
	if want := (file.Version{Major: uint16(d.GetFileMajorVersion()), Minor: uint16(d.GetFileMinorVersion())}); r.Version() != want {
		p.fault("the file has format %s", r.Version())
	}
}

func (p *printer) deletions(ctx context.Context, f *storage.Fragment) {
	d := f.Proto().GetDeletionFile()
	if d == nil {
		return
	}
	p.section(manifest.DeletionPath(uint64(f.ID()), d), func() {
		bm, err := f.Deletions(ctx)
		if err != nil {
			p.fault("%v", err)
			return
		}
		p.line("deleted offsets: %s", numbers(bm))
	})
}

func (p *printer) rowIDs(ctx context.Context, f *storage.Fragment, isStable bool) {
	if !isStable {
		if f.Proto().GetRowIdSequence() != nil {
			p.line("row ids: present, though the table does not use them")
		}
		return
	}
	where := "inline"
	if ext := f.Proto().GetExternalRowIds(); ext != nil {
		where = fmt.Sprintf("in %s, %d bytes at %d", ext.GetPath(), ext.GetSize(), ext.GetOffset())
	}
	p.section("row ids: "+where, func() {
		ids, err := f.RowIDs(ctx)
		if err != nil {
			p.fault("%v", err)
			return
		}
		for _, s := range ids.Segments() {
			kind := "listed"
			if s.IsRange() {
				kind = "range"
			}
			if s.Count == 0 {
				p.line("offset %d: empty %s", s.Start, kind)
				continue
			}
			p.line("offset %d: %d ids %d to %d, %s", s.Start, s.Count, s.Min, s.Max, kind)
		}
	})
	if v, ok := f.Proto().GetCreatedAtVersionSequence().(*tablepb.DataFragment_InlineCreatedAtVersions); ok {
		p.line("created-at versions: %d bytes", len(v.InlineCreatedAtVersions))
	}
	if v, ok := f.Proto().GetLastUpdatedAtVersionSequence().(*tablepb.DataFragment_InlineLastUpdatedAtVersions); ok {
		p.line("updated-at versions: %d bytes", len(v.InlineLastUpdatedAtVersions))
	}
}
