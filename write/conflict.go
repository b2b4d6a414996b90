package write

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/lakesql/lakesql/storage/pb/tablepb"
	"github.com/lakesql/lakesql/storage/schema"
)

// This file says which transactions of others a change may follow, as far as their kind tells (I4). Operations that move or mark rows look at the rows
// themselves too, when they are prepared for the version that they follow.

// allowsRows: rows come and go beside these, as long as they are other rows.
func allowsRows(came *tablepb.Transaction) bool {
	switch came.GetOperation().(type) {
	case *tablepb.Transaction_Append_, *tablepb.Transaction_Delete_, *tablepb.Transaction_Update_, *tablepb.Transaction_CreateIndex_,
		*tablepb.Transaction_Rewrite_, *tablepb.Transaction_ReserveFragments_, *tablepb.Transaction_DataReplacement_,
		*tablepb.Transaction_Project_, *tablepb.Transaction_UpdateConfig, *tablepb.Transaction_UpdateBases, *tablepb.Transaction_Clone_:
		return true
	}
	return false
}

// allowsReplacement: who replaces all rows does not care what they were, but the columns must be those that were read.
func allowsReplacement(came *tablepb.Transaction) bool {
	switch came.GetOperation().(type) {
	case *tablepb.Transaction_Append_, *tablepb.Transaction_Delete_, *tablepb.Transaction_Update_, *tablepb.Transaction_CreateIndex_,
		*tablepb.Transaction_Rewrite_, *tablepb.Transaction_ReserveFragments_, *tablepb.Transaction_DataReplacement_,
		*tablepb.Transaction_UpdateConfig, *tablepb.Transaction_UpdateBases, *tablepb.Transaction_Clone_:
		return true
	}
	return false
}

// keepsColumns says that the changed columns of a Merge leave rows of the schema of before as they are: its fields are all there, of their types and as free to be NULL, and
// a row may do without the new ones. hasValues says that some fragment has values in a new field: a row that comes without one would lack what the others got.
func keepsColumns(before *schema.Schema, came *tablepb.Transaction_Merge) (keeps, hasValues bool) {
	after, err := schema.FromProto(came.GetSchema(), nil)
	if err != nil {
		return false, false
	}
	known := make(map[int32]bool)
	for f := range before.All() {
		known[f.ID] = true
		is, ok := after.ByID(f.ID)
		if !ok || is.Logical != f.Logical || f.Nullable && !is.Nullable {
			return false, false
		}
	}
	for _, top := range after.Fields {
		if !known[top.ID] && !top.Nullable {
			return false, false
		}
		for f := range top.All() {
			if known[top.ID] && !known[f.ID] { // a part of a struct that is there
				return false, false
			}
		}
	}
	for _, f := range came.GetFragments() {
		for _, d := range f.GetFiles() {
			for _, id := range d.GetFields() {
				if _, is := after.ByID(id); is && !known[id] {
					hasValues = true
				}
			}
		}
	}
	return true, hasValues
}

// Fields of the message UpdateConfig, of which nothing else is looked at, that leave the schema alone: configuration and the table's metadata, in the old form and the new one.
const (
	configUpserts protowire.Number = 1
	configDeletes protowire.Number = 2
	configUpdates protowire.Number = 6
	tableMetadata protowire.Number = 7
)

// keepsSchema says that a change of configuration does not change the metadata of the schema or of fields, which a change of columns writes anew.
func keepsSchema(came *tablepb.Transaction_Opaque) bool {
	for rest := came.ProtoReflect().GetUnknown(); len(rest) > 0; {
		number, _, size := protowire.ConsumeField(rest)
		if size < 0 {
			return false
		}
		switch number {
		case configUpserts, configDeletes, configUpdates, tableMetadata:
		default:
			return false
		}
		rest = rest[size:]
	}
	return true
}
