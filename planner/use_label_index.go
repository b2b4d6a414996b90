package planner

import (
	"context"
	"slices"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/arrow/scalar"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/planner/logical"
)

// leaf is a condition that one index answers.
type leaf struct {
	info      exec.IndexInfo
	match     index.Match
	predicate index.Predicate
	faults    []exec.IndexFault // also where no index answers
}

// indexLeaf recognises a condition over one column that an index of the table answers. Errors of exec.Indexed.FilterIndex.
func indexLeaf(ctx context.Context, table exec.Indexed, scan *logical.Scan, cond expr.Expr) (leaf, bool, error) {
	if !mayUseIndex(table, scan, cond) {
		return leaf{}, false, nil
	}
	column, predicate, ok := asPredicate(scan, cond)
	if !ok {
		return leaf{}, false, nil
	}
	chosen, err := table.FilterIndex(ctx, column, predicate.Op)
	if err != nil {
		return leaf{}, false, err
	}
	return leaf{info: chosen.Info, match: chosen.Match, predicate: predicate, faults: chosen.Faults}, chosen.OK, nil
}

// mayUseIndex says, without converting constants, whether a condition is about a column that has indices: of all that a query asks this is the cheapest.
func mayUseIndex(table exec.Indexed, scan *logical.Scan, cond expr.Expr) bool {
	call, ok := cond.(*expr.Call)
	if !ok {
		return false
	}
	indexes := table.Indexes()
	for _, arg := range call.Args {
		col, ok := scanColumn(scan, arg)
		if ok && slices.ContainsFunc(indexes, func(info exec.IndexInfo) bool { return info.Column == col.Source }) {
			return true
		}
	}
	return false
}

// asPredicate turns "column operator constant" into an index predicate with the constant in the column's type. It refuses needles that are no constants, empty or NULL, and
// constants whose value the column's type cannot hold.
func asPredicate(scan *logical.Scan, cond expr.Expr) (string, index.Predicate, bool) {
	call, ok := cond.(*expr.Call)
	if !ok || len(call.Args) == 0 {
		return "", index.Predicate{}, false
	}
	if call.Func == "is_null" {
		col, ok := scanColumn(scan, call.Args[0])
		return col.Source, index.Predicate{Op: index.OpIsNull}, ok
	}
	if len(call.Args) != 2 {
		return "", index.Predicate{}, false
	}
	name, subject, constant := call.Func, call.Args[0], call.Args[1]
	if flipped, ok := flippedComparison(name); ok {
		if _, isLit := subject.(*expr.Literal); isLit {
			name, subject, constant = flipped, constant, subject
		}
	}
	col, okCol := scanColumn(scan, subject)
	lit, okLit := constant.(*expr.Literal)
	if !okCol || !okLit || !lit.Value.IsValid() {
		return "", index.Predicate{}, false
	}
	p, ok := predicateOf(name, col.Type, lit)
	return col.Source, p, ok
}

func flippedComparison(name string) (string, bool) {
	switch name {
	case "=":
		return "=", true
	case "<":
		return ">", true
	case "<=":
		return ">=", true
	case ">":
		return "<", true
	case ">=":
		return "<=", true
	}
	return "", false
}

func scanColumn(scan *logical.Scan, e expr.Expr) (logical.ScanColumn, bool) {
	if ref, ok := e.(*expr.Column); ok {
		for _, col := range scan.Cols {
			if col.ID == ref.ID {
				return col, true
			}
		}
	}
	return logical.ScanColumn{}, false
}

func predicateOf(name string, t arrow.DataType, lit *expr.Literal) (index.Predicate, bool) {
	switch name {
	case "=":
		v, ok := needles(lit, t)
		return index.Predicate{Op: index.OpEq, Values: v}, ok && v.Len() == 1
	case "in":
		v, ok := needles(lit, t)
		return index.Predicate{Op: index.OpIn, Values: v}, ok && v.Len() > 0
	case "<", "<=", ">", ">=":
		v, ok := needles(lit, t)
		if !ok || v.Len() != 1 {
			return index.Predicate{}, false
		}
		return rangePredicate(name, v)
	case "array_has", "array_has_any", "array_has_all":
		list, ok := t.(arrow.ListLikeType)
		if !ok {
			return index.Predicate{}, false
		}
		v, ok := needles(lit, list.Elem())
		if !ok || v.Len() == 0 {
			return index.Predicate{}, false
		}
		op := map[string]index.Op{"array_has": index.OpHas, "array_has_any": index.OpHasAny, "array_has_all": index.OpHasAll}[name]
		return index.Predicate{Op: op, Values: v}, true
	}
	return index.Predicate{}, false
}

// needles converts a constant, or each element of a list constant, to t. It refuses a list with a NULL or with an element that t cannot hold: such needles
// have rules of their own, which scans know.
func needles(lit *expr.Literal, t arrow.DataType) (arrow.Array, bool) {
	list, isList := lit.Value.(scalar.ListScalar)
	if !isList {
		v, err := expr.ConvertNeedle(lit, t)
		return v, err == nil && v.Len() == 1
	}
	values := list.GetList()
	if arrow.TypeEqual(values.DataType(), t) && values.NullN() == 0 { // IN converts long lists when it is resolved
		return values, values.Len() > 0
	}
	parts := make([]arrow.Array, 0, values.Len())
	for i := range values.Len() {
		if values.IsNull(i) {
			return nil, false
		}
		s, err := scalar.GetScalar(values, i)
		if err != nil {
			return nil, false
		}
		v, err := expr.ConvertNeedle(&expr.Literal{Value: s}, t)
		if err != nil || v.Len() != 1 {
			return nil, false
		}
		parts = append(parts, v)
	}
	if len(parts) == 0 {
		return nil, false
	}
	all, err := array.Concatenate(parts, memory.DefaultAllocator)
	return all, err == nil
}

// rangePredicate makes the two-value form of index.OpRange.
func rangePredicate(name string, bound arrow.Array) (index.Predicate, bool) {
	null := array.MakeArrayOfNull(memory.DefaultAllocator, bound.DataType(), 1)
	p := index.Predicate{Op: index.OpRange}
	parts := []arrow.Array{null, bound}
	if name == ">" || name == ">=" {
		parts = []arrow.Array{bound, null}
		p.LowerInclusive = name == ">="
	} else {
		p.UpperInclusive = name == "<="
	}
	both, err := array.Concatenate(parts, memory.DefaultAllocator)
	p.Values = both
	return p, err == nil
}

// mergeRanges joins a lower and an upper bound on the same column into one predicate, so that a BTREE is asked once.
func mergeRanges(a, b index.Predicate) (index.Predicate, bool) {
	if a.Op != index.OpRange || b.Op != index.OpRange {
		return index.Predicate{}, false
	}
	lower, upper := a, b
	if a.Values.IsNull(0) {
		lower, upper = b, a
	}
	if lower.Values.IsNull(0) || !lower.Values.IsNull(1) || upper.Values.IsNull(1) || !upper.Values.IsNull(0) {
		return index.Predicate{}, false
	}
	lo, hi := array.NewSlice(lower.Values, 0, 1), array.NewSlice(upper.Values, 1, 2)
	both, err := array.Concatenate([]arrow.Array{lo, hi}, memory.DefaultAllocator)
	return index.Predicate{Op: index.OpRange, Values: both, LowerInclusive: lower.LowerInclusive, UpperInclusive: upper.UpperInclusive}, err == nil
}

// candidateBuilder turns the conditions of one scan into a candidate plan.
type candidateBuilder struct {
	c     *Context
	scan  *logical.Scan
	table exec.Indexed // nil: a table without indices, or prefilter = scan
}

// tree builds the plan of one condition. positive says that only its TRUE rows matter, so that an index that cannot tell NULL from FALSE will do.
// indexed says that an index takes part.
func (b *candidateBuilder) tree(e expr.Expr, positive bool) (p exec.CandidatePlan, indexed bool, err error) {
	if call, ok := e.(*expr.Call); ok && b.table != nil {
		l, ok, err := indexLeaf(b.c.Ctx, b.table, b.scan, e)
		if err != nil {
			return nil, false, err
		}
		b.c.faulty(b.table.Ref(), l.faults)
		if ok && (l.match != index.TrueOnly || positive) {
			p, err := b.lookup(l, e)
			return p, true, err
		}
		switch call.Func {
		case "and":
			return b.conjunction(expr.Conjuncts(e), positive)
		case "or":
			if p, indexed, err := b.disjunction(disjuncts(e), positive); err != nil || indexed {
				return p, indexed, err
			}
		case "not":
			if p, indexed, err := b.negation(call.Args[0]); err != nil || indexed {
				return p, indexed, err
			}
		case "is_not_null": // the NULLs are few as a rule: all rows but those, instead of a list of all others
			isNull, err := expr.NewCall("is_null", call.Args...)
			if err != nil {
				return nil, false, err
			}
			if p, indexed, err := b.negation(isNull); err != nil || indexed {
				return p, indexed, err
			}
		}
	}
	p, err = b.scanFor(e)
	return p, false, err
}

// negation is NOT of a condition that an index answers.
func (b *candidateBuilder) negation(e expr.Expr) (exec.CandidatePlan, bool, error) {
	inner, indexed, err := b.tree(e, false)
	if err != nil || !indexed {
		return nil, false, err
	}
	return &exec.CandidateNot{Input: inner}, true, nil
}

// scanFor answers e by reading its columns.
func (b *candidateBuilder) scanFor(e expr.Expr) (*exec.CandidateScan, error) {
	position := make(map[int]int)
	var columns []string
	for _, id := range expr.Columns(e) {
		for _, col := range b.scan.Cols {
			if col.ID == id {
				position[id] = len(columns)
				columns = append(columns, col.Source)
			}
		}
	}
	bound, err := expr.Rebind(e, position)
	if err != nil {
		return nil, err
	}
	return &exec.CandidateScan{Table: b.scan.Table.Ref(), Columns: columns, Expr: bound, Reason: b.whyNoIndex(e)}, nil
}

// whyNoIndex explains, for the first label predicate in e and for the first whose index cannot be read, why it is answered by reading.
func (b *candidateBuilder) whyNoIndex(e expr.Expr) string {
	call, ok := e.(*expr.Call)
	if !ok {
		return ""
	}
	switch call.Func {
	case "array_has", "array_has_any", "array_has_all":
	case "and", "or", "not":
		for _, part := range call.Args {
			if why := b.whyNoIndex(part); why != "" {
				return why
			}
		}
		return ""
	default:
		return b.faultsOf(e)
	}
	switch lit, isLit := call.Args[len(call.Args)-1].(*expr.Literal); {
	case !isLit:
		return "the needle is not a constant"
	case !lit.Value.IsValid():
		return "the needle is NULL"
	case b.table == nil:
		return "prefilter = scan, or a table without indices"
	}
	if _, _, ok := asPredicate(b.scan, e); !ok {
		return "the needle is empty, has a NULL, or has a value that the element type cannot hold"
	}
	if faults := b.faultsOf(e); faults != "" {
		return faults
	}
	return "no usable index"
}

// faultsOf says what is wrong with the indices that would answer e.
func (b *candidateBuilder) faultsOf(e expr.Expr) string {
	if b.table == nil {
		return ""
	}
	l, _, err := indexLeaf(b.c.Ctx, b.table, b.scan, e)
	if err != nil { // the store fails: tree gives the error
		return ""
	}
	return b.c.faulty(b.table.Ref(), l.faults)
}

func (b *candidateBuilder) lookup(l leaf, e expr.Expr) (exec.CandidatePlan, error) {
	recheck, err := b.scanFor(e)
	if err != nil {
		return nil, err
	}
	recheck.Reason = ""
	return &exec.IndexLookup{
		Table: b.scan.Table.Ref(), Column: l.info.Column, Kind: l.info.Kind, Index: l.info.Name, Predicate: l.predicate,
		Match: l.match, Coverage: exec.CoverageOf(b.table, l.info, l.faults), Recheck: recheck, Fresh: b.c.Settings.Freshness != FreshnessIndexedOnly,
	}, nil
}

// conjunction asks indices first, the most selective one first, and reads the other columns of the rows that are left.
func (b *candidateBuilder) conjunction(parts []expr.Expr, positive bool) (exec.CandidatePlan, bool, error) {
	type estimated struct {
		plan   exec.CandidatePlan
		lookup *exec.IndexLookup // nil: a plan of several
		rows   int64
	}
	var lookups []estimated
	var rest []expr.Expr
	for _, part := range b.pairRanges(parts) {
		if part.lookup != nil {
			lookups = append(lookups, estimated{plan: part.lookup, lookup: part.lookup})
			continue
		}
		p, indexed, err := b.tree(part.cond, positive)
		if err != nil {
			return nil, false, err
		}
		if !indexed {
			rest = append(rest, part.cond)
			continue
		}
		l, _ := p.(*exec.IndexLookup)
		lookups = append(lookups, estimated{plan: p, lookup: l, rows: b.scan.Table.Rows()})
	}
	for i, l := range lookups {
		if l.lookup != nil && len(lookups) > 1 { // one alone needs no place
			lookups[i].rows = b.table.Estimate(b.c.Ctx, l.lookup.Index, l.lookup.Predicate)
		}
	}
	sort.SliceStable(lookups, func(i, j int) bool { return lookups[i].rows < lookups[j].rows })
	plans := make([]exec.CandidatePlan, 0, len(lookups)+1)
	for _, l := range lookups {
		plans = append(plans, l.plan)
	}
	if len(rest) > 0 {
		all, err := andAll(rest)
		if err != nil {
			return nil, false, err
		}
		scan, err := b.scanFor(all)
		if err != nil {
			return nil, false, err
		}
		plans = append(plans, scan)
	}
	if len(plans) == 1 {
		return plans[0], len(lookups) > 0, nil
	}
	return &exec.CandidateAnd{Inputs: plans}, len(lookups) > 0, nil
}

func andAll(conds []expr.Expr) (expr.Expr, error) {
	out := conds[0]
	for _, c := range conds[1:] {
		var err error
		if out, err = expr.NewCall("and", out, c); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// conjunct is a condition, or a lookup already made of two.
type conjunct struct {
	cond   expr.Expr
	lookup *exec.IndexLookup
}

// pairRanges merges bounds on one indexed column.
func (b *candidateBuilder) pairRanges(parts []expr.Expr) []conjunct {
	out := make([]conjunct, 0, len(parts))
	used := make([]bool, len(parts))
	for i, x := range parts {
		if used[i] {
			continue
		}
		lx, okX := b.leafOf(x)
		for j := i + 1; okX && j < len(parts); j++ {
			ly, okY := b.leafOf(parts[j])
			if used[j] || !okY || ly.info.Name != lx.info.Name {
				continue
			}
			merged, ok := mergeRanges(lx.predicate, ly.predicate)
			both, err := expr.NewCall("and", x, parts[j])
			if !ok || err != nil {
				continue
			}
			if p, err := b.lookup(leaf{info: lx.info, match: lx.match, predicate: merged, faults: lx.faults}, both); err == nil {
				out = append(out, conjunct{lookup: p.(*exec.IndexLookup)})
				used[i], used[j] = true, true
				break
			}
		}
		if !used[i] {
			out = append(out, conjunct{cond: x})
		}
	}
	return out
}

func (b *candidateBuilder) leafOf(e expr.Expr) (leaf, bool) {
	if b.table == nil {
		return leaf{}, false
	}
	l, ok, err := indexLeaf(b.c.Ctx, b.table, b.scan, e)
	return l, err == nil && ok // tree asks again, and gives the error
}

// disjunction uses set algebra where any branch has an index: the others read only the rows that are not TRUE yet.
func (b *candidateBuilder) disjunction(parts []expr.Expr, positive bool) (exec.CandidatePlan, bool, error) {
	var plans, scans []exec.CandidatePlan
	for _, part := range parts {
		p, indexed, err := b.tree(part, positive)
		if err != nil {
			return nil, false, err
		}
		if indexed {
			plans = append(plans, p)
		} else {
			scans = append(scans, p)
		}
	}
	if len(plans) == 0 {
		return nil, false, nil
	}
	return &exec.CandidateOr{Inputs: slices.Concat(plans, scans)}, true, nil
}
