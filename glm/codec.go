package glm

import (
	"encoding/json"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/internal/errs"
)

type fetchJSON struct {
	Table      exec.TableRef       `json:"table"`
	AddrColumn int                 `json:"addr_column"`
	Columns    []string            `json:"columns"`
	Reason     string              `json:"reason,omitempty"`
	Fields     []exec.EncodedField `json:"fields"`
}

// Codec lets exec.EncodePlan and exec.DecodePlan know Fetch.
func Codec() exec.PlanCodec {
	return exec.PlanCodec{Kind: "fetch", Encode: encodeFetch, Decode: decodeFetch}
}

func encodeFetch(p exec.Plan) (any, bool, error) {
	f, ok := p.(*Fetch)
	if !ok {
		return nil, false, nil
	}
	own := f.out.Fields()[f.Input.Schema().NumFields():]
	fields, err := exec.EncodeFields(own)
	return fetchJSON{f.Table, f.AddrColumn, f.Columns, f.Reason, fields}, true, err
}

func decodeFetch(node json.RawMessage, inputs []exec.Plan) (exec.Plan, error) {
	var j fetchJSON
	if err := json.Unmarshal(node, &j); err != nil {
		return nil, errs.Corrupt("plan", -1, "fetch: %w", err)
	}
	if len(inputs) != 1 {
		return nil, errs.Corrupt("plan", -1, "a fetch over %d inputs", len(inputs))
	}
	fields, err := exec.DecodeFields(j.Fields)
	if err != nil {
		return nil, err
	}
	return NewFetch(Fetch{Input: inputs[0], Table: j.Table, AddrColumn: j.AddrColumn, Columns: j.Columns, Reason: j.Reason}, fields)
}
