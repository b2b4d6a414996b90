package manifest

import (
	"context"
	"errors"
	"google.golang.org/protobuf/encoding/protowire"

	"google.golang.org/protobuf/proto"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
)

// Operation numbers of a Transaction, for operations that are recognised and kept but not interpreted.
const (
	opDataOverlay   = 115
	opAppendReuse   = 116
	transactionsMax = 1 << 30
)

// ParseTransaction decodes a transaction, inline or from a .txn file. Errors: ErrCorrupt.
func ParseTransaction(b []byte) (*tablepb.Transaction, error) {
	t := &tablepb.Transaction{}
	if err := proto.Unmarshal(b, t); err != nil {
		return nil, errs.Corrupt("transaction", -1, "%w", err)
	}
	return t, nil
}

// ReadTransaction returns the transaction that made a version: the inline one, else that of the .txn file. Errors: ErrNotFound where
// neither exists, ErrCorrupt, ErrIO.
func ReadTransaction(ctx context.Context, store object.Store, dir string, m *Manifest) (*tablepb.Transaction, error) {
	if m.Transaction != nil {
		return ParseTransaction(m.Transaction)
	}
	name := m.Proto.GetTransactionFile()
	if name == "" {
		return nil, errs.New(errs.ErrNotFound, "version %d has no transaction", m.Version())
	}
	path := object.Join(dir, TransactionsDir, name)
	f, err := store.Open(ctx, path)
	if errors.Is(err, errs.ErrInvalid) {
		return nil, errs.WithPath(errs.Corrupt("manifest", -1, "transaction file %q is no plain path", name), path)
	}
	if err != nil {
		return nil, err
	}
	if f.SizeBytes() > transactionsMax {
		return nil, errs.WithPath(errs.Corrupt("transaction", -1, "%d bytes long", f.SizeBytes()), path)
	}
	b, err := f.Read(ctx, object.Range{Size: f.SizeBytes()})
	if err != nil {
		return nil, err
	}
	t, err := ParseTransaction(b)
	if err != nil {
		return nil, errs.WithPath(err, path)
	}
	return t, nil
}

// OperationName names what a transaction did, as the reference engine calls it.
func OperationName(t *tablepb.Transaction) string { //nolint:funlen // flat switch
	switch t.GetOperation().(type) {
	case *tablepb.Transaction_Append_:
		return "Append"
	case *tablepb.Transaction_Delete_:
		return "Delete"
	case *tablepb.Transaction_Overwrite_:
		return "Overwrite"
	case *tablepb.Transaction_CreateIndex_:
		return "CreateIndex"
	case *tablepb.Transaction_Rewrite_:
		return "Rewrite"
	case *tablepb.Transaction_Merge_:
		return "Merge"
	case *tablepb.Transaction_Restore_:
		return "Restore"
	case *tablepb.Transaction_ReserveFragments_:
		return "ReserveFragments"
	case *tablepb.Transaction_Update_:
		return "Update"
	case *tablepb.Transaction_Project_:
		return "Project"
	case *tablepb.Transaction_UpdateConfig:
		return "UpdateConfig"
	case *tablepb.Transaction_DataReplacement_:
		return "DataReplacement"
	case *tablepb.Transaction_UpdateMemWalState:
		return "UpdateMemWalState"
	case *tablepb.Transaction_Clone_:
		return "Clone"
	case *tablepb.Transaction_UpdateBases:
		return "UpdateBases"
	}
	for _, n := range unknownNumbers(t.ProtoReflect().GetUnknown()) {
		switch n {
		case opDataOverlay:
			return "DataOverlay"
		case opAppendReuse:
			return "AppendFragmentReuseTransitions"
		}
	}
	return "unknown"
}

// unknownNumbers lists the field numbers in the unknown part of a message.
func unknownNumbers(b []byte) []protowire.Number {
	var out []protowire.Number
	for len(b) > 0 {
		n, _, size := protowire.ConsumeField(b)
		if size < 0 {
			return out
		}
		out = append(out, n)
		b = b[size:]
	}
	return out
}
