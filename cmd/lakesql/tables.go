package main

import (
	"context"
	"errors"
	"strings"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/source/lance"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/write"
)

// namedTable is a table that a command works on. Close closes its store.
type namedTable struct {
	store object.Store
	dir   string // in the store
	name  string // for people
	root  string // URL of the folder, where the table was named by its place; "" = it was named in a lake
}

func (t namedTable) target() write.Target { return write.Target{Store: t.store, Dir: t.dir} }

func (t namedTable) close() error { return t.store.Close() }

// findTable opens the lake of a table, which may be there or not. It is named LAKE.TABLE after a --lake, or by its place, as /data/lake/images.lance.
func findTable(ctx context.Context, flag, text string, lakes []string) (namedTable, error) {
	if strings.Contains(text, "/") || strings.HasSuffix(text, ".lance") && len(lakes) == 0 {
		root, dir, err := splitDataset(text)
		if err != nil {
			return namedTable{}, err
		}
		store, err := openStore(ctx, root)
		return namedTable{store: store, dir: dir, name: text, root: root}, err
	}
	catalogs, err := parseCatalogs("lance", lakes)
	if err != nil {
		return namedTable{}, err
	}
	lake, name, isPair := strings.Cut(text, ".")
	if !isPair {
		lake, name = "", text
	}
	for _, c := range catalogs {
		if c.Name != lake && (lake != "" || len(catalogs) > 1) {
			continue
		}
		store, err := openStore(ctx, c.URI)
		if err != nil {
			return namedTable{}, err
		}
		t, err := tableIn(ctx, c.Name, store, name)
		if err != nil {
			err = errors.Join(err, store.Close())
		}
		return t, err
	}
	return namedTable{}, errs.New(errs.ErrInvalid, "%s %s: write LAKE.TABLE beside --lake LAKE=FOLDER, or the place of the table, as %s /data/lake/images.lance", flag, text, flag)
}

// tableIn finds a table as SQL does: by its name in any letters.
func tableIn(ctx context.Context, lake string, store object.Store, name string) (namedTable, error) {
	cat := lance.Open(lake, store, lance.Options{})
	names, err := cat.TableNames(ctx)
	if err != nil {
		return namedTable{}, err
	}
	spelled := name
	for _, n := range names {
		if n == name {
			spelled = n
			break
		}
		if strings.EqualFold(n, name) {
			spelled = n
		}
	}
	dir, err := cat.Dir(spelled)
	return namedTable{store: store, dir: dir, name: lake + "." + spelled}, err
}

// splitDataset cuts the place of a dataset into the folder's URL, with its parameters, and the name in it.
func splitDataset(where string) (root, name string, err error) {
	place, parameters := where, ""
	if isRemote(where) {
		if at := strings.IndexByte(where, '?'); at >= 0 {
			place, parameters = where[:at], where[at:]
		}
	}
	root, name, err = splitPath(place)
	return root + parameters, name, err
}
