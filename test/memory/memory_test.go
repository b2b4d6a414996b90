package memory

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner/gms/mysqlerr"
	"github.com/lakesql/lakesql/server"
)

const (
	nearest = " ORDER BY l2_distance(v, [0.1,0,0,0,0,0,0,0.2])"
	glmOn   = "SET glm = 'on'"
	exact   = "SET ann = 'off'"
	byIndex = "SET ann = 'force'"
)

// statement is one that is held to the limit.
type statement struct {
	name     string
	settings []string
	text     string
	refused  bool  // it needs more than the limit, so that it ends in MySQL's 1041
	rows     int64 // of others
}

func statements() []statement {
	return []statement{
		{name: "a scan", text: "SELECT id, k, labels, v FROM t", rows: tableRows},
		{name: "a scan of wide rows", text: "SELECT id, wide FROM w", rows: wideRows},
		{name: "text made of every row", text: "SELECT CONCAT(k, '/', id, '/', k) FROM t WHERE id % 2 = 0", rows: tableRows / 2},
		{name: "an aggregate of few groups", text: "SELECT id % 7, COUNT(*), MAX(k) FROM t GROUP BY 1", rows: 7},
		{name: "an aggregate of as many groups as rows", text: "SELECT k, COUNT(*) FROM t GROUP BY k", refused: true},
		{name: "distinct values", text: "SELECT DISTINCT CONCAT(k, k) FROM t", refused: true},
		{name: "a count of distinct values", text: "SELECT COUNT(DISTINCT CONCAT(k, k)) FROM t", refused: true},
		{name: "a join", text: "SELECT COUNT(*) FROM (SELECT CONCAT(k, '-', k) AS x FROM t) a JOIN (SELECT CONCAT(k, '-', k) AS x FROM t) b ON a.x = b.x", refused: true},
		{name: "a sort", text: "SELECT CONCAT(k, k) AS x FROM t ORDER BY x DESC, id", refused: true},
		{name: "a top-n of many", text: "SELECT CONCAT(k, k) AS x, id FROM t ORDER BY x LIMIT 1000", rows: 1000},
		{name: "texts that a function makes long", text: "SELECT REPEAT(k, 2000) FROM t", refused: true},
		{name: "lists made of long texts", text: "SELECT make_array(REPEAT(k, 200), REPEAT(k, 300)) FROM t", refused: true},
		{name: "lists chosen by a condition", text: "SELECT CASE WHEN id % 2 = 0 THEN labels ELSE make_array(k, k) END FROM t", rows: tableRows},
		{name: "wide rows sorted", text: "SELECT id, CONCAT(wide, wide) AS x FROM w ORDER BY x", refused: true},
		{name: "labels by index", text: "SELECT COUNT(*) FROM t WHERE (array_has(labels, 'label1') OR NOT array_has(labels, 'label2')) AND NOT array_has_all(labels, ['label3','label4'])", rows: 1},
		{name: "rows by index", text: "SELECT id FROM t WHERE id >= 100 AND array_has(labels, 'label1') AND NOT id IN (7, 8, 9)", rows: -1},
		{name: "candidates by reading", text: "SELECT id FROM t WHERE k LIKE '%7%' AND array_has(labels, 'label5')", rows: -1},
		{name: "the nearest, exactly", settings: []string{exact}, text: "SELECT id FROM t" + nearest + " LIMIT 100000", rows: 100_000},
		{name: "the nearest, by index", settings: []string{byIndex, "SET nprobes = 64"}, text: "SELECT id FROM t" + nearest + " LIMIT 100000", rows: 100_000},
		{name: "the nearest of candidates", settings: []string{byIndex, "SET nprobes = 64"}, text: "SELECT id FROM t WHERE array_has(labels, 'label1')" + nearest + " LIMIT 50000", rows: 50_000},
		{name: "the nearest of half of the rows", settings: []string{exact}, text: fmt.Sprintf("SELECT id FROM t%s LIMIT %d", nearest, tableRows/2), rows: tableRows / 2},
		{name: "wide values fetched late", settings: []string{glmOn}, text: fmt.Sprintf("SELECT id, wide FROM w%s LIMIT %d", nearest, wideRows-100), rows: wideRows - 100},
		{name: "wide values read early", settings: []string{"SET glm = 'off'"}, text: fmt.Sprintf("SELECT id, wide FROM w%s LIMIT %d", nearest, wideRows-100), refused: true},
	}
}

func TestStatementsStayWithinTheirMemory(t *testing.T) {
	dir := t.TempDir()
	makeLake(t, dir)
	for _, remote := range []bool{false, true} {
		t.Run(map[bool]string{false: "mapped", true: "fetched"}[remote], func(t *testing.T) {
			e := openEngine(t, dir, remote)
			// What files and segments keep is there before anything is measured.
			for _, text := range []string{"SELECT * FROM t", "SELECT * FROM w", "SELECT COUNT(*) FROM t WHERE array_has(labels, 'label1') AND id > 5"} {
				s := e.NewSession(engine.SessionOptions{Database: "lake"})
				if _, _, err := run(context.Background(), s, text); err != nil {
					t.Fatal(err)
				}
				s.Close()
			}
			for _, c := range statements() {
				t.Run(c.name, func(t *testing.T) { checkStatement(t, e, c) })
			}
			t.Run("results on the wire", func(t *testing.T) { checkWire(t, e) })
		})
	}
}

// run runs a statement to its end; left is what it still holds after it was closed.
func run(ctx context.Context, s *engine.Session, text string) (rows, left int64, err error) {
	res, err := s.Query(ctx, text)
	if err != nil {
		return 0, 0, err
	}
	rows, err = drain(res)
	err = errors.Join(err, res.Close())
	return rows, res.Budget().Used(), err
}

func checkStatement(t *testing.T, e *engine.Engine, c statement) {
	s := e.NewSession(engine.SessionOptions{Database: "lake"})
	defer s.Close()
	for _, set := range c.settings {
		if _, _, err := run(context.Background(), s, set); err != nil {
			t.Fatal(err)
		}
	}
	var rows, left, peak int64
	var err error
	grown := growth(t, func() {
		res, failed := s.Query(context.Background(), c.text)
		if err = failed; err != nil {
			return
		}
		rows, err = drain(res)
		err = errors.Join(err, res.Close())
		left, peak = res.Budget().Used(), res.Budget().Peak()
	})
	t.Logf("%d rows, %.1f MiB counted at most, %.1f MiB resident", rows, float64(peak)/(1<<20), float64(grown)/(1<<20))
	switch {
	case c.refused && (!errors.Is(err, errs.ErrMemoryLimit) || mysqlerr.Convert(err).Num != 1041):
		t.Errorf("it is not refused: %d rows, %v", rows, err)
	case !c.refused && (err != nil || (c.rows >= 0 && rows != c.rows) || rows == 0):
		t.Errorf("%d rows, want %d: %v", rows, c.rows, err)
	case !c.refused && left != 0:
		t.Errorf("the statement left %d bytes behind", left)
	}
	if most := int64(limitBytes + limitBytes/5); grown > most {
		t.Errorf("resident memory rose by %d bytes, more than the limit of %d and a fifth", grown, int64(limitBytes))
	}
	if used := e.Budget().Used(); used != 0 {
		t.Errorf("%d bytes are still reserved", used)
	}
}

// checkWire streams results through the protocol while memory is watched.
func checkWire(t *testing.T, e *engine.Engine) {
	srv, err := server.Start(context.Background(), e, server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("mysql", "root@tcp("+srv.Addr().String()+")/lake")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(db.Close(), srv.Close()); err != nil {
			t.Error(err)
		}
	}()
	for _, text := range []string{"SELECT id, k, labels, v FROM t", "SELECT id, wide FROM w"} {
		var n int
		var err error
		grown := growth(t, func() { n, err = discard(db, text) })
		t.Logf("%s: %d rows, %.1f MiB resident", text, n, float64(grown)/(1<<20))
		if err != nil || n < wideRows {
			t.Errorf("%s: %d rows, %v", text, n, err)
		}
		if grown > limitBytes+limitBytes/5 {
			t.Errorf("%s: resident memory rose by %d bytes", text, grown)
		}
	}
	var refusal *mysql.MySQLError
	if _, err := discard(db, "SELECT k, COUNT(*) FROM t GROUP BY k"); !errors.As(err, &refusal) || refusal.Number != 1041 {
		t.Errorf("a client is told %v", err)
	}
	if used := e.Budget().Used(); used != 0 {
		t.Errorf("%d bytes are still reserved", used)
	}
}

func discard(db *sql.DB, text string) (n int, err error) {
	rows, err := db.Query(text)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	columns, err := rows.Columns()
	if err != nil {
		return 0, err
	}
	values := make([]any, len(columns))
	for i := range values {
		values[i] = new(sql.RawBytes)
	}
	for rows.Next() {
		if err := rows.Scan(values...); err != nil {
			return n, err
		}
		n++
	}
	return n, rows.Err()
}

// TestStatementsLeaveNothingBehind ends statements in every way that is no refusal.
func TestStatementsLeaveNothingBehind(t *testing.T) {
	dir := t.TempDir()
	makeLake(t, dir)
	e := openEngine(t, dir, false)
	texts := []string{
		"SELECT id, k, labels, v FROM t", "SELECT id, wide FROM w", "SELECT k FROM t LIMIT 3", "SELECT k FROM t WHERE array_has(labels, 'label1') LIMIT 3",
		"SELECT id % 1000, COUNT(*), MAX(k), COUNT(DISTINCT id % 10) FROM t GROUP BY 1", "SELECT DISTINCT id % 100 FROM t", "SELECT id FROM t ORDER BY k DESC LIMIT 10 OFFSET 5",
		"SELECT id FROM w ORDER BY no_such_column", "SELECT a.id, b.k FROM w a JOIN t b ON a.id = b.id", "SELECT a.id, b.k FROM w a LEFT JOIN t b ON a.id = b.id + 100 WHERE a.id < 1000",
		"SELECT id FROM w WHERE id IN (SELECT id FROM t WHERE array_has(labels, 'label3')) LIMIT 7", "SELECT id FROM w WHERE id NOT IN (SELECT id FROM t WHERE id > 50)",
		"SELECT id, k FROM t" + nearest + " LIMIT 50", "SELECT id, wide FROM w" + nearest + " LIMIT 50", "SELECT id FROM t WHERE array_has(labels, 'label2') AND id > 7" + nearest + ", id LIMIT 20",
		"SELECT x.id, t.k FROM (SELECT id FROM w" + nearest + " LIMIT 30) x JOIN t ON t.id = x.id ORDER BY t.k", "SELECT id % 100 FROM t UNION SELECT id + 1 FROM w", "SELECT 1", "SELECT COUNT(*) FROM t",
		"SELECT id, CASE WHEN id % 2 = 0 THEN k ELSE CONCAT(k, 'x') END, UPPER(k), array_has(labels, 'label1') FROM t WHERE k LIKE '%a%'", "SELECT k DIV 0, 1 / (id - id) FROM t LIMIT 9",
		"SELECT ROW_NUMBER() OVER (ORDER BY id) FROM w WHERE id < 100", "EXPLAIN ANALYZE SELECT id FROM t" + nearest + " LIMIT 5",
	}
	for _, settings := range [][]string{{glmOn, exact}, {"SET glm = 'off'", byIndex}} {
		s := e.NewSession(engine.SessionOptions{Database: "lake"})
		defer s.Close()
		for _, set := range settings {
			if _, _, err := run(context.Background(), s, set); err != nil {
				t.Fatal(err)
			}
		}
		for _, text := range texts {
			for _, batches := range []int{-1, 0, 1} {
				checkEnd(t, e, s, text, batches, false)
			}
			checkEnd(t, e, s, text, 1, true)
		}
	}
}

// checkEnd reads some batches of a statement (-1 = all), then closes it, or cancels it, reads on and closes it.
func checkEnd(t *testing.T, e *engine.Engine, s *engine.Session, text string, batches int, cancel bool) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	what := fmt.Sprintf("%s (%d batches, canceled: %v)", text, batches, cancel)
	res, err := s.Query(ctx, text)
	if err == nil {
		for n := 0; n != batches && err == nil; n++ {
			err = next(res)
		}
		if cancel {
			stop()
			for err == nil {
				err = next(res)
			}
			if !errors.Is(err, context.Canceled) && !errors.Is(err, io.EOF) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := res.Close(); err != nil {
			t.Errorf("%s: close: %v", what, err)
		}
		if left := res.Budget().Used(); left != 0 {
			t.Errorf("%s: %d bytes are left behind", what, left)
		}
	}
	if used := e.Budget().Used(); used != 0 {
		t.Fatalf("%s: %d bytes are still reserved", what, used)
	}
}

func next(res *engine.Result) error {
	b, err := res.Operator.Next(res.Context())
	if err == nil {
		b.Release()
	}
	return err
}
