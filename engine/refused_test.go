package engine

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/source/lance"
)

// TestFormsThatAreNotRead: data that lakesql cannot read is refused by name, never taken for NULL, and what does not need it works.
func TestFormsThatAreNotRead(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(testutil.Root(t), "testdata", "refused"))); err != nil {
		t.Fatal(err)
	}
	_, s := openLance(t, dir, lance.Options{})
	expect(t, s, "SELECT count(*) FROM legacy", "3")
	for _, text := range []string{
		"SELECT * FROM legacy", "SELECT count(*) FROM legacy WHERE id = 2", "UPDATE legacy SET s = 'q'", "INSERT INTO legacy VALUES (4, 'd')", "DELETE FROM legacy WHERE id = 1",
		"CREATE INDEX i ON legacy (id)", "ALTER TABLE legacy ADD COLUMN c INT", "ALTER TABLE legacy RENAME COLUMN s TO q", "TRUNCATE TABLE legacy", "CREATE TABLE copied AS SELECT * FROM legacy",
	} {
		refused(t, s, 1235, text)
	}
	for _, name := range []string{"blob_v20", "blob_v21", "blob_v2"} {
		for _, text := range []string{"SELECT b FROM %s", "SELECT count(*) FROM %s WHERE b IS NULL", "INSERT INTO %s (id) VALUES (9)", "UPDATE %s SET id = 7 WHERE id = 1", "CREATE TABLE copied AS SELECT * FROM %s"} {
			refused(t, s, 1235, strings.ReplaceAll(text, "%s", name))
		}
		do(t, s, "CREATE INDEX i ON "+name+" (id)", "DELETE FROM "+name+" WHERE id = 2")
		expect(t, s, "SELECT id FROM "+name+" WHERE id > 0 ORDER BY id", "1\n3")
		do(t, s, "ALTER TABLE "+name+" DROP COLUMN b")
		expect(t, s, "SELECT * FROM "+name+" ORDER BY id", "1\n3")
	}
}

// TestTablesOfVersion20: rows go and indices come; what would write data files is refused, and the remedy that the refusal names works.
func TestTablesOfVersion20(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "old.lance"), os.DirFS(filepath.Join(testutil.Root(t), "testdata", "lance", "labels_v20_churn.lance"))); err != nil {
		t.Fatal(err)
	}
	_, s := openLance(t, dir, lance.Options{})
	for _, text := range []string{
		"INSERT INTO old (id) VALUES (1)", "INSERT INTO old SELECT * FROM old", "UPDATE old SET id = id + 1", "ALTER TABLE old ADD COLUMN c INT DEFAULT 4", "OPTIMIZE TABLE old", "CALL lakesql.compact('old')",
	} {
		refused(t, s, 1235, text)
		if _, err := s.Query(context.Background(), text); err == nil || !strings.Contains(err.Error(), "CREATE TABLE ... AS SELECT") {
			t.Errorf("%s: %v names no remedy", text, err)
		}
	}
	do(t, s, "DELETE FROM old WHERE id < 50", "CREATE INDEX fresh ON old (id)", "CREATE TABLE new AS SELECT * FROM old", "INSERT INTO new SELECT * FROM old")
	once, _ := run(t, s, "SELECT count(*), min(id) FROM old WHERE id >= 0")
	twice, _ := run(t, s, "SELECT count(*) DIV 2, min(id) FROM new WHERE id >= 0")
	if once[0] != twice[0] || !strings.HasSuffix(once[0], "\t50") {
		t.Errorf("%q rows, the copy has twice %q", once, twice)
	}
}
