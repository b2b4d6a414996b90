package dialect

import (
	"errors"
	"strings"
	"testing"

	"github.com/lakesql/lakesql/internal/errs"
)

func TestRewriteText(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"a list literal becomes a call", "SELECT array_has_any(l, ['a','b'])", "SELECT array_has_any(l, make_array('a','b'))"},
		{"lists nest", "SELECT [[1,2],[3]]", "SELECT make_array(make_array(1,2),make_array(3))"},
		{"an empty list", "SELECT array_has_any(l,[])", "SELECT array_has_any(l,make_array())"},
		{"ARRAY[...] loses its word", "SELECT ARRAY [1, 2]", "SELECT make_array(1, 2)"},
		{"a bracket in a string stays", "SELECT '[a]', \"['b']\", `c[1]`, ['x']", "SELECT '[a]', \"['b']\", `c[1]`, make_array('x')"},
		{"a bracket in a comment stays", "SELECT /* [1] */ ['x'] -- [2]\n, [3] # [4]", "SELECT /* [1] */ make_array('x') -- [2]\n, make_array(3) # [4]"},
		{"a quote doubled or escaped does not end a string", `SELECT 'it''s [1]', 'it\'s [2]', ['x']`, `SELECT 'it''s [1]', 'it\'s [2]', make_array('x')`},
		{"bytes beyond ASCII in strings", "SELECT ['é','日本','😀'] , 'ü[1]'", "SELECT make_array('é','日本','😀') , 'ü[1]'"},
		{"a subscript is left to the parser", "SELECT a[1], ['x']", "SELECT a[1], ['x']"},
		{"an unbalanced bracket is left to the parser", "SELECT ['x'", "SELECT ['x'"},
		{"a crossed bracket is left to the parser", "SELECT (['x')]", "SELECT (['x')]"},
		{"a character that nobody knows is left to the parser", "SELECT ['x'], { }", "SELECT ['x'], { }"},
		{"MEMBER OF becomes IN", "SELECT 'x' MEMBER OF(tags)", "SELECT 'x' IN (__members(tags))"},
		{"MEMBER OF of an expression", "WHERE 'x' member  of (coalesce(a, ['b']))", "WHERE 'x' IN (__members(coalesce(a, make_array('b'))))"},
		{"MEMBER alone is a name", "SELECT member, `member` OF FROM t", "SELECT member, `member` OF FROM t"},
		{"FORMAT=JSON prints through the tree form", "EXPLAIN FORMAT=JSON SELECT 1", "EXPLAIN FORMAT=TREE SELECT 1"},
		{"the word format elsewhere is a name", "SELECT format=json FROM t", "SELECT format=json FROM t"},
		{"a plain statement is untouched", "SET autocommit=1", "SET autocommit=1"},
		{"AS OF with a literal is untouched", "SELECT * FROM t AS OF 3", "SELECT * FROM t AS OF 3"},
		{"a parameter beside it is fine", "SELECT * FROM t AS OF 3 WHERE a = ?", "SELECT * FROM t AS OF 3 WHERE a = ?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			res, err := Rewrite(c.in, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if res.Text != c.want {
				t.Errorf("got  %s\nwant %s", res.Text, c.want)
			}
		})
	}
}

func TestRewriteRefuses(t *testing.T) {
	for _, c := range []struct {
		name, in string
		kind     error
	}{
		{"a million NOTs", "SELECT " + strings.Repeat("NOT ", 1_000_000) + "1", errs.ErrInvalid},
		{"a million plus signs", "SELECT 1" + strings.Repeat("+1", 1_000_000), errs.ErrInvalid},
		{"a million ORs", "SELECT * FROM t WHERE id=1" + strings.Repeat(" OR id=2", 1_000_000), errs.ErrInvalid},
		{"postfix operators", "SELECT 1" + strings.Repeat(" IS NULL", 100_000), errs.ErrInvalid},
		{"dashes are a comment and no chain", "SELECT " + strings.Repeat("-", 100_000) + "1", nil},
		{"unary minus with blanks", "SELECT " + strings.Repeat("- ", 100_000) + "1", errs.ErrInvalid},
		{"tildes", "SELECT " + strings.Repeat("~", 100_000) + "1", errs.ErrInvalid},
		{"operators hidden in a versioned comment", "SELECT /*!50000 1" + strings.Repeat("+1", 100_000) + " */", errs.ErrInvalid},
		{"operators behind a bad character", "SELECT $ 1" + strings.Repeat("+1", 100_000), errs.ErrInvalid},
		{"UNION chains", "SELECT 1" + strings.Repeat(" UNION SELECT 1", 50_000), errs.ErrInvalid},
		{"deep parentheses", "SELECT " + strings.Repeat("(", 1000) + "1" + strings.Repeat(")", 1000), errs.ErrInvalid},
		{"deep brackets", "SELECT " + strings.Repeat("[", 1000) + "1" + strings.Repeat("]", 1000), errs.ErrInvalid},
		{"AS OF with a parameter", "SELECT * FROM t AS OF ?", errs.ErrUnsupported},
		{"FOR SYSTEM_TIME AS OF with a parameter", "SELECT * FROM t FOR SYSTEM_TIME AS OF ?", errs.ErrUnsupported},
		{"OPTIMIZE of nothing", "OPTIMIZE TABLE", errs.ErrSyntax},
		{"a dangling option", "CREATE INDEX i ON t (v) USING IVF_PQ WITH (metric=", errs.ErrSyntax},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Rewrite(c.in, Limits{})
			if !errors.Is(err, c.kind) {
				t.Errorf("got %v, want %v", err, c.kind)
			}
		})
	}
}

func TestLongListsPass(t *testing.T) {
	var b strings.Builder
	b.WriteString("SELECT * FROM t WHERE array_has_any(labels, [")
	for i := range 100_000 {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("-1 + 't9999'")
	}
	b.WriteString("]) AND (a,b) IN (" + strings.TrimSuffix(strings.Repeat("(1, 2),", 50_000), ",") + ")")
	res, err := Rewrite(b.String(), Limits{})
	if err != nil || !strings.Contains(res.Text, "make_array(-1") {
		t.Fatal(err)
	}
	if _, err := Rewrite("SELECT * FROM t WHERE id=1"+strings.Repeat(" OR id=2", 10_000), Limits{}); err != nil {
		t.Fatal("ten thousand ORs: ", err)
	}
}

func TestOffsetsAndHeadingsMapBack(t *testing.T) {
	in := "SELECT ['a','b'], 'x' MEMBER OF (l) , id, ['c'] FROM t WHER"
	res, err := Rewrite(in, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := res.OriginalOffset(strings.Index(res.Text, "WHER")), strings.Index(in, "WHER"); got != want {
		t.Errorf("offset %d, want %d", got, want)
	}
	heading := res.Headings()
	for _, c := range []struct{ piece, want string }{
		{"make_array('a','b')", "['a','b']"}, {"'x' IN (__members(l))", "'x' MEMBER OF (l)"}, {"id", "id"}, {"make_array('c')", "['c']"}, {"nothing", "nothing"},
	} {
		if got := heading(c.piece); got != c.want {
			t.Errorf("%s: got %q, want %q", c.piece, got, c.want)
		}
	}
}

func TestHintsOfTheFirstSelect(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []Hint
	}{
		{"SET_VAR", "SELECT /*+ SET_VAR(nprobes = 77) */ 1", []Hint{{"nprobes", "77"}}},
		{"quoted value", "SELECT /*+ SET_VAR(ann='off') SET_VAR(glm=on) */ 1", []Hint{{"ann", "off"}, {"glm", "on"}}},
		{"two comments", "SELECT /*+ SET_VAR(a=1) */ /*+ MAX_EXECUTION_TIME(100) */ 1", []Hint{{"a", "1"}, {"max_execution_time", "100"}}},
		{"other hints are skipped", "SELECT /*+ HASH_JOIN(a,b) SET_VAR(a=1) NO_MERGE() */ 1", []Hint{{"a", "1"}}},
		{"a hint elsewhere does not count", "SELECT 1 /*+ SET_VAR(a=1) */ FROM t", nil},
		{"a hint of an inner SELECT does not count", "SELECT 1 FROM (SELECT /*+ SET_VAR(a=1) */ 1) x", nil},
		{"a comment is no hint", "SELECT /* SET_VAR(a=1) */ 1", nil},
		{"unfinished", "SELECT /*+ SET_VAR(a=1 */ 1", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			res, err := Rewrite(c.in, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if len(res.Hints) != len(c.want) {
				t.Fatalf("got %v, want %v", res.Hints, c.want)
			}
			for i := range c.want {
				if res.Hints[i] != c.want[i] {
					t.Errorf("got %v, want %v", res.Hints[i], c.want[i])
				}
			}
		})
	}
}

func TestOwnStatements(t *testing.T) {
	res, err := Rewrite("create vector index `v``1` ON lake.images(embedding) using ivf_sq with (metric = 'cosine', num_partitions=256, fast = true);", Limits{})
	if err != nil {
		t.Fatal(err)
	}
	ci, ok := res.Own.(*CreateIndex)
	if !ok || ci.Name != "v`1" || ci.Table != (TableName{"lake", "images"}) || len(ci.Columns) != 1 || ci.Columns[0] != "embedding" || ci.Kind != "IVF_SQ" ||
		ci.Options["metric"] != "cosine" || ci.Options["num_partitions"] != "256" || ci.Options["fast"] != "true" {
		t.Fatalf("got %+v", res.Own)
	}
	res, err = Rewrite("OPTIMIZE LOCAL TABLE a, b.c", Limits{})
	if err != nil {
		t.Fatal(err)
	}
	ot, ok := res.Own.(*OptimizeTable)
	if !ok || len(ot.Tables) != 2 || ot.Tables[1] != (TableName{"b", "c"}) {
		t.Fatalf("got %+v", res.Own)
	}
	for _, plain := range []string{"CREATE UNIQUE INDEX i ON t (a)", "CREATE TABLE t (a INT)", "SELECT 1", "ALTER TABLE t DROP COLUMN c", "DROP TABLE t", ""} {
		if res, err := Rewrite(plain, Limits{}); err != nil || res.Own != nil {
			t.Errorf("%s: %+v, %v", plain, res, err)
		}
	}
}

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"semicolons in strings and comments", "SELECT ';' ; /* ; */ SELECT 2 -- ;\n;;", []string{"SELECT ';'", "/* ; */ SELECT 2 -- ;"}},
		{"one statement", " SELECT 1 ", []string{"SELECT 1"}},
		{"only comments", "-- nothing\n;", nil},
		{"a stored program is kept whole", "CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END", []string{"CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Split(c.in)
			if strings.Join(got, "|") != strings.Join(c.want, "|") {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func FuzzRewrite(f *testing.F) {
	for _, s := range []string{"SELECT ['a', \"b\"], 'x' MEMBER OF(l)", "EXPLAIN FORMAT=JSON SELECT /*+ SET_VAR(a=1) */ ARRAY[1]", "/*!50000 SELECT [1] */", "CREATE INDEX i ON t(c) USING IVF_PQ WITH (a='b')",
		"select\x00[1]", "`", "'", "/*", "SELECT 1e+", "OPTIMIZE TABLE a.b", "SELECT ((([)])"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		res, err := Rewrite(s, Limits{BytesMax: 1 << 16})
		_ = Split(s)
		if err != nil {
			return
		}
		if len(res.Text) > len(s)+16*len(s) {
			t.Fatalf("%d bytes became %d", len(s), len(res.Text))
		}
		last := 0
		for i := range len(res.Text) + 1 {
			at := res.OriginalOffset(i)
			if at < last || at > len(s) {
				t.Fatalf("offset %d maps to %d, after %d, of %d", i, at, last, len(s))
			}
			last = at
		}
		heading := res.Headings()
		_ = heading(res.Text)
	})
}

func TestAlterTable(t *testing.T) {
	for _, c := range []struct{ in, text, own string }{
		{"ALTER TABLE t ADD COLUMN (a INT, b DECIMAL(4,1)), DROP c", "ALTER TABLE t ADD COLUMN a INT, ADD COLUMN b DECIMAL(4,1), DROP c", ""},
		{"ALTER TABLE x.t ADD INDEX i (a), CHANGE name b INT AFTER type, DROP KEY j, ALGORITHM=INPLACE, LOCK NONE", "ALTER TABLE x.t  CHANGE `name` b INT AFTER `type`", "+i -j"},
		{"ALTER TABLE t DROP INDEX i, ADD VECTOR INDEX v (e) USING IVF_FLAT WITH (metric = 'l2'), ADD KEY (f);", "", "x.t"},
		{"ALTER TABLE t CHANGE COLUMN `a` type LIST<VARCHAR> FIRST", "ALTER TABLE t CHANGE COLUMN `a` type JSON FIRST", ""},
	} {
		res, err := Rewrite(c.in, Limits{})
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if many, ok := res.Own.(*AlterIndexes); ok != (c.own == "x.t") || ok && (len(many.Add) != 2 || len(many.Drop) != 1 || many.Add[0].Options["metric"] != "l2") {
			t.Errorf("%s: own %+v", c.in, res.Own)
		}
		if c.text != "" && strings.TrimSpace(res.Text) != c.text {
			t.Errorf("%s\n got %q\nwant %q", c.in, res.Text, c.text)
		}
		if c.own == "+i -j" && (len(res.Table.Indexes) != 1 || res.Table.Indexes[0].Table != (TableName{"x", "t"}) || res.Table.DropIndexes[0] != "j") {
			t.Errorf("%s: %+v", c.in, res.Table)
		}
	}
	for _, bad := range []string{"ALTER TABLE t ADD INDEX i (a) nonsense", "ALTER TABLE t DROP INDEX", "ALTER TABLE t LOCK=NONE"} {
		if _, err := Rewrite(bad, Limits{}); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}
