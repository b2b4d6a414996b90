package engine

import (
	"errors"
	"strings"
	"testing"

	"github.com/lakesql/lakesql/internal/errs"
)

func TestScalarSubqueriesAreConstants(t *testing.T) {
	check(t, openLake(t, Config{}), "", []answer{
		{name: "as a query vector", text: "SELECT id FROM v ORDER BY l2_distance(vec, (SELECT vec FROM v WHERE id = 7)), id LIMIT 2", want: []string{"7", "4"}},
		{name: "as a value and a bound", text: "SELECT id, (SELECT max(amt) FROM orders) FROM v WHERE id > (SELECT min(id) FROM perms) ORDER BY id LIMIT 2", want: []string{"3\t100", "4\t100"}},
		{name: "without a row", text: "SELECT id FROM v WHERE id = (SELECT id FROM nobody)", want: nil},
		{name: "without a row, shown", text: "SELECT id, (SELECT id FROM nobody) FROM perms WHERE id = 2", want: []string{"2\t\\N"}},
		{name: "on the padded side of an outer join", text: "SELECT p.id, x.m FROM perms p LEFT JOIN (SELECT id, (SELECT 5) AS m FROM v WHERE id = 3) x ON x.id = p.id ORDER BY p.id", want: []string{"2\t\\N", "3\t5", "7\t\\N"}},
	})
	e := openLake(t, Config{})
	s := newSession(t, e)
	if err := failure(s, "SELECT id FROM v WHERE id = (SELECT id FROM perms)"); !errors.Is(err, errs.ErrManyRows) || !strings.Contains(err.Error(), ": 3 where") {
		t.Errorf("several rows: %v", err)
	}
}

func TestUserVariablesTakeSubqueries(t *testing.T) {
	check(t, openLake(t, Config{}), "SET @q = (SELECT vec FROM v WHERE cat = 'c' AND id > 1)", []answer{
		{name: "a vector", text: "SELECT id FROM v ORDER BY l2_distance(vec, @q), id LIMIT 2", want: []string{"7", "4"}},
	})
}
