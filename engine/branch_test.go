package engine

import (
	"strings"
	"testing"

	"github.com/lakesql/lakesql/source/lance"
)

// TestBranches: a branch is a table of its own, called t@branch, and every statement works on it; the main history does not change.
func TestBranches(t *testing.T) {
	dir := t.TempDir()
	_, s := openLance(t, dir, lance.Options{})
	do(t, s, "CREATE TABLE t (id BIGINT PRIMARY KEY, l LIST<VARCHAR>, n INT)", "CREATE INDEX by_l ON t (l)", "INSERT INTO t VALUES (1, ['a'], 1), (2, ['b'], 2), (3, ['a', 'b'], 3)",
		"CALL lakesql.create_branch('t', 'exp/v1.2')", "INSERT INTO `t@exp/v1.2` VALUES (4, ['a'], 4)", "UPDATE `t@exp/v1.2` SET n = n + 10 WHERE array_has(l, 'a')",
		"DELETE FROM `T@exp/v1.2` WHERE id = 2", "CALL lakesql.create_tag('t@exp/v1.2', 'there')", "REPLACE INTO `t@exp/v1.2` VALUES (4, ['z'], 44)",
		"ALTER TABLE `t@exp/v1.2` ADD COLUMN x INT DEFAULT 5", "CREATE INDEX by_n ON `t@exp/v1.2` (n)", "OPTIMIZE TABLE `t@exp/v1.2`")
	const onBranch = "SELECT id, n FROM `t@exp/v1.2` ORDER BY id"
	expect(t, s, "SELECT id, n FROM t ORDER BY id", "1\t1\n2\t2\n3\t3")
	expect(t, s, onBranch, "1\t11\n3\t13\n4\t44")
	expect(t, s, "SELECT id, x FROM `t@exp/v1.2` WHERE array_has(l, 'z')", "4\t5")
	for _, text := range []string{"SELECT id, n FROM `t@exp/v1.2` AS OF 'there' ORDER BY id", "SELECT id, n FROM t AS OF 'there' ORDER BY id"} {
		expect(t, s, text, "1\t11\n3\t13\n4\t14")
	}
	expect(t, s, "SELECT a.id FROM t a JOIN `t@exp/v1.2` b USING (id) ORDER BY a.id", "1\n3")
	do(t, s, "CALL lakesql.create_branch('t@exp/v1.2', 'sub')", "BEGIN", "INSERT INTO `t@sub` (id) VALUES (8)")
	expect(t, s, "SELECT count(*) FROM `t@sub`", "4")
	refused(t, s, 1235, "INSERT INTO t (id) VALUES (9)")
	do(t, s, "ROLLBACK", "CALL lakesql.restore('t@exp/v1.2', 'there')", "CALL lakesql.cleanup('t', 0)", "CALL lakesql.cleanup('lake.t@exp/v1.2', 0)")
	expect(t, s, onBranch, "1\t11\n3\t13\n4\t14")
	expect(t, s, "SELECT count(*) FROM `t@sub`", "3")
	if lines, _ := run(t, s, "CALL lakesql.branches('t@sub')"); len(lines) != 2 || !strings.HasPrefix(lines[0], "exp/v1.2\tmain\t3\t") || !strings.HasPrefix(lines[1], "sub\texp/v1.2\t") {
		t.Errorf("branches: %q", lines)
	}
	if lines, _ := run(t, s, "CALL lakesql.tags('t')"); len(lines) != 1 || !strings.HasPrefix(lines[0], "there\texp/v1.2\t") {
		t.Errorf("tags: %q", lines)
	}
	if lines, _ := run(t, s, "CALL lakesql.history('t')"); len(lines) != 1 || !strings.HasPrefix(lines[0], "3\t20") {
		t.Errorf("history: %q", lines)
	}
	// A branch is dropped by its procedure alone, and not while another one starts from it; a table is not renamed from under its branches.
	refused(t, s, 1051, "DROP TABLE `t@sub`")
	refused(t, s, 1210, "CREATE TABLE `t@new` (a INT)")
	refused(t, s, 1210, "RENAME TABLE t TO `u@v`")
	refused(t, s, 1235, "RENAME TABLE t TO u")
	refused(t, s, 1146, "SELECT * FROM `t@none`")
	refused(t, s, 1146, "INSERT INTO `none@sub` (id) VALUES (1)")
	refused(t, s, 1146, "SELECT * FROM `t@../t`")
	do(t, s, "CALL lakesql.delete_branch('t', 'sub')")
	refused(t, s, 1146, "SELECT * FROM `t@sub`")
	do(t, s, "CALL lakesql.create_branch('t', 'sub')")
	expect(t, s, "SELECT count(*) FROM `t@sub`", "3")
	_, r := openLance(t, dir, lance.Options{ReadOnly: true})
	expect(t, r, onBranch, "1\t11\n3\t13\n4\t14")
	refused(t, r, 1290, "DELETE FROM `t@sub`")
	if lines, _ := run(t, r, "CALL lakesql.branches('t')"); len(lines) != 2 {
		t.Errorf("branches of a read-only lake: %q", lines)
	}
}
