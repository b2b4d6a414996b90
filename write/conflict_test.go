package write

import (
	"context"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/lakesql/lakesql/storage/pb/filepb"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
	"github.com/lakesql/lakesql/storage/rowset"
	"github.com/lakesql/lakesql/storage/schema"
)

// The table of docs/format/writing.md section 7: what each change may follow, as far as the kind of the other tells.
func TestTheConflictTable(t *testing.T) {
	unknown := &tablepb.Transaction{}
	unknown.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, 115, protowire.BytesType), nil))
	tx := func(set func(*tablepb.Transaction)) *tablepb.Transaction {
		out := &tablepb.Transaction{}
		set(out)
		return out
	}
	ctx := context.Background()
	h, table := evolving(t, CreateOptions{})
	deleting, updating, replacing := mustBegin(t, table, TxOptions{}), mustBegin(t, table, TxOptions{}), mustBegin(t, table, TxOptions{})
	proto := deleting.at.Proto
	merge := func(edit func(m *tablepb.Transaction_Merge)) *tablepb.Transaction {
		m := &tablepb.Transaction_Merge{Schema: slices.Clone(proto.GetFields()), Fragments: proto.GetFragments()}
		edit(m)
		return tx(func(t *tablepb.Transaction) { t.Operation = &tablepb.Transaction_Merge_{Merge: m} })
	}
	column := func(nullable bool) *filepb.Field {
		return &filepb.Field{Id: 1000, ParentId: -1, Name: "fresh", LogicalType: "int32", Nullable: nullable}
	}
	config := func(field protowire.Number) *tablepb.Transaction {
		c := &tablepb.Transaction_Opaque{}
		c.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), nil))
		return tx(func(t *tablepb.Transaction) { t.Operation = &tablepb.Transaction_UpdateConfig{UpdateConfig: c} })
	}
	came := []struct {
		name string
		tx   *tablepb.Transaction
	}{
		{"Append", tx(func(t *tablepb.Transaction) { t.Operation = &tablepb.Transaction_Append_{} })},
		{"Delete", tx(func(t *tablepb.Transaction) { t.Operation = &tablepb.Transaction_Delete_{} })},
		{"Update", tx(func(t *tablepb.Transaction) { t.Operation = &tablepb.Transaction_Update_{} })},
		{"CreateIndex", tx(func(t *tablepb.Transaction) { t.Operation = &tablepb.Transaction_CreateIndex_{} })},
		{"Rewrite", tx(func(t *tablepb.Transaction) { t.Operation = &tablepb.Transaction_Rewrite_{} })},
		{"ReserveFragments", tx(func(t *tablepb.Transaction) { t.Operation = &tablepb.Transaction_ReserveFragments_{} })},
		{"DataReplacement", tx(func(t *tablepb.Transaction) { t.Operation = &tablepb.Transaction_DataReplacement_{} })},
		{"Project", tx(func(t *tablepb.Transaction) {
			t.Operation = &tablepb.Transaction_Project_{Project: &tablepb.Transaction_Project{PreservesNullability: true}}
		})},
		{"Project, NOT NULL", tx(func(t *tablepb.Transaction) { t.Operation = &tablepb.Transaction_Project_{} })},
		{"Merge, a column of NULL", merge(func(m *tablepb.Transaction_Merge) { m.Schema = append(m.Schema, column(true)) })},
		{"Merge, a column of values", merge(func(m *tablepb.Transaction_Merge) {
			m.Schema = append(m.Schema, column(true))
			m.Fragments = []*tablepb.DataFragment{{Files: []*tablepb.DataFile{{Fields: []int32{1000}}}}}
		})},
		{"Merge, a column NOT NULL", merge(func(m *tablepb.Transaction_Merge) { m.Schema = append(m.Schema, column(false)) })},
		{"Merge, a column less", merge(func(m *tablepb.Transaction_Merge) { m.Schema = m.GetSchema()[1:] })},
		{"UpdateConfig of the table", config(6)},
		{"UpdateConfig of fields", config(9)},
		{"UpdateBases", tx(func(t *tablepb.Transaction) { t.Operation = &tablepb.Transaction_UpdateBases{} })},
		{"Clone", tx(func(t *tablepb.Transaction) { t.Operation = &tablepb.Transaction_Clone_{} })},
		{"UpdateMemWalState", tx(func(t *tablepb.Transaction) { t.Operation = &tablepb.Transaction_UpdateMemWalState{} })},
		{"Overwrite", tx(func(t *tablepb.Transaction) { t.Operation = &tablepb.Transaction_Overwrite_{} })},
		{"Restore", tx(func(t *tablepb.Transaction) { t.Operation = &tablepb.Transaction_Restore_{} })},
		{"unknown", unknown},
	}
	rows := rowset.NewSet(uint64(rowset.Addr(0, 60)))
	for _, x := range []*Tx{deleting, updating} {
		if _, err := x.Delete(ctx, rows); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := updating.Append(ctx, []Batches{h.fresh(h.rows, 1)}); err != nil {
		t.Fatal(err)
	}
	if err := replacing.Replace(ctx, nil, nil); err != nil {
		t.Fatal(err)
	}
	// One letter for each of came: y = goes on, n = conflict.
	for name, c := range map[string]struct {
		op   operation
		want string
	}{
		"append":               {&appendOp{schema: deleting.base.Schema()}, "y y y y y y y y n y n n n y y y y n n n n"},
		"delete":               {deleting.op(), "y y y y y y y y y y y n n y y y y n n n n"},
		"update":               {updating.op(), "y y y y y y y y n y n n n y y y y n n n n"},
		"replace":              {replacing.op(), "y y y y y y y n n n n n n y y y y n n n n"},
		"project":              {&projectOp{keepsNulls: true}, "y y y y y y y n n n n n n y n y y n n n n"},
		"project to NOT NULL":  {&projectOp{}, "n y n y y y n n n n n n n y n y y n n n n"},
		"a column of NULL":     {&mergeOp{fields: &schema.Schema{}}, "y y y y y y y n n n n n n y n y y n n n n"},
		"a computed column":    {&mergeOp{fields: &schema.Schema{}, hasFiles: true}, "n y n y n y n n n n n n n y n y y n n n n"},
		"compaction":           {&rewriteOp{snap: updating.base}, "y y y y y y y y y n n n n y y y y n n n n"},
		"index":                {&indexOp{}, "y y y y y y y y y y y y y y y y y n n n n"},
		"reserve fragment ids": {&reserveOp{}, "y y y y y y y y y y y y y y y y y y y y y"},
		"restore":              {&restoreOp{}, "y y y y y y y y y y y y y y y y y y y y y"},
	} {
		for i, letter := range strings.Fields(c.want) {
			if got := c.op.allows(came[i].tx); got != (letter == "y") {
				t.Errorf("%s after %s: %t", name, came[i].name, got)
			}
		}
	}
	for _, x := range []*Tx{deleting, updating, replacing} {
		if err := x.Rollback(ctx); err != nil {
			t.Fatal(err)
		}
	}
}
