// Package inspect renders index segments as text, for lakesql inspect index and for tests. It owns no format: each kind's package
// reads its own files. Every fault that reading finds is printed, and reading goes on where that is possible.
//
// Start with Segment.
package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/bitmap"
	"github.com/lakesql/lakesql/index/btree"
	"github.com/lakesql/lakesql/index/key"
	"github.com/lakesql/lakesql/index/labellist"
	"github.com/lakesql/lakesql/index/vector"
	"github.com/lakesql/lakesql/index/zonemap"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/rowset"
)

// Options says how much is printed.
type Options struct {
	KeysMax int // keys or pages printed before "... n more"; 0 = 50
}

const keysMaxDefault = 50

func (o Options) withDefaults() Options {
	if o.KeysMax <= 0 {
		o.KeysMax = keysMaxDefault
	}
	return o
}

// Segment prints the segment whose folder open reads, which may be of any kind: meta.Kind says which, or the files do where it
// is empty. It returns the number of faults found. Errors: ErrUnsupported for other kinds, and what writing returns.
func Segment(ctx context.Context, w io.Writer, open index.OpenFile, meta index.Meta, opts Options) (faults int, err error) {
	p := &printer{w: w, opts: opts.withDefaults()}
	kind := meta.Kind
	if kind == "" {
		if kind, err = kindOf(ctx, open); err != nil {
			return 0, err
		}
	}
	switch kind {
	case index.KindLabelList:
		p.labelList(ctx, open, meta)
	case index.KindBitmap:
		p.bitmap(ctx, open, meta)
	case index.KindBTree:
		p.btree(ctx, open, meta)
	case index.KindZoneMap:
		p.zonemap(ctx, open, meta)
	case index.KindIVFFlat, index.KindIVFSQ, index.KindIVFPQ, index.KindIVFRQ, index.KindHNSWFlat, index.KindHNSWSQ, index.KindHNSWPQ:
		p.vector(ctx, open, meta)
	default:
		return 0, errs.New(errs.ErrUnsupported, "index kind %s cannot be inspected", kind)
	}
	return p.faults, p.err
}

// kindOf tells the kind by the files of the folder. BITMAP and LABEL_LIST differ in the metadata that names the NULL lists; an old LABEL_LIST
// without it looks like a BITMAP, whose text is right for it too.
func kindOf(ctx context.Context, open index.OpenFile) (index.Kind, error) {
	if _, err := open(ctx, btree.LookupFileName); err == nil {
		return index.KindBTree, nil
	}
	if _, err := open(ctx, zonemap.FileName); err == nil {
		return index.KindZoneMap, nil
	}
	if _, err := open(ctx, vector.IndexFile); err == nil {
		return index.KindIVFFlat, nil // the file says which of the vector kinds
	}
	if _, err := open(ctx, bitmap.FileName); err != nil {
		if errors.Is(err, errs.ErrNotFound) {
			return "", errs.New(errs.ErrUnsupported, "no file of a LABEL_LIST, BITMAP, BTREE, ZONEMAP or vector index in this folder")
		}
		return "", err
	}
	s, err := labellist.Open(ctx, open, index.Meta{}, index.OpenOptions{})
	if err != nil {
		return index.KindLabelList, nil //nolint:nilerr // printed as a fault when it is opened again
	}
	_, known := s.NullLists()
	_ = s.Close()
	if known {
		return index.KindLabelList, nil
	}
	return index.KindBitmap, nil
}

type printer struct {
	w      io.Writer
	opts   Options
	faults int
	err    error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

func (p *printer) fault(err error) {
	p.faults++
	p.line("FAULT: %v", err)
}

func (p *printer) head(kind index.Kind, meta index.Meta) {
	parts := []string{string(kind)}
	if meta.Name != "" {
		parts = append(parts, meta.Name)
	}
	if meta.UUID != "" {
		parts = append(parts, meta.UUID)
	}
	parts = append(parts, fmt.Sprintf("version %d", meta.Version))
	if meta.Covers != nil {
		parts = append(parts, "fragments "+Numbers(meta.Covers))
	}
	p.line("%s", strings.Join(parts, ", "))
}

func (p *printer) labelList(ctx context.Context, open index.OpenFile, meta index.Meta) {
	p.head(index.KindLabelList, meta)
	s, err := labellist.Open(ctx, open, meta, index.OpenOptions{})
	if err != nil {
		p.fault(err)
		return
	}
	defer func() { _ = s.Close() }()
	if nulls, known := s.NullLists(); known {
		p.line("  NULL lists: %s", rows(nulls))
	} else {
		p.line("  NULL lists: not recorded, only TRUE answers can be trusted")
	}
	p.keys(ctx, s.File(), "lists with a NULL element")
}

func (p *printer) bitmap(ctx context.Context, open index.OpenFile, meta index.Meta) {
	p.head(index.KindBitmap, meta)
	s, err := bitmap.Open(ctx, open, meta, index.OpenOptions{})
	if err != nil {
		p.fault(err)
		return
	}
	defer func() { _ = s.Close() }()
	p.keys(ctx, s.File(), "NULL")
}

// keys prints every key with its rows and reads every bitmap, so that faults are found.
func (p *printer) keys(ctx context.Context, f *bitmap.File, nullName string) {
	keys := f.Keys()
	p.line("  file: %s, version %s", f.Path(), f.Reader().Version())
	p.line("  keys: %d of type %s, %d bytes in memory", keys.Len()+len(keys.NullRows()), keys.Codec().Type(), keys.SizeBytes())
	printed := 0
	show := func(name string, row uint32) {
		set, err := f.Rows(ctx, row)
		if err != nil {
			p.fault(err)
			return
		}
		if printed++; printed <= p.opts.KeysMax {
			p.line("    %s: %s", name, rows(set))
		}
	}
	for _, row := range keys.NullRows() {
		show(nullName, row)
	}
	for place := range keys.Len() {
		show(keys.Codec().Format(keys.Key(place)), keys.Row(place))
	}
	if printed > p.opts.KeysMax {
		p.line("    ... %d more", printed-p.opts.KeysMax)
	}
}

func (p *printer) btree(ctx context.Context, open index.OpenFile, meta index.Meta) {
	p.head(index.KindBTree, meta)
	s, err := btree.Open(ctx, open, meta, index.OpenOptions{})
	if err != nil {
		p.fault(err)
		return
	}
	defer func() { _ = s.Close() }()
	p.line("  rows: %d, %d NULL, values of type %s", s.Rows(), s.NullRows(), s.Codec().Type())
	for k := range s.Pages() {
		if k < p.opts.KeysMax {
			p.line("    page %d: %s", k, s.PageText(k))
		}
		if err := s.CheckPage(ctx, k); err != nil {
			p.fault(err)
		}
	}
	if more := s.Pages() - p.opts.KeysMax; more > 0 {
		p.line("    ... %d more", more)
	}
}

func (p *printer) zonemap(ctx context.Context, open index.OpenFile, meta index.Meta) {
	p.head(index.KindZoneMap, meta)
	s, err := zonemap.Open(ctx, open, meta, index.OpenOptions{})
	if err != nil {
		p.fault(err)
		return
	}
	defer func() { _ = s.Close() }()
	p.line("  file: %s, %d rows a zone, values of type %s", s.Path(), s.RowsPerZone(), s.Codec().Type())
	if nulls, known := s.Nulls(); known {
		p.line("  NULL: %s", rows(nulls))
	} else {
		p.line("  NULL: not recorded row by row")
	}
	bound := func(no bool, k key.Key) string {
		if no {
			return "NULL"
		}
		return s.Codec().Format(k)
	}
	printed := 0
	for z := range s.Zones {
		if printed++; printed <= p.opts.KeysMax {
			p.line("    fragment %d rows %d..%d: %s to %s, %d NULL, %d NaN", z.Fragment, z.Start, z.Start+z.Rows, bound(z.NoMin, z.Min), bound(z.NoMax, z.Max), z.Nulls, z.NaNs)
		}
	}
	if printed > p.opts.KeysMax {
		p.line("    ... %d more", printed-p.opts.KeysMax)
	}
}

// rows renders a set of stored keys: how many, and the first.
func rows(s *rowset.Set) string {
	const shown = 5
	n := s.Count()
	var first []string
	for k := range s.All() {
		if len(first) == shown {
			first = append(first, "...")
			break
		}
		first = append(first, rowset.RowAddr(k).String())
	}
	if n == 0 {
		return "0 rows"
	}
	if n == 1 {
		return "1 row " + first[0]
	}
	return fmt.Sprintf("%d rows %s", n, strings.Join(first, " "))
}

// Numbers renders fragment ids as ranges: "0-4 7".
func Numbers(b *roaring.Bitmap) string {
	var out []string
	for it := b.Iterator(); it.HasNext(); {
		start := it.Next()
		end := start
		for it.HasNext() && it.PeekNext() == end+1 {
			end = it.Next()
		}
		if start == end {
			out = append(out, fmt.Sprint(start))
		} else {
			out = append(out, fmt.Sprintf("%d-%d", start, end))
		}
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, " ")
}
