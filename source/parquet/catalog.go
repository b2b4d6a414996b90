package parquet

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/source"
	"github.com/lakesql/lakesql/storage/object"
)

const suffix = ".parquet"

// Catalog is a folder of Parquet files. It is safe for concurrent use.
type Catalog struct {
	name  string
	store object.Store
}

var _ source.Catalog = (*Catalog)(nil)

// Open makes the folder at the store's root the catalog called name. The catalog owns the store.
func Open(name string, store object.Store) *Catalog { return &Catalog{name: name, store: store} }

// Name implements source.Catalog.
func (c *Catalog) Name() string { return c.name }

// Kind implements source.Catalog.
func (c *Catalog) Kind() string { return "parquet" }

// Close implements source.Catalog.
func (c *Catalog) Close() error { return c.store.Close() }

// TableNames implements source.Catalog.
func (c *Catalog) TableNames(ctx context.Context) ([]string, error) {
	entries, err := c.store.List(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("catalog %s: %w", c.name, err)
	}
	var out []string
	for _, e := range entries {
		if !e.IsDir {
			if name, ok := strings.CutSuffix(e.Name, suffix); ok && name != "" {
				out = append(out, name)
			}
			continue
		}
		files, err := c.filesIn(ctx, e.Name)
		if err != nil {
			return nil, err
		}
		if len(files) > 0 {
			out = append(out, e.Name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func (c *Catalog) filesIn(ctx context.Context, dir string) ([]string, error) {
	entries, err := c.store.List(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("catalog %s: folder %s: %w", c.name, dir, err)
	}
	var out []string
	for _, e := range entries {
		if !e.IsDir && strings.HasSuffix(e.Name, suffix) {
			out = append(out, dir+"/"+e.Name)
		}
	}
	return out, nil
}

// Table implements source.Catalog.
func (c *Catalog) Table(ctx context.Context, name string, asOf source.AsOf) (exec.Table, error) {
	if !asOf.IsLatest() {
		return nil, errs.New(errs.ErrUnsupported, "table %s.%s is made of Parquet files, which have no versions: AS OF %s", c.name, name, asOf)
	}
	if name == "" || strings.ContainsAny(name, "/\\") || strings.HasPrefix(name, ".") {
		return nil, errs.New(errs.ErrNotFound, "table %s.%s does not exist", c.name, name)
	}
	paths, err := c.filesIn(ctx, name)
	if err != nil {
		return nil, err
	}
	if _, err := c.store.Stat(ctx, name+suffix); err == nil {
		paths = append(paths, name+suffix)
	}
	if len(paths) == 0 {
		return nil, errs.New(errs.ErrNotFound, "table %s.%s does not exist", c.name, name)
	}
	return openTable(ctx, c, name, paths)
}
