package translate

import (
	"strings"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer/analyzererrors"
	"github.com/dolthub/go-mysql-server/sql/expression"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner/gms/provider"
	"github.com/lakesql/lakesql/planner/logical"
)

// output is one column of a bound relation.
type output struct {
	id          sql.ColumnId // 0 = go-mysql-server gave none
	table, name string       // as name resolution knows it
	col         logical.Column
	// ungrouped marks a column that GROUP BY does not determine: only expressions that GROUP BY names may use it.
	ungrouped bool
	// twin marks a column whose table has another of the same name but for case.
	twin bool
}

// relation is a translated node: the plan and, by position, what go-mysql-server calls its columns. The plan may output more.
type relation struct {
	node logical.Node
	out  []output
	keys []groupKey // what GROUP BY computed, by text
}

// groupKey is an expression of GROUP BY and the column that holds it.
type groupKey struct {
	text string
	col  logical.Column
}

// translator carries one statement.
type translator struct {
	ctx       *sql.Context
	ids       *logical.IDs
	fullGroup bool // sql_mode ONLY_FULL_GROUP_BY
	depth     int  // of relations, bounded

	target    *provider.Table // whose rows the statement changes: its scan yields their addresses
	addr      *logical.Column
	targetOut []logical.Column
}

// depthMax bounds the recursion over relations and expressions.
const depthMax = 3000

// scope is where an expression finds its columns: a relation, and around a subquery the scopes of the statement outside.
type scope struct {
	t      *translator
	rel    *relation
	parent *scope
	depth  int

	// outer collects, at the border of a subquery, the columns of outer scopes that it uses.
	outer map[logical.ColumnID]logical.Column
}

func unsupported(format string, args ...any) error {
	return errs.New(errs.ErrUnsupported, format, args...)
}

// column resolves a reference: by id from the inside out, then by name.
func (sc *scope) column(gf *expression.GetField) (expr.Expr, error) {
	for _, match := range []func(*output) bool{
		func(o *output) bool { return gf.Id() != 0 && o.id == gf.Id() && sameName(o, gf) },
		func(o *output) bool {
			return gf.Table() != "" && strings.EqualFold(o.table, gf.Table()) && strings.EqualFold(o.name, gf.Name())
		},
		func(o *output) bool { return gf.Table() == "" && strings.EqualFold(o.name, gf.Name()) },
		func(o *output) bool { return o.table == "" && strings.EqualFold(o.name, gf.Name()) },
	} {
		for s := sc; s != nil; s = s.parent {
			if s.rel == nil {
				continue
			}
			for i := range s.rel.out {
				if o := &s.rel.out[i]; match(o) {
					return sc.use(s, o, gf)
				}
			}
		}
	}
	return nil, unsupported("column %s cannot be bound", gf)
}

// notGrouped is MySQL's ONLY_FULL_GROUP_BY.
func notGrouped(o *output) error { return analyzererrors.ErrValidationGroupBy.New(o.name) }

// settled makes sure that no output of a finished SELECT depends on a column that GROUP BY does not determine.
func (r *relation) settled() error {
	for i := range r.out {
		if r.out[i].ungrouped {
			return notGrouped(&r.out[i])
		}
	}
	return nil
}

// sameName asserts that an id match is no accident. Names made of expressions differ in spelling between rules and are not compared.
func sameName(o *output, gf *expression.GetField) bool {
	return strings.EqualFold(o.name, gf.Name()) || strings.ContainsAny(o.name, "( ") || strings.ContainsAny(gf.Name(), "( ")
}

// use records the reference on every border between the scope that asked and the one that answered.
func (sc *scope) use(found *scope, o *output, gf *expression.GetField) (expr.Expr, error) {
	if o.twin && gf.Name() != o.name {
		return nil, errs.New(errs.ErrInvalid, "column %s is ambiguous: table %s has columns that differ by case alone; spell it exactly", gf.Name(), o.table)
	}
	if o.ungrouped {
		return nil, notGrouped(o)
	}
	for s := sc; s != found; s = s.parent {
		if s.outer != nil {
			s.outer[o.col.ID] = o.col
		}
	}
	return o.col.Ref(), nil
}

// groupKey returns the column that holds the whole expression since GROUP BY computed it.
func (sc *scope) groupKey(e sql.Expression) (expr.Expr, bool) {
	if sc.rel == nil || len(sc.rel.keys) == 0 {
		return nil, false
	}
	text := keyText(e)
	for _, k := range sc.rel.keys {
		if k.text == text {
			return k.col.Ref(), true
		}
	}
	return nil, false
}

func keyText(e sql.Expression) string {
	if a, ok := e.(*expression.Alias); ok {
		e = a.Child
	}
	return sql.DebugString(e)
}

// exact returns the plan with exactly the relation's columns, in order: what DISTINCT, UNION and the root need.
func (r *relation) exact() logical.Node {
	have := r.node.Columns()
	same := len(have) == len(r.out)
	for i := 0; same && i < len(have); i++ {
		same = have[i].ID == r.out[i].col.ID
	}
	if same {
		return r.node
	}
	exprs := make([]logical.Named, len(r.out))
	for i, o := range r.out {
		exprs[i] = logical.Named{Column: o.col, Expr: o.col.Ref()}
	}
	return &logical.Project{Input: r.node, Exprs: exprs}
}

// distinctIDs gives every output a column of its own, where one stands twice.
func (t *translator) distinctIDs(r *relation) *relation {
	seen := make(map[logical.ColumnID]bool, len(r.out))
	exprs := make([]logical.Named, len(r.out))
	out := append([]output(nil), r.out...)
	twice := false
	for i, o := range r.out {
		col := o.col
		if seen[col.ID] {
			twice = true
			col.ID = t.ids.Next()
		}
		seen[col.ID] = true
		exprs[i] = logical.Named{Column: col, Expr: o.col.Ref()}
		out[i].col = col
	}
	if !twice {
		return r
	}
	return &relation{node: &logical.Project{Input: r.node, Exprs: exprs}, out: out}
}
