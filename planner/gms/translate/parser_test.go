package translate

import (
	"context"
	"errors"
	"strings"
	"testing"

	ast "github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner/dialect"
)

func parse(t *testing.T, text string) ast.Statement {
	t.Helper()
	stmt, _, _, err := NewParser(dialect.Limits{}, never).ParseWithOptions(context.Background(), text, ';', false, ast.ParserOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return stmt
}

func TestDecimalsBesideColumnsKeepTheirDigits(t *testing.T) {
	protected := 0
	_ = ast.Walk(func(n ast.SQLNode) (bool, error) {
		if e, ok := n.(ast.InjectedExpr); ok {
			if num, ok := e.Expression.(*number); ok && num.text == "0.005" {
				protected++
			}
		}
		if c, ok := n.(*ast.ComparisonExpr); ok {
			if e, ok := c.Right.(ast.InjectedExpr); ok {
				if num, ok := e.Expression.(*number); ok && num.text == "0.005" {
					protected++
				}
			}
		}
		return true, nil
	}, parse(t, "SELECT * FROM t WHERE a < 0.005 AND b < 5e-3"))
	if protected == 0 {
		t.Error("the literal is not protected")
	}
}

func TestAggregatesOfSubqueriesAreTagged(t *testing.T) {
	for _, c := range []struct {
		name, text string
		tagged     bool
	}{
		{"the same text in a HAVING subquery", "SELECT a FROM t GROUP BY a HAVING SUM(x) > (SELECT SUM(x) FROM u)", true},
		{"another text", "SELECT a FROM t GROUP BY a HAVING SUM(x) > (SELECT SUM(y) FROM u)", false},
		{"no subquery", "SELECT SUM(x), SUM(x) FROM t ORDER BY SUM(x)", false},
		{"two levels down", "SELECT MAX(x) FROM t WHERE a IN (SELECT a FROM u WHERE b > (SELECT MAX(x) FROM v))", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := false
			_ = ast.Walk(func(n ast.SQLNode) (bool, error) {
				if f, ok := n.(*ast.FuncExpr); ok && len(f.Exprs) > 0 {
					if a, ok := f.Exprs[0].(*ast.AliasedExpr); ok && isTagged(a.Expr) {
						found = true
					}
				}
				return true, nil
			}, parse(t, c.text))
			if found != c.tagged {
				t.Errorf("tagged %v, want %v", found, c.tagged)
			}
		})
	}
}

func TestMultiStatementsKeepTheirRest(t *testing.T) {
	p := NewParser(dialect.Limits{}, never)
	stmt, text, rest, err := p.ParseWithOptions(context.Background(), "SELECT ['a;b']; SELECT 2; ", ';', true, ast.ParserOptions{})
	if err != nil || text != "SELECT ['a;b']" || strings.TrimSpace(rest) != "SELECT 2" || stmt == nil {
		t.Errorf("%q %q %v", text, rest, err)
	}
	if _, at, err := p.ParseOneWithOptions(context.Background(), "SELECT [1]; SELECT 2", ast.ParserOptions{}); err != nil || at != len("SELECT [1];") {
		t.Errorf("%d %v", at, err)
	}
}

func TestOwnStatementsAreNotParsed(t *testing.T) {
	if _, err := NewParser(dialect.Limits{}, never).ParseSimple("OPTIMIZE TABLE t"); !errors.Is(err, errs.ErrUnsupported) {
		t.Errorf("got %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"SELECT ['a'], 'x' MEMBER OF(l) FROM t WHERE a < 0.5", "SELECT COUNT(CASE WHEN a='A' THEN 1 END) FROM t HAVING COUNT(*) > (SELECT COUNT(*) FROM u)", "EXPLAIN SELECT 1; SELECT 2", "SELECT /*!*/ 1"} {
		f.Add(s)
	}
	p := NewParser(dialect.Limits{BytesMax: 1 << 16}, never)
	f.Fuzz(func(_ *testing.T, text string) {
		_, _, _, _ = p.ParseWithOptions(context.Background(), text, ';', true, ast.ParserOptions{})
	})
}

func TestCollationsOverInformationSchemaAreConverted(t *testing.T) {
	for _, c := range []struct {
		name, text string
		converted  bool
	}{
		{"a column of the schema", "SELECT table_name COLLATE utf8mb4_0900_bin FROM INFORMATION_SCHEMA.tables", true},
		{"a parameter", "SELECT 1 FROM information_schema.tables WHERE ? COLLATE utf8mb4_bin = table_name", false},
		{"its own character set", "SELECT table_name COLLATE utf8mb3_bin FROM information_schema.tables", false},
		{"a table of a lake", "SELECT name COLLATE utf8mb4_bin FROM t", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := strings.Contains(ast.String(parse(t, c.text)), "using utf8mb4"); got != c.converted {
				t.Errorf("converted is %v: %s", got, ast.String(parse(t, c.text)))
			}
		})
	}
}

func never() bool { return false }
