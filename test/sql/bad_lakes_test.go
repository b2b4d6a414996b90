package sql

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner/gms/mysqlerr"
	"github.com/lakesql/lakesql/server"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/test/lakes"
)

// wireNumber is the MySQL error number that a client sees, or would see of an embedded engine's error; 0 = none.
func wireNumber(err error) int {
	if n := number(err); n != 0 || err == nil {
		return n
	}
	return mysqlerr.Convert(err).Num
}

// theFile returns the one file of a folder whose name ends so.
func theFile(dir, suffix string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err == nil && len(files) != 1 {
		err = fmt.Errorf("%d files in %s", len(files), dir)
	}
	if err != nil {
		return "", err
	}
	return files[0], nil
}

// changeManifest rewrites the newest manifest of a table with more fields at the end of its message; of a field that comes twice the last one counts.
func changeManifest(table string, fields []byte) error {
	newest, err := newestManifest(table)
	if err != nil {
		return err
	}
	b, err := os.ReadFile(newest)
	if err != nil {
		return err
	}
	footer := b[len(b)-16:]
	at := binary.LittleEndian.Uint64(footer)
	size := binary.LittleEndian.Uint32(b[at:])
	out := slices.Clone(b[:at])
	out = binary.LittleEndian.AppendUint32(out, size+uint32(len(fields)))
	out = append(append(out, b[at+4:at+4+uint64(size)]...), fields...)
	return os.WriteFile(newest, append(out, footer...), 0o600)
}

func newestManifest(table string) (string, error) {
	files, err := filepath.Glob(filepath.Join(table, "_versions", "*.manifest"))
	if err == nil && len(files) == 0 {
		err = errors.New("no manifest")
	}
	if err != nil {
		return "", err
	}
	return slices.Min(files), nil // names count down
}

// badTable is a table that something happened to.
type badTable struct {
	name string
	harm func(table string) error
	text string
	code int // 0 = there is an answer
	has  []string
	want []string
}

func badTables() []badTable {
	const all = "SELECT id, cat FROM bad ORDER BY id"
	dataFile := func(do func(path string) error) func(string) error {
		return func(table string) error {
			f, err := theFile(filepath.Join(table, "data"), ".lance")
			if err != nil {
				return err
			}
			return do(f)
		}
	}
	version := func(n uint64, cut func([]byte) []byte) func(string) error {
		return func(table string) error {
			newest, err := newestManifest(table)
			if err != nil {
				return err
			}
			b, err := os.ReadFile(newest)
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(table, "_versions", fmt.Sprintf("%020d.manifest", math.MaxUint64-n)), cut(b), 0o600)
		}
	}
	half := func(b []byte) []byte { return b[:len(b)/2] }
	unknown := append([]byte{9 << 3}, binary.AppendUvarint(nil, 1<<40)...)
	return []badTable{
		{name: "a newer feature", harm: func(table string) error { return changeManifest(table, unknown) }, text: all, code: 1235, has: []string{"bad", "1099511627776"}},
		{name: "half of a version", harm: version(99, half), text: all, code: 1815, has: []string{"bad", fmt.Sprintf("%020d.manifest", uint64(math.MaxUint64-99))}},
		{name: "a version of no bytes", harm: version(99, func([]byte) []byte { return nil }), text: all, code: 1815, has: []string{"bad", fmt.Sprintf("%020d.manifest", uint64(math.MaxUint64-99))}},
		{name: "the version before half of one", harm: version(99, half), text: "SELECT COUNT(*) FROM bad AS OF 1", code: 1815, has: []string{"bad", "half written"}},
		{name: "a version that is being written", harm: func(table string) error {
			return os.WriteFile(filepath.Join(table, "_versions", ".tmp_5.manifest"), []byte("not yet"), 0o600)
		}, text: "SELECT COUNT(*) FROM bad", want: ids(4)},
		{name: "a data file that is gone", harm: dataFile(os.Remove), text: all, code: 1815, has: []string{"bad", "data file", ".lance"}},
		{name: "a data file of no bytes", harm: dataFile(func(p string) error { return os.Truncate(p, 0) }), text: all, code: 1815, has: []string{".lance", "bytes long"}},
		{name: "half of a data file", harm: dataFile(func(p string) error {
			info, err := os.Stat(p)
			if err != nil {
				return err
			}
			return os.Truncate(p, info.Size()/2)
		}), text: all, code: 1815, has: []string{".lance", "bytes long", "the manifest says"}},
		{name: "a data file of something else", harm: dataFile(func(p string) error {
			info, err := os.Stat(p)
			if err != nil {
				return err
			}
			return os.WriteFile(p, bytes.Repeat([]byte("?"), int(info.Size())), 0o600)
		}), text: all, code: 1815, has: []string{".lance", "footer"}},
		{name: "a folder where a data file was", harm: dataFile(func(p string) error { return errors.Join(os.Remove(p), os.Mkdir(p, 0o750)) }), text: all, code: 1210, has: []string{".lance"}},
		{name: "no versions", harm: func(table string) error { return os.RemoveAll(filepath.Join(table, "_versions")) }, text: all, code: 1146, has: []string{"bad"}},
		{name: "LIMIT 0", harm: func(string) error { return nil }, text: "SELECT id FROM bad LIMIT 0"},
		{name: "LIMIT 0 of a search", harm: func(string) error { return nil }, text: "SELECT id FROM v ORDER BY l2_distance(vec, '[1,0]') LIMIT 0"},
	}
}

// TestBadLakes asks a table that something happened to, embedded and in both protocols: an error names what is wrong and where, and other tables answer as before.
func TestBadLakes(t *testing.T) {
	for _, c := range badTables() {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			bad := lakes.Table{Name: "bad", Fields: labelTable.Fields, Rows: `[{"id":1,"labels":["a"],"cat":"x"},{"id":2,"labels":[],"cat":"y"},{"id":3,"labels":null,"cat":"x"},{"id":4,"labels":["b"],"cat":null}]`}
			lakes.Build(t, dir, lakes.Bare, append(vectorTables(), labelTable, bad)...)
			if err := c.harm(filepath.Join(dir, "bad.lance")); err != nil {
				t.Fatal(err)
			}
			lake := lakes.Open(t, dir, engine.Config{}).Serve(t, server.Options{})
			for _, door := range lake.Doors() {
				got, err := door.Ask(context.Background(), c.text)
				if c.code == 0 {
					if err != nil || !slices.Equal(got, c.want) {
						t.Errorf("%s: %q %v", door.Name, got, err)
					}
					continue
				}
				if wireNumber(err) != c.code {
					t.Errorf("%s: %q, %d %v, want %d", door.Name, got, wireNumber(err), err, c.code)
					continue
				}
				for _, has := range c.has {
					if !strings.Contains(err.Error(), has) {
						t.Errorf("%s: %v does not name %s", door.Name, err, has)
					}
				}
			}
			checkAlive(t, lake)
		})
	}
}

// TestALakeThatIsNotThere: a folder that is missing, or is a file, is refused when it is opened; one that goes away is an error of each table, and the server goes on.
func TestALakeThatIsNotThere(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "no", "such", "folder")
	if _, err := object.OpenLocal(missing, object.LocalOptions{}); !errors.Is(err, errs.ErrNotFound) || !strings.Contains(err.Error(), missing) {
		t.Errorf("a missing folder: %v", err)
	}
	file := filepath.Join(t.TempDir(), "note.txt")
	if err := os.WriteFile(file, []byte("no lake"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := object.OpenLocal(file, object.LocalOptions{}); !errors.Is(err, errs.ErrInvalid) || !strings.Contains(err.Error(), file) {
		t.Errorf("a file: %v", err)
	}
	dir := filepath.Join(t.TempDir(), "lake")
	if err := os.Mkdir(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	lake := lakes.Open(t, dir, engine.Config{}).Serve(t, server.Options{})
	ask := func(text string, code int, has string, want ...string) {
		t.Helper()
		for _, door := range lake.Doors() {
			got, err := door.Ask(context.Background(), text)
			if wireNumber(err) != code || err == nil && !slices.Equal(got, want) || err != nil && !strings.Contains(err.Error(), has) {
				t.Errorf("%s: %s: %q %v", door.Name, text, got, err)
			}
		}
	}
	ask("SHOW TABLES", 0, "")
	ask("SELECT * FROM l", 1146, "l")
	lakes.Build(t, dir, lakes.Bare, labelTable)
	ask("SELECT COUNT(*) FROM l", 0, "", "7")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	ask("SELECT * FROM l", 1146, "l")
	ask("SELECT 1 + 1", 0, "", "2")
	lakes.Build(t, mkdir(t, dir), lakes.Bare, labelTable)
	ask("SELECT COUNT(*) FROM l", 0, "", "7")
}

func mkdir(t *testing.T, dir string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	return dir
}
