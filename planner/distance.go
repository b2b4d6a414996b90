package planner

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/index"
)

// distanceCall is a sort key that a vector search can serve.
type distanceCall struct {
	column *expr.Column
	query  *expr.Literal
	metric index.Metric
	desc   bool // a similarity: larger is nearer
	// value turns Lance's distance (float32) into the function's value.
	value func(d expr.Expr) (expr.Expr, error)
}

// distanceOf recognises a distance or similarity between one column and a constant.
func distanceOf(e expr.Expr) (distanceCall, bool) {
	call, ok := e.(*expr.Call)
	if !ok || len(call.Args) < 2 {
		return distanceCall{}, false
	}
	d := distanceCall{}
	transform := ""
	switch call.Func {
	case "l2_distance", "vec_distance_euclidean":
		d.metric, transform = index.MetricL2, "sqrt"
	case "l2sq_distance", "vec_distance", "vec_distance_l2_squared", "approx_l2_distance":
		d.metric = index.MetricL2
	case "cosine_distance", "vec_distance_cosine":
		d.metric = index.MetricCosine
	case "dot_distance":
		d.metric = index.MetricDot
	case "hamming_distance":
		d.metric = index.MetricHamming
	case "cosine_similarity", "approx_cosine_similarity":
		d.metric, d.desc, transform = index.MetricCosine, true, "1-"
	case "inner_product":
		d.metric, d.desc, transform = index.MetricDot, true, "1-"
	default:
		return distanceCall{}, false
	}
	for i := range 2 {
		col, isCol := call.Args[i].(*expr.Column)
		lit, isLit := call.Args[1-i].(*expr.Literal)
		if isCol && isLit && col.T.ID() == arrow.FIXED_SIZE_LIST {
			d.column, d.query = col, lit
		}
	}
	if d.column == nil {
		return distanceCall{}, false
	}
	d.value = func(raw expr.Expr) (expr.Expr, error) { return fromMetric(raw, transform, call.T) }
	return d, true
}

func fromMetric(raw expr.Expr, transform string, t arrow.DataType) (expr.Expr, error) {
	wide, err := expr.NewCast(raw, arrow.PrimitiveTypes.Float64)
	if err != nil {
		return nil, err
	}
	out := wide
	switch transform {
	case "sqrt":
		out, err = expr.NewCall("sqrt", wide)
	case "1-":
		var one *expr.Literal
		if one, err = expr.NewLiteral(float64(1)); err == nil {
			out, err = expr.NewCall("-", one, wide)
		}
	}
	if err != nil {
		return nil, err
	}
	if arrow.TypeEqual(out.Type(), t) {
		return out, nil
	}
	return expr.NewCast(out, t)
}
