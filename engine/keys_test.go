package engine

import (
	"fmt"
	"strings"
	"testing"
)

// TestKeysAreFoundInWhatAStatementSees looks keys up again and again, so that what the lookups before have learned is there, while rows come, go and move:
// in versions of their own, in a transaction that the other session does not see, and in a table that took the name of another.
func TestKeysAreFoundInWhatAStatementSees(t *testing.T) {
	e, s := openWritable(t)
	other := inLake(t, e)
	do(t, s, "CREATE TABLE t (id INT NOT NULL, n INT, note VARCHAR(40))")
	var rows []string
	for i := range 3000 {
		rows = append(rows, fmt.Sprintf("(%d, %d, 'a note of some length %d')", i, i%7, i))
	}
	do(t, s, "INSERT INTO t VALUES "+strings.Join(rows, ","))
	const query = "SELECT id, n FROM t WHERE id IN (5, 2500, 3000, 7000) ORDER BY id, n"
	both := func(mine, others string) {
		t.Helper()
		for range 2 {
			expect(t, s, query, mine)
			expect(t, other, query, others)
		}
	}
	old := "5\t5\n2500\t1"
	both(old, old)
	do(t, s, "INSERT INTO t VALUES (3000, 1, 'new'), (5, 99, 'twice'), (7000, 2, 'late')")
	now := "5\t5\n5\t99\n2500\t1\n3000\t1\n7000\t2"
	both(now, now)
	do(t, s, "BEGIN", "DELETE FROM t WHERE id = 2500", "UPDATE t SET id = 2500, n = 42 WHERE id = 17")
	both(strings.Replace(now, "2500\t1", "2500\t42", 1), now)
	do(t, s, "UPDATE t SET id = 18 WHERE id = 2500")
	both(strings.Replace(now, "2500\t1\n", "", 1), now)
	do(t, s, "ROLLBACK")
	both(now, now)
	do(t, s, "DELETE FROM t WHERE id < 100")
	now = "2500\t1\n3000\t1\n7000\t2"
	both(now, now)
	do(t, s, "DROP TABLE t")
	refused(t, s, 1146, query)
	refused(t, other, 1146, query)
	do(t, s, "CREATE TABLE t (id BIGINT NOT NULL, n INT)", "INSERT INTO t VALUES (2500, 7), (2501, 8), (5, 9)")
	both("5\t9\n2500\t7", "5\t9\n2500\t7")
}
