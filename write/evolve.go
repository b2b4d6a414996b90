package write

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/pb/filepb"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
	"github.com/lakesql/lakesql/storage/schema"
)

// EvolveOptions tunes changes of columns. The zero value is the default.
type EvolveOptions struct {
	Rows   RowOptions
	Commit CommitOptions
	Alloc  memory.Allocator // of batches that are read; nil = that of the context
	// DropIndices lets go of indices on a column that is dropped or rewritten; without it they are a reason to refuse.
	DropIndices bool
}

func (o EvolveOptions) alloc(ctx context.Context) memory.Allocator {
	if o.Alloc != nil {
		return o.Alloc
	}
	return compute.GetAllocator(ctx)
}

// evolution is one change of a table's columns.
type evolution struct {
	target Target
	snap   *storage.Snapshot
	at     *version
	opts   EvolveOptions
}

func evolve(ctx context.Context, table *storage.Table, opts EvolveOptions) (*evolution, error) {
	snap, err := table.Latest(ctx)
	if err != nil {
		return nil, err
	}
	return evolveFrom(snap, opts)
}

// evolveFrom starts from a version of the table.
func evolveFrom(snap *storage.Snapshot, opts EvolveOptions) (*evolution, error) {
	if err := opts.Rows.Validate(); err != nil {
		return nil, err
	}
	table := snap.Table()
	if err := manifest.CheckWritable(snap.Manifest().Proto.GetWriterFeatureFlags()); err != nil {
		return nil, err
	}
	return &evolution{
		target: Target{Store: table.Store(), Dir: table.Dir()}, snap: snap, opts: opts,
		at: &version{Manifest: snap.Manifest(), naming: snap.ManifestFile().Naming},
	}, nil
}

// column finds a top-level column.
func (e *evolution) column(name string) (*schema.Field, error) {
	f, ok := e.snap.Schema().Lookup(name)
	if !ok {
		return nil, errs.New(errs.ErrNotFound, "the table has no column %q", name)
	}
	return f, nil
}

// mayLose refuses to lose the indices on a column, unless they may go.
func (e *evolution) mayLose(f *schema.Field) error {
	if e.opts.DropIndices {
		return nil
	}
	for _, info := range e.snap.Indices() {
		for d := range f.All() {
			if slices.Contains(info.FieldIDs, d.ID) {
				return errs.New(errs.ErrInvalid, "index %q is on column %q and would be lost: drop the index first", info.Name, f.Name)
			}
		}
	}
	return nil
}

// DropColumns takes columns out of the table; the files keep their values until they are rewritten. Errors: ErrNotFound for a column, ErrInvalid for the
// last one and for one with an index, ErrConflict, ErrIO.
func DropColumns(ctx context.Context, table *storage.Table, names []string, opts EvolveOptions) (Committed, error) {
	e, err := evolve(ctx, table, opts)
	if err != nil {
		return Committed{}, err
	}
	gone := make(map[int32]bool)
	for _, name := range names {
		f, err := e.column(name)
		if err != nil {
			return Committed{}, err
		}
		if err := e.mayLose(f); err != nil {
			return Committed{}, err
		}
		for d := range f.All() {
			gone[d.ID] = true
		}
	}
	op := &projectOp{keepsNulls: true, edit: func(fields []*filepb.Field) ([]*filepb.Field, error) {
		left := slices.DeleteFunc(fields, func(f *filepb.Field) bool { return gone[f.GetId()] })
		if len(left) == 0 {
			return nil, errs.New(errs.ErrInvalid, "a table needs a column: drop the table instead")
		}
		return left, nil
	}}
	return e.target.commit(ctx, e.at, op, opts.Commit)
}

// RenameColumn gives a column another name; its id, values and indices stay. Errors: ErrNotFound, ErrExists for a name that is taken, ErrInvalid for an
// empty one, ErrConflict, ErrIO.
func RenameColumn(ctx context.Context, table *storage.Table, from, to string, opts EvolveOptions) (Committed, error) {
	e, err := evolve(ctx, table, opts)
	if err != nil {
		return Committed{}, err
	}
	f, err := e.column(from)
	if err != nil {
		return Committed{}, err
	}
	if err := checkNewName(e.snap.Schema(), to); err != nil {
		return Committed{}, err
	}
	op := &projectOp{keepsNulls: true, edit: func(fields []*filepb.Field) ([]*filepb.Field, error) {
		for _, pf := range fields {
			if pf.GetId() == f.ID {
				pf.Name = to
			}
		}
		return fields, nil
	}}
	return e.target.commit(ctx, e.at, op, opts.Commit)
}

func checkNewName(s *schema.Schema, name string) error {
	if name == "" {
		return errs.New(errs.ErrInvalid, "a column needs a name")
	}
	if name == storage.RowAddrColumn || name == storage.RowIDColumn {
		return errs.New(errs.ErrInvalid, "the column name %q is reserved", name)
	}
	if _, taken := s.Lookup(name); taken {
		return errs.New(errs.ErrExists, "the table has a column %q already", name)
	}
	return nil
}

// ModifyColumn changes a column to another type, nullability, name or metadata. Another type rewrites the values: convert makes them, nil = an Arrow cast that fails where
// a value does not fit. Indices on the column are then lost. NOT NULL is checked against the rows. Errors: ErrNotFound, ErrExists, ErrInvalid for a NULL
// in the way and for an index, ErrOverflow for a value that does not fit, ErrUnsupported, ErrConflict, ErrIO.
func ModifyColumn(
	ctx context.Context, table *storage.Table, name string, to arrow.Field, convert func(context.Context, arrow.Array) (arrow.Array, error), opts EvolveOptions,
) (Committed, error) {
	e, err := evolve(ctx, table, opts)
	if err != nil {
		return Committed{}, err
	}
	f, err := e.column(name)
	if err != nil {
		return Committed{}, err
	}
	if to.Name != name {
		if err := checkNewName(e.snap.Schema(), to.Name); err != nil {
			return Committed{}, err
		}
	}
	if f.Nullable && !to.Nullable {
		if err := e.refuseNulls(ctx, name); err != nil {
			return Committed{}, err
		}
	}
	if !arrow.TypeEqual(f.Type, to.Type) {
		if convert == nil {
			convert = castTo(to.Type)
		}
		return e.retype(ctx, f, to, convert)
	}
	fresh, err := newFields([]arrow.Field{to}, 0)
	if err != nil {
		return Committed{}, err
	}
	op := &projectOp{keepsNulls: to.Nullable || !f.Nullable, edit: func(fields []*filepb.Field) ([]*filepb.Field, error) {
		for _, pf := range fields {
			if pf.GetId() == f.ID {
				pf.Name, pf.Nullable, pf.Metadata = to.Name, to.Nullable, fresh.ToProto()[0].GetMetadata()
			}
		}
		return fields, nil
	}}
	return e.target.commit(ctx, e.at, op, opts.Commit)
}

// castTo is the cast of ModifyColumn where the caller has none.
func castTo(t arrow.DataType) func(context.Context, arrow.Array) (arrow.Array, error) {
	return func(ctx context.Context, a arrow.Array) (arrow.Array, error) {
		out, err := compute.CastArray(ctx, a, compute.SafeCastOptions(t))
		if errors.Is(err, arrow.ErrNotImplemented) {
			return nil, errs.New(errs.ErrUnsupported, "a change from %s to %s: %w", a.DataType(), t, err)
		}
		if err != nil {
			return nil, errs.New(errs.ErrOverflow, "a change from %s to %s: %w", a.DataType(), t, err)
		}
		return out, nil
	}
}

// refuseNulls reads a column and fails at the first NULL.
func (e *evolution) refuseNulls(ctx context.Context, name string) error {
	scan, err := e.snap.Scan(ctx, storage.ScanOptions{Columns: []string{name}, Alloc: e.opts.alloc(ctx)})
	if err != nil {
		return err
	}
	for r := scan.Reader(); ; {
		b, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		n := b.Column(0).NullN()
		b.Release()
		if n > 0 {
			return errors.Join(errs.New(errs.ErrInvalid, "column %q cannot be NOT NULL: it holds NULL", name), r.Close())
		}
	}
}

// newFields makes schema fields with ids from first on.
func newFields(fields []arrow.Field, first int32) (*schema.Schema, error) {
	s, err := schema.FromArrow(arrow.NewSchema(fields, nil))
	if err != nil {
		return nil, err
	}
	for f := range s.All() {
		f.ID += first
	}
	return s, nil
}

// nextFieldID is the first id that neither the schema nor a file uses: files may hold columns that were dropped.
func nextFieldID(m *tablepb.Manifest) int32 {
	next := int32(0)
	for _, f := range m.GetFields() {
		next = max(next, f.GetId()+1)
	}
	for _, f := range m.GetFragments() {
		for _, d := range f.GetFiles() {
			for _, id := range d.GetFields() {
				next = max(next, id+1)
			}
		}
	}
	return next
}

// projectOp changes the list of columns and no data.
type projectOp struct {
	edit       func(fields []*filepb.Field) ([]*filepb.Field, error) // may change what it is given
	keepsNulls bool                                                  // no column forbids NULL that allowed it
	fields     []*filepb.Field
}

func (o *projectOp) apply(_ *version, n *next) error {
	var err error
	if n.manifest.Fields, err = o.edit(n.manifest.GetFields()); err != nil {
		return err
	}
	if _, err := schema.FromProto(n.manifest.GetFields(), nil); err != nil {
		return fmt.Errorf("the changed columns: %w", err)
	}
	o.fields = n.manifest.GetFields()
	n.dropDeadFiles()
	return n.retainIndices()
}

func (o *projectOp) transaction() *tablepb.Transaction {
	tx := &tablepb.Transaction_Project{Schema: o.fields, PreservesNullability: o.keepsNulls}
	return &tablepb.Transaction{Operation: &tablepb.Transaction_Project_{Project: tx}}
}

// allows: rows come and go whatever the columns are called; what adds NULLs is no friend of a new NOT NULL.
func (o *projectOp) allows(came *tablepb.Transaction) bool {
	switch c := came.GetOperation().(type) {
	case *tablepb.Transaction_UpdateConfig:
		return keepsSchema(c.UpdateConfig)
	case *tablepb.Transaction_Delete_, *tablepb.Transaction_CreateIndex_, *tablepb.Transaction_Rewrite_, *tablepb.Transaction_ReserveFragments_,
		*tablepb.Transaction_UpdateBases, *tablepb.Transaction_Clone_:
		return true
	case *tablepb.Transaction_Append_, *tablepb.Transaction_Update_, *tablepb.Transaction_DataReplacement_:
		return o.keepsNulls
	}
	return false
}

// dropDeadFiles takes data files without a field of the table out of the fragments.
func (n *next) dropDeadFiles() {
	live := make(map[int32]bool)
	for _, f := range n.manifest.GetFields() {
		live[f.GetId()] = true
	}
	for _, f := range n.manifest.GetFragments() {
		f.Files = slices.DeleteFunc(f.GetFiles(), func(d *tablepb.DataFile) bool {
			return !slices.ContainsFunc(d.GetFields(), func(id int32) bool { return live[id] })
		})
	}
}

// mergeOp adds columns, with a file of values for each fragment, or none: then they are NULL. A column that replaces another takes its place.
type mergeOp struct {
	base     *tablepb.Manifest
	fields   *schema.Schema
	replaces map[int32]int32              // new field id by that of the column that goes
	files    map[uint64]*tablepb.DataFile // by fragment; empty = NULL everywhere
	hasFiles bool
	result   *tablepb.Transaction_Merge
}

func (o *mergeOp) apply(_ *version, n *next) error {
	m := n.manifest
	gone := make(map[int32]bool)
	for old := range o.replaces {
		f, ok := schemaField(o.base, old)
		if !ok {
			return errs.New(errs.ErrInternal, "field %d is not there", old)
		}
		for d := range f.All() {
			gone[d.ID] = true
		}
	}
	added := o.fields.ToProto()
	var fields []*filepb.Field
	for _, f := range m.GetFields() {
		if id, ok := o.replaces[f.GetId()]; ok {
			fields = append(fields, treeOf(added, id)...)
		}
		if !gone[f.GetId()] {
			fields = append(fields, f)
		}
	}
	for _, f := range added {
		if !slices.ContainsFunc(fields, func(g *filepb.Field) bool { return g.GetId() == f.GetId() }) {
			fields = append(fields, f)
		}
	}
	m.Fields = fields
	if err := o.attach(m); err != nil {
		return err
	}
	n.dropDeadFiles()
	o.result = &tablepb.Transaction_Merge{Fragments: m.GetFragments(), Schema: m.GetFields(), SchemaMetadata: m.GetSchemaMetadata(), PreservesNullability: true}
	for _, f := range o.fields.Fields {
		if _, replaces := o.replaces[f.ID]; !replaces && !f.Nullable {
			o.result.PreservesNullability = false
		}
	}
	return n.retainIndices()
}

// attach gives the fragments their files of new values.
func (o *mergeOp) attach(m *tablepb.Manifest) error {
	if !o.hasFiles {
		return nil
	}
	for _, f := range m.GetFragments() {
		d, ok := o.files[f.GetId()]
		if !ok {
			return errs.New(errs.ErrConflict, "fragment %d came while the new column was computed; run the statement again", f.GetId())
		}
		f.Files = append(f.Files, d)
	}
	return nil
}

func schemaField(m *tablepb.Manifest, id int32) (*schema.Field, bool) {
	s, err := schema.FromProto(m.GetFields(), nil)
	if err != nil {
		return nil, false
	}
	return s.ByID(id)
}

// treeOf returns a field of a flat list with its descendants, which follow it.
func treeOf(fields []*filepb.Field, id int32) []*filepb.Field {
	var out []*filepb.Field
	in := map[int32]bool{}
	for _, f := range fields {
		if f.GetId() == id || in[f.GetParentId()] && f.GetParentId() >= 0 {
			in[f.GetId()] = true
			out = append(out, f)
		}
	}
	return out
}

func (o *mergeOp) transaction() *tablepb.Transaction {
	return &tablepb.Transaction{Operation: &tablepb.Transaction_Merge_{Merge: o.result}}
}

// allows: rows that go are no hindrance. Rows that come have no value in a new column, which is right only where it is NULL everywhere.
func (o *mergeOp) allows(came *tablepb.Transaction) bool {
	switch c := came.GetOperation().(type) {
	case *tablepb.Transaction_UpdateConfig:
		return keepsSchema(c.UpdateConfig)
	case *tablepb.Transaction_Delete_, *tablepb.Transaction_CreateIndex_, *tablepb.Transaction_ReserveFragments_, *tablepb.Transaction_UpdateBases,
		*tablepb.Transaction_Clone_:
		return true
	case *tablepb.Transaction_Append_, *tablepb.Transaction_Update_, *tablepb.Transaction_Rewrite_, *tablepb.Transaction_DataReplacement_:
		return !o.hasFiles
	}
	return false
}
