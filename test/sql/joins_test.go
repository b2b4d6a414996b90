package sql

import "testing"

// TestOuterJoinsOnTrue: rows without a partner stay, whatever way a condition that always holds is written.
func TestOuterJoinsOnTrue(t *testing.T) {
	cases := caseLines(`
SELECT s.id, j.x FROM sales s LEFT JOIN JSON_TABLE(s.tags, '$[*]' COLUMNS(x VARCHAR(20) PATH '$')) j ON TRUE WHERE s.id < 5 ORDER BY s.id, j.x
	1|x
	1|y
	2|\N
	3|\N
	4|x
SELECT a.id, b.id FROM sales a LEFT JOIN (SELECT id FROM sales WHERE id > 10) b ON TRUE WHERE a.id < 3 ORDER BY a.id
	1|\N
	2|\N
SELECT a.id, b.id FROM (SELECT id FROM sales WHERE id > 10) a RIGHT JOIN sales b ON true WHERE b.id < 3 ORDER BY b.id
	\N|1
	\N|2
SELECT a.id, b.id FROM sales a LEFT JOIN (SELECT id FROM sales WHERE id > 10) b ON 1 WHERE a.id < 3 ORDER BY a.id
	1|\N
	2|\N
SELECT a.id, b.id FROM sales a LEFT JOIN (SELECT id FROM sales WHERE id > 5) b ON TRUE WHERE a.id < 2 ORDER BY b.id
	1|6
	1|7
SELECT a.id, (SELECT count(*) FROM (SELECT 1 AS n) o LEFT JOIN (SELECT id FROM sales WHERE id > 10) i ON TRUE) FROM sales a WHERE a.id = 1
	1|1
`)
	cases[0].RowEngine = true // JSON_TABLE
	salesLake(t).Check(t, cases)
}
