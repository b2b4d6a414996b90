package main

import (
	"bytes"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

// TestTablesWithoutRows: an empty result shows its columns, a statement without a result prints nothing.
func TestTablesWithoutRows(t *testing.T) {
	for _, tc := range []struct {
		fields []arrow.Field
		want   string
	}{
		{fields: []arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}}, want: "+----+\n| id |\n+----+\n+----+\n"},
		{},
	} {
		var out bytes.Buffer
		w, err := newRowWriter("table", &out)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Header(tc.fields); err != nil {
			t.Fatal(err)
		}
		if err := w.Finish(); err != nil {
			t.Fatal(err)
		}
		if out.String() != tc.want {
			t.Errorf("%d columns: %q, want %q", len(tc.fields), out.String(), tc.want)
		}
	}
}
