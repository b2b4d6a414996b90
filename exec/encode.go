package exec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
)

// The encoding of a plan is JSON: {"kind": ..., "node": {...}, "inputs": [...]}, expressions and types as expr.Encode writes them.

// PlanCodec encodes the plans of one package that this one does not know.
type PlanCodec struct {
	Kind string // unique
	// Encode returns what JSON is to hold of p besides its Children; ok is false for plans of other kinds.
	Encode func(p Plan) (node any, ok bool, err error)
	Decode func(node json.RawMessage, inputs []Plan) (Plan, error)
}

// planJSON is an encoded plan node.
type planJSON struct {
	Kind   string          `json:"kind"`
	Node   json.RawMessage `json:"node"`
	Inputs []planJSON      `json:"inputs,omitempty"`
}

// planDepthMax bounds the nesting of an encoded plan.
const planDepthMax = 500

// EncodePlan writes a plan as bytes that DecodePlan reads back to an equal one. codecs know the plans of other packages. ErrUnsupported for a
// plan that nobody knows.
func EncodePlan(p Plan, codecs ...PlanCodec) ([]byte, error) {
	c := planCodec{codecs: codecs}
	n, err := c.encode(p)
	if err != nil {
		return nil, err
	}
	return json.Marshal(n)
}

// DecodePlan reads what EncodePlan wrote. ErrCorrupt for anything else: every node goes through its constructor.
func DecodePlan(b []byte, codecs ...PlanCodec) (Plan, error) {
	var n planJSON
	if err := strictJSON(b, &n); err != nil {
		return nil, err
	}
	c := planCodec{codecs: codecs}
	p, err := c.decode(n, 0)
	if err != nil && !errors.Is(err, errs.ErrCorrupt) {
		return nil, errs.Corrupt("plan", -1, "%w", err)
	}
	return p, err
}

func strictJSON(b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return errs.Corrupt("plan", d.InputOffset(), "%w", err)
	}
	if d.More() {
		return errs.Corrupt("plan", d.InputOffset(), "more than one value")
	}
	return nil
}

type planCodec struct{ codecs []PlanCodec }

func (c planCodec) encode(p Plan) (planJSON, error) {
	kind, node, err := c.node(p)
	if err != nil {
		return planJSON{}, fmt.Errorf("%s: %w", p.Describe().Name, err)
	}
	raw, err := json.Marshal(node)
	if err != nil {
		return planJSON{}, fmt.Errorf("%s: %w", p.Describe().Name, err)
	}
	out := planJSON{Kind: kind, Node: raw}
	for _, in := range p.Children() {
		n, err := c.encode(in)
		if err != nil {
			return planJSON{}, err
		}
		out.Inputs = append(out.Inputs, n)
	}
	return out, nil
}

// EncodedField is an output column in an encoded plan.
type EncodedField struct {
	Column   []byte `json:"column"` // the name and type, as an encoded column expression
	Nullable bool   `json:"nullable,omitempty"`
}

// EncodeFields is for codecs of other packages.
func EncodeFields(fs []arrow.Field) ([]EncodedField, error) {
	var w exprWriter
	out := w.fields(fs)
	return out, w.err
}

// DecodeFields is the inverse of EncodeFields. ErrCorrupt for anything else.
func DecodeFields(fs []EncodedField) ([]arrow.Field, error) {
	var r exprReader
	out := r.fields(fs)
	return out, r.err
}

type (
	scanJSON struct {
		Table      TableRef       `json:"table"`
		Columns    []string       `json:"columns"`
		Names      []string       `json:"names"`
		Candidates *candidateJSON `json:"candidates,omitempty"`
		Filter     []byte         `json:"filter,omitempty"`
		Reason     string         `json:"reason,omitempty"`
		RowAddr    bool           `json:"row_addr,omitempty"`
		Out        []EncodedField `json:"out"`
	}
	filterJSON struct {
		Cond []byte `json:"cond"`
	}
	projectJSON struct {
		Names []string `json:"names"`
		Exprs [][]byte `json:"exprs"`
	}
	valuesJSON struct {
		Out  []EncodedField `json:"out"`
		Rows [][][]byte     `json:"rows"`
	}
	limitJSON struct {
		Count  uint64 `json:"count"`
		Offset uint64 `json:"offset"`
	}
	sortKeyJSON struct {
		Expr      []byte `json:"expr"`
		Desc      bool   `json:"desc,omitempty"`
		NullsLast bool   `json:"nulls_last,omitempty"`
	}
	sortJSON struct {
		Keys   []sortKeyJSON `json:"keys"`
		Count  uint64        `json:"count,omitempty"`
		Offset uint64        `json:"offset,omitempty"`
	}
	aggJSON struct {
		Func     AggFunc      `json:"func"`
		Args     [][]byte     `json:"args,omitempty"`
		Distinct bool         `json:"distinct,omitempty"`
		Concat   *ConcatSpec  `json:"concat,omitempty"`
		Out      EncodedField `json:"out"`
	}
	aggregateJSON struct {
		Keys  [][]byte  `json:"keys"`
		Names []string  `json:"names"`
		Aggs  []aggJSON `json:"aggs"`
		Level string    `json:"level,omitempty"` // of a rollup: the name of its column
	}
	boundJSON struct {
		Kind   BoundKind `json:"kind"`
		Offset uint64    `json:"offset,omitempty"`
		Value  []byte    `json:"value,omitempty"`
	}
	windowFuncJSON struct {
		Func  WindowFunc   `json:"func"`
		Agg   AggFunc      `json:"agg,omitempty"`
		Args  [][]byte     `json:"args,omitempty"`
		N     uint64       `json:"n,omitempty"`
		Rows  bool         `json:"rows,omitempty"`
		Start boundJSON    `json:"start"`
		End   boundJSON    `json:"end"`
		Key   []byte       `json:"key,omitempty"`
		Out   EncodedField `json:"out"`
	}
	windowJSON struct {
		Partition [][]byte         `json:"partition"`
		Order     []sortKeyJSON    `json:"order"`
		Funcs     []windowFuncJSON `json:"funcs"`
		Output    []int            `json:"output"`
		Limit     *WindowLimit     `json:"limit,omitempty"`
	}
	joinJSON struct {
		Kind      JoinKind `json:"kind"`
		LeftKeys  [][]byte `json:"left_keys"`
		RightKeys [][]byte `json:"right_keys"`
		NullSafe  []bool   `json:"null_safe,omitempty"`
		Residual  []byte   `json:"residual,omitempty"`
		BuildLeft bool     `json:"build_left,omitempty"`
		Output    *[]int   `json:"output,omitempty"`
	}
	capJSON struct {
		RowsMax  int64  `json:"rows_max"`
		BytesMax int64  `json:"bytes_max"`
		Why      string `json:"why"`
	}
	countRowsJSON struct {
		Table      TableRef       `json:"table"`
		Candidates *candidateJSON `json:"candidates,omitempty"`
		Names      []string       `json:"names"`
	}
	searchJSON struct {
		Search     VectorSearch   `json:"search"` // without the query, which JSON numbers cannot hold
		Query      []byte         `json:"query"`  // little-endian float32
		Candidates *candidateJSON `json:"candidates,omitempty"`
		Early      []EncodedField `json:"early,omitempty"`
	}
)

// node returns the kind and the JSON of a plan without its inputs.
func (c planCodec) node(p Plan) (string, any, error) { //nolint:funlen // a flat switch
	var e exprWriter
	switch p := p.(type) {
	case *Scan:
		cand, err := c.candidate(p.Spec.Candidates)
		n := scanJSON{Table: p.Table, Columns: p.Spec.Columns, Names: p.Spec.Names, Candidates: cand, Filter: e.optional(p.Spec.Filter), Reason: p.Spec.Reason, RowAddr: p.Spec.RowAddr, Out: e.fields(p.Out.Fields())}
		return "scan", n, errors.Join(err, e.err)
	case *Filter:
		return "filter", filterJSON{e.one(p.Cond)}, e.err
	case *Project:
		return "project", projectJSON{p.Names, e.all(p.Exprs)}, e.err
	case *Values:
		n := valuesJSON{Out: e.fields(p.Out.Fields()), Rows: make([][][]byte, len(p.Rows))}
		for i, row := range p.Rows {
			n.Rows[i] = e.all(row)
		}
		return "values", n, e.err
	case *Limit:
		return "limit", limitJSON{p.Count, p.Offset}, nil
	case *Union:
		return "union", struct{}{}, nil
	case *Distinct:
		return "distinct", struct{}{}, nil
	case *Sort:
		return "sort", sortJSON{Keys: e.sortKeys(p.Keys)}, e.err
	case *TopN:
		return "top_n", sortJSON{e.sortKeys(p.Keys), p.Count, p.Offset}, e.err
	case *HashAggregate:
		n := aggregateJSON{Keys: e.all(p.Keys), Names: p.KeyNames}
		if p.Rollup {
			n.Level = p.out.Field(p.out.NumFields() - 1).Name
		}
		for _, a := range p.Aggs {
			n.Aggs = append(n.Aggs, aggJSON{a.Func, e.all(a.Args), a.Distinct, a.Concat, e.field(arrow.Field{Name: a.Name, Type: a.Type})})
		}
		return "aggregate", n, e.err
	case *Window:
		return "window", e.window(p), e.err
	case *HashJoin:
		s := p.Spec
		n := joinJSON{s.Kind, e.all(s.LeftKeys), e.all(s.RightKeys), s.NullSafe, e.optional(s.Residual), s.BuildLeft, nil}
		if s.Output != nil {
			n.Output = &s.Output
		}
		return "join", n, e.err
	case *Cap:
		return "cap", capJSON{p.RowsMax, p.BytesMax, p.Why}, nil
	case *CountRows:
		cand, err := c.candidate(p.Candidates)
		return "count_rows", countRowsJSON{p.Table, cand, p.Names}, err
	case *VectorSearch:
		cand, err := c.candidate(p.Candidates)
		n := searchJSON{Search: *p, Query: arrow.Float32Traits.CastToBytes(p.Query), Candidates: cand, Early: e.fields(p.out.Fields()[:len(p.Early)])}
		n.Search.Query, n.Search.Candidates = nil, nil
		return "vector_search", n, errors.Join(err, e.err)
	}
	for _, k := range c.codecs {
		if node, ok, err := k.Encode(p); ok || err != nil {
			return k.Kind, node, err
		}
	}
	return "", nil, errs.New(errs.ErrUnsupported, "a plan of type %T cannot be encoded", p)
}

// exprWriter encodes expressions and keeps the first error.
type exprWriter struct{ err error }

func (w *exprWriter) one(e expr.Expr) []byte {
	b, err := expr.Encode(e)
	w.err = errors.Join(w.err, err)
	return b
}

func (w *exprWriter) optional(e expr.Expr) []byte {
	if e == nil {
		return nil
	}
	return w.one(e)
}

func (w *exprWriter) all(es []expr.Expr) [][]byte {
	out := make([][]byte, len(es))
	for i, e := range es {
		out[i] = w.one(e)
	}
	return out
}

func (w *exprWriter) sortKeys(keys []SortKey) []sortKeyJSON {
	out := make([]sortKeyJSON, len(keys))
	for i, k := range keys {
		out[i] = sortKeyJSON{w.one(k.Expr), k.Desc, k.NullsLast}
	}
	return out
}

func (w *exprWriter) field(f arrow.Field) EncodedField {
	return EncodedField{w.one(&expr.Column{Name: f.Name, T: f.Type}), f.Nullable}
}

func (w *exprWriter) fields(fs []arrow.Field) []EncodedField {
	out := make([]EncodedField, len(fs))
	for i, f := range fs {
		out[i] = w.field(f)
	}
	return out
}

// exprReader decodes expressions and keeps the first error.
type exprReader struct{ err error }

func (r *exprReader) one(b []byte) expr.Expr {
	if r.err != nil {
		return nil
	}
	e, err := expr.Decode(b)
	r.err = err
	return e
}

func (r *exprReader) optional(b []byte) expr.Expr {
	if b == nil || r.err != nil {
		return nil
	}
	return r.one(b)
}

func (r *exprReader) all(bs [][]byte) []expr.Expr {
	out := make([]expr.Expr, len(bs))
	for i, b := range bs {
		out[i] = r.one(b)
	}
	return out
}

func (r *exprReader) sortKeys(keys []sortKeyJSON) []SortKey {
	out := make([]SortKey, len(keys))
	for i, k := range keys {
		out[i] = SortKey{r.one(k.Expr), k.Desc, k.NullsLast}
	}
	return out
}

func (r *exprReader) field(f EncodedField) arrow.Field {
	e := r.one(f.Column)
	c, ok := e.(*expr.Column)
	if !ok {
		if r.err == nil {
			r.err = errs.Corrupt("plan", -1, "a field that is no column")
		}
		return arrow.Field{}
	}
	return arrow.Field{Name: c.Name, Type: c.T, Nullable: f.Nullable}
}

func (r *exprReader) fields(fs []EncodedField) []arrow.Field {
	out := make([]arrow.Field, len(fs))
	for i, f := range fs {
		out[i] = r.field(f)
	}
	return out
}

// equalFields compares two schemas field by field.
func equalFields(a, b []arrow.Field) bool {
	return slices.EqualFunc(a, b, func(x, y arrow.Field) bool {
		return x.Name == y.Name && x.Nullable == y.Nullable && arrow.TypeEqual(x.Type, y.Type)
	})
}
