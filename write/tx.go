package write

import (
	"context"
	"errors"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"google.golang.org/protobuf/proto"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
	"github.com/lakesql/lakesql/storage/rowset"
	"github.com/lakesql/lakesql/storage/schema"
)

// TxOptions tunes Begin. The zero value is the default.
type TxOptions struct {
	Rows      RowOptions
	Commit    CommitOptions
	Predicate string      // of a deletion, as text for those who read the history; "" = not said
	Budget    *mem.Budget // pays for the rows that are kept track of and what file writers keep; nil = nobody
}

// Tx collects changes of one table and publishes them as one version. New rows are written at once, to files that no version names; deletions are kept
// in memory until Commit. It is used by one goroutine at a time. Every Tx ends by Commit or Rollback.
type Tx struct {
	table  *storage.Table
	target Target
	base   *storage.Snapshot
	at     *version
	opts   TxOptions
	held   *mem.Reservation

	schema   *schema.Schema // of the rows to come
	replaced *replacement   // nil = rows of base stay
	deleted  *rowset.Set    // addresses of base's rows that go, moved ones included
	staged   []*stagedFragment
	dropped  []*tablepb.DataFragment // staged before, of no use now
	modified fieldIDs                // that updates changed
	watches  []watch                 // what must not have been added when the transaction commits
	nextID   uint64                  // of the next staged fragment, in this session's eyes
	imported []ImportedFile          // that staged rows came from

	view  *storage.Snapshot // what Snapshot returned last; nil = something was staged since
	ended bool
}

// replacement says that every row of before goes.
type replacement struct {
	metadata    map[string][]byte // of the new schema
	keepIndices bool              // the columns are the same
}

// stagedFragment is new rows on disk.
type stagedFragment struct {
	pb      *tablepb.DataFragment // its id is provisional
	isMoved bool                  // rows that stood in base before an update
	deleted *roaring.Bitmap       // offsets of rows that went since; nil = none
}

func (f *stagedFragment) live() uint64 {
	if f.deleted == nil {
		return f.pb.GetPhysicalRows()
	}
	return f.pb.GetPhysicalRows() - f.deleted.GetCardinality()
}

// Begin starts a transaction on base, nil = the newest version. The version may be an old one: Commit then looks at everything that came since. table nil =
// that of base, which may be a branch's. Errors: ErrUnsupported for features that lakesql cannot write, ErrInvalid for options that make no sense and a
// base that is itself staged, and what Latest returns.
func Begin(ctx context.Context, table *storage.Table, base *storage.Snapshot, opts TxOptions) (*Tx, error) {
	if err := opts.Rows.Validate(); err != nil {
		return nil, err
	}
	if base == nil {
		var err error
		if base, err = table.Latest(ctx); err != nil {
			return nil, err
		}
	}
	table = base.Table()
	if base.IsOverlay() {
		return nil, errs.New(errs.ErrInvalid, "a transaction starts from a version, not from what another one staged")
	}
	m := base.Manifest()
	if err := manifest.CheckWritable(m.Proto.GetWriterFeatureFlags()); err != nil {
		return nil, err
	}
	x := &Tx{
		table: table, target: Target{Store: table.Store(), Dir: table.Dir()}, base: base, opts: opts, held: opts.Budget.Reserve(),
		at: &version{Manifest: m, naming: base.ManifestFile().Naming}, schema: base.Schema(), deleted: &rowset.Set{},
	}
	x.nextID = nextFragmentID(m.Proto)
	return x, nil
}

// check refuses work after the end.
func (x *Tx) check() error {
	if x.ended {
		return errs.New(errs.ErrInvalid, "the transaction has ended")
	}
	return nil
}

// files returns the writer of new rows. Errors: ErrUnsupported for the table's file version.
func (x *Tx) files() (*fileSet, error) {
	v, err := dataVersion(x.base.FormatVersion())
	if err != nil {
		return nil, err
	}
	return x.fileSet(v), nil
}

func (x *Tx) fileSet(v file.Version) *fileSet {
	return &fileSet{store: x.target.Store, dir: x.target.Dir, schema: x.schema, version: v, opts: x.opts.Rows.withDefaults(), budget: x.opts.Budget}
}

// Append adds the rows of several streams, which are written in parallel and counted. After an error the transaction is as before and goes on. Errors:
// ErrInvalid for batches that do not fit the schema, ErrUnsupported for the table's file version, ErrIO, ErrDiskFull, and those of the streams.
func (x *Tx) Append(ctx context.Context, parts []Batches) (rows uint64, err error) {
	if err := x.check(); err != nil {
		return 0, err
	}
	set, err := x.files()
	if err != nil {
		return 0, err
	}
	fragments, err := set.writeParts(ctx, parts)
	if err != nil {
		return 0, err
	}
	for _, f := range fragments {
		rows += f.GetPhysicalRows()
	}
	if err := x.stage(fragments, false); err != nil {
		return 0, errors.Join(err, set.remove(ctx, fragments))
	}
	return rows, nil
}

// stage takes written fragments in.
func (x *Tx) stage(fragments []*tablepb.DataFragment, isMoved bool) error {
	if len(fragments) == 0 {
		return nil
	}
	if uint64(len(fragments)) > fragmentRowsLimit-x.nextID {
		return errs.New(errs.ErrOverflow, "fragment ids are used up")
	}
	for _, f := range fragments {
		f.Id = x.nextID
		x.nextID++
		x.staged = append(x.staged, &stagedFragment{pb: f, isMoved: isMoved})
	}
	x.view = nil
	return nil
}

// Delete removes rows, named by the addresses that Snapshot gives them, and counts those that were there. Errors: ErrMemoryLimit, ErrCorrupt, ErrIO.
func (x *Tx) Delete(ctx context.Context, rows *rowset.Set) (n uint64, err error) {
	if err := x.check(); err != nil {
		return 0, err
	}
	view, err := x.Snapshot(ctx)
	if err != nil {
		return 0, err
	}
	live, err := view.LiveOf(ctx, rows)
	if err != nil {
		return 0, err
	}
	return live.Count(), x.drop(live)
}

// drop takes live rows out.
func (x *Tx) drop(live *rowset.Set) error {
	if live.IsEmpty() {
		return nil
	}
	if err := x.held.Grow(live.SizeBytes()); err != nil {
		return err
	}
	x.view = nil
	for _, id := range live.Uppers() {
		at := slices.IndexFunc(x.staged, func(f *stagedFragment) bool { return f.pb.GetId() == uint64(id) })
		if at < 0 {
			x.deleted.AddBitmap(id, live.Bitmap(id))
			continue
		}
		f := x.staged[at]
		// A snapshot that was handed out before may still read the old set.
		if f.deleted == nil {
			f.deleted = live.Bitmap(id).Clone()
		} else {
			f.deleted = roaring.Or(f.deleted, live.Bitmap(id))
		}
		if f.live() == 0 {
			x.dropped = append(x.dropped, f.pb)
			x.staged = slices.Delete(x.staged, at, at+1)
		}
	}
	return nil
}

// Replace puts the rows of several streams in place of every row, under a schema, nil = the present one. Columns that keep their names and types
// keep their ids only under the present schema; its indices then stay, and cover nothing. Errors: as Append and CreateTable.
func (x *Tx) Replace(ctx context.Context, parts []Batches, columns *arrow.Schema) error {
	if err := x.check(); err != nil {
		return err
	}
	next := &replacement{keepIndices: true}
	set := x.fileSet(file.V22)
	if columns != nil && !columns.Equal(x.base.ArrowSchema()) {
		s, err := schema.FromArrow(columns)
		if err != nil {
			return err
		}
		set.schema, next.keepIndices, next.metadata = s, false, s.Metadata
	} else {
		set.schema = x.base.Schema()
	}
	if v, err := dataVersion(x.base.FormatVersion()); err == nil {
		set.version = v
	} else if len(parts) > 0 {
		return err
	}
	if err := file.CheckWritable(set.schema, set.version); err != nil && (len(parts) > 0 || !next.keepIndices) {
		return err
	}
	fragments, err := set.writeParts(ctx, parts)
	if err != nil {
		return err
	}
	for _, f := range x.staged {
		x.dropped = append(x.dropped, f.pb)
	}
	x.staged, x.deleted, x.modified, x.view = nil, &rowset.Set{}, fieldIDs{}, nil
	x.replaced, x.schema = next, set.schema
	return x.stage(fragments, false)
}

// Snapshot returns what the session sees: base with everything that was staged. It is immutable; what is staged later is in the next one. Addresses of rows
// stay valid for the length of the transaction. Errors: ErrCorrupt, ErrIO.
func (x *Tx) Snapshot(ctx context.Context) (*storage.Snapshot, error) {
	if err := x.check(); err != nil {
		return nil, err
	}
	if x.view != nil {
		return x.view, nil
	}
	op := x.op()
	if op.isEmpty() {
		x.view = x.base
		return x.view, nil
	}
	deleted, err := op.preview(ctx)
	if err != nil {
		return nil, err
	}
	copied, ok := proto.Clone(x.at.Proto).(*tablepb.Manifest)
	if !ok {
		return nil, errs.New(errs.ErrInternal, "a cloned manifest is no manifest")
	}
	n := &next{manifest: copied, indices: slices.Clone(x.at.Indices)}
	if err := op.apply(x.at, n); err != nil {
		return nil, err
	}
	m := &manifest.Manifest{Proto: n.manifest, Indices: n.indices, Schema: x.schema}
	x.view, err = x.base.Overlay(ctx, storage.Staged{Manifest: m, Deleted: deleted})
	return x.view, err
}

// Commit publishes everything that was staged as one version, an Append, Delete, Update or Overwrite, whichever says it. Without a change nothing is
// published and base's version is returned. Commits of others that came since base are no hindrance where they touch other rows. The transaction
// has ended, whatever Commit returns; after an error its files are removed, unless nobody can tell whether the version was published. Errors: ErrConflict
// where another writer changed the same rows or the columns: run the statements again; ErrIO, ErrDiskFull.
func (x *Tx) Commit(ctx context.Context) (Committed, error) {
	if err := x.check(); err != nil {
		return Committed{}, err
	}
	if err := x.tidy(ctx); err != nil {
		return Committed{}, errors.Join(err, x.Rollback(ctx))
	}
	op := x.op()
	if op.isEmpty() {
		return Committed{Version: x.base.Version()}, x.Rollback(ctx)
	}
	x.ended = true
	defer x.held.Free()
	done, err := x.target.commit(ctx, x.at, op, x.opts.Commit)
	switch {
	case err == nil:
		// The version is published: what cannot be removed is garbage that no version names, and no failure.
		_ = errors.Join(x.fileSet(file.V22).remove(ctx, x.dropped), op.removeUnused(ctx))
		return done, nil
	case errors.Is(err, errOutcome):
		return Committed{}, err
	}
	return Committed{}, errors.Join(err, x.removeFiles(ctx), op.removeAll(ctx))
}

// Rollback drops everything that was staged and removes its files as far as possible. After the end it does nothing.
func (x *Tx) Rollback(ctx context.Context) error {
	if x.ended {
		return nil
	}
	x.ended = true
	x.held.Free()
	return x.removeFiles(ctx)
}

func (x *Tx) removeFiles(ctx context.Context) error {
	all := slices.Clone(x.dropped)
	for _, f := range x.staged {
		all = append(all, f.pb)
	}
	return x.fileSet(file.V22).remove(ctx, all)
}
