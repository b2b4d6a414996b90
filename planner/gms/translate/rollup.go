package translate

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/dolthub/go-mysql-server/sql"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/planner/dialect"
	"github.com/lakesql/lakesql/planner/gms/mysqlerr"
	"github.com/lakesql/lakesql/planner/gms/provider"
	"github.com/lakesql/lakesql/planner/logical"
)

// Names under which a relation remembers what WITH ROLLUP made; no expression has such a text.
const (
	rollupLevel = "\x00level" // how many keys a row is grouped by
	rollupKey   = "\x00key"   // the keys, in order
)

// withoutRollup takes the marker of WITH ROLLUP out of the keys.
func withoutRollup(keys []sql.Expression) ([]sql.Expression, bool) {
	var out []sql.Expression
	for _, k := range keys {
		if f, ok := k.(*provider.Func); !ok || f.FunctionName() != dialect.Rollup {
			out = append(out, k)
		}
	}
	return out, len(out) < len(keys)
}

// rollup adds the rows of fewer keys, each behind the rows that it sums up, as MySQL shows them.
func (t *translator) rollup(g *grouping, out []output) (*relation, error) {
	level := logical.Column{ID: t.ids.Next(), Name: "level", Type: arrow.PrimitiveTypes.Int64}
	g.agg.Rollup = &level
	keys := append(g.keys, groupKey{text: rollupLevel, col: level})
	var order []logical.SortKey
	for i, k := range g.agg.Keys {
		keys = append(keys, groupKey{text: rollupKey, col: k.Column})
		sumsUp, err := isRolledUp(level, i)
		if err != nil {
			return nil, err
		}
		order = append(order, logical.SortKey{Expr: sumsUp}, logical.SortKey{Expr: k.Ref()})
	}
	return &relation{node: &logical.Sort{Input: g.agg, Keys: order}, out: out, keys: keys}, nil
}

// isRolledUp says that a row of a level is not grouped by key i.
func isRolledUp(level logical.Column, i int) (expr.Expr, error) {
	at, err := expr.NewLiteral(int64(i))
	if err != nil {
		return nil, err
	}
	return expr.NewCall("<=", level.Ref(), at)
}

// grouping is GROUPING(a, b, ...): a bit for each argument, the last the lowest, set where a row of WITH ROLLUP is not grouped by it.
func (sc *scope) grouping(args []sql.Expression) (expr.Expr, error) {
	var level *logical.Column
	var keys []logical.ColumnID
	for s := sc; s != nil && level == nil; s = s.parent {
		if s.rel == nil {
			continue
		}
		for i, k := range s.rel.keys {
			switch k.text {
			case rollupLevel:
				level = &s.rel.keys[i].col
			case rollupKey:
				keys = append(keys, k.col.ID)
			}
		}
	}
	if level == nil {
		return nil, mysqlerr.GroupFunctionNotAllowed()
	}
	var out expr.Expr
	for n, a := range args {
		e, err := sc.expr(a)
		if err != nil {
			return nil, err
		}
		ref, ok := e.(*expr.Column)
		at := -1
		for i, id := range keys {
			if ok && ref.ID == id {
				at = i
			}
		}
		if at < 0 {
			return nil, mysqlerr.GroupingArgument(n)
		}
		bit, err := groupingBit(*level, at, int64(1)<<(len(args)-1-n))
		if err != nil {
			return nil, err
		}
		if out == nil {
			out = bit
		} else if out, err = expr.NewCall("+", out, bit); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func groupingBit(level logical.Column, key int, value int64) (expr.Expr, error) {
	cond, err := isRolledUp(level, key)
	if err != nil {
		return nil, err
	}
	yes, err := expr.NewLiteral(value)
	if err != nil {
		return nil, err
	}
	no, err := expr.NewLiteral(int64(0))
	if err != nil {
		return nil, err
	}
	return expr.NewCall("case", cond, yes, no)
}

func isGrouping(name string) bool { return strings.EqualFold(name, dialect.Grouping) }
