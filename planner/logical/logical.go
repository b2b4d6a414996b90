// Package logical is lakesql's own plan of a statement: relational nodes over typed expressions. It knows no MySQL library. Rules in
// package planner rewrite it, planner.Lower turns it into an exec.Plan.
//
// I1: a column id is unique in a plan and always means the same value; a node's expressions use only ids that its inputs output.
// I2: nodes are immutable: a rule builds new ones and shares the rest.
package logical

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/index"
)

// ColumnID is a column's identity in one plan.
type ColumnID = int

// Column is one output column of a node.
type Column struct {
	ID       ColumnID
	Name     string
	Type     arrow.DataType
	Nullable bool
}

// Ref returns an expression that reads the column.
func (c Column) Ref() *expr.Column { return &expr.Column{ID: c.ID, Name: c.Name, T: c.Type} }

// IDs hands out column ids. The zero value is ready.
type IDs struct{ last ColumnID }

// Next returns a new id.
func (g *IDs) Next() ColumnID { g.last++; return g.last }

// Node is a relational operator.
type Node interface {
	Columns() []Column
	Children() []Node
	// WithChildren returns the node over other inputs that output at least the columns it uses.
	WithChildren(children []Node) Node
	Describe() exec.Description
}

// Named is an expression and the column that it makes.
type Named struct {
	Column
	Expr expr.Expr
}

// Scan reads a table.
type Scan struct {
	Table   exec.Table
	Alias   string       // how the statement calls the table
	Cols    []ScanColumn // what it outputs
	Filter  []expr.Expr  // conjuncts over Cols that rows must satisfy (TRUE); rules push them here
	Masks   []Mask       // further conditions: joins that only filter
	RowAddr *Column      // not nil: also outputs the row address
}

// ScanColumn is a column of a scan and the table's column that it reads.
type ScanColumn struct {
	Column
	Source     string
	FilterOnly bool // Filter and Masks use it, the scan does not output it
}

// Mask keeps the rows whose columns are among the rows of keys that a plan yields, a column for each of them, or with an anti join those whose are not.
type Mask struct {
	Cols []ColumnID
	Kind JoinKind // JoinSemi, JoinAnti or JoinNullAwareAnti
	Keys Node
}

// Values is a constant relation.
type Values struct {
	Cols []Column
	Rows [][]expr.Expr // literals, or expressions without columns
}

// Filter keeps the rows where every condition is TRUE.
type Filter struct {
	Input Node
	Conds []expr.Expr
}

// Project computes columns. Pass-through columns are Named with the same id and a plain reference.
type Project struct {
	Input Node
	Exprs []Named
}

// AggFunc is an aggregate function.
type AggFunc string

// The aggregate functions. AggCountStar counts rows; AggAny takes any value of the group (functionally dependent columns).
const (
	AggCountStar AggFunc = "count_star"
	AggCount     AggFunc = "count"
	AggSum       AggFunc = "sum"
	AggAvg       AggFunc = "avg"
	AggMin       AggFunc = "min"
	AggMax       AggFunc = "max"
	AggAny       AggFunc = "any_value"

	AggStddevPop  AggFunc = "stddev_pop"
	AggStddevSamp AggFunc = "stddev_samp"
	AggVarPop     AggFunc = "var_pop"
	AggVarSamp    AggFunc = "var_samp"
	AggBitAnd     AggFunc = "bit_and"
	AggBitOr      AggFunc = "bit_or"
	AggBitXor     AggFunc = "bit_xor"
	AggConcat     AggFunc = "group_concat"
	AggJSONArray  AggFunc = "json_arrayagg"
	AggJSONObject AggFunc = "json_objectagg"
)

// Agg is one aggregate and the column that it makes; the type follows MySQL (SUM and AVG of integers and decimals are exact decimals).
type Agg struct {
	Column
	Func     AggFunc
	Args     []expr.Expr // count(distinct a, b) has several
	Distinct bool
	Concat   *exec.ConcatSpec // AggConcat only: what the arguments are
}

// Aggregate groups. Without keys it yields exactly one row.
type Aggregate struct {
	Input  Node
	Keys   []Named
	Aggs   []Agg
	Rollup *Column // not nil: also groups by fewer keys, from the last on down to none, which are NULL then; the column says how many there are
}

// WindowFunc is one function of a Window and the column that it makes. Frame's and the arguments' expressions are over the window's input.
type WindowFunc struct {
	Column
	Func  exec.WindowFunc
	Agg   AggFunc // of exec.WindowAggregate
	Args  []expr.Expr
	N     uint64 // buckets of ntile, offset of lag and lead, which row of nth_value
	Frame exec.Frame
}

// Window adds the functions to every row of its input; they see the rows of equal Partition values, in the order of Order.
type Window struct {
	Input     Node
	Partition []expr.Expr
	Order     []SortKey
	Funcs     []WindowFunc
	Hidden    []ColumnID        // input columns that it does not hand on
	Limit     *exec.WindowLimit // rows behind it are dropped
}

// JoinKind is how a join treats rows without a match.
type JoinKind string

// The kinds of join. Semi and Anti output the left columns only. NullAwareAnti is NOT IN. Mark adds Join.Mark: TRUE, FALSE or
// NULL for IN under OR. Single attaches the only row of the right side (a scalar subquery), NULLs where it has none, an error where it has several.
const (
	JoinInner         JoinKind = "inner"
	JoinLeft          JoinKind = "left"
	JoinFull          JoinKind = "full"
	JoinSemi          JoinKind = "semi"
	JoinAnti          JoinKind = "anti"
	JoinNullAwareAnti JoinKind = "null_aware_anti"
	JoinMark          JoinKind = "mark"
	JoinSingle        JoinKind = "single"
)

// Join joins two inputs. On holds conjuncts over both sides; equalities are found by the lowering. Inner without On is a cross join.
type Join struct {
	Kind        JoinKind
	Left, Right Node
	On          []expr.Expr
	Mark        *Column // JoinMark only
}

// SortKey is one ordering. NULLs sort first ascending and last descending, as in MySQL; NullsLast puts them last either way (ascending distances).
type SortKey struct {
	Expr      expr.Expr
	Desc      bool
	NullsLast bool
}

// Sort orders its input.
type Sort struct {
	Input Node
	Keys  []SortKey
}

// NoLimit is the count of a Limit that only skips.
const NoLimit = ^uint64(0)

// Limit skips Offset rows and passes Count.
type Limit struct {
	Input         Node
	Count, Offset uint64
}

// TopN is Sort then Limit.
type TopN struct {
	Input         Node
	Keys          []SortKey
	Count, Offset uint64
}

// Distinct removes duplicate rows; NULLs are equal to each other.
type Distinct struct{ Input Node }

// Union concatenates inputs of equal column types; column i of the output is column i of each input.
type Union struct {
	Inputs []Node
	Cols   []Column
}

// Search finds the nearest rows of one table and outputs Scan's columns plus Distance, ordered by distance. It keeps
// the ties of the last place when Ties is set (further sort keys above decide), and fills up with rows of NULL
// distance when neighbours run out.
type Search struct {
	Scan     *Scan // with its filter: the candidates
	Vector   string
	Metric   index.Metric
	Query    []float32
	K        uint64
	Ties     bool
	Distance Column
	Spec     SearchSpec
}

// SearchSpec is the choice of method, made by a rule and shown by EXPLAIN.
type SearchSpec struct {
	Index        string // "" = exact
	Kind         index.Kind
	Coverage     exec.Coverage // of Index
	IndexedOnly  bool          // Index set: rows that it does not cover are left out
	Reason       string        // why this method
	MinProbes    int
	MaxProbes    int
	RefineFactor int
	Early        bool  // read the output columns in each task, before the global cut
	ExactBelow   int64 // Index set: exact all the same while candidates x VectorBytes stay below this many bytes; 0 = never
	VectorBytes  int64 // of one vector
	LateReason   string
}

// Fetch reads more columns of one table for the rows whose addresses its input carries (late materialization).
type Fetch struct {
	Input  Node
	Table  exec.Table
	Alias  string
	Addr   ColumnID
	Cols   []ScanColumn
	Reason string // why late
}

// Columns implements Node.
func (n *Scan) Columns() []Column {
	out := make([]Column, 0, len(n.Cols)+1)
	for _, c := range n.Cols {
		if !c.FilterOnly {
			out = append(out, c.Column)
		}
	}
	if n.RowAddr != nil {
		out = append(out, *n.RowAddr)
	}
	return out
}

// Columns implements Node.
func (n *Values) Columns() []Column { return n.Cols }

// Columns implements Node.
func (n *Filter) Columns() []Column { return n.Input.Columns() }

// Columns implements Node.
func (n *Project) Columns() []Column { return namedColumns(n.Exprs) }

// Columns implements Node.
func (n *Aggregate) Columns() []Column {
	out := namedColumns(n.Keys)
	for _, a := range n.Aggs {
		out = append(out, a.Column)
	}
	if n.Rollup != nil {
		out = append(out, *n.Rollup)
	}
	return out
}

// Columns implements Node.
func (n *Window) Columns() []Column {
	var out []Column
	for _, c := range n.Input.Columns() {
		if !slices.Contains(n.Hidden, c.ID) {
			out = append(out, c)
		}
	}
	for _, f := range n.Funcs {
		out = append(out, f.Column)
	}
	return out
}

// Exprs lists all expressions of the node.
func (n *Window) Exprs() []expr.Expr {
	out := slices.Clone(n.Partition)
	for _, k := range n.Order {
		out = append(out, k.Expr)
	}
	for _, f := range n.Funcs {
		out = append(out, f.Exprs()...)
	}
	return out
}

// Exprs lists the expressions that a function reads.
func (f WindowFunc) Exprs() []expr.Expr {
	out := slices.Clone(f.Args)
	for _, e := range []expr.Expr{f.Frame.Key, f.Frame.Start.Value, f.Frame.End.Value} {
		if e != nil {
			out = append(out, e)
		}
	}
	return out
}

// Columns implements Node.
func (n *Join) Columns() []Column {
	left := n.Left.Columns()
	switch n.Kind {
	case JoinSemi, JoinAnti, JoinNullAwareAnti:
		return left
	case JoinMark:
		return append(append([]Column(nil), left...), *n.Mark)
	case JoinLeft, JoinSingle, JoinFull:
		return append(nullable(left, n.Kind == JoinFull), nullable(n.Right.Columns(), true)...)
	default:
		return append(append([]Column(nil), left...), n.Right.Columns()...)
	}
}

// Columns implements Node.
func (n *Sort) Columns() []Column { return n.Input.Columns() }

// Columns implements Node.
func (n *Limit) Columns() []Column { return n.Input.Columns() }

// Columns implements Node.
func (n *TopN) Columns() []Column { return n.Input.Columns() }

// Columns implements Node.
func (n *Distinct) Columns() []Column { return n.Input.Columns() }

// Columns implements Node.
func (n *Union) Columns() []Column { return n.Cols }

// Columns implements Node.
func (n *Search) Columns() []Column { return append(n.Scan.Columns(), n.Distance) }

// Columns implements Node.
func (n *Fetch) Columns() []Column {
	out := append([]Column(nil), n.Input.Columns()...)
	for _, c := range n.Cols {
		out = append(out, c.Column)
	}
	return out
}

func namedColumns(es []Named) []Column {
	out := make([]Column, len(es))
	for i, e := range es {
		out[i] = e.Column
	}
	return out
}

func nullable(cols []Column, yes bool) []Column {
	out := append([]Column(nil), cols...)
	for i := range out {
		out[i].Nullable = out[i].Nullable || yes
	}
	return out
}
