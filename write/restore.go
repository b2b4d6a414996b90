package write

import (
	"context"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
)

// Restore makes an old version the newest one: rows, columns, indices and configuration are as they were, the history stays. It wins over whatever others
// commit meanwhile. Errors: ErrNotFound for a version, tag or time that is not there, ErrUnsupported for its features, ErrConflict, ErrIO.
func Restore(ctx context.Context, table *storage.Table, ref storage.Ref, opts CommitOptions) (Committed, error) {
	old, err := table.At(ctx, ref)
	if err != nil {
		return Committed{}, err
	}
	table = old.Table() // a branch's, if ref names one
	now, err := table.Latest(ctx)
	if err != nil {
		return Committed{}, err
	}
	at := &version{Manifest: now.Manifest(), naming: now.ManifestFile().Naming}
	target := Target{Store: table.Store(), Dir: table.Dir()}
	return target.commit(ctx, at, &restoreOp{old: old.Manifest()}, opts)
}

type restoreOp struct{ old *manifest.Manifest }

func (o *restoreOp) apply(base *version, n *next) error {
	if err := manifest.CheckWritable(o.old.Proto.GetWriterFeatureFlags()); err != nil {
		return err
	}
	m, ok := proto.Clone(o.old.Proto).(*tablepb.Manifest)
	if !ok {
		return errs.New(errs.ErrInternal, "a cloned manifest is no manifest")
	}
	now := n.manifest
	m.Version, m.Timestamp, m.WriterVersion, m.TransactionFile, m.Tag = now.GetVersion(), now.GetTimestamp(), now.GetWriterVersion(), "", ""
	dropNumber(m, newTransactionSection)
	// What was given once is never given again (I3).
	if next := max(nextFragmentID(m), nextFragmentID(base.Proto)); next > 0 {
		top := uint32(next - 1)
		m.MaxFragmentId = &top
	}
	m.NextRowId = max(m.GetNextRowId(), base.Proto.GetNextRowId())
	m.Branch = now.Branch
	n.manifest, n.indices = m, slices.Clone(o.old.Indices)
	return nil
}

func (o *restoreOp) transaction() *tablepb.Transaction {
	return &tablepb.Transaction{Operation: &tablepb.Transaction_Restore_{Restore: &tablepb.Transaction_Restore{Version: o.old.Version()}}}
}

func (o *restoreOp) allows(*tablepb.Transaction) bool { return true }
