package crash

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/server"
	"github.com/lakesql/lakesql/source"
	"github.com/lakesql/lakesql/source/lance"
	"github.com/lakesql/lakesql/storage/object"
)

// folderStore is a store with folders.
type folderStore interface {
	object.Store
	object.Folders
	object.Leftovers
}

// ownedElsewhere is a store that outlives the engines over it.
type ownedElsewhere struct{ object.Store }

// Close implements object.Store.
func (ownedElsewhere) Close() error { return nil }

// foldersElsewhere is ownedElsewhere with folders.
type foldersElsewhere struct{ folderStore }

// Close implements object.Store.
func (foldersElsewhere) Close() error { return nil }

// kept keeps engines from closing a store.
func kept(store object.Store) object.Store {
	if faulty, ok := store.(*object.Faulty); ok {
		store = faulty.WithFolders()
	}
	if f, ok := store.(folderStore); ok {
		return foldersElsewhere{f}
	}
	return ownedElsewhere{store}
}

// medium is where lakes lie: in memory, as in a store of objects, or on disk, with folders.
type medium interface {
	// clone is another lake with the same files.
	clone(t *testing.T) object.Store
}

type inMemory struct{ of *object.Memory }

func (m inMemory) clone(*testing.T) object.Store { return m.of.Clone() }

type onDisk struct{ dir string }

func (d onDisk) clone(t *testing.T) object.Store {
	t.Helper()
	to := t.TempDir()
	must(t, filepath.WalkDir(d.dir, func(p string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(d.dir, p)
		if err != nil || rel == "." {
			return err
		}
		if e.IsDir() {
			return os.Mkdir(filepath.Join(to, rel), 0o750)
		}
		return os.Link(p, filepath.Join(to, rel)) // files are replaced, never written to
	}))
	return openLocal(t, to)
}

func openLocal(t *testing.T, dir string) object.Store {
	t.Helper()
	store, err := object.OpenLocal(dir, object.LocalOptions{})
	must(t, err)
	t.Cleanup(func() { must(t, store.Close()) })
	return store
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open opens an engine that works off one thing after the other, so that operations come in the same order each time.
func open(t *testing.T, store object.Store) *engine.Engine {
	t.Helper()
	e, err := engine.Open(context.Background(), engine.Config{Workers: 1, Catalogs: []source.Catalog{lance.Open("lake", kept(store), lance.Options{})}})
	must(t, err)
	return e
}

// inSession runs use in a session of its own.
func inSession(t *testing.T, store object.Store, use func(s *engine.Session)) {
	t.Helper()
	e := open(t, store)
	s := e.NewSession(engine.SessionOptions{Database: "lake"})
	use(s)
	s.Close()
	if used := e.Budget().Used(); used != 0 {
		t.Errorf("%d bytes are still reserved", used)
	}
	must(t, e.Close())
}

// state opens an engine for State.
func state(t *testing.T, store object.Store) (out string, err error) {
	t.Helper()
	inSession(t, store, func(s *engine.Session) { out, err = State(s, store) })
	return out, err
}

// serve serves an engine and connects to it.
func serve(t *testing.T, e *engine.Engine) (*sql.DB, func()) {
	t.Helper()
	srv, err := server.Start(context.Background(), e, server.Options{})
	must(t, err)
	db, err := sql.Open("mysql", "root@tcp("+srv.Addr().String()+")/lake")
	must(t, err)
	db.SetMaxOpenConns(1)
	return db, func() { must(t, errors.Join(db.Close(), srv.Close())) }
}
