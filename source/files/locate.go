package files

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/object"
)

// File is one file to read, as it was when it was found.
type File struct {
	Store object.Store
	Path  string // in the store
	URL   string // for people and for the record: without parameters
	Entry object.Entry
}

// Stamp changes with the file's content.
func (f File) Stamp() string { return f.Entry.ModTime.UTC().Format("2006-01-02T15:04:05.000000000Z") }

// filesMax bounds how many files one import takes.
const filesMax = 1_000_000

// Finder finds files and keeps the stores of them open.
type Finder struct {
	// Open opens a store of a URL; nil = local folders alone.
	Open   func(ctx context.Context, url string) (object.Store, error)
	stores map[string]object.Store
}

// Close closes the stores; files that were found are gone.
func (f *Finder) Close() error {
	var err error
	for _, s := range f.stores {
		err = errors.Join(err, s.Close())
	}
	f.stores = nil
	return err
}

// Find returns the files that the sources name, each once, in the order of the sources and by name within one. A source is a file, a folder, or a pattern with *, ?,
// [a-z] within a name and ** for any folders; on this machine or in an object store. Errors: ErrNotFound for a source that names nothing, ErrInvalid.
func (f *Finder) Find(ctx context.Context, sources []string) ([]File, error) {
	var out []File
	seen := make(map[string]bool)
	for _, s := range sources {
		found, err := f.find(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("source %s: %w", s, err)
		}
		for _, file := range found {
			if !seen[file.URL] {
				seen[file.URL] = true
				out = append(out, file)
			}
		}
	}
	return out, nil
}

// place is a source cut into the store's root and the path below it, which may be a pattern.
type place struct {
	root string // URL or absolute folder, with parameters
	base string // URL without parameters that paths are below
	rest string
}

// splitParameters parts a URL from its parameters. A ? that no key=value follows is part of a pattern.
func splitParameters(where string) (path, parameters string) {
	if at := strings.LastIndexByte(where, '?'); at >= 0 && strings.Contains(where[at:], "=") {
		return where[:at], where[at:]
	}
	return where, ""
}

func isPattern(s string) bool { return strings.ContainsAny(s, "*?[") }

func locate(source string) (place, error) {
	scheme, rest, isURL := strings.Cut(source, "://")
	if isURL && scheme != "file" {
		rest, parameters := splitParameters(rest)
		bucket, key, _ := strings.Cut(rest, "/")
		if bucket == "" || isPattern(bucket) {
			return place{}, errs.New(errs.ErrInvalid, "a bucket must be named: %s://BUCKET/...", scheme)
		}
		return place{root: scheme + "://" + bucket + parameters, base: scheme + "://" + bucket, rest: strings.TrimPrefix(key, "/")}, nil
	}
	if isURL {
		u, err := url.PathUnescape(rest)
		if err != nil {
			return place{}, errs.New(errs.ErrInvalid, "%w", err)
		}
		source = u
	}
	slash := strings.HasSuffix(source, "/")
	abs, err := filepath.Abs(source)
	if err != nil {
		return place{}, errs.New(errs.ErrInvalid, "%w", err)
	}
	abs = filepath.ToSlash(abs)
	fixed := abs
	if at := strings.IndexAny(abs, "*?["); at >= 0 {
		fixed = abs[:at]
	}
	cut := strings.LastIndexByte(fixed, '/')
	p := place{root: abs[:max(cut, 1)], base: "file://" + strings.TrimRight(abs[:cut], "/"), rest: abs[cut+1:]}
	if slash && p.rest != "" {
		p.rest += "/"
	}
	return p, nil
}

func (f *Finder) store(ctx context.Context, root string) (object.Store, error) {
	if s, ok := f.stores[root]; ok {
		return s, nil
	}
	var s object.Store
	var err error
	if !strings.Contains(root, "://") {
		// Rows are read once and in order: mapped they would only fill memory.
		s, err = object.OpenLocal(root, object.LocalOptions{MappingsMax: -1})
	} else if f.Open != nil {
		s, err = f.Open(ctx, root)
	} else {
		err = errs.New(errs.ErrUnsupported, "%s: only files of this machine can be read here", root)
	}
	if err != nil {
		return nil, err
	}
	if f.stores == nil {
		f.stores = make(map[string]object.Store)
	}
	f.stores[root] = s
	return s, nil
}

func (f *Finder) find(ctx context.Context, source string) ([]File, error) {
	p, err := locate(source)
	if err != nil {
		return nil, err
	}
	store, err := f.store(ctx, p.root)
	if err != nil {
		return nil, err
	}
	file := func(path string, e object.Entry) File {
		return File{Store: store, Path: path, URL: p.base + "/" + path, Entry: e}
	}
	trimmed := strings.Trim(p.rest, "/")
	if !isPattern(p.rest) && p.rest == trimmed {
		e, err := store.Stat(ctx, trimmed)
		if err == nil && !e.IsDir {
			return []File{file(trimmed, e)}, nil
		}
		if err != nil && !errors.Is(err, errs.ErrNotFound) {
			return nil, err
		}
	}
	w := walk{store: store, keep: func(name string) bool { return true }}
	dir := trimmed
	if isPattern(p.rest) {
		dir = path.Dir(trimmed[:strings.IndexAny(trimmed, "*?[")] + "x")
		if dir == "." {
			dir = ""
		}
		if _, err := path.Match(strings.ReplaceAll(trimmed, "**", "*"), ""); err != nil {
			return nil, errs.New(errs.ErrInvalid, "pattern %q: %w", trimmed, err)
		}
		parts := strings.Split(trimmed, "/")
		w.keep = func(name string) bool { return matchParts(parts, strings.Split(name, "/")) }
		w.depth = len(parts)
		if slices.Contains(parts, "**") {
			w.depth = walkDepth
		}
	} else {
		w.depth = walkDepth
		w.keep = func(name string) bool { return formatOfName(name) != FormatUnknown }
	}
	if err := w.in(ctx, dir, strings.Count(dir, "/")+1); err != nil {
		return nil, err
	}
	if len(w.found) == 0 {
		return nil, errs.New(errs.ErrNotFound, "there is no such file, and no folder of .parquet, .arrow, .csv or .ndjson files")
	}
	out := make([]File, len(w.found))
	for i, e := range w.found {
		out[i] = file(e.path, e.entry)
	}
	return out, nil
}

// walkDepth bounds how deep folders nest.
const walkDepth = 32

type walk struct {
	store object.Store
	keep  func(path string) bool
	depth int
	found []foundFile
}

type foundFile struct {
	path  string
	entry object.Entry
}

// in walks a folder; hidden names and those of unfinished work (., _) are left out, as other engines do, unless a pattern asks for them.
func (w *walk) in(ctx context.Context, dir string, depth int) error {
	entries, err := w.store.List(ctx, dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := object.Join(dir, e.Name)
		switch {
		case strings.HasPrefix(e.Name, ".") || strings.HasPrefix(e.Name, "_"):
		case e.IsDir:
			if depth < w.depth {
				if err := w.in(ctx, name, depth+1); err != nil {
					return err
				}
			}
		case w.keep(name):
			if len(w.found) == filesMax {
				return errs.New(errs.ErrInvalid, "more than %d files: import them in parts", filesMax)
			}
			w.found = append(w.found, foundFile{path: name, entry: e})
		}
	}
	return nil
}

// matchParts matches a path with a pattern, part by part; ** stands for any number of parts.
func matchParts(pattern, parts []string) bool {
	for i, p := range pattern {
		if p == "**" {
			for skip := 0; skip <= len(parts)-i; skip++ {
				if matchParts(pattern[i+1:], parts[i+skip:]) {
					return true
				}
			}
			return false
		}
		if i >= len(parts) {
			return false
		}
		if ok, err := path.Match(p, parts[i]); err != nil || !ok {
			return false
		}
	}
	return len(parts) == len(pattern)
}
