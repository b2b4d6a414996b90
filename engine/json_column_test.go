package engine

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/source/lance"
)

// TestJSONColumnsOfOtherEngines: JSONB shows as text wherever it stands, and is written back as JSONB.
func TestJSONColumnsOfOtherEngines(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(testutil.Root(t), "testdata", "json"))); err != nil {
		t.Fatal(err)
	}
	_, s := openLance(t, dir, lance.Options{})
	const first, all = `{"a": 1, "b": [-2, 3.5, true], "n": null}`, "SELECT j FROM j ORDER BY id"
	expect(t, s, all, first+"\n\\N\n[1]\n\"x\\\"y\"")
	expect(t, s, "SELECT l FROM j ORDER BY id", `["1",null]`+"\n\\N\n"+`["{}","70000"]`+"\n"+`["\"z\"","-1","[]","1e+30"]`)
	expect(t, s, "SELECT s FROM j WHERE id = 3", `{"j":"[1]","k":3}`)
	expect(t, s, "SELECT id, json_extract(j, '$.b[1]') FROM j WHERE json_extract(j, '$.a') = 1", "1\t3.5")
	do(t, s, "INSERT INTO j VALUES (5, '{\"z\":[1,{}]}', '[\"[7]\", null]', '{\"j\":\"{}\",\"k\":9}'), (6, NULL, NULL, NULL)", "UPDATE j SET j = '[2]' WHERE id = 3", "DELETE FROM j WHERE id = 4",
		"ALTER TABLE j ADD COLUMN c TEXT DEFAULT (concat(j, '!')), RENAME COLUMN j TO q", "OPTIMIZE TABLE j")
	expect(t, s, "SELECT id, q, c FROM j ORDER BY id", "1\t"+first+"\t"+first+"!\n2\t\\N\t\\N\n3\t[2]\t[2]!\n5\t{\"z\": [1, {}]}\t{\"z\": [1, {}]}!\n6\t\\N\t\\N")
	expect(t, s, "SELECT l, s FROM j WHERE id = 5", `["[7]",null]`+"\t"+`{"j":"{}","k":9}`)
	refused(t, s, 3140, "INSERT INTO j (id, q) VALUES (7, '{bad')")
	do(t, s, "CREATE TABLE k LIKE j", "INSERT INTO k SELECT * FROM j WHERE id = 5", "ALTER TABLE j MODIFY COLUMN q TEXT", "INSERT INTO j (id, q) VALUES (7, '{bad')")
	expect(t, s, "SELECT q FROM k", `{"z": [1, {}]}`)
	expect(t, s, "SELECT q FROM j WHERE id IN (5, 7) ORDER BY id", `{"z": [1, {}]}`+"\n{bad")
}
