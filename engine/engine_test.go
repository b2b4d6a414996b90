package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/dolthub/go-mysql-server/sql"
	ast "github.com/dolthub/vitess/go/vt/sqlparser"
	"go.uber.org/goleak"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner/gms/mysqlerr"
	"github.com/lakesql/lakesql/planner/gms/translate"
	"github.com/lakesql/lakesql/source"
	"github.com/lakesql/lakesql/source/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

func newSession(t *testing.T, e *Engine) *Session {
	t.Helper()
	s := e.NewSession(SessionOptions{Database: "lake"})
	t.Cleanup(s.Close)
	return s
}

func TestErrorsHaveMySQLCodes(t *testing.T) {
	s := newSession(t, openLake(t, Config{}))
	for _, c := range []struct {
		name, text string
		code       int
	}{
		{"a syntax error", "SELEC 1", 1064},
		{"an unknown table", "SELECT * FROM nosuch", 1146},
		{"an unknown database", "SELECT * FROM nodb.t", 1049},
		{"an unknown column", "SELECT nosuch FROM v", 1054},
		{"an ambiguous column", "SELECT id FROM v JOIN perms ON TRUE", 1052},
		{"a name that differs from two by case", "SELECT NAME FROM twins", 1052},
		{"an unknown function", "SELECT nosuch(1)", 1305},
		{"an unknown variable", "SELECT @@nosuch", 1193},
		{"a bad value of a variable", "SET ann = 'maybe'", 1231},
		{"a read-only variable", "SET GLOBAL secure_file_priv = '/'", 1238},
		{"a column outside GROUP BY", "SELECT id FROM v GROUP BY cat", 1055},
		{"ORDER BY outside DISTINCT", "SELECT DISTINCT cat FROM v ORDER BY id", 1210},
		{"a number out of range", "SELECT 18446744073709551615 + 1", 1690},
		{"an integer out of range in a column", "SELECT n * 9007199254740993 FROM nums", 1690},
		{"writes", "INSERT INTO perms VALUES (1)", 1235},
		{"index statements without a writer", "CREATE INDEX i ON v (vec) USING IVF_PQ", 1235},
		{"OPTIMIZE without a writer", "OPTIMIZE TABLE v", 1235},
		{"two rows from a scalar subquery", "SELECT (SELECT id FROM perms)", 1242},
		{"a version that does not exist", "SELECT * FROM v AS OF 7", 1146},
		{"AS OF of nothing", "SELECT * FROM v AS OF 0", 1210},
		{"a standard deviation row by row", "SELECT STDDEV(INET_ATON(k)) FROM nums", 1235},
		{"sums that would be inexact are refused", "SELECT MAX(INET_ATON(k)), SUM(n) FROM nums", 1235},
		{"a NULL as the name of a member", "SELECT JSON_OBJECTAGG(k, n) FROM nums", 3158},
		{"a window function inside of another one", "SELECT SUM(RANK() OVER ()) OVER () FROM v", 3593},
		{"a window function in HAVING", "SELECT cat FROM v GROUP BY cat HAVING RANK() OVER () = 1", 3593},
		{"a window that names itself", "SELECT COUNT(*) OVER w FROM v WINDOW w AS (w ORDER BY id)", 3580},
		{"a window that partitions another one", "SELECT COUNT(*) OVER (w PARTITION BY cat) FROM v WINDOW w AS (ORDER BY id)", 3581},
		{"a window that orders an ordered one", "SELECT COUNT(*) OVER (w ORDER BY cat) FROM v WINDOW w AS (ORDER BY id)", 3583},
		{"a window over a frame", "SELECT COUNT(*) OVER (w ORDER BY cat) FROM v WINDOW w AS (ROWS CURRENT ROW)", 3582},
		{"a RANGE of two keys", "SELECT COUNT(*) OVER (ORDER BY id, cat RANGE 1 PRECEDING) FROM v", 3587},
		{"a RANGE of text", "SELECT COUNT(*) OVER (ORDER BY cat RANGE 1 PRECEDING) FROM v", 3587},
		{"an INTERVAL over numbers", "SELECT COUNT(*) OVER (ORDER BY id RANGE INTERVAL 1 DAY PRECEDING) FROM v", 3589},
		{"no buckets", "SELECT NTILE(0) OVER () FROM v", 1210},
		{"a negative offset", "SELECT LAG(id, -1) OVER () FROM v", 1210},
		{"DISTINCT in a window", "SELECT SUM(DISTINCT id) OVER () FROM v", 1235},
		{"writing files", "SELECT 1 INTO OUTFILE 'lakesql-test'", 1290},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := failure(s, c.text)
			if err == nil {
				t.Fatalf("%s: no error", c.text)
			}
			if got := mysqlerr.Convert(err); got.Num != c.code {
				t.Errorf("%s: error %d %q, want %d", c.text, got.Num, got.Message, c.code)
			}
		})
	}
	if err := failure(s, "SELECT ['a'], nosuch['x', FROM"); err == nil || !strings.Contains(err.Error(), "position") {
		t.Errorf("no position: %v", err)
	}
}

func TestSyntaxErrorPositionsAreTheUsers(t *testing.T) {
	s := newSession(t, openLake(t, Config{}))
	text := "SELECT ['a','b'], 'x' MEMBER OF(labels) FRO l"
	err := failure(s, text)
	want := fmt.Sprintf("position %d", strings.Index(text, " l")+len(" l"))
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestHeadingsAreWhatTheUserWrote(t *testing.T) {
	s := newSession(t, openLake(t, Config{}))
	_, res := run(t, s, "SELECT array_has_any(labels, ['a','b']), 'x' MEMBER OF (labels), id+1, id, COUNT(*) OVER () FROM l LIMIT 0")
	if got := strings.Join(names(res), "|"); got != "array_has_any(labels, ['a','b'])|'x' MEMBER OF (labels)|id+1|id|COUNT(*) OVER ()" {
		t.Errorf("got %s", got)
	}
}

func TestExplain(t *testing.T) {
	s := newSession(t, openLake(t, Config{}))
	const q = "SELECT cat, COUNT(*) FROM v WHERE id > 1 GROUP BY cat ORDER BY cat"
	for _, prefix := range []string{"EXPLAIN ", "EXPLAIN FORMAT=TREE ", "DESCRIBE ", "EXPLAIN FORMAT=JSON ", "EXPLAIN ANALYZE "} {
		lines, _ := run(t, s, prefix+q)
		text := strings.Join(lines, "\n")
		if !strings.Contains(text, "HashAggregate") || !strings.Contains(text, "lake.v") || strings.Contains(text, "RowEngine") || strings.Contains(text, "GroupBy") {
			t.Errorf("%s\n%s", prefix, text)
		}
		if analyzed := strings.Contains(text, "rows=3"); analyzed != (prefix == "EXPLAIN ANALYZE ") {
			t.Errorf("%s counts rows: %v\n%s", prefix, analyzed, text)
		}
		if prefix == "EXPLAIN FORMAT=JSON " && !strings.HasPrefix(text, "{") {
			t.Errorf("no JSON: %s", text)
		}
	}
	lines, _ := run(t, s, "EXPLAIN SELECT INET_ATON(cat), id FROM v WHERE cat = 'a'")
	text := strings.Join(lines, "\n")
	if !strings.HasPrefix(text, "RowEngine: reason=") || !strings.Contains(text, "Project") || !strings.Contains(text, "Scan: table=lake.v, columns=[id") {
		t.Errorf("a mixed plan shows both parts:\n%s", text)
	}
}

func TestJoinOrderDoesNotExplode(t *testing.T) {
	var tables []*memory.Table
	for i := range 15 {
		tables = append(tables, table(t, fmt.Sprintf("t%d", i), `[{"a":1},{"a":2}]`, field("a", arrow.PrimitiveTypes.Int64)))
	}
	s := newSession(t, openLake(t, Config{}, tables...))
	for n := 9; n <= 15; n++ {
		q := "SELECT COUNT(*) FROM t0"
		for i := 1; i < n; i++ {
			q += fmt.Sprintf(" JOIN t%d ON t%d.a = t%d.a", i, i, i-1)
		}
		start := time.Now()
		if got, _ := run(t, s, q); got[0] != "2" {
			t.Errorf("%d tables: %v", n, got)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%d tables took %v", n, took)
		}
	}
}

// slowTable scans until its context ends.
type slowTable struct{ *memory.Table }

func (s *slowTable) Scan(context.Context, exec.ScanRequest) (exec.TableScan, error) { return s, nil }
func (s *slowTable) Reader() exec.BatchReader                                       { return s }
func (s *slowTable) Close() error                                                   { return nil }
func (s *slowTable) Next(ctx context.Context) (arrow.RecordBatch, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

type slowCatalog struct {
	source.Catalog
	table exec.Table
}

func (c *slowCatalog) Table(context.Context, string, source.AsOf) (exec.Table, error) {
	return c.table, nil
}

func openSlow(t *testing.T) *Engine {
	t.Helper()
	slow := table(t, "slow", `[{"a":1}]`, field("a", arrow.PrimitiveTypes.Int64))
	e, err := Open(context.Background(), Config{Catalogs: []source.Catalog{&slowCatalog{memory.NewCatalog("lake", slow), &slowTable{slow}}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

func TestStatementsEndInTime(t *testing.T) {
	s := newSession(t, openSlow(t))
	for _, c := range []struct{ name, setup, text string }{
		{"by variable", "SET max_execution_time = 30", "SELECT a FROM slow"},
		{"by hint", "SET max_execution_time = 0", "SELECT /*+ MAX_EXECUTION_TIME(30) */ SUM(a) FROM slow"},
		{"by SET_VAR", "SET max_execution_time = 0", "SELECT /*+ SET_VAR(max_execution_time = 30) */ a FROM slow ORDER BY a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			run(t, s, c.setup)
			err := failure(s, c.text)
			if err == nil || mysqlerr.Convert(err).Num != 3024 {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestKillEndsAStatement(t *testing.T) {
	s := newSession(t, openSlow(t))
	run(t, s, "SET max_execution_time = 0")
	ctx, cancel := context.WithCancel(context.Background())
	res, err := s.Query(ctx, "SELECT a FROM slow")
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(20*time.Millisecond, cancel)
	_, err = res.Operator.Next(res.Context())
	if err == nil || mysqlerr.Convert(err).Num != 1317 {
		t.Errorf("got %v", err)
	}
	if err := res.Close(); err != nil {
		t.Error(err)
	}
}

func TestMemoryLimit(t *testing.T) {
	s := newSession(t, openLake(t, Config{}))
	run(t, s, "SET query_memory_limit = 1000")
	err := failure(s, "SELECT a.id, b.id, c.id FROM v a, v b, v c, v d ORDER BY a.id DESC, b.id, c.id")
	if !errors.Is(err, errs.ErrMemoryLimit) || mysqlerr.Convert(err).Num != 1041 {
		t.Errorf("got %v", err)
	}
	run(t, s, "SET query_memory_limit = 0")
	if err := failure(s, "SELECT a.id FROM v a, v b, v c ORDER BY a.id"); err != nil {
		t.Error(err)
	}
}

func TestRowEngineIsCapped(t *testing.T) {
	c := Config{}
	c.RowEngine.RowsMax = 3
	s := newSession(t, openLake(t, c))
	if err := failure(s, "SELECT INET_ATON(cat) FROM v"); !errors.Is(err, errs.ErrMemoryLimit) {
		t.Errorf("got %v", err)
	}
	if err := failure(s, "SELECT INET_ATON(cat) FROM v WHERE id < 3"); err != nil {
		t.Errorf("the plan below filters: %v", err)
	}
}

func TestVersionsArePinnedForAStatement(t *testing.T) {
	old := version(1, table(t, "t", `[{"a":1}]`, field("a", arrow.PrimitiveTypes.Int64)))
	now := version(2, table(t, "t", `[{"a":1},{"a":2}]`, field("a", arrow.PrimitiveTypes.Int64)))
	e, err := Open(context.Background(), Config{Catalogs: []source.Catalog{memory.NewCatalog("lake", old, now)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	s := newSession(t, e)
	for text, want := range map[string]string{
		"SELECT COUNT(*) FROM t": "2", "SELECT COUNT(*) FROM t AS OF 1": "1", "SELECT (SELECT COUNT(*) FROM t AS OF 1) + COUNT(*) FROM t AS OF 2": "3",
	} {
		if got, _ := run(t, s, text); got[0] != want {
			t.Errorf("%s: %v, want %s", text, got, want)
		}
	}
	if err := failure(s, "SELECT * FROM t AS OF ?", 1); !errors.Is(err, errs.ErrUnsupported) {
		t.Errorf("AS OF ?: %v", err)
	}
	if err := failure(s, "SELECT * FROM t AS OF 'tag'"); !errors.Is(err, errs.ErrUnsupported) {
		t.Errorf("a tag: %v", err)
	}
}

func TestSessions(t *testing.T) {
	e := openLake(t, Config{})
	a, b := newSession(t, e), newSession(t, e)
	run(t, a, "SET nprobes = 7")
	run(t, a, "USE lakesql")
	got, _ := run(t, a, "SELECT @@nprobes, DATABASE()")
	other, _ := run(t, b, "SELECT @@nprobes, DATABASE()")
	if got[0] != "7\tlakesql" || other[0] != "20\tlake" {
		t.Errorf("got %v and %v", got, other)
	}
	var all []string
	err := b.QueryAll(context.Background(), "SET @x = 2; SELECT @x + 1; -- done\nSELECT 'a;b'", func(r *Result) error {
		if r.HasRows() {
			all = append(all, strings.TrimSpace(readTSV(t, r)))
		}
		return nil
	})
	if err != nil || strings.Join(all, "|") != "3|a;b" {
		t.Errorf("%v %v", all, err)
	}
	if got, _ := run(t, a, "SELECT ? + 1, ?, ?, ?", 41, "x'y", nil, 0.5); got[0] != "42\tx'y\t\\N\t0.5" {
		t.Errorf("parameters: %v", got)
	}
	run(t, a, "PREPARE p FROM 'SELECT id FROM lake.v WHERE id = ?'")
	run(t, a, "SET @id = 3")
	if got, res := run(t, a, "EXECUTE p USING @id"); got[0] != "3" || !res.Vectorized {
		t.Errorf("EXECUTE: %v, vectorized %v", got, res.Vectorized)
	}
}

func TestMetadata(t *testing.T) {
	s := newSession(t, openLake(t, Config{}))
	for _, c := range []struct{ text, want string }{
		{"SHOW DATABASES", "information_schema|lake|lakesql|mysql|performance_schema|sys"},
		{"SHOW TABLES FROM lakesql", "catalogs|indices|upkeep"},
		{"SELECT database_name, kind FROM lakesql.catalogs", "lake\tmemory"},
		{"SELECT COUNT(*) FROM lakesql.indices", "0"},
		{"SHOW VARIABLES LIKE 'nprobes'", "nprobes\t20"},
		{"SELECT column_name, column_type, collation_name FROM information_schema.columns WHERE table_schema = 'lake' AND table_name = 'nums' ORDER BY ordinal_position",
			"k\tvarchar(16383)\tutf8mb4_0900_bin|n\tbigint\t\\N|d\tdecimal(15,2)\t\\N|u\tbigint unsigned\t\\N"},
		{"SHOW CREATE TABLE perms", "perms\tCREATE TABLE `perms` (\n  `id` bigint\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin"},
	} {
		got, _ := run(t, s, c.text)
		joined := strings.Join(got, "|")
		if strings.HasPrefix(c.text, "SHOW CREATE") {
			joined = strings.Join(got, "\n")
		}
		if strings.HasPrefix(c.text, "SHOW DATABASES") {
			joined = strings.ReplaceAll(joined, "lakesql|performance", "lakesql|mysql|performance") // mysql is there once users are
		}
		if joined != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.text, joined, c.want)
		}
	}
}

func TestColumnTypesOnTheWire(t *testing.T) {
	s := newSession(t, openLake(t, Config{}))
	_, res := run(t, s, "SELECT id, cat, vec, id = 1, id / 2, 1.5e0 FROM v LIMIT 0")
	var got []string
	for _, c := range res.Columns {
		got = append(got, fmt.Sprintf("%s %d %d", c.Code, c.Charset, c.Decimals))
	}
	if want := "INT64 63 0|VARCHAR 309 0|JSON 63 0|INT8 63 0|DECIMAL 63 4|FLOAT64 63 31"; strings.Join(got, "|") != want {
		t.Errorf("got %s", strings.Join(got, "|"))
	}
	if _, res = run(t, s, "SELECT * FROM nums LIMIT 0"); res.Columns[3].Flags&flagUnsigned == 0 {
		t.Errorf("u is not unsigned: %+v", res.Columns[3])
	}
}

func TestPanicsBecomeErrors(t *testing.T) {
	g := &guarded{op: panicking{}, result: &Result{request: &translate.Request{}}}
	if _, err := g.Next(context.Background()); !errors.Is(err, errs.ErrInternal) {
		t.Errorf("got %v", err)
	}
}

type panicking struct{ exec.Operator }

func (panicking) Next(context.Context) (arrow.RecordBatch, error) { panic(io.ErrUnexpectedEOF) }

func TestPrepareDescribesTheResult(t *testing.T) {
	e := openLake(t, Config{})
	s := newSession(t, e)
	ctx := sql.NewContext(context.Background(), sql.WithSession(s.Base()))
	for _, parsed := range []bool{false, true} {
		const text = "SELECT id, d < 0.104 AS small FROM nums, v WHERE id = ? AND array_has_any(make_array('a'), make_array(?))"
		var stmt ast.Statement
		if parsed {
			var err error
			if stmt, err = ast.Parse(text); err != nil {
				t.Fatal(err)
			}
		}
		cols, err := e.Prepare(ctx, text, stmt)
		if err != nil || len(cols) != 2 || cols[0].Name != "id" {
			t.Fatalf("%+v %v", cols, err)
		}
		res, err := e.Run(ctx, Call{Text: text, Bindings: map[string]ast.Expr{"v1": ast.NewIntVal([]byte("3")), "v2": ast.NewStrVal([]byte("a"))}})
		if err != nil {
			t.Fatal(err)
		}
		if got := readTSV(t, res); got != "3\t1\n3\t0\n3\t\\N\n3\t0\n" || !res.Vectorized {
			t.Errorf("got %q, vectorized %v", got, res.Vectorized)
		}
		if err := res.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := e.Prepare(ctx, "SELECT * FROM v AS OF ?", nil); !errors.Is(err, errs.ErrUnsupported) {
		t.Errorf("AS OF ?: %v", err)
	}
	if _, err := e.Prepare(ctx, "SELECT "+strings.Repeat("NOT ", 100_000)+"?", nil); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("a chain: %v", err)
	}
}

func TestInformationSchemaJoins(t *testing.T) {
	s := newSession(t, openLake(t, Config{}))
	got, _ := run(t, s, `SELECT COUNT(*) FROM information_schema.tables t JOIN information_schema.columns c ON c.table_schema = t.table_schema AND c.table_name = t.table_name
		LEFT JOIN information_schema.key_column_usage k ON k.table_name = c.table_name AND k.column_name = c.column_name WHERE t.table_schema = 'lake'`)
	if got[0] != "21" {
		t.Errorf("got %v", got)
	}
}

// FuzzQuery: any text gives rows or an error, never a bug.
func FuzzQuery(f *testing.F) {
	for _, s := range []string{
		"SELECT cat, COUNT(*) FROM v WHERE id > 1 GROUP BY cat HAVING COUNT(*) > 1 ORDER BY 2 DESC LIMIT 3", "SELECT id FROM v ORDER BY l2_distance(vec, [1,0]) LIMIT 2",
		"SELECT * FROM v a LEFT JOIN perms b USING (id)", "SELECT (SELECT SUM(amt) FROM orders WHERE vid = v.id) FROM v", "SELECT id IN (SELECT id FROM perms) FROM v UNION SELECT 1.5",
		"WITH x AS (SELECT 1 a) SELECT * FROM x", "SELECT ROW_NUMBER() OVER (ORDER BY id) FROM v", "EXPLAIN SELECT 1", "SET nprobes = 3", "SHOW TABLES", "SELECT CASE WHEN TRUE THEN 1 END + INTERVAL 1 DAY",
	} {
		f.Add(s)
	}
	e := openLake(f, Config{QueryMemoryLimitBytes: 64 << 20})
	f.Fuzz(func(t *testing.T, text string) {
		if lower := strings.ToLower(text); strings.Contains(lower, "sleep") || strings.Contains(lower, "lock") || strings.Contains(lower, "benchmark") {
			return
		}
		s := e.NewSession(SessionOptions{Database: "lake"})
		defer s.Close()
		if err := failure(s, text); errors.Is(err, errs.ErrInternal) {
			t.Fatal(err)
		}
	})
}
