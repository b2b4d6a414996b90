package crash

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/test/lakes"
	"github.com/lakesql/lakesql/write"
)

// Base makes the lake that every statement starts from: several fragments, deleted rows, rows that indices do not cover, a tag and a branch.
var Base = []string{
	"CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, n BIGINT, name VARCHAR(20) DEFAULT 'none', labels LIST<VARCHAR>, v VECTOR(2)) WITH (rows_per_fragment = 4)",
	`INSERT INTO t VALUES (1, 10, 'a', ['x'], '[1,0]'), (2, 20, 'b', ['x','y'], '[0,1]'), (3, 30, NULL, NULL, NULL), (4, 40, 'd', [], '[1,1]'), (5, 50, 'e', ['z', NULL], '[2,1]'), (6, 60, 'f', ['y'], '[3,1]')`,
	"CREATE INDEX by_label ON t (labels) USING LABEL_LIST",
	"CREATE INDEX by_id ON t (id) USING BTREE",
	"DELETE FROM t WHERE id IN (2, 6)",
	"CALL lakesql.create_tag('t', 'first', 2)",
	"CALL lakesql.create_branch('t', 'side')",
	`INSERT INTO t VALUES (7, 70, 'g', ['x','z'], '[4,1]'), (8, 80, 'h', ['y'], '[5,1]')`,
	"CREATE TABLE u (id BIGINT NOT NULL PRIMARY KEY, n BIGINT)",
	"INSERT INTO u VALUES (1, 100), (5, 500), (9, 900)",
}

// Ask runs one statement.
func Ask(s *engine.Session, text string) ([]string, error) {
	out, _, err := lakes.AskSession(context.Background(), s, text)
	return out, err
}

// Run runs statements until one fails.
func Run(s *engine.Session, statements ...string) error {
	for _, text := range statements {
		if _, err := Ask(s, text); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	return nil
}

// filters are asked by index and by scan. Tables have the first columns of theirs, or all.
var filters = []string{"id BETWEEN 2 AND 5", "id IN (1, 8)", "array_has(labels, 'x')", "NOT array_has_any(labels, ['y','z'])", "labels IS NULL"}

// numberFilters is how many of the first filters need no labels.
const numberFilters = 2

// State is what a lake shows: tables, columns, rows, indices, tags and branches. It fails where an index and a scan disagree, and where an old version cannot be read.
func State(s *engine.Session, store object.Store) (string, error) {
	var out strings.Builder
	say := func(text string) ([]string, error) {
		lines, err := Ask(s, text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", text, err)
		}
		fmt.Fprintf(&out, "%s\n%s\n", text, strings.Join(lines, "\n"))
		return lines, nil
	}
	tables, err := say("SHOW TABLES")
	if err != nil {
		return "", err
	}
	for _, name := range tables {
		shown, err := say("SHOW CREATE TABLE " + name)
		if err != nil {
			return "", err
		}
		if _, err := say("SELECT * FROM " + name + " ORDER BY 1, 2"); err != nil {
			return "", err
		}
		if name == "u" { // no statement changes it
			continue
		}
		if err := everyVersion(s, store, name, &out); err != nil {
			return "", err
		}
		if err := sameByScan(s, name, strings.Contains(shown[0], "`labels`")); err != nil {
			return "", err
		}
	}
	_, err = say("SELECT table_name, index_name, column_name, kind FROM lakesql.indices ORDER BY 1, 2")
	return out.String(), err
}

// sameByScan asks every filter by index, where there is one, and compares with the filter's value in every row.
func sameByScan(s *engine.Session, table string, labels bool) error {
	asked := filters
	if !labels {
		asked = filters[:numberFilters]
	}
	rows, err := Ask(s, "SELECT id, "+strings.Join(asked, ", ")+" FROM "+table+" ORDER BY id")
	if err != nil {
		return err
	}
	for i, where := range asked {
		var want []string
		for _, row := range rows {
			if cells := strings.Split(row, "\t"); cells[1+i] == "1" {
				want = append(want, cells[0])
			}
		}
		got, err := Ask(s, "SELECT id FROM "+table+" WHERE "+where+" ORDER BY id")
		if err != nil || !slices.Equal(got, want) {
			return fmt.Errorf("%s where %s: %q, %w, by scan %q", table, where, got, err, want)
		}
	}
	return nil
}

// everyVersion reads the versions of a table and says what its tags and branches name.
func everyVersion(s *engine.Session, store object.Store, name string, out *strings.Builder) error {
	ctx := context.Background()
	dir := name + ".lance"
	files, err := manifest.Versions(ctx, store, dir)
	if err != nil {
		return err
	}
	for i, f := range files {
		if !everyOperation && i < len(files)-2 { // what statements touch first
			continue
		}
		if _, err := Ask(s, fmt.Sprintf("SELECT * FROM %s AS OF %d", name, f.Version)); err != nil {
			return fmt.Errorf("version %d of %s: %w", f.Version, name, err)
		}
	}
	tags, err := manifest.Tags(ctx, store, dir)
	if err != nil {
		return err
	}
	for _, tag := range tags {
		rows, err := Ask(s, "SELECT id FROM "+name+" AS OF '"+tag.Name+"' ORDER BY 1")
		if err != nil {
			return fmt.Errorf("tag %s: %w", tag.Name, err)
		}
		fmt.Fprintf(out, "tag %s of %s: version %d, rows %v\n", tag.Name, name, tag.Version, rows)
	}
	branches, err := manifest.Branches(ctx, store, dir)
	if err != nil {
		return err
	}
	for _, b := range branches {
		table, err := storage.OpenTable(ctx, store, dir, storage.TableOptions{})
		if err != nil {
			return err
		}
		snap, err := table.At(ctx, storage.Ref{Branch: b.Name})
		if err != nil {
			return fmt.Errorf("branch %s: %w", b.Name, err)
		}
		fmt.Fprintf(out, "branch %s of %s: version %d, %d rows\n", b.Name, name, snap.Version(), snap.Rows())
	}
	return nil
}

// Cleaned removes everything that nobody names and checks that nothing else is left, and nothing is missing.
func Cleaned(store object.Store, name string) error {
	ctx := context.Background()
	dir := name + ".lance"
	files, err := manifest.Versions(ctx, store, dir)
	if err != nil || len(files) == 0 {
		return err
	}
	table, err := storage.OpenTable(ctx, store, dir, storage.TableOptions{})
	if err != nil {
		return err
	}
	if _, err := write.Cleanup(ctx, table, write.CleanupOptions{OlderThan: -1, Unfinished: true}); err != nil {
		return fmt.Errorf("clean-up: %w", err)
	}
	if files, err = manifest.Versions(ctx, store, dir); err != nil {
		return err
	}
	named := map[string]bool{}
	for _, f := range files {
		m, err := manifest.ReadFile(ctx, store, f)
		if err != nil {
			return err
		}
		for _, frag := range m.Proto.GetFragments() {
			for _, d := range frag.GetFiles() {
				named["data/"+d.GetPath()] = true
			}
			if d := frag.GetDeletionFile(); d != nil {
				named[manifest.DeletionPath(frag.GetId(), d)] = true
			}
		}
		for _, i := range m.Indices {
			named[segment(i.GetUuid().GetUuid())] = true
		}
	}
	for _, sub := range []string{"data", "_deletions", "_indices", "_transactions"} {
		entries, err := store.List(ctx, object.Join(dir, sub))
		if err != nil {
			return err
		}
		for _, e := range entries {
			p := sub + "/" + e.Name
			if !named[p] {
				return fmt.Errorf("%s is named by no version and stays after clean-up", p)
			}
			delete(named, p)
		}
	}
	for p := range named {
		return fmt.Errorf("%s is named and missing", p)
	}
	return nil
}

func segment(id []byte) string {
	return fmt.Sprintf("_indices/%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
