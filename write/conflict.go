package write

import "github.com/lakesql/lakesql/storage/pb/tablepb"

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
