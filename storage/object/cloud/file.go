package cloud

import (
	"context"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/storage/object"
)

// blobFile is one object, of known size.
type blobFile struct {
	of   *Blob
	path string
	size int64
}

var (
	_ object.File    = (*blobFile)(nil)
	_ object.Fetcher = (*blobFile)(nil)
)

func (f *blobFile) Path() string     { return f.path }
func (f *blobFile) SizeBytes() int64 { return f.size }
func (f *blobFile) IsMapped() bool   { return false }

func (f *blobFile) Read(ctx context.Context, r object.Range) ([]byte, error) {
	out, err := f.ReadMany(ctx, []object.Range{r})
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// ReadMany fetches the blocks that are not cached, neighbours together.
func (f *blobFile) ReadMany(ctx context.Context, rs []object.Range) ([][]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out := make([][]byte, len(rs))
	var missing []object.Range // in blocks, of those ranges that are not wholly cached
	var of []int
	for i, r := range rs {
		if r.Offset < 0 || r.Size < 0 || r.Offset > f.size || r.Size > f.size-r.Offset {
			return nil, &errs.CorruptError{Path: f.path, Section: "file", Offset: r.Offset,
				Err: errs.New(errs.ErrCorrupt, "%d bytes wanted of a file of %d", r.Size, f.size)}
		}
		if r.Size == 0 {
			out[i] = []byte{}
			continue
		}
		if out[i] = f.of.cache.get(f.path, f.size, r); out[i] == nil {
			missing = append(missing, f.aligned(r))
			of = append(of, i)
		}
	}
	if len(missing) == 0 {
		return out, nil
	}
	merged, which := object.Coalesce(missing, f.of.opts.GapBytes, f.of.opts.mergedBytes())
	fetched, err := f.fetchAll(ctx, merged)
	if err != nil {
		return nil, err
	}
	wanted := make([]int64, len(merged))
	for k, i := range of {
		wanted[which[k]] += rs[i].Size
	}
	for k, i := range of {
		m := which[k]
		at := rs[i].Offset - merged[m].Offset
		out[i] = fetched[m][at : at+rs[i].Size : at+rs[i].Size]
		if isSparse(wanted[m], merged[m].Size) {
			own := make([]byte, rs[i].Size)
			copy(own, out[i])
			out[i] = own
		}
	}
	return out, nil
}

// isSparse says that most of what a request brought lies between the wanted ranges: they are copied out, so that the rest is not kept with them.
func isSparse(wanted, fetched int64) bool { return wanted < fetched/2 }

// FetchBytes implements object.Fetcher.
func (f *blobFile) FetchBytes(rs []object.Range) int64 {
	aligned := make([]object.Range, len(rs))
	for i, r := range rs {
		aligned[i] = f.aligned(r)
	}
	merged, which := object.Coalesce(aligned, f.of.opts.GapBytes, f.of.opts.mergedBytes())
	wanted := make([]int64, len(merged))
	for i, m := range which {
		wanted[m] += rs[i].Size
	}
	var kept, dropped int64
	for m, r := range merged {
		if isSparse(wanted[m], r.Size) {
			kept, dropped = kept+wanted[m], dropped+r.Size
		} else {
			kept += r.Size
		}
	}
	return kept + min(dropped, int64(f.of.opts.Parallelism)*f.of.opts.mergedBytes())
}

// aligned widens a range to whole blocks, within the file.
func (f *blobFile) aligned(r object.Range) object.Range {
	start := r.Offset / blockBytes * blockBytes
	end := min((r.Offset+r.Size+blockBytes-1)/blockBytes*blockBytes, f.size)
	return object.Range{Offset: start, Size: end - start}
}

// fetchAll fetches merged ranges in parallel. A range longer than a request is split.
func (f *blobFile) fetchAll(ctx context.Context, merged []object.Range) ([][]byte, error) {
	out := make([][]byte, len(merged))
	if len(merged) == 1 && merged[0].Size <= f.of.opts.RequestBytes {
		out[0] = make([]byte, merged[0].Size)
		return out, f.fetch(ctx, merged[0], out[0])
	}
	g, gctx := spawn.WithContext(ctx, f.of.opts.Parallelism)
	for i, r := range merged {
		if r.Size > f.of.opts.RequestBytes {
			out[i] = make([]byte, r.Size)
		}
		for at := int64(0); at < r.Size; at += f.of.opts.RequestBytes {
			part := object.Range{Offset: r.Offset + at, Size: min(f.of.opts.RequestBytes, r.Size-at)}
			g.Go("fetch", func() error {
				if part == r { // not before its turn: requests that wait hold nothing
					out[i] = make([]byte, r.Size)
				}
				return f.fetch(gctx, part, out[i][at:at+part.Size])
			})
		}
	}
	return out, g.Wait()
}

// fetch reads one request into dst and keeps its blocks.
func (f *blobFile) fetch(ctx context.Context, r object.Range, dst []byte) error {
	if err := f.of.fetch(ctx, f.path, r, dst); err != nil {
		return err
	}
	f.of.cache.put(f.path, f.size, r.Offset, dst)
	return nil
}
