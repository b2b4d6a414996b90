package vector

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/internal/vec"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/object"
)

// BuildOptions says how an IVF_FLAT segment is made. The zero value but Metric, Elem and Dim is the default.
type BuildOptions struct {
	Metric      index.Metric
	Elem        vec.Elem     // float32 or float16
	Dim         int          //
	Lists       int          // 0 = the square root of the number of rows, at most 65536; never more than rows with a distance
	SampleRate  int          // rows a list that centroids are trained from; 0 = 256
	Iterations  int          // of training, at most; 0 = 50
	Seed        uint64       // of sample and training: the same rows and seed give the same files
	Parallelism int          // goroutines; 0 = GOMAXPROCS
	BufferBytes int64        // rows sorted by list at a time; 0 = 256 MiB. Rows are read once per buffer
	FileVersion file.Version // zero = 2.2
	Budget      *mem.Budget
	Progress    func(phase string, done, total int64) // called from one goroutine at a time; nil = nobody listens
}

func (o BuildOptions) withDefaults() BuildOptions {
	if o.SampleRate == 0 {
		o.SampleRate = 256
	}
	if o.Iterations == 0 {
		o.Iterations = 50
	}
	if o.Parallelism <= 0 {
		o.Parallelism = runtime.GOMAXPROCS(0)
	}
	if o.BufferBytes == 0 {
		o.BufferBytes = 256 << 20
	}
	if o.Progress == nil {
		o.Progress = func(string, int64, int64) {}
	}
	return o
}

// Validate names the option that makes no sense. Errors: ErrInvalid, ErrUnsupported.
func (o BuildOptions) Validate() error {
	switch o.Metric {
	case index.MetricL2, index.MetricCosine, index.MetricDot:
	case index.MetricHamming:
		return errs.New(errs.ErrUnsupported, "building an IVF_FLAT index over hamming distance; search without an index is exact")
	default:
		return errs.New(errs.ErrInvalid, "distance %q: use l2, cosine or dot", o.Metric)
	}
	if o.Elem != vec.Float32 && o.Elem != vec.Float16 {
		return errs.New(errs.ErrUnsupported, "building a vector index over %v; float32 and float16 can be indexed", o.Elem)
	}
	if o.Dim < 1 || o.Dim > dimMax {
		return errs.New(errs.ErrInvalid, "vectors of %d dimensions (1 to %d)", o.Dim, dimMax)
	}
	if o.Lists < 0 || o.Lists > 1<<20 {
		return errs.New(errs.ErrInvalid, "num_partitions %d (1 to %d)", o.Lists, 1<<20)
	}
	if o.SampleRate < 1 || o.Iterations < 1 || o.BufferBytes < 0 {
		return errs.New(errs.ErrInvalid, "sample_rate %d, iterations %d, buffer of %d bytes", o.SampleRate, o.Iterations, o.BufferBytes)
	}
	return nil
}

// BuildPart is the rows of one fragment, or of another segment (Segment.Part).
type BuildPart struct {
	Rows    *roaring.Bitmap // offsets of the live rows
	Keys    []uint64        // stored keys of the live rows, by rank; nil: KeyBase + offset
	KeyBase uint64
	// Blocks returns the vectors; it is called once a pass and what it returns is dropped after it.
	Blocks func(ctx context.Context) ([]Block, error)

	lists    []int32 // by rank of the row: its list, where that is known before
	isStored bool    // the vectors are as an index of the metric keeps them
}

// Built describes a finished segment.
type Built struct {
	Kind    index.Kind
	Rows    uint64 // in the index: rows whose vector is NULL, not finite or, for cosine, zero are left out
	Lists   int
	Loss    float64
	Details []byte // VectorIndexDetails for the index metadata
	Files   []BuiltFile
}

// BuiltFile is a file of a segment.
type BuiltFile struct {
	Name      string
	SizeBytes int64
}

// CreateFile starts a file of the new segment's folder.
type CreateFile func(ctx context.Context, name string) (object.Writer, error)

// BuildFlat trains centroids on a sample, assigns every live row to its list and writes the two files of an IVF_FLAT segment.
// Errors: ErrInvalid (also where no row can be indexed), ErrUnsupported, ErrMemoryLimit, ErrIO, ErrDiskFull.
func BuildFlat(ctx context.Context, create CreateFile, parts []BuildPart, o BuildOptions) (*Built, error) {
	return build(ctx, create, nil, parts, o)
}

// AssembleFlat is BuildFlat with centroids that are there already: rows are assigned to the nearest, whatever the centroids were trained from. Lists, SampleRate
// and Iterations mean nothing. A segment without a row is fine.
func AssembleFlat(ctx context.Context, create CreateFile, c Centroids, parts []BuildPart, o BuildOptions) (*Built, error) {
	if len(c.Values) == 0 || o.Dim < 1 || len(c.Values)%o.Dim != 0 {
		return nil, errs.New(errs.ErrInvalid, "%d numbers for centroids of %d dimensions", len(c.Values), o.Dim)
	}
	return build(ctx, create, &c, parts, o)
}

// Centroids are the centers of lists, [lists*dim]float32 row-major, with the loss of their training.
type Centroids struct {
	Values []float32
	Loss   float64
}

// TrainFlat finds the centroids of BuildFlat. Errors: as BuildFlat.
func TrainFlat(ctx context.Context, parts []BuildPart, o BuildOptions) (c Centroids, err error) {
	b, err := newBuilder(parts, o)
	if err != nil {
		return c, err
	}
	defer b.held.Free()
	err = spawn.Guard(func() error { return b.train(ctx) })
	return Centroids{b.centroids, b.loss}, err
}

func newBuilder(parts []BuildPart, o BuildOptions) (*builder, error) {
	o = o.withDefaults()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	b := &builder{opts: o, parts: parts, held: o.Budget.Reserve()}
	for _, p := range parts {
		b.live += p.Rows.GetCardinality()
	}
	return b, nil
}

func build(ctx context.Context, create CreateFile, c *Centroids, parts []BuildPart, o BuildOptions) (*Built, error) {
	b, err := newBuilder(parts, o)
	if err != nil {
		return nil, err
	}
	defer b.held.Free()
	var out *Built
	err = spawn.Guard(func() (err error) { // the rows may lie in a mapping
		if c != nil {
			b.centroids, b.loss = c.Values, c.Loss
		} else if err = b.train(ctx); err != nil {
			return fmt.Errorf("train: %w", err)
		}
		if err = b.assign(ctx); err != nil {
			return fmt.Errorf("assign: %w", err)
		}
		out, err = b.write(ctx, create)
		return err
	})
	return out, err
}

// builder is one build in progress.
type builder struct {
	opts      BuildOptions
	parts     []BuildPart
	held      *mem.Reservation
	live      uint64
	centroids []float32
	loss      float64
	lists     [][]int32 // by part, by rank of the live row: its list, -1 = left out
	counts    []uint64  // rows by list
}

// lists returns how many lists are made from n rows that can be indexed.
func (o BuildOptions) listsFor(live uint64, usable int) int {
	lists := o.Lists
	if lists == 0 {
		lists = min(int(math.Round(math.Sqrt(float64(live)))), 1<<16)
	}
	return max(1, min(lists, usable))
}

// train draws a sample of the live rows and finds centroids.
func (b *builder) train(ctx context.Context) error {
	o := b.opts
	want := uint64(o.listsFor(b.live, math.MaxInt)) * uint64(o.SampleRate)
	sample, err := b.sample(ctx, min(want, b.live))
	if err != nil {
		return err
	}
	n := len(sample) / o.Dim
	if n == 0 {
		return errs.New(errs.ErrInvalid, "no row has a vector that can be indexed")
	}
	b.centroids, b.loss, err = train(ctx, sample, trainOptions{
		lists: o.listsFor(b.live, n), dim: o.Dim, dot: o.Metric == index.MetricDot, seed: o.Seed, iterations: o.Iterations,
		tolerance: 5e-4, parallelism: o.Parallelism,
		progress: func(done, total int) { o.Progress("train", int64(done), int64(total)) },
	})
	return err
}

// sample reads want rows of all parts, each in proportion to its size, as float32; rows that cannot be indexed are skipped.
func (b *builder) sample(ctx context.Context, want uint64) ([]float32, error) {
	if err := b.held.Grow(int64(want) * int64(b.opts.Dim) * 4); err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(b.opts.Seed, 0x73616d706c65)) //nolint:gosec // reproducible, no secret
	out := make([]float32, 0, want*uint64(b.opts.Dim))
	var before uint64 // live rows of the parts so far
	for i := range b.parts {
		p := &b.parts[i]
		have := p.Rows.GetCardinality()
		// The share that keeps the running total exact: want * (before + have) / live rounded down, minus what was taken.
		take := shareOf(want, before+have, b.live) - shareOf(want, before, b.live)
		before += have
		if take == 0 {
			continue
		}
		ranks := sampleRanks(random, have, take)
		rows, err := b.open(ctx, p)
		if err != nil {
			return nil, err
		}
		var offsets []uint32
		if take == have {
			offsets = p.Rows.ToArray()
		} else {
			for _, r := range ranks {
				offset, err := p.Rows.Select(uint32(r))
				if err != nil {
					return nil, errs.New(errs.ErrInternal, "row %d of %d: %w", r, have, err)
				}
				offsets = append(offsets, offset)
			}
		}
		for _, offset := range offsets {
			at := len(out)
			out = out[:at+b.opts.Dim]
			if !rows.vector(out[at:], offset) {
				out = out[:at]
			}
		}
		b.opts.Progress("sample", int64(before), int64(b.live))
	}
	return out, nil
}

func shareOf(want, part, all uint64) uint64 {
	if all == 0 {
		return 0
	}
	return uint64(float64(want) / float64(all) * float64(part))
}

// sampleRanks draws take distinct ranks below have, ascending.
func sampleRanks(random *rand.Rand, have, take uint64) []uint64 {
	seen := roaring.New()
	if take >= have {
		seen.AddRange(0, have)
	} else if take > have/2 { // draw those that stay out
		seen.AddRange(0, have)
		for seen.GetCardinality() > take {
			seen.Remove(uint32(random.Uint64N(have)))
		}
	} else {
		for seen.GetCardinality() < take {
			seen.Add(uint32(random.Uint64N(have)))
		}
	}
	out := make([]uint64, 0, take)
	for it := seen.Iterator(); it.HasNext(); {
		out = append(out, uint64(it.Next()))
	}
	return out
}

// partRows reads vectors of one part by offset.
type partRows struct {
	blocks []Block
	last   *Block
	opts   *BuildOptions
	width  int
	stored bool
}

func (b *builder) open(ctx context.Context, p *BuildPart) (*partRows, error) {
	blocks, err := p.Blocks(ctx)
	if err != nil {
		return nil, err
	}
	r := &partRows{blocks: blocks, opts: &b.opts, width: b.opts.Dim * b.opts.Elem.Size(), stored: p.isStored}
	for i := range blocks {
		if err := checkBlock(&blocks[i], r.width); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// raw returns the stored bytes of a row, nil for NULL or a row in no block.
func (r *partRows) raw(offset uint32) []byte {
	if r.last == nil || !holds(r.last, offset) {
		if r.last = blockOf(r.blocks, offset); r.last == nil {
			return nil
		}
	}
	i := int(uint64(offset) - r.last.FirstRow)
	if !valid(r.last, i) {
		return nil
	}
	return r.last.Data[r.last.OffsetBytes+i*r.last.StrideBytes:][:r.width]
}

// vector decodes a row as it is indexed, for cosine at length 1; false for one that cannot be a neighbour.
func (r *partRows) vector(dst []float32, offset uint32) bool {
	raw := r.raw(offset)
	if raw == nil {
		return false
	}
	vec.Decode(dst, r.opts.Elem, raw)
	var norm float64
	for _, x := range dst {
		norm += float64(x) * float64(x)
	}
	if math.IsNaN(norm) || math.IsInf(norm, 0) || (r.opts.Metric == index.MetricCosine && norm == 0) {
		return false
	}
	if r.opts.Metric == index.MetricCosine {
		length := math.Sqrt(norm)
		for i, x := range dst {
			dst[i] = float32(float64(x) / length)
		}
	}
	return true
}

// assign finds the list of every live row.
func (b *builder) assign(ctx context.Context) error {
	o := b.opts
	if err := b.held.Grow(int64(b.live) * 4); err != nil {
		return err
	}
	panels := vec.NewPanels(b.centroids, o.Dim, o.Metric == index.MetricDot)
	b.counts = make([]uint64, panels.Count())
	b.lists = make([][]int32, len(b.parts))
	var done int64
	for i := range b.parts {
		p := &b.parts[i]
		if p.lists != nil {
			for _, l := range p.lists {
				b.counts[l]++
			}
			b.lists[i] = p.lists
			done += int64(len(p.lists))
			o.Progress("assign", done, int64(b.live))
			continue
		}
		rows, err := b.open(ctx, p)
		if err != nil {
			return err
		}
		offsets := p.Rows.ToArray()
		lists := make([]int32, len(offsets))
		chunks := (len(offsets) + assignChunk - 1) / assignChunk
		err = forEach(ctx, "assign vectors", chunks, o.Parallelism, func(c int) error {
			lo, hi := c*assignChunk, min((c+1)*assignChunk, len(offsets))
			mine := *rows // a cursor of its own
			mine.assign(panels, lists[lo:hi], offsets[lo:hi])
			return nil
		})
		if err != nil {
			return err
		}
		for _, l := range lists {
			if l >= 0 {
				b.counts[l]++
			}
		}
		b.lists[i] = lists
		done += int64(len(offsets))
		o.Progress("assign", done, int64(b.live))
	}
	return nil
}

func (r *partRows) assign(panels *vec.Panels, lists []int32, offsets []uint32) {
	points := make([]float32, 0, len(offsets)*r.opts.Dim)
	var kept []int
	for i, offset := range offsets {
		lists[i] = -1
		at := len(points)
		points = points[:at+r.opts.Dim]
		if !r.vector(points[at:], offset) {
			points = points[:at]
			continue
		}
		kept = append(kept, i)
	}
	which, score := make([]int32, len(kept)), make([]float32, len(kept))
	panels.Assign(which, score, points)
	for j, i := range kept {
		lists[i] = which[j]
	}
}

// bufferRanges cuts the lists into runs whose rows fit the buffer; a list that does not fit is a run of its own.
func (b *builder) bufferRanges(rowBytes int) [][2]int {
	most := uint64(b.opts.BufferBytes) / uint64(rowBytes)
	var out [][2]int
	start, rows := 0, uint64(0)
	for l, n := range b.counts {
		if rows > 0 && rows+n > most {
			out = append(out, [2]int{start, l})
			start, rows = l, 0
		}
		rows += n
	}
	return append(out, [2]int{start, len(b.counts)})
}

// gather copies the rows of lists [from, to) in order of list, part and offset: keys and vectors [rows][dim] as stored.
func (b *builder) gather(ctx context.Context, from, to int) (keys []uint64, vectors []byte, err error) {
	place := make([]uint64, to-from) // next free row of each list
	var rows uint64
	for l := from; l < to; l++ {
		place[l-from] = rows
		rows += b.counts[l]
	}
	width := b.opts.Dim * b.opts.Elem.Size()
	keys, vectors = make([]uint64, rows), make([]byte, rows*uint64(width))
	scratch := make([]float32, b.opts.Dim)
	for i := range b.parts {
		p := &b.parts[i]
		if !slices.ContainsFunc(b.lists[i], func(l int32) bool { return int(l) >= from && int(l) < to }) {
			continue
		}
		r, err := b.open(ctx, p)
		if err != nil {
			return nil, nil, err
		}
		rank := 0
		for it := p.Rows.Iterator(); it.HasNext(); rank++ {
			offset, l := it.Next(), int(b.lists[i][rank])
			if l < from || l >= to {
				continue
			}
			at := place[l-from]
			place[l-from]++
			keys[at] = p.KeyBase + uint64(offset)
			if p.Keys != nil {
				keys[at] = p.Keys[rank]
			}
			r.store(vectors[at*uint64(width):][:width], scratch, offset)
			if rank%assignChunk == 0 && ctx.Err() != nil {
				return nil, nil, ctx.Err()
			}
		}
	}
	return keys, vectors, nil
}

// store writes a row as the index keeps it.
func (r *partRows) store(dst []byte, scratch []float32, offset uint32) {
	if r.opts.Metric != index.MetricCosine || r.stored {
		copy(dst, r.raw(offset))
		return
	}
	r.vector(scratch, offset)
	for i, x := range scratch {
		if r.opts.Elem == vec.Float16 {
			h := vec.FloatToHalf(x)
			dst[2*i], dst[2*i+1] = byte(h), byte(h>>8)
			continue
		}
		bits := math.Float32bits(x)
		dst[4*i], dst[4*i+1], dst[4*i+2], dst[4*i+3] = byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24)
	}
}
