//go:build linux

package crash

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner/gms/mysqlerr"
	"github.com/lakesql/lakesql/storage/object"
)

// writes are statements that need room, each possible in the lake of Base with wide rows.
var writes = []string{
	"INSERT INTO t (id, n) SELECT id + 100, n FROM t",
	"UPDATE t SET n = n + 1",
	"DELETE FROM t WHERE id = 1",
	"CREATE TABLE w AS SELECT * FROM wide",
	"CREATE TABLE w (id BIGINT)",
	"CREATE INDEX by_n ON t (n) USING BTREE",
	"CREATE INDEX again ON t (labels) USING LABEL_LIST",
	"CREATE VECTOR INDEX by_v ON t (v)",
	"ALTER TABLE t ADD COLUMN twice BIGINT DEFAULT (n * 2)",
	"ALTER TABLE t RENAME COLUMN n TO m",
	"TRUNCATE TABLE t",
	"OPTIMIZE TABLE t",
	"CALL lakesql.create_tag('t', 'second')",
	"CALL lakesql.create_branch('t', 'other')",
	"CALL lakesql.restore('t', 2)",
}

const wideRows = "CREATE TABLE wide AS SELECT id, REPEAT(HEX(id), 20000) AS text FROM t"

// full is a store on a disk of which so many bytes are left.
type full struct {
	folderStore
	left atomic.Int64
}

func (f *full) take(n int) error {
	if f.left.Add(-int64(n)) < 0 {
		return errs.New(errs.ErrDiskFull, "write: no space left on device")
	}
	return nil
}

func (f *full) Put(ctx context.Context, p string, b []byte, ifAbsent bool) error {
	if err := f.take(len(b)); err != nil {
		return err
	}
	return f.folderStore.Put(ctx, p, b, ifAbsent)
}

func (f *full) Create(ctx context.Context, p string) (object.Writer, error) {
	w, err := f.folderStore.Create(ctx, p)
	return &fullWriter{Writer: w, of: f}, err
}

type fullWriter struct {
	object.Writer
	of *full
}

func (w *fullWriter) Write(b []byte) (int, error) {
	if err := w.of.take(len(b)); err != nil {
		return 0, err
	}
	return w.Writer.Write(b)
}

// refusedBy runs every statement of writes, each of which must fail with the number, say why, and change nothing.
func refusedBy(t *testing.T, s *engine.Session, store object.Store, number int, has string) {
	t.Helper()
	before, err := State(s, store)
	must(t, err)
	for _, text := range writes {
		_, err := Ask(s, text)
		if my := mysqlerr.Convert(err); err == nil || my.Num != number || !strings.Contains(my.Message, has) || strings.Contains(my.Message, "not known") {
			t.Errorf("%s: %v", text, my)
		}
		if left := temporaries(t, strings.TrimPrefix(store.URL(), "file://")); len(left) > 0 {
			t.Errorf("%s leaves %q", text, left)
		}
		after, err := State(s, store)
		if err != nil || after != before {
			t.Errorf("%s changed something: %v\n%s", text, err, difference(before, after))
		}
	}
}

// temporaries lists files in the making below a folder.
func temporaries(t *testing.T, dir string) (out []string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(filepath.Base(p), object.TempPrefix) {
			out = append(out, p)
		}
		return err
	}))
	return out
}

// TestADiskThatIsFull has a store without room, and a file system without room where this process may mount one. When there is room again, everything works.
func TestADiskThatIsFull(t *testing.T) {
	t.Run("a store", func(t *testing.T) {
		dir := t.TempDir()
		store := &full{folderStore: openLocal(t, dir).(folderStore)}
		store.left.Store(1 << 40)
		inSession(t, store, func(s *engine.Session) {
			must(t, Run(s, append(Base, wideRows)...))
			for _, left := range []int64{0, 300} { // not enough for any version
				store.left.Store(left)
				refusedBy(t, s, store, 1021, "no space left")
			}
			store.left.Store(1 << 40)
			must(t, Run(s, writes[:3]...))
		})
	})
	t.Run("a file system", func(t *testing.T) {
		dir := t.TempDir()
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
			t.Logf("no file system of its own: %v", err)
			return
		}
		t.Cleanup(func() { must(t, syscall.Unmount(dir, 0)) })
		store, err := object.OpenLocal(dir, object.LocalOptions{MappingsMax: -1}) // a mapping would keep the file system busy
		must(t, err)
		defer func() { must(t, store.Close()) }()
		inSession(t, store, func(s *engine.Session) {
			must(t, Run(s, append(Base, wideRows)...))
			filler := filepath.Join(dir, "filler")
			fill(t, filler)
			refusedBy(t, s, store, 1021, "no space left")
			must(t, os.Remove(filler))
			must(t, Run(s, writes[:3]...))
		})
	})
}

// fill writes until there is no room.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	must(t, err)
	for size := 1 << 16; size > 0; size /= 2 {
		for err == nil {
			_, err = f.Write(make([]byte, size))
		}
		err = nil
	}
	_ = f.Close() // says that there is no room
}

// TestAFolderThatCannotBeWritten runs statements as a user who may only read.
func TestAFolderThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	inSession(t, openLocal(t, dir), func(s *engine.Session) { must(t, Run(s, append(Base, wideRows)...)) })
	chmod := func(mode os.FileMode) {
		must(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				err = os.Chmod(p, mode)
			}
			return err
		}))
	}
	must(t, os.Chmod(filepath.Dir(dir), 0o755)) //nolint:gosec // the other user must get there
	chmod(0o555)
	defer chmod(0o755)
	cmd, _, out := start(t, "refused", dir)
	for _, text := range writes {
		line, err := out.ReadString('\n')
		must(t, err)
		if !strings.HasPrefix(line, "1142 ") || !strings.Contains(line, "permission denied") || strings.Contains(line, "not known") {
			t.Errorf("%s: %s", text, line)
		}
	}
	must(t, cmd.Wait())
	if left := temporaries(t, dir); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
}

// runRefused runs writes as a user without rights, in a child.
func runRefused(e *engine.Engine, store object.Store) error {
	if os.Getuid() == 0 {
		if err := syscall.Setuid(65534); err != nil {
			return err
		}
	}
	s := e.NewSession(engine.SessionOptions{Database: "lake"})
	before, err := State(s, store)
	if err != nil {
		return err
	}
	for _, text := range writes {
		_, err := Ask(s, text)
		if err == nil {
			return fmt.Errorf("%s: no error", text)
		}
		my := mysqlerr.Convert(err)
		fmt.Println(my.Num, strings.ReplaceAll(my.Message, "\n", " "))
		if after, err := State(s, store); err != nil || after != before {
			return fmt.Errorf("%s changed something: %w\n%s", text, err, difference(before, after))
		}
	}
	return nil
}

// TestAFileWhereAFolderShouldBe is told by its name.
func TestAFileWhereAFolderShouldBe(t *testing.T) {
	dir := t.TempDir()
	store := openLocal(t, dir)
	inSession(t, store, func(s *engine.Session) {
		must(t, Run(s, Base...))
		must(t, os.WriteFile(filepath.Join(dir, "f.lance"), []byte("text"), 0o600))
		must(t, os.RemoveAll(filepath.Join(dir, "u.lance", "data")))
		must(t, os.WriteFile(filepath.Join(dir, "u.lance", "data"), []byte("text"), 0o600))
		for _, text := range []string{"CREATE TABLE f (id BIGINT)", "CREATE TABLE f AS SELECT * FROM t", "INSERT INTO u (id) VALUES (1)"} {
			_, err := Ask(s, text)
			if my := mysqlerr.Convert(err); err == nil || my.Num == 1146 || !strings.Contains(my.Message, "not a directory") || !strings.Contains(my.Message, ".lance") {
				t.Errorf("%s: %v", text, my)
			}
		}
		must(t, Run(s, "INSERT INTO t (id) VALUES (77)"))
	})
}
