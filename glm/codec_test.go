package glm

import (
	"bytes"
	"errors"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/internal/errs"
)

func TestFetchEncodesToItself(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: exec.RowAddrColumn, Type: arrow.PrimitiveTypes.Uint64}}, nil)
	in, err := exec.NewValues(schema, nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := NewFetch(Fetch{Input: in, Table: exec.TableRef{Source: "demo", Table: "t", Version: 3}, Columns: []string{"note"}, Reason: "wide"},
		[]arrow.Field{{Name: "text", Type: arrow.BinaryTypes.String, Nullable: true}})
	if err != nil {
		t.Fatal(err)
	}
	first, err := exec.EncodePlan(f, Codec())
	if err != nil {
		t.Fatal(err)
	}
	p, err := exec.DecodePlan(first, Codec())
	if err != nil {
		t.Fatal(err)
	}
	second, err := exec.EncodePlan(p, Codec())
	if err != nil || !bytes.Equal(first, second) || exec.Explain(p, nil) != exec.Explain(f, nil) || !p.Schema().Equal(f.Schema()) {
		t.Fatalf("%v\n%s\n%s", err, first, second)
	}
	for _, bad := range []string{`{"kind":"fetch","node":{}}`, `{"kind":"fetch","node":3}`, `{"kind":"fetch","node":{"addr_column":7},"inputs":[{"kind":"values","node":{"out":[],"rows":[]}}]}`} {
		if _, err := exec.DecodePlan([]byte(bad), Codec()); !errors.Is(err, errs.ErrCorrupt) {
			t.Errorf("%s gave %v", bad, err)
		}
	}
}
