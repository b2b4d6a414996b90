package exec

import (
	"encoding/json"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/scalar"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
)

func (c planCodec) decode(n planJSON, depth int) (Plan, error) {
	if depth > planDepthMax {
		return nil, errs.Corrupt("plan", -1, "nests deeper than %d", planDepthMax)
	}
	inputs := make([]Plan, len(n.Inputs))
	for i, in := range n.Inputs {
		var err error
		if inputs[i], err = c.decode(in, depth+1); err != nil {
			return nil, err
		}
	}
	for _, k := range c.codecs {
		if k.Kind == n.Kind {
			return k.Decode(n.Node, inputs)
		}
	}
	want, known := map[string]int{
		"scan": 0, "values": 0, "count_rows": 0, "vector_search": 0, "join": 2, "union": len(inputs),
		"filter": 1, "project": 1, "limit": 1, "distinct": 1, "sort": 1, "top_n": 1, "aggregate": 1, "cap": 1, "window": 1,
	}[n.Kind]
	if !known || len(inputs) != want {
		return nil, errs.Corrupt("plan", -1, "node of kind %q with %d inputs", n.Kind, len(inputs))
	}
	if want == 0 && n.Kind != "union" {
		return c.decodeSource(n)
	}
	return decodeInner(n, inputs)
}

// decodeSource decodes plans without inputs.
func (c planCodec) decodeSource(n planJSON) (Plan, error) {
	var r exprReader
	switch n.Kind {
	case "scan":
		var j scanJSON
		if err := strictJSON(n.Node, &j); err != nil {
			return nil, err
		}
		return c.decodeScan(j)
	case "values":
		var j valuesJSON
		if err := strictJSON(n.Node, &j); err != nil {
			return nil, err
		}
		fields := r.fields(j.Out)
		rows := make([][]expr.Expr, len(j.Rows))
		for i, row := range j.Rows {
			rows[i] = r.all(row)
		}
		if r.err != nil {
			return nil, r.err
		}
		return NewValues(arrow.NewSchema(fields, nil), rows)
	case "count_rows":
		var j countRowsJSON
		if err := strictJSON(n.Node, &j); err != nil {
			return nil, err
		}
		cand, err := c.decodeCandidate(j.Candidates, 0)
		if err != nil {
			return nil, err
		}
		return NewCountRows(j.Table, cand, j.Names)
	}
	var j searchJSON
	if err := strictJSON(n.Node, &j); err != nil {
		return nil, err
	}
	if len(j.Query)%4 != 0 {
		return nil, errs.Corrupt("plan", -1, "a query vector of %d bytes", len(j.Query))
	}
	var err error
	if j.Search.Candidates, err = c.decodeCandidate(j.Candidates, 0); err != nil {
		return nil, err
	}
	j.Search.Query = slices.Clone(arrow.Float32Traits.CastFromBytes(j.Query))
	early := r.fields(j.Early)
	if r.err != nil {
		return nil, r.err
	}
	return NewVectorSearch(j.Search, early)
}

func (c planCodec) decodeScan(j scanJSON) (Plan, error) {
	var r exprReader
	cand, err := c.decodeCandidate(j.Candidates, 0)
	if err != nil {
		return nil, err
	}
	fields := r.fields(j.Out)
	filter := r.optional(j.Filter)
	if r.err != nil {
		return nil, r.err
	}
	s := &Scan{Table: j.Table, Out: arrow.NewSchema(fields, nil), Spec: ScanSpec{Columns: j.Columns, Names: j.Names, Candidates: cand, Filter: filter, Reason: j.Reason, RowAddr: j.RowAddr}}
	width := len(j.Columns)
	if j.RowAddr {
		width++
	}
	if len(j.Names) != len(j.Columns) || len(fields) != width {
		return nil, errs.Corrupt("plan", -1, "scan of %d columns, %d names, %d fields", len(j.Columns), len(j.Names), len(fields))
	}
	if s.Spec.Filter != nil {
		if err := checkCondition("scan", s.Spec.Filter, s.Out); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// decodeInner decodes plans over inputs, whose number is right.
func decodeInner(n planJSON, in []Plan) (Plan, error) { //nolint:funlen // a flat switch
	var r exprReader
	switch n.Kind {
	case "filter":
		var j filterJSON
		if err := strictJSON(n.Node, &j); err != nil {
			return nil, err
		}
		cond := r.one(j.Cond)
		if r.err != nil {
			return nil, r.err
		}
		return NewFilter(in[0], cond)
	case "project":
		var j projectJSON
		if err := strictJSON(n.Node, &j); err != nil {
			return nil, err
		}
		es := r.all(j.Exprs)
		if r.err != nil {
			return nil, r.err
		}
		return NewProject(in[0], j.Names, es)
	case "limit":
		var j limitJSON
		if err := strictJSON(n.Node, &j); err != nil {
			return nil, err
		}
		return NewLimit(in[0], j.Count, j.Offset)
	case "union":
		return NewUnion(in...)
	case "distinct":
		return NewDistinct(in[0])
	case "sort", "top_n":
		var j sortJSON
		if err := strictJSON(n.Node, &j); err != nil {
			return nil, err
		}
		keys := r.sortKeys(j.Keys)
		if r.err != nil {
			return nil, r.err
		}
		if n.Kind == "sort" {
			return NewSort(in[0], keys)
		}
		return NewTopN(in[0], keys, j.Count, j.Offset)
	case "cap":
		var j capJSON
		if err := strictJSON(n.Node, &j); err != nil {
			return nil, err
		}
		return NewCap(in[0], j.RowsMax, j.BytesMax, j.Why)
	case "join":
		return decodeJoin(n.Node, in)
	case "window":
		return decodeWindow(n.Node, in[0])
	}
	return decodeAggregate(n.Node, in[0])
}

func decodeJoin(raw json.RawMessage, in []Plan) (Plan, error) {
	var j joinJSON
	if err := strictJSON(raw, &j); err != nil {
		return nil, err
	}
	var r exprReader
	spec := JoinSpec{Kind: j.Kind, Left: in[0], Right: in[1], LeftKeys: r.all(j.LeftKeys), RightKeys: r.all(j.RightKeys), NullSafe: j.NullSafe, Residual: r.optional(j.Residual), BuildLeft: j.BuildLeft}
	if j.Output != nil {
		if spec.Output = *j.Output; spec.Output == nil {
			spec.Output = []int{}
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	return NewHashJoin(spec)
}

func decodeAggregate(raw json.RawMessage, in Plan) (Plan, error) {
	var j aggregateJSON
	if err := strictJSON(raw, &j); err != nil {
		return nil, err
	}
	var r exprReader
	keys := r.all(j.Keys)
	aggs := make([]AggSpec, len(j.Aggs))
	for i, a := range j.Aggs {
		f := r.field(a.Out)
		aggs[i] = AggSpec{Func: a.Func, Args: r.all(a.Args), Distinct: a.Distinct, Name: f.Name, Type: f.Type, Concat: a.Concat}
	}
	if r.err != nil {
		return nil, r.err
	}
	p, err := NewHashAggregate(in, keys, j.Names, aggs)
	if err == nil && j.Level != "" {
		return p.WithRollup(j.Level)
	}
	return p, err
}

// coverage is that of an index; none where it says nothing.
func (j *candidateJSON) coverage() Coverage {
	if j.Coverage == nil {
		return Coverage{}
	}
	return *j.Coverage
}

// candidateJSON is an encoded candidate plan; what its kind does not need is absent.
type candidateJSON struct {
	Kind      string          `json:"kind"`
	Table     *TableRef       `json:"table,omitempty"`
	Column    string          `json:"column,omitempty"`
	Columns   []string        `json:"columns,omitempty"`
	Index     string          `json:"index,omitempty"`
	IndexKind index.Kind      `json:"index_kind,omitempty"`
	Op        index.Op        `json:"op,omitempty"`
	Values    []byte          `json:"values,omitempty"` // a list literal
	Lower     bool            `json:"lower_inclusive,omitempty"`
	Upper     bool            `json:"upper_inclusive,omitempty"`
	Fresh     bool            `json:"fresh,omitempty"`
	Expr      []byte          `json:"expr,omitempty"`
	Reason    string          `json:"reason,omitempty"`
	Match     index.Match     `json:"match,omitempty"`
	Coverage  *Coverage       `json:"coverage,omitempty"`
	Keys      *planJSON       `json:"keys,omitempty"`
	Join      JoinKind        `json:"join,omitempty"`
	Inputs    []candidateJSON `json:"inputs,omitempty"`
}

// candidate encodes a candidate plan; nil stays nil.
func (c planCodec) candidate(p CandidatePlan) (*candidateJSON, error) { //nolint:funlen // a flat switch
	if p == nil {
		return nil, nil
	}
	var e exprWriter
	out := &candidateJSON{}
	inputs := p.Children()
	switch p := p.(type) {
	case *IndexLookup:
		*out = candidateJSON{Kind: "index_lookup", Table: &p.Table, Column: p.Column, Index: p.Index, IndexKind: p.Kind, Op: p.Predicate.Op, Lower: p.Predicate.LowerInclusive, Upper: p.Predicate.UpperInclusive, Fresh: p.Fresh, Match: p.Match, Coverage: &p.Coverage}
		if p.Predicate.Values != nil {
			out.Values = e.one(&expr.Literal{Value: scalar.NewListScalar(p.Predicate.Values)})
		}
		inputs = nil
		if p.Recheck != nil {
			inputs = []CandidatePlan{p.Recheck}
		}
	case *CandidateScan:
		*out = candidateJSON{Kind: "scan", Table: &p.Table, Columns: p.Columns, Expr: e.one(p.Expr), Reason: p.Reason}
	case *CandidateAnd:
		out.Kind = "and"
	case *CandidateOr:
		out.Kind = "or"
	case *CandidateNot:
		out.Kind = "not"
	case *JoinMask:
		keys, err := c.encode(p.Keys)
		if err != nil {
			return nil, err
		}
		*out = candidateJSON{Kind: "join_mask", Table: &p.Table, Columns: p.Columns, Join: p.Kind, Keys: &keys}
	case *KeyMask:
		keys, err := c.encode(p.Keys)
		if err != nil {
			return nil, err
		}
		*out = candidateJSON{Kind: "key_mask", Table: &p.Table, Column: p.Column, Index: p.Index, IndexKind: p.Kind, Match: p.Match, Keys: &keys, Reason: p.Reason, Coverage: &p.Coverage}
	default:
		return nil, errs.New(errs.ErrUnsupported, "a candidate plan of type %T cannot be encoded", p)
	}
	for _, in := range inputs {
		j, err := c.candidate(in)
		if err != nil {
			return nil, err
		}
		out.Inputs = append(out.Inputs, *j)
	}
	return out, e.err
}

func (c planCodec) decodeCandidate(j *candidateJSON, depth int) (CandidatePlan, error) { //nolint:funlen // a flat switch
	if j == nil {
		return nil, nil
	}
	if depth > planDepthMax {
		return nil, errs.Corrupt("plan", -1, "candidates nest deeper than %d", planDepthMax)
	}
	inputs := make([]CandidatePlan, len(j.Inputs))
	for i := range j.Inputs {
		var err error
		if inputs[i], err = c.decodeCandidate(&j.Inputs[i], depth+1); err != nil {
			return nil, err
		}
	}
	var r exprReader
	table := TableRef{}
	if j.Table != nil {
		table = *j.Table
	}
	switch {
	case j.Kind == "and" && len(inputs) > 0:
		return &CandidateAnd{Inputs: inputs}, nil
	case j.Kind == "or" && len(inputs) > 0:
		return &CandidateOr{Inputs: inputs}, nil
	case j.Kind == "not" && len(inputs) == 1:
		return &CandidateNot{Input: inputs[0]}, nil
	case j.Kind == "scan" && len(inputs) == 0:
		p := &CandidateScan{Table: table, Columns: j.Columns, Expr: r.one(j.Expr), Reason: j.Reason}
		return p, r.err
	case j.Kind == "key_mask" && len(inputs) == 0 && j.Keys != nil:
		keys, err := c.decode(*j.Keys, depth+1)
		if err != nil {
			return nil, err
		}
		return &KeyMask{Table: table, Column: j.Column, Keys: keys, Index: j.Index, Kind: j.IndexKind, Match: j.Match, Reason: j.Reason, Coverage: j.coverage()}, nil
	case j.Kind == "join_mask" && len(inputs) == 0 && j.Keys != nil:
		keys, err := c.decode(*j.Keys, depth+1)
		if err != nil {
			return nil, err
		}
		return &JoinMask{Table: table, Columns: j.Columns, Kind: j.Join, Keys: keys}, nil
	case j.Kind == "index_lookup" && len(inputs) <= 1:
		p := &IndexLookup{Table: table, Column: j.Column, Kind: j.IndexKind, Index: j.Index, Fresh: j.Fresh, Match: j.Match, Coverage: j.coverage(),
			Predicate: index.Predicate{Op: j.Op, LowerInclusive: j.Lower, UpperInclusive: j.Upper}}
		if len(inputs) == 1 {
			recheck, ok := inputs[0].(*CandidateScan)
			if !ok {
				return nil, errs.Corrupt("plan", -1, "an index lookup is rechecked by %T", inputs[0])
			}
			p.Recheck = recheck
		}
		if j.Values != nil {
			l, isLiteral := r.one(j.Values).(*expr.Literal)
			if r.err != nil {
				return nil, r.err
			}
			if !isLiteral || !l.Value.IsValid() {
				return nil, errs.Corrupt("plan", -1, "the values of an index lookup are no list")
			}
			values, isList := l.Value.(scalar.ListScalar)
			if !isList {
				return nil, errs.Corrupt("plan", -1, "the values of an index lookup are no list")
			}
			p.Predicate.Values = values.GetList()
		}
		return p, nil
	}
	return nil, errs.Corrupt("plan", -1, "candidate plan of kind %q with %d inputs", j.Kind, len(inputs))
}
