package lance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/source"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/object"
)

// suffix ends the folder name of every table.
const suffix = ".lance"

// Options of a Catalog.
type Options struct {
	IndexBudget *mem.Budget          // pays for opened segments; nil = nobody counts. Share it with Segments, which makes room in it
	IndexCache  *index.Cache         // of what lookups read, shared by catalogs; nil = one of its own of IndexCacheBytes, paid for by IndexBudget
	Segments    *SegmentCache        // shared by catalogs; nil = one of its own
	Table       storage.TableOptions // caches of metadata and files
	Remote      bool                 // reads cross a network: late fetches cost more
	ReadOnly    bool                 // statements that change tables are refused
}

// IndexCacheBytes is the size of a cache of index parts (bitmaps, pages, row keys of lists) unless told otherwise.
const IndexCacheBytes = 256 << 20

func (o Options) withDefaults() Options {
	if o.Segments == nil {
		o.Segments = NewSegmentCache(0)
	}
	if o.IndexCache == nil {
		o.IndexCache = index.NewCache(IndexCacheBytes, o.IndexBudget)
	}
	return o
}

// Catalog is one lake: a folder of NAME.lance. It is safe for concurrent use.
type Catalog struct {
	name  string
	store object.Store
	opts  Options

	staged atomic.Uint64 // views of transactions so far

	mu     sync.Mutex
	tables map[string]*openTable // by table name
	listed map[string]bool       // names that are known to be tables' and not opened yet
	handed handedOut
}

var (
	_ source.Catalog = (*Catalog)(nil)
	_ source.Lister  = (*Catalog)(nil)
	_ source.Knower  = (*Catalog)(nil)
)

// Open makes the folder at the store's root the catalog called name. The catalog owns the store.
func Open(name string, store object.Store, opts Options) *Catalog {
	return &Catalog{name: name, store: store, opts: opts.withDefaults(), tables: make(map[string]*openTable), listed: make(map[string]bool), handed: make(handedOut)}
}

// Name implements source.Catalog.
func (c *Catalog) Name() string { return c.name }

// Kind implements source.Catalog.
func (c *Catalog) Kind() string { return "lance" }

// Store returns the store, for commands that work on files.
func (c *Catalog) Store() object.Store { return c.store }

// TableNames implements source.Catalog.
func (c *Catalog) TableNames(ctx context.Context) ([]string, error) {
	entries, err := c.store.List(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("lake %s: %w", c.name, err)
	}
	var out []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name, suffix); ok && e.IsDir && name != "" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out, nil
}

// probesMax bounds how many folders are looked into at a time.
const probesMax = 16

// Tables implements source.Lister: folders with a version. What was a table once is not looked at again.
func (c *Catalog) Tables(ctx context.Context) ([]string, error) {
	names, err := c.TableNames(ctx)
	if err != nil {
		return nil, err
	}
	isTable := make([]bool, len(names))
	g, gctx := spawn.WithContext(ctx, probesMax)
	for i, name := range names {
		c.mu.Lock()
		isTable[i] = c.tables[name] != nil || c.listed[name]
		c.mu.Unlock()
		if !isTable[i] {
			g.Go("look for versions", func() (err error) { isTable[i], err = c.IsTable(gctx, name); return err })
		}
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("lake %s: %w", c.name, err)
	}
	out := names[:0]
	for i, name := range names {
		if isTable[i] {
			out = append(out, name)
		}
	}
	return out, nil
}

// IsTable says whether the folder of exactly this name has a version. A folder that cannot be read may have.
func (c *Catalog) IsTable(ctx context.Context, name string) (bool, error) {
	ok, err := manifest.HasVersion(ctx, c.store, name+suffix)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err == nil && !ok {
		return false, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listed[name] = err == nil
	return true, nil
}

// Knows implements source.Knower.
func (c *Catalog) Knows(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.tables[name]
	return ok
}

// Table implements source.Catalog.
func (c *Catalog) Table(ctx context.Context, name string, asOf source.AsOf) (exec.Table, error) {
	t, err := c.open(ctx, name)
	if err != nil {
		return nil, err
	}
	var snap *storage.Snapshot
	if asOf.IsLatest() {
		snap, err = t.table.Latest(ctx)
	} else {
		snap, err = t.table.At(ctx, storage.Ref{Version: asOf.Version, Tag: asOf.Tag, Time: asOf.Time})
	}
	if err != nil {
		return nil, fmt.Errorf("table %s.%s: %w", c.name, name, err)
	}
	return t.at(c, name, snap), nil
}

// openTable is a dataset and the last version that was asked for, with its indices grouped.
type openTable struct {
	table *storage.Table

	mu   sync.Mutex
	last *Table
}

func (o *openTable) at(c *Catalog, name string, snap *storage.Snapshot) *Table {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last == nil || o.last.snap != snap {
		o.last = newTable(c, name, snap)
	}
	return o.last
}

// checkName refuses names that lead out of the lake's folder.
func checkName(name string) error {
	if name == "" || strings.ContainsAny(name, "/\\\x00") || strings.HasPrefix(name, ".") {
		return errs.New(errs.ErrInvalid, "table name %q", name)
	}
	return nil
}

// branchMark parts a table's name from that of a branch: t@branch.
const branchMark = "@"

func (c *Catalog) open(ctx context.Context, name string) (*openTable, error) {
	c.mu.Lock()
	t, ok := c.tables[name]
	c.mu.Unlock()
	if ok {
		return t, nil
	}
	opened, err := c.find(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("table %s.%s: %w", c.name, name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if have, ok := c.tables[name]; ok {
		return have, nil
	}
	t = &openTable{table: opened}
	c.tables[name] = t
	return t, nil
}

// find opens a table, or a branch of one. A table whose name has a branch mark in it goes before a branch.
func (c *Catalog) find(ctx context.Context, name string) (*storage.Table, error) {
	missing := errs.New(errs.ErrNotFound, "it does not exist")
	if err := checkName(name); err == nil {
		t, err := storage.OpenTable(ctx, c.store, name+suffix, c.opts.Table)
		if !errors.Is(err, errs.ErrNotFound) || !strings.Contains(name, branchMark) {
			return t, err
		}
	} else if !strings.Contains(name, branchMark) {
		return nil, missing
	}
	name, branch, _ := strings.Cut(name, branchMark)
	if checkName(name) != nil || branch == "" {
		return nil, missing
	}
	t, err := c.open(ctx, name)
	if err != nil {
		return nil, err
	}
	return t.table.Branch(ctx, branch)
}

// Close implements source.Catalog.
func (c *Catalog) Close() error {
	return c.store.Close()
}
