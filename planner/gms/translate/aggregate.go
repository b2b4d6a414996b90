package translate

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/expression/function/aggregation"
	"github.com/dolthub/go-mysql-server/sql/plan"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/planner/logical"
)

// grouping is a GROUP BY while it is translated.
type grouping struct {
	agg  *logical.Aggregate
	keys []groupKey // by text, for what stands above
}

// find returns the column of a key that is the same expression.
func (g *grouping) find(e expr.Expr) (logical.Column, bool) {
	for _, k := range g.agg.Keys {
		if expr.Equal(k.Expr, e) {
			return k.Column, true
		}
	}
	return logical.Column{}, false
}

// groupBy translates GROUP BY and the aggregates above it. Columns that are neither keys nor aggregates become any_value and are marked.
func (t *translator) groupBy(n *plan.GroupBy, outer *scope) (*relation, error) {
	r, err := t.relation(n.Child, outer)
	if err != nil {
		return nil, err
	}
	sc := t.scope(r, outer)
	g := &grouping{agg: &logical.Aggregate{}}
	keys, rollup := withoutRollup(n.GroupByExprs)
	for _, k := range keys {
		if err := t.addKey(g, k, sc, len(keys), rollup); err != nil {
			return nil, err
		}
	}
	out := make([]output, 0, len(n.SelectedExprs))
	for _, e := range n.SelectedExprs {
		o, err := t.selected(e, sc, g)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	g.agg.Input = sc.rel.node
	determined(g.agg, out)
	if !rollup {
		return &relation{node: g.agg, out: out, keys: g.keys}, nil
	}
	return t.rollup(g, out)
}

func (t *translator) addKey(g *grouping, k sql.Expression, sc *scope, count int, rollup bool) error {
	e, err := sc.expr(k)
	if err != nil {
		return err
	}
	if _, constant := e.(*expr.Literal); constant && count > 1 && !rollup {
		return nil // a constant groups nothing
	}
	col, ok := g.find(e)
	if ok && rollup {
		return unsupported("WITH ROLLUP of the same key twice")
	}
	if !ok {
		if col = t.keyColumn(e, k, sc); rollup { // it is NULL where the input is not
			col.ID, col.Nullable = t.ids.Next(), true
		}
		g.agg.Keys = append(g.agg.Keys, logical.Named{Column: col, Expr: e})
	}
	g.keys = append(g.keys, groupKey{text: keyText(k), col: col})
	return nil
}

// keyColumn names the column of a key; a plain column keeps its identity.
func (t *translator) keyColumn(e expr.Expr, g sql.Expression, sc *scope) logical.Column {
	if ref, ok := e.(*expr.Column); ok && sc.isOwn(ref.ID) {
		return sc.nullability(ref, logical.Column{ID: ref.ID, Name: ref.Name, Type: ref.T, Nullable: true})
	}
	return logical.Column{ID: t.ids.Next(), Name: t.heading(g), Type: e.Type(), Nullable: nullable(e)}
}

// selected translates one output of GroupBy: an aggregate, a key, or a column that the group may or may not determine.
func (t *translator) selected(e sql.Expression, sc *scope, g *grouping) (output, error) {
	if a, ok := e.(sql.Aggregation); ok {
		call, err := t.aggregate(a, sc)
		if err != nil {
			return output{}, err
		}
		g.agg.Aggs = append(g.agg.Aggs, call)
		return output{id: a.Id(), name: call.Name, col: call.Column}, nil
	}
	v, err := sc.expr(e)
	if err != nil {
		return output{}, err
	}
	o := output{name: t.heading(e)}
	if gf, ok := e.(*expression.GetField); ok {
		o.id, o.table = gf.Id(), gf.Table()
	}
	if col, ok := g.find(v); ok {
		o.col = col
		return o, nil
	}
	o.col = logical.Column{ID: t.ids.Next(), Name: o.name, Type: v.Type(), Nullable: true}
	o.ungrouped = t.fullGroup
	g.agg.Aggs = append(g.agg.Aggs, logical.Agg{Column: o.col, Func: logical.AggAny, Args: []expr.Expr{v}})
	return o, nil
}

// determined clears the mark of columns that an equality below ties to a key or to a constant, as ONLY_FULL_GROUP_BY allows.
func determined(agg *logical.Aggregate, out []output) {
	known := make(map[int]bool)
	for _, k := range agg.Keys {
		if ref, ok := k.Expr.(*expr.Column); ok {
			known[ref.ID] = true
		}
	}
	pairs := equalities(agg.Input)
	for changed := true; changed; {
		changed = false
		for _, p := range pairs {
			if known[p[0]] != known[p[1]] || p[0] == p[1] && !known[p[0]] {
				known[p[0]], known[p[1]], changed = true, true, true
			}
		}
	}
	for i := range out {
		if !out[i].ungrouped {
			continue
		}
		for _, a := range agg.Aggs {
			if a.ID != out[i].col.ID {
				continue
			}
			all := true
			for _, id := range expr.Columns(a.Args...) {
				all = all && known[id]
			}
			out[i].ungrouped = !all
		}
	}
}

// equalities lists pairs of columns that are equal in every row, and (c, c) for columns equal to a constant.
func equalities(n logical.Node) [][2]int {
	var out [][2]int
	add := func(conds []expr.Expr) {
		for _, c := range conds {
			call, ok := c.(*expr.Call)
			if !ok || call.Func != "=" || len(call.Args) != 2 {
				continue
			}
			l, lok := call.Args[0].(*expr.Column)
			r, rok := call.Args[1].(*expr.Column)
			_, llit := call.Args[0].(*expr.Literal)
			_, rlit := call.Args[1].(*expr.Literal)
			switch {
			case lok && rok:
				out = append(out, [2]int{l.ID, r.ID})
			case lok && rlit:
				out = append(out, [2]int{l.ID, l.ID})
			case rok && llit:
				out = append(out, [2]int{r.ID, r.ID})
			}
		}
	}
	logical.Walk(n, func(n logical.Node) bool {
		switch n := n.(type) {
		case *logical.Filter:
			add(n.Conds)
		case *logical.Join:
			if n.Kind != logical.JoinInner {
				return false
			}
			add(n.On)
		case *logical.Project:
		default:
			return false
		}
		return true
	})
	return out
}

func (t *translator) aggregate(a sql.Aggregation, sc *scope) (logical.Agg, error) {
	if children, ok := concatCall(a); ok {
		return t.groupConcat(a, children, sc)
	}
	name, distinct := aggregateName(a)
	if name == "" {
		return logical.Agg{}, unsupported("aggregate %s", a)
	}
	var args []expr.Expr
	for _, arg := range a.Children() {
		if d, ok := arg.(*expression.DistinctExpression); ok {
			distinct = true
			arg = d.Child
		}
		e, err := sc.expr(arg)
		if err != nil {
			return logical.Agg{}, err
		}
		args = append(args, e)
	}
	out, err := namedAggregate(name, args)
	if err != nil {
		return out, err
	}
	out.Column = logical.Column{ID: t.ids.Next(), Name: t.heading(a), Type: out.Type, Nullable: out.Nullable}
	switch {
	case !distinct || out.Func == logical.AggMin || out.Func == logical.AggMax || out.Func == logical.AggAny:
	case out.Func == logical.AggCountStar: // of one constant
		out.Func, out.Args, out.Distinct = logical.AggCount, args, true
	default:
		out.Distinct = true
	}
	return out, nil
}

// aggregateName is an aggregate's name; "" for one that we do not have.
func aggregateName(a sql.Aggregation) (name string, distinct bool) {
	switch a := a.(type) {
	case *aggregation.CountDistinct:
		return "count", true
	case *aggregation.First, *aggregation.AnyValue:
		return "any_value", false
	case *aggregation.Count, *aggregation.Sum, *aggregation.Avg, *aggregation.Min, *aggregation.Max:
		return strings.ToLower(a.(sql.FunctionExpression).FunctionName()), false
	case *aggregation.StdDevPop:
		return "stddev_pop", false
	case *aggregation.StdDevSamp:
		return "stddev_samp", false
	case *aggregation.VarPop:
		return "var_pop", false
	case *aggregation.VarSamp:
		return "var_samp", false
	case *aggregation.BitAnd:
		return "bit_and", false
	case *aggregation.BitOr:
		return "bit_or", false
	case *aggregation.BitXor:
		return "bit_xor", false
	case *aggregation.JsonArray:
		return "json_arrayagg", false
	case *aggregation.JSONObjectAgg:
		return "json_objectagg", false
	}
	return "", false
}

// namedAggregate is an aggregate of plain arguments, its type by MySQL's rules. COUNT of a constant counts rows; its argument may be left out.
func namedAggregate(name string, args []expr.Expr) (logical.Agg, error) {
	out := logical.Agg{Column: logical.Column{Nullable: true}, Func: logical.AggFunc(name), Args: args}
	switch out.Func {
	case logical.AggCount:
		out.Nullable = false
		if len(args) == 0 {
			out.Func = logical.AggCountStar
		} else if lit, ok := args[0].(*expr.Literal); ok && len(args) == 1 && lit.Value.IsValid() {
			out.Func, out.Args = logical.AggCountStar, nil
		}
	case logical.AggSum, logical.AggAvg, logical.AggMin, logical.AggMax, logical.AggAny:
		if len(args) != 1 {
			return out, sql.ErrInvalidArgumentNumber.New(strings.ToUpper(name), 1, len(args))
		}
	default:
		return convertedAggregate(name, args)
	}
	var err error
	out.Type, err = aggType(out)
	return out, err
}

// convertedAggregate is an aggregate whose arguments are converted first: to doubles, to 64 bits or to JSON text.
func convertedAggregate(name string, args []expr.Expr) (logical.Agg, error) {
	name = strings.ToLower(name)
	switch name {
	case "std", "stddev":
		name = "stddev_pop"
	case "variance":
		name = "var_pop"
	}
	out := logical.Agg{Column: logical.Column{Nullable: true}, Func: logical.AggFunc(name)}
	count := 1
	if out.Func == logical.AggJSONObject {
		count = 2
	}
	if len(args) != count {
		return out, sql.ErrInvalidArgumentNumber.New(strings.ToUpper(name), count, len(args))
	}
	convert := asJSON
	switch out.Func {
	case logical.AggStddevPop, logical.AggStddevSamp, logical.AggVarPop, logical.AggVarSamp:
		out.Type, convert = arrow.PrimitiveTypes.Float64, asDouble
	case logical.AggBitAnd, logical.AggBitOr, logical.AggBitXor:
		out.Type, out.Nullable, convert = arrow.PrimitiveTypes.Uint64, false, asBits
	case logical.AggJSONArray, logical.AggJSONObject:
		out.Type = arrow.BinaryTypes.String
	default:
		return out, unsupported("aggregate %s", name)
	}
	for i, a := range args {
		if out.Func == logical.AggJSONObject && i == 0 {
			convert = asJSONName
		} else if out.Func == logical.AggJSONObject {
			convert = asJSON
		}
		e, err := convert(a)
		if err != nil {
			return out, err
		}
		out.Args = append(out.Args, e)
	}
	return out, nil
}

func asDouble(e expr.Expr) (expr.Expr, error) {
	if e.Type().ID() == arrow.FLOAT64 {
		return e, nil
	}
	if t := e.Type(); isNested(t) {
		return nil, unsupported("a deviation of a %s", t)
	}
	return expr.NewCast(e, arrow.PrimitiveTypes.Float64)
}

func asBits(e expr.Expr) (expr.Expr, error) {
	none, err := expr.NewLiteral(int64(0))
	if err != nil {
		return nil, err
	}
	return expr.NewCall("|", e, none)
}

// asJSON is a value as JSON text, a NULL stays one.
func asJSON(e expr.Expr) (expr.Expr, error) {
	if c, ok := e.(*expr.Call); ok && (c.Func == "->" || c.Func == "to_json" || c.Func == "json_quote") {
		return e, nil
	}
	return expr.NewCall("to_json", e)
}

// asJSONName is the name of a member as a JSON string.
func asJSONName(e expr.Expr) (expr.Expr, error) {
	text, err := expr.NewCast(e, arrow.BinaryTypes.String)
	if err != nil {
		return nil, err
	}
	return expr.NewCall("json_quote", text)
}

func isNested(t arrow.DataType) bool {
	switch t.ID() {
	case arrow.LIST, arrow.LARGE_LIST, arrow.FIXED_SIZE_LIST, arrow.STRUCT, arrow.MAP:
		return true
	}
	return false
}

// The digits that MySQL adds to the argument's: SUM 22 before the point, AVG 4 behind it.
const (
	sumExtraDigits   = 22
	avgExtraScale    = 4
	decimalDigitsMax = 65
	decimalScaleMax  = 30
	decimal128Digits = 38
	bigintDigits     = 19
	ubigintDigits    = 20
	intDigits        = 10
	smallintDigits   = 5
	tinyintDigits    = 3
	booleanDigits    = 1
)

// aggType is the result type by MySQL's rules: SUM and AVG of integers and decimals are exact.
func aggType(a logical.Agg) (arrow.DataType, error) {
	switch a.Func {
	case logical.AggCountStar, logical.AggCount:
		return arrow.PrimitiveTypes.Int64, nil
	case logical.AggMin, logical.AggMax, logical.AggAny:
		return a.Args[0].Type(), nil
	}
	p, s, ok := digits(a.Args[0].Type())
	if !ok {
		if isNested(a.Args[0].Type()) {
			return nil, unsupported("%s of a %s", a.Func, a.Args[0].Type())
		}
		return arrow.PrimitiveTypes.Float64, nil
	}
	if a.Func == logical.AggSum {
		return decimalType(p+sumExtraDigits, s), nil
	}
	return decimalType(p+avgExtraScale, s+avgExtraScale), nil
}

// digits returns precision and scale of exact numbers.
func digits(t arrow.DataType) (p, s int32, ok bool) {
	if d, isDecimal := t.(arrow.DecimalType); isDecimal {
		return d.GetPrecision(), d.GetScale(), true
	}
	switch t.ID() {
	case arrow.BOOL, arrow.NULL:
		return booleanDigits, 0, true
	case arrow.INT8, arrow.UINT8:
		return tinyintDigits, 0, true
	case arrow.INT16, arrow.UINT16:
		return smallintDigits, 0, true
	case arrow.INT32, arrow.UINT32:
		return intDigits, 0, true
	case arrow.INT64:
		return bigintDigits, 0, true
	case arrow.UINT64:
		return ubigintDigits, 0, true
	}
	return 0, 0, false
}

func decimalType(p, s int32) arrow.DataType {
	s = min(max(s, 0), decimalScaleMax)
	p = min(max(p, s, 1), decimalDigitsMax)
	if p <= decimal128Digits {
		return &arrow.Decimal128Type{Precision: p, Scale: s}
	}
	return &arrow.Decimal256Type{Precision: p, Scale: s}
}
