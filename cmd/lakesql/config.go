package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/server"
	"github.com/lakesql/lakesql/source"
	"github.com/lakesql/lakesql/source/lance"
	"github.com/lakesql/lakesql/source/parquet"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/upkeep"
)

// config is the file of --config.
type config struct {
	Listen           string          `yaml:"listen"`
	MemoryLimit      byteSize        `yaml:"memory_limit"`
	QueryMemoryLimit byteSize        `yaml:"query_memory_limit"`
	MaxConnections   uint64          `yaml:"max_connections"`
	MaxAllowedPacket byteSize        `yaml:"max_allowed_packet"`
	Workers          int             `yaml:"workers"`
	Users            []userConfig    `yaml:"users"`
	Catalogs         []catalogConfig `yaml:"catalogs"`
	Upkeep           upkeepConfig    `yaml:"upkeep"`

	maintain *upkeep.Options // what Upkeep says, where it is enabled
}

type userConfig struct {
	Name     string `yaml:"name"`
	Host     string `yaml:"host"`
	Password string `yaml:"password"`
}

type catalogConfig struct {
	Name string `yaml:"name"`
	Kind string `yaml:"kind"` // lance (default) or parquet
	URI  string `yaml:"uri"`
	// ReadOnly refuses statements that change tables.
	ReadOnly bool `yaml:"read_only"`
}

// byteSize is a number of bytes, written as 1048576, 512MiB, 8GiB.
type byteSize int64

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *byteSize) UnmarshalText(text []byte) error {
	s := strings.TrimSpace(string(text))
	shift := 0
	for unit, bits := range map[string]int{"KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40} {
		if n, ok := strings.CutSuffix(s, unit); ok {
			s, shift = strings.TrimSpace(n), bits
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > 1<<(62-shift) {
		return errs.New(errs.ErrInvalid, "%q is no size: write bytes, or KiB, MiB, GiB", text)
	}
	*b = byteSize(n << shift)
	return nil
}

func readConfig(path string) (config, error) {
	c := config{Upkeep: upkeepDefaults()}
	text, err := os.ReadFile(path)
	if err != nil {
		return c, errs.New(errs.ErrNotFound, "configuration: %w", err)
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&c); err != nil {
		return c, errs.New(errs.ErrInvalid, "configuration %s: %w", path, err)
	}
	return c, nil
}

// parseCatalogs reads NAME=URI flags. A URI alone takes its last path element as the name.
func parseCatalogs(kind string, flags []string) ([]catalogConfig, error) {
	var out []catalogConfig
	for _, f := range flags {
		name, uri, ok := strings.Cut(f, "=")
		if !ok || strings.Contains(name, "://") { // the parameters of a URL have = too
			uri = f
			path, _, _ := strings.Cut(uri, "?")
			name = strings.TrimSuffix(filepath.Base(strings.TrimRight(path, "/")), ".lance")
		}
		if name == "" || uri == "" || name == "." || name == "/" {
			return nil, errs.New(errs.ErrInvalid, "--%s %s: write NAME=FOLDER, as in --%s prod=/data/lake", kind, f, map[string]string{"lance": "lake"}[kind]+strings.TrimPrefix(kind, "lance"))
		}
		out = append(out, catalogConfig{Name: name, Kind: kind, URI: uri})
	}
	return out, nil
}

// indexMemoryBytes bounds what opened index segments and their cached parts hold in memory, beside the statements' own limits.
const indexMemoryBytes = 2 << 30

// runtimeBytes is for what nobody counts: sessions, plans, connections, Go's own.
const runtimeBytes = 128 << 20

// limitRuntime makes Go's collector work harder where memory comes near what statements may hold, so that garbage does not pile up beside it.
func limitRuntime(c config) {
	most := int64(c.MemoryLimit)
	if most == 0 {
		most = int64(c.QueryMemoryLimit)
	}
	if most > 0 {
		debug.SetMemoryLimit(most + indexMemoryBytes + storage.CacheBytesDefault + runtimeBytes)
	}
}

// openEngine opens the catalogs and an engine over them. Caches are shared by all lakes.
func openEngine(ctx context.Context, c config) (*engine.Engine, error) {
	limitRuntime(c)
	cache := storage.NewCache(storage.CacheOptions{OpenStore: openStore})
	indexBudget := mem.NewBudget("index", indexMemoryBytes, nil)
	shared := lance.Options{
		IndexBudget: indexBudget, IndexCache: index.NewCache(lance.IndexCacheBytes, indexBudget), Segments: lance.NewSegmentCache(0),
		Table: storage.TableOptions{Cache: cache},
	}
	var catalogs []source.Catalog
	fail := func(err error) (*engine.Engine, error) {
		for _, open := range catalogs {
			err = errors.Join(err, open.Close())
		}
		return nil, err
	}
	for _, cc := range c.Catalogs {
		cat, err := openCatalog(ctx, cc, shared)
		if err != nil {
			return fail(fmt.Errorf("catalog %s: %w", cc.Name, err))
		}
		catalogs = append(catalogs, cat)
	}
	e, err := engine.Open(ctx, engine.Config{
		Upkeep: c.maintain, Catalogs: catalogs, MemoryLimitBytes: int64(c.MemoryLimit), QueryMemoryLimitBytes: int64(c.QueryMemoryLimit), Workers: c.Workers,
	})
	if err != nil {
		return fail(err)
	}
	return e, nil
}

func openCatalog(ctx context.Context, c catalogConfig, shared lance.Options) (source.Catalog, error) {
	store, err := openStore(ctx, c.URI)
	if err != nil {
		return nil, err
	}
	switch c.Kind {
	case "", "lance":
		shared.Remote, shared.ReadOnly = isRemote(c.URI), c.ReadOnly
		return lance.Open(c.Name, store, shared), nil
	case "parquet":
		return parquet.Open(c.Name, store), nil
	}
	return nil, errors.Join(errs.New(errs.ErrInvalid, "kind %q is neither lance nor parquet", c.Kind), store.Close())
}

func isRemote(uri string) bool {
	scheme, _, ok := strings.Cut(uri, "://")
	return ok && scheme != "file"
}

func openStore(ctx context.Context, uri string) (object.Store, error) {
	if isRemote(uri) {
		return cloudStore(ctx, uri)
	}
	if info, err := os.Stat(strings.TrimPrefix(uri, "file://")); err != nil {
		return nil, errs.New(errs.ErrNotFound, "folder %s: %w", uri, err)
	} else if !info.IsDir() {
		return nil, errs.New(errs.ErrInvalid, "%s is a file, not a folder of datasets", uri)
	}
	return object.OpenURL(ctx, uri)
}

func (c config) serverOptions() server.Options {
	o := server.Options{Listen: c.Listen, MaxConnections: c.MaxConnections, MaxAllowedPacket: int(c.MaxAllowedPacket)}
	for _, u := range c.Users {
		o.Users = append(o.Users, server.User{Name: u.Name, Host: u.Host, Password: u.Password})
	}
	return o
}
