package write

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"google.golang.org/protobuf/proto"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/pb/filepb"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
	"github.com/lakesql/lakesql/storage/schema"
)

// AlteredColumn is a column of a table after Alter.
type AlteredColumn struct {
	From  string // the column that it was before, spelled exactly; "" = it is new
	Field arrow.Field
}

// Alteration is a change of several things of a table at once.
type Alteration struct {
	// Columns are all columns of the table after the change, in their order; those that no From names go. nil = they stay as they are.
	Columns []AlteredColumn
	// Values makes the values of the columns that are new or of another type, in the order of Columns; nil = NULL everywhere, which only new columns may be.
	Values      *ColumnValues
	DropIndices []string    // names of indices that go
	NewIndices  []IndexSpec // that are built over the rows as they are after the change
}

// Alter makes all changes of a version of a table in one new version, or none. Rows that others wrote since are no hindrance where the change needs no values. Indices of columns that go or change their type must be among those that go. Errors: ErrNotFound for a column or an index,
// ErrExists for an index, ErrInvalid for names that are taken twice, for NULL in the way of a column and for an index in the way, ErrConflict, ErrIO, ErrDiskFull, and those of Values and CreateIndex.
func Alter(ctx context.Context, of *storage.Snapshot, change Alteration, index IndexOptions, opts EvolveOptions) (Committed, error) {
	e, err := evolveFrom(of, opts)
	if err != nil {
		return Committed{}, err
	}
	op := &alterOp{mergeOp: mergeOp{base: e.at.Proto}, columns: change.Columns != nil, dropped: change.DropIndices}
	if err := e.plan(ctx, op, change); err != nil {
		return Committed{}, err
	}
	for _, name := range change.DropIndices {
		if len(group(e.snap, name)) == 0 {
			return Committed{}, errs.New(errs.ErrUnknownIndex, "the table has no index %q", name)
		}
	}
	var set *fileSet
	var written []*tablepb.DataFragment
	if len(op.fields.Fields) > 0 && change.Values != nil {
		if set, written, err = e.fillAll(ctx, &op.mergeOp, change.Values); err != nil {
			return Committed{}, err
		}
	}
	jobs, err := e.buildIndices(ctx, op, change.NewIndices, index)
	var done Committed
	if err == nil {
		done, err = e.target.commit(ctx, e.at, op, opts.Commit)
	}
	if err == nil || errors.Is(err, errOutcome) {
		return done, err
	}
	for _, j := range jobs {
		err = errors.Join(err, j.removeFiles(ctx))
	}
	if set != nil {
		err = errors.Join(err, set.remove(ctx, written))
	}
	return Committed{}, err
}

// plan settles which fields stay, change and come.
func (e *evolution) plan(ctx context.Context, op *alterOp, change Alteration) error {
	op.fields = &schema.Schema{}
	if !op.columns {
		return nil
	}
	if len(change.Columns) == 0 {
		return errs.New(errs.ErrInvalid, "a table needs a column: drop the table instead")
	}
	op.keepsNulls = true
	names, from := map[string]bool{}, map[string]bool{}
	var fresh []arrow.Field
	for _, c := range change.Columns {
		if err := freeName(c.Field.Name, names); err != nil {
			return err
		}
		var old *schema.Field
		if c.From != "" {
			var err error
			if old, err = e.column(c.From); err != nil {
				return err
			}
			if from[c.From] {
				return errs.New(errs.ErrInvalid, "column %q becomes two columns", c.From)
			}
			from[c.From] = true
			if err := e.tightens(ctx, op, old, c.Field); err != nil {
				return err
			}
		}
		place := alteredField{id: -1, to: c.Field}
		switch {
		case old != nil && arrow.TypeEqual(old.Type, c.Field.Type):
			place.id = old.ID
		case old != nil && change.Values == nil:
			return errs.New(errs.ErrInvalid, "column %q has another type and no values", c.From)
		case old == nil && change.Values == nil && !c.Field.Nullable && e.snap.Rows() > 0:
			return errs.New(errs.ErrInvalid, "column %q may not be NULL, so it needs a value in the rows that exist", c.Field.Name)
		default:
			if old != nil {
				if err := e.mayGo(old, change.DropIndices); err != nil {
					return err
				}
			}
			op.keepsNulls = op.keepsNulls && c.Field.Nullable
			fresh = append(fresh, c.Field)
		}
		op.places = append(op.places, place)
	}
	for _, f := range e.snap.Schema().Fields {
		if !from[f.Name] {
			if err := e.mayGo(f, change.DropIndices); err != nil {
				return err
			}
		}
	}
	return op.number(fresh)
}

func freeName(name string, taken map[string]bool) error {
	if name == "" {
		return errs.New(errs.ErrInvalid, "a column needs a name")
	}
	if name == storage.RowAddrColumn || name == storage.RowIDColumn {
		return errs.New(errs.ErrInvalid, "the column name %q is reserved", name)
	}
	if taken[name] {
		return errs.New(errs.ErrInvalid, "two columns are called %q", name)
	}
	taken[name] = true
	return nil
}

// tightens checks that a column whose NULLs are forbidden from now on holds none.
func (e *evolution) tightens(ctx context.Context, op *alterOp, old *schema.Field, to arrow.Field) error {
	if !old.Nullable || to.Nullable {
		return nil
	}
	op.keepsNulls = false
	return e.refuseNulls(ctx, old.Name)
}

// mayGo refuses to lose the indices of a column, unless they are to go.
func (e *evolution) mayGo(f *schema.Field, dropped []string) error {
	for _, info := range e.snap.Indices() {
		if slices.Contains(dropped, info.Name) {
			continue
		}
		for d := range f.All() {
			if slices.Contains(info.FieldIDs, d.ID) {
				return errs.New(errs.ErrInvalid, "index %q is on column %q and would be lost: drop the index first", info.Name, f.Name)
			}
		}
	}
	return nil
}

// fillAll writes the values of the new columns.
func (e *evolution) fillAll(ctx context.Context, op *mergeOp, values *ColumnValues) (*fileSet, []*tablepb.DataFragment, error) {
	set, written, err := e.writeValues(ctx, op, values)
	if err != nil && set != nil {
		err = errors.Join(err, set.remove(ctx, written))
	}
	return set, written, err
}

// buildIndices builds indices over the table as the change leaves it.
func (e *evolution) buildIndices(ctx context.Context, op *alterOp, specs []IndexSpec, opts IndexOptions) (jobs []*segmentJob, err error) {
	if len(specs) == 0 {
		return nil, nil
	}
	view, err := e.preview(ctx, op)
	if err != nil {
		return nil, err
	}
	for _, spec := range specs {
		spec = spec.withDefaults()
		job, _, err := planCreate(view, spec, CreateIndexOptions{IndexOptions: opts})
		if err == nil {
			var meta *tablepb.IndexMetadata
			if meta, err = job.build(ctx); err == nil {
				jobs = append(jobs, job)
				if err = e.target.complete(ctx, meta, uint64(e.opts.Commit.withDefaults().Now().UnixMilli())); err == nil {
					op.built = append(op.built, meta)
				}
			}
		}
		if err != nil {
			return jobs, fmt.Errorf("index %s: %w", spec.Name, err)
		}
		if slices.ContainsFunc(op.built[:len(op.built)-1], func(m *tablepb.IndexMetadata) bool { return m.GetName() == spec.Name }) {
			return jobs, fmt.Errorf("index %s: %w", spec.Name, errs.New(errs.ErrExists, "two indices of one name"))
		}
	}
	return jobs, nil
}

// preview is the table as the change leaves it, without a commit.
func (e *evolution) preview(ctx context.Context, op *alterOp) (*storage.Snapshot, error) {
	copied, ok := proto.Clone(e.at.Proto).(*tablepb.Manifest)
	if !ok {
		return nil, errs.New(errs.ErrInternal, "a cloned manifest is no manifest")
	}
	n := &next{manifest: copied, indices: slices.Clone(e.at.Indices)}
	if err := op.apply(e.at, n); err != nil {
		return nil, err
	}
	s, err := schema.FromProto(n.manifest.GetFields(), e.snap.Schema().Metadata)
	if err != nil {
		return nil, err
	}
	return e.snap.Overlay(ctx, storage.Staged{Manifest: &manifest.Manifest{Proto: n.manifest, Indices: n.indices, Schema: s}})
}

// alteredField is a top-level field after the change: an old one of this id under another definition, or the next new one where the id is -1.
type alteredField struct {
	id int32
	to arrow.Field
}

// alterOp changes columns and indices at once. It is a Merge where columns get other values or an index comes, a Project where the list of columns alone
// changes, and a CreateIndex where that stays.
type alterOp struct {
	mergeOp    // fields are the new ones; replaces is not used
	columns    bool
	places     []alteredField
	keepsNulls bool
	dropped    []string
	built      []*tablepb.IndexMetadata
	removed    []*tablepb.IndexMetadata
}

// number gives the new fields their ids.
func (o *alterOp) number(fresh []arrow.Field) error {
	if len(fresh) == 0 {
		return nil
	}
	var err error
	if o.fields, err = newFields(fresh, nextFieldID(o.base)); err != nil {
		return err
	}
	at := 0
	for i := range o.places {
		if o.places[i].id < 0 {
			o.places[i].id = o.fields.Fields[at].ID
			at++
		}
	}
	return nil
}

func (o *alterOp) apply(base *version, n *next) error {
	o.removed = nil
	n.indices = slices.DeleteFunc(n.indices, func(m *tablepb.IndexMetadata) bool {
		goes := slices.Contains(o.dropped, m.GetName())
		if goes {
			o.removed = append(o.removed, m)
		}
		return goes
	})
	if o.columns {
		if err := o.arrange(n.manifest); err != nil {
			return err
		}
	}
	if err := o.attach(n.manifest); err != nil {
		return err
	}
	if o.columns {
		n.dropDeadFiles()
		if err := n.retainIndices(); err != nil {
			return err
		}
	}
	o.result = &tablepb.Transaction_Merge{
		Fragments: n.manifest.GetFragments(), Schema: n.manifest.GetFields(), SchemaMetadata: n.manifest.GetSchemaMetadata(), PreservesNullability: o.keepsNulls || !o.columns,
	}
	s, err := schema.FromProto(n.manifest.GetFields(), nil)
	if err != nil {
		return fmt.Errorf("the changed columns: %w", err)
	}
	now := &version{Manifest: &manifest.Manifest{Proto: n.manifest, Schema: s}, naming: base.naming}
	check := &indexOp{}
	for _, m := range o.built {
		if err := check.checkSegment(now, n, m); err != nil {
			return err
		}
		n.indices = append(n.indices, m)
	}
	return nil
}

// arrange makes the list of fields.
func (o *alterOp) arrange(m *tablepb.Manifest) error {
	added := o.fields.ToProto()
	var fields []*filepb.Field
	for _, p := range o.places {
		tree := treeOf(m.GetFields(), p.id)
		if len(tree) == 0 {
			tree = treeOf(added, p.id)
		} else {
			fresh, err := newFields([]arrow.Field{p.to}, 0)
			if err != nil {
				return err
			}
			tree[0].Name, tree[0].Nullable, tree[0].Metadata = p.to.Name, p.to.Nullable, fresh.ToProto()[0].GetMetadata()
		}
		if len(tree) == 0 {
			return errs.New(errs.ErrInternal, "field %d is not there", p.id)
		}
		fields = append(fields, tree...)
	}
	m.Fields = fields
	return nil
}

func (o *alterOp) transaction() *tablepb.Transaction {
	switch {
	case !o.columns:
		return &tablepb.Transaction{Operation: &tablepb.Transaction_CreateIndex_{
			CreateIndex: &tablepb.Transaction_CreateIndex{NewIndices: o.built, RemovedIndices: o.removed},
		}}
	case len(o.fields.Fields) == 0 && len(o.built) == 0:
		tx := &tablepb.Transaction_Project{Schema: o.result.GetSchema(), PreservesNullability: o.keepsNulls}
		return &tablepb.Transaction{Operation: &tablepb.Transaction_Project_{Project: tx}}
	}
	return o.mergeOp.transaction()
}

// allows is what all of the changes allow.
func (o *alterOp) allows(came *tablepb.Transaction) bool {
	if len(o.built) > 0 && !(&indexOp{}).allows(came) {
		return false
	}
	switch {
	case !o.columns:
		return len(o.built) > 0 || (&indexOp{}).allows(came)
	case len(o.fields.Fields) > 0 && !o.mergeOp.allows(came):
		return false
	}
	return (&projectOp{keepsNulls: o.keepsNulls}).allows(came)
}
