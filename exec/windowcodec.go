package exec

import (
	"encoding/json"

	"github.com/apache/arrow-go/v18/arrow"
)

func (w *exprWriter) window(p *Window) windowJSON {
	out := windowJSON{Partition: w.all(p.Partition), Order: w.sortKeys(p.Order), Output: p.Output, Limit: p.Limit}
	for _, f := range p.Funcs {
		t := f.Type
		if t == nil {
			t = arrow.Null // Func says which
		}
		out.Funcs = append(out.Funcs, windowFuncJSON{
			Func: f.Func, Agg: f.Agg, Args: w.all(f.Args), N: f.N, Rows: f.Frame.Rows, Start: w.bound(f.Frame.Start), End: w.bound(f.Frame.End),
			Key: w.optional(f.Frame.Key), Out: w.field(arrow.Field{Name: f.Name, Type: t}),
		})
	}
	return out
}

func (w *exprWriter) bound(b FrameBound) boundJSON {
	return boundJSON{Kind: b.Kind, Offset: b.Offset, Value: w.optional(b.Value)}
}

func (r *exprReader) bound(b boundJSON) FrameBound {
	return FrameBound{Kind: b.Kind, Offset: b.Offset, Value: r.optional(b.Value)}
}

func decodeWindow(raw json.RawMessage, in Plan) (Plan, error) {
	var j windowJSON
	if err := strictJSON(raw, &j); err != nil {
		return nil, err
	}
	var r exprReader
	w := Window{Input: in, Partition: r.all(j.Partition), Order: r.sortKeys(j.Order), Output: j.Output, Limit: j.Limit}
	if w.Output == nil {
		w.Output = []int{}
	}
	for _, f := range j.Funcs {
		spec := WindowSpec{Func: f.Func, Agg: f.Agg, Args: r.all(f.Args), N: f.N, Frame: Frame{Rows: f.Rows, Start: r.bound(f.Start), End: r.bound(f.End), Key: r.optional(f.Key)}}
		out := r.fields([]EncodedField{f.Out})
		if r.err != nil {
			return nil, r.err
		}
		spec.Name = out[0].Name
		if f.Func == WindowAggregate {
			spec.Type = out[0].Type
		}
		w.Funcs = append(w.Funcs, spec)
	}
	if r.err != nil {
		return nil, r.err
	}
	return NewWindow(w)
}
