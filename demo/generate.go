package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/write"
)

// Limits of Options.
const (
	rowsMax = 1 << 31
	dimMax  = 4096
)

// Less training than a real index gets: the clusters of the demo are easy to find, and its user waits.
const (
	trainRate   = 64
	trainRounds = 15
)

// Options says what to make. The zero value of all but Dir means default.
type Options struct {
	Dir       string // folder of the lake; made if it does not exist
	Rows      int64  // images; 0 = 100,000
	Dim       int    // of the embeddings; 0 = 128
	Fragments int    // of images; 0 = 8, fewer for few rows
	Seed      uint64 // of all random streams
	Parallel  int    // fragments made at one time; 0 = one per core
	NoIndices bool   // rows only
	// Progress, if not nil, is told what is done of each step, from one goroutine at a time.
	Progress func(Progress)
}

// Progress is how far a step is.
type Progress struct {
	Step        string // "images", "orders", "shipments", or an index
	Done, Total int64  // rows
}

func (o Options) withDefaults() Options {
	if o.Rows == 0 {
		o.Rows = 100_000
	}
	if o.Dim == 0 {
		o.Dim = 128
	}
	if o.Fragments == 0 {
		o.Fragments = int(max(1, min(8, o.Rows/500)))
	}
	return o
}

// Validate refuses what makes no lake.
func (o Options) Validate() error {
	switch {
	case o.Dir == "":
		return errs.New(errs.ErrInvalid, "the demo needs a folder")
	case o.Rows < 0 || o.Rows > rowsMax:
		return errs.New(errs.ErrInvalid, "%d rows: between 1 and %d are possible", o.Rows, rowsMax)
	case o.Dim < 0 || o.Dim > dimMax:
		return errs.New(errs.ErrInvalid, "%d dimensions: between 1 and %d are possible", o.Dim, dimMax)
	case o.Fragments < 0 || int64(o.Fragments) > max(o.Rows, 1) && o.Rows > 0:
		return errs.New(errs.ErrInvalid, "%d fragments of %d rows", o.Fragments, o.Rows)
	case o.Parallel < 0:
		return errs.New(errs.ErrInvalid, "%d fragments at one time", o.Parallel)
	}
	return nil
}

// Lake says what was made.
type Lake struct {
	Images, Orders, Shipments int64 // rows
}

// table is one table in the making: its parts are drawn and written in parallel.
type table struct {
	name   string
	schema *arrow.Schema
	rows   int64 // about, for the progress
	parts  []write.Batches
}

// Generate makes the tables and their indices. Errors: ErrInvalid for options that make no lake, ErrExists where the folder has one of the tables,
// ErrIO, ErrDiskFull.
func Generate(ctx context.Context, opts Options) (Lake, error) {
	if err := opts.Validate(); err != nil {
		return Lake{}, err
	}
	opts = opts.withDefaults()
	if err := os.MkdirAll(opts.Dir, 0o750); err != nil {
		return Lake{}, errs.New(errs.ErrIO, "make the folder %s: %w", opts.Dir, err)
	}
	store, err := object.OpenLocal(opts.Dir, object.LocalOptions{})
	if err != nil {
		return Lake{}, err
	}
	lake, err := generate(ctx, store, opts)
	return lake, errors.Join(err, store.Close())
}

func generate(ctx context.Context, store object.Store, opts Options) (Lake, error) {
	var lake Lake
	g := &generator{opts: opts, model: newModel(opts), progress: progressOf(opts)}
	for _, t := range []struct {
		table
		count *int64
	}{
		{g.images(), &lake.Images}, {g.orders(), &lake.Orders}, {g.shipments(), &lake.Shipments},
	} {
		if err := writeTable(ctx, store, t.table, opts); err != nil {
			return Lake{}, fmt.Errorf("table %s: %w", t.name, err)
		}
		*t.count = g.progress.finish(t.name)
	}
	if opts.NoIndices {
		return lake, nil
	}
	return lake, g.buildIndices(ctx, store, lake.Images)
}

// buildIndices gives the table images its indices.
func (g *generator) buildIndices(ctx context.Context, store object.Store, rows int64) error {
	table, err := storage.OpenTable(ctx, store, "images.lance", storage.TableOptions{})
	if err != nil {
		return err
	}
	for _, spec := range []write.FilterIndexSpec{
		{Column: "labels", Kind: index.KindLabelList},
		{Column: "tenant", Kind: index.KindBitmap},
		{Column: "captured_at", Kind: index.KindBTree},
	} {
		step := fmt.Sprintf("%s on %s", spec.Kind, spec.Column)
		g.progress.set(step, 0, rows)
		if _, err := write.BuildFilterIndex(ctx, table, spec, write.FilterIndexOptions{}); err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
		g.progress.set(step, rows, rows)
	}
	return g.buildVectorIndex(ctx, table, rows)
}

func (g *generator) buildVectorIndex(ctx context.Context, table *storage.Table, rows int64) error {
	step := fmt.Sprintf("%s on embedding", index.KindIVFFlat)
	_, err := write.BuildIVFFlat(ctx, table, "embedding", write.IVFFlatOptions{
		Metric: index.MetricL2, SampleRate: trainRate, Iterations: trainRounds, Seed: g.opts.Seed, Parallelism: g.opts.Parallel,
		Progress: func(phase string, done, total int64) { g.progress.set(step+": "+phase, done, total) },
	})
	if err != nil {
		return fmt.Errorf("%s: %w", step, err)
	}
	g.progress.set(step, rows, rows)
	return nil
}

// writeTable creates the table with all its rows as version 1, so that a reader sees all of it or nothing.
func writeTable(ctx context.Context, store object.Store, t table, opts Options) error {
	_, err := write.CreateTable(ctx, write.Target{Store: store, Dir: t.name + ".lance"}, t.schema, write.CreateOptions{
		Parts: t.parts,
		Rows:  write.RowOptions{Parallel: opts.Parallel},
	})
	return err
}

// generator draws the rows.
type generator struct {
	opts     Options
	model    *model
	progress *progress
}

// progress adds up the rows of parallel parts.
type progress struct {
	tell func(Progress)
	mu   sync.Mutex
	done map[string]int64
}

func progressOf(opts Options) *progress {
	return &progress{tell: opts.Progress, done: make(map[string]int64)}
}

func (p *progress) add(step string, rows, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done[step] += rows
	if p.tell != nil {
		p.tell(Progress{Step: step, Done: p.done[step], Total: max(total, p.done[step])})
	}
}

// set reports a step that counts its rows itself.
func (p *progress) set(step string, done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tell != nil {
		p.tell(Progress{Step: step, Done: done, Total: total})
	}
}

// finish reports the step as complete and returns its rows.
func (p *progress) finish(step string) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	rows := p.done[step]
	if p.tell != nil {
		p.tell(Progress{Step: step, Done: rows, Total: rows})
	}
	return rows
}
