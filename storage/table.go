package storage

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/object"
)

// TableOptions tunes OpenTable. The zero value is the default.
type TableOptions struct {
	Cache           *Cache           // shared by tables; nil = one of its own
	ReadParallelism int              // fragments that one call reads at the same time; 0 = 4 x GOMAXPROCS
	File            file.Options     // of opened data files
	Now             func() time.Time // nil = time.Now
}

func (o TableOptions) withDefaults() TableOptions {
	if o.Cache == nil {
		o.Cache = NewCache(CacheOptions{})
	}
	if o.ReadParallelism <= 0 {
		o.ReadParallelism = 4 * runtime.GOMAXPROCS(0)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Table is a dataset folder, the only mutable name. It is safe for concurrent use.
type Table struct {
	store object.Store
	dir   string
	opts  TableOptions

	// Of a branch: the table that it belongs to, and its name.
	root   *Table
	branch string

	mu       sync.Mutex
	last     *Snapshot // what the last lookup found
	lastSeen folderState
	times    map[string]time.Time // commit times by manifest path and identity, for AS OF TIMESTAMP
	branches map[string]*Table
}

// folderState says when _versions was listed and what its own time was.
type folderState struct {
	listed, modTime time.Time
}

// settleTime is how long a folder's time must lie back before "unchanged" can be believed: file systems tick in up to two seconds.
const settleTime = 2 * time.Second

// OpenTable opens the dataset in folder dir ("" = the root) of a store. Errors: ErrNotFound where there is no folder or
// no version in it, ErrInvalid where dir is a file, and what Latest returns.
func OpenTable(ctx context.Context, store object.Store, dir string, opts TableOptions) (*Table, error) {
	t := &Table{store: store, dir: dir, opts: opts.withDefaults(), times: make(map[string]time.Time), branches: make(map[string]*Table)}
	if dir != "" {
		e, err := store.Stat(ctx, dir)
		if err == nil && !e.IsDir {
			return nil, errs.New(errs.ErrInvalid, "%s is a file, not the folder of a Lance dataset", t.Path())
		}
		if errors.Is(err, errs.ErrNotFound) {
			return nil, errs.New(errs.ErrNotFound, "%s does not exist", t.Path())
		}
		if err != nil {
			return nil, err
		}
	}
	if _, err := t.Latest(ctx); err != nil {
		return nil, err
	}
	return t, nil
}

// Path names the dataset for people and cache keys.
func (t *Table) Path() string { return object.Join(t.store.URL(), t.dir) }

// Store is the store that holds the dataset.
func (t *Table) Store() object.Store { return t.store }

// Dir is the dataset's folder in its store.
func (t *Table) Dir() string { return t.dir }

// Cache is the cache that the table uses.
func (t *Table) Cache() *Cache { return t.opts.Cache }

// Latest returns the newest version. It costs one look at the folder's time, or one listing where that cannot be trusted.
// Errors: ErrNotFound, ErrCorrupt (a half-written version is one), ErrUnsupported for features and types that
// lakesql does not know, ErrIO.
func (t *Table) Latest(ctx context.Context) (*Snapshot, error) {
	folder := object.Join(t.dir, manifest.VersionsDir)
	var state folderState
	if _, isPager := t.store.(object.Pager); isPager {
		// Folders of object stores have no time, and one page of the listing is as cheap as asking for it.
	} else if e, err := t.store.Stat(ctx, folder); err == nil {
		state.modTime = e.ModTime
	} else if !errors.Is(err, errs.ErrNotFound) {
		return nil, err
	}
	t.mu.Lock()
	last, seen := t.last, t.lastSeen
	t.mu.Unlock()
	if last != nil && !state.modTime.IsZero() && state.modTime.Equal(seen.modTime) && seen.listed.Sub(seen.modTime) > settleTime {
		return last, nil
	}
	state.listed = t.opts.Now() // before listing: what comes later is not in the list
	s, err := t.findLatest(ctx)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last, t.lastSeen = s, state
	return s, nil
}

// findLatest lists and opens; a version that vanishes in between was cleaned up after newer ones came, so it looks again.
func (t *Table) findLatest(ctx context.Context) (*Snapshot, error) {
	const attempts = 3
	for n := 1; ; n++ {
		f, err := manifest.Latest(ctx, t.store, t.dir)
		if errors.Is(err, errs.ErrNotFound) {
			return nil, errs.New(errs.ErrNotFound, "%s has no versions: it is no Lance dataset", t.Path())
		}
		if err != nil {
			return nil, err
		}
		s, err := t.open(ctx, f)
		if err == nil || !errors.Is(err, errs.ErrNotFound) || n == attempts {
			return s, err
		}
	}
}

// identOf tells a manifest from another one of the same name.
func identOf(f manifest.File) string {
	return fmt.Sprintf("%d-%d", f.Entry.SizeBytes, f.Entry.ModTime.UnixNano())
}

// open returns the snapshot of a manifest file, from the cache where it is there.
func (t *Table) open(ctx context.Context, f manifest.File) (*Snapshot, error) {
	key := cacheKey{store: t.store, kind: kindSnapshot, path: f.Path, ident: identOf(f)}
	return cached(ctx, t.opts.Cache, key, func(ctx context.Context) (*Snapshot, int64, error) {
		m, err := manifest.ReadFile(ctx, t.store, f)
		if err != nil {
			return nil, 0, err
		}
		s, err := newSnapshot(ctx, t, f, m)
		return s, 4*m.SizeBytes + 4096, err // decoded messages take a few times their bytes
	})
}

// Ref names a version. The zero value is the latest one of the main history. Version, Tag and Time exclude each other; a Branch goes with
// Version, Time or neither; a tag knows its own branch.
type Ref struct {
	Version uint64
	Tag     string
	Time    time.Time // the latest version committed at or before this time
	Branch  string
}

// Validate refuses references that say two things. Errors: ErrInvalid.
func (r Ref) Validate() error {
	n := 0
	for _, is := range []bool{r.Version != 0, r.Tag != "", !r.Time.IsZero()} {
		if is {
			n++
		}
	}
	if n > 1 || (r.Tag != "" && r.Branch != "") {
		return errs.New(errs.ErrInvalid, "a version is named by its number, a tag or a time, not by two of them")
	}
	return nil
}

// At returns the version that r names. Errors: ErrInvalid, ErrNotFound for a version, tag, branch or time that
// is not there, and what Latest returns.
func (t *Table) At(ctx context.Context, r Ref) (*Snapshot, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	if r.Tag != "" {
		tag, err := manifest.ReadTag(ctx, t.store, t.main().dir, r.Tag)
		if errors.Is(err, errs.ErrNotFound) || errors.Is(err, errs.ErrInvalid) {
			return nil, errs.New(errs.ErrNotFound, "%s has no tag %q", t.Path(), r.Tag)
		}
		if err != nil {
			return nil, err
		}
		b, err := t.Branch(ctx, tag.Branch)
		if err != nil {
			return nil, err
		}
		return b.At(ctx, Ref{Version: tag.Version})
	}
	if r.Branch != "" {
		b, err := t.Branch(ctx, r.Branch)
		if err != nil {
			return nil, err
		}
		r.Branch = ""
		return b.At(ctx, r)
	}
	switch {
	case r.Version != 0:
		f, err := manifest.Find(ctx, t.store, t.dir, r.Version)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.Path(), err)
		}
		return t.open(ctx, f)
	case !r.Time.IsZero():
		return t.atTime(ctx, r.Time)
	}
	return t.Latest(ctx)
}

// main is the table that a branch belongs to; the main history is its own.
func (t *Table) main() *Table {
	if t.root != nil {
		return t.root
	}
	return t
}

// Branch returns the table of a branch, which is a dataset of its own below tree/; "" and "main" are the main history. Errors: ErrNotFound, and what Latest returns.
func (t *Table) Branch(ctx context.Context, name string) (*Table, error) {
	t = t.main()
	if name == "" || name == "main" {
		return t, nil
	}
	t.mu.Lock()
	b, ok := t.branches[name]
	t.mu.Unlock()
	if ok {
		return b, nil
	}
	missing := errs.New(errs.ErrNotFound, "%s has no branch %q", t.Path(), name)
	sub, err := manifest.BranchDir(name)
	if err != nil {
		return nil, missing
	}
	b, err = OpenTable(ctx, t.store, object.Join(t.dir, sub), t.opts)
	if errors.Is(err, errs.ErrNotFound) || errors.Is(err, errs.ErrInvalid) {
		return nil, missing
	}
	if err != nil {
		return nil, err
	}
	b.root, b.branch = t, name
	t.mu.Lock()
	defer t.mu.Unlock()
	if have, ok := t.branches[name]; ok {
		return have, nil
	}
	t.branches[name] = b
	return b, nil
}

// atTime walks back from the newest version: commit times of several writers need not rise.
func (t *Table) atTime(ctx context.Context, at time.Time) (*Snapshot, error) {
	files, err := manifest.Versions(ctx, t.store, t.dir)
	if err != nil {
		return nil, err
	}
	const chunk = 16
	for end := len(files); end > 0; end -= chunk {
		part := files[max(0, end-chunk):end]
		times, err := t.commitTimes(ctx, part)
		if err != nil {
			return nil, err
		}
		for i := len(part) - 1; i >= 0; i-- {
			if !times[i].IsZero() && !times[i].After(at) {
				return t.open(ctx, part[i])
			}
		}
	}
	return nil, errs.New(errs.ErrNotFound, "%s has no version as old as %s", t.Path(), at.UTC().Format(time.RFC3339Nano))
}

// commitTimes reads when versions were committed; a version that was cleaned up meanwhile has the zero time.
func (t *Table) commitTimes(ctx context.Context, files []manifest.File) ([]time.Time, error) {
	out := make([]time.Time, len(files))
	g, ctx := spawn.WithContext(ctx, t.opts.ReadParallelism)
	for i, f := range files {
		key := f.Path + " " + identOf(f)
		t.mu.Lock()
		known, ok := t.times[key]
		t.mu.Unlock()
		if ok {
			out[i] = known
			continue
		}
		g.Go("read commit time", func() error {
			m, err := manifest.ReadFile(ctx, t.store, f)
			if errors.Is(err, errs.ErrNotFound) {
				return nil
			}
			if err != nil {
				return err
			}
			out[i] = m.Timestamp()
			t.mu.Lock()
			defer t.mu.Unlock()
			t.times[key] = out[i]
			return nil
		})
	}
	return out, g.Wait()
}

// VersionInfo is one entry of a table's history.
type VersionInfo struct {
	Version   uint64
	Timestamp time.Time
	Tags      []string // of this history
}

// Versions lists the versions that are still there, oldest first.
func (t *Table) Versions(ctx context.Context) ([]VersionInfo, error) {
	files, err := manifest.Versions(ctx, t.store, t.dir)
	if err != nil {
		return nil, err
	}
	times, err := t.commitTimes(ctx, files)
	if err != nil {
		return nil, err
	}
	tags, err := t.Tags(ctx)
	if err != nil {
		return nil, err
	}
	byVersion := make(map[uint64][]string)
	for _, tag := range tags {
		if tag.Branch == t.branch {
			byVersion[tag.Version] = append(byVersion[tag.Version], tag.Name)
		}
	}
	out := make([]VersionInfo, len(files))
	for i, f := range files {
		out[i] = VersionInfo{Version: f.Version, Timestamp: times[i], Tags: byVersion[f.Version]}
	}
	return out, nil
}

// Tags lists the tags by name, those of branches included.
func (t *Table) Tags(ctx context.Context) ([]manifest.Tag, error) {
	return manifest.Tags(ctx, t.store, t.main().dir)
}

// Branches lists the branches by name.
func (t *Table) Branches(ctx context.Context) ([]manifest.Branch, error) {
	return manifest.Branches(ctx, t.store, t.main().dir)
}
