package write

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/pb/filepb"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
	"github.com/lakesql/lakesql/storage/schema"
)

// AppendOptions tunes Append. The zero value is the default.
type AppendOptions struct {
	Rows   RowOptions
	Commit CommitOptions
}

// Append adds the rows of one stream. See AppendParts.
func Append(ctx context.Context, t Target, rows Batches, opts AppendOptions) (Committed, error) {
	return AppendParts(ctx, t, []Batches{rows}, opts)
}

// AppendParts adds the rows of several streams in one commit. The parts are written in parallel, each as fragments of its own, which get their ids in the
// order of the parts. Without a row nothing is committed and the version read is returned. Errors: ErrNotFound without a table, ErrInvalid for
// batches that do not fit its schema, ErrUnsupported for its file version or features, ErrConflict after an incompatible commit, ErrIO, ErrDiskFull.
func AppendParts(ctx context.Context, t Target, parts []Batches, opts AppendOptions) (Committed, error) {
	if err := opts.Rows.Validate(); err != nil {
		return Committed{}, err
	}
	base, err := t.latest(ctx)
	if err != nil {
		return Committed{}, err
	}
	if err := manifest.CheckWritable(base.Proto.GetWriterFeatureFlags()); err != nil {
		return Committed{}, err
	}
	v, err := dataVersion(base.Proto.GetDataFormat().GetVersion())
	if err != nil {
		return Committed{}, err
	}
	set := &fileSet{store: t.Store, dir: t.Dir, schema: base.Schema, version: v, opts: opts.Rows.withDefaults()}
	fragments, err := set.writeParts(ctx, parts)
	if err != nil {
		return Committed{}, err
	}
	if len(fragments) == 0 {
		return Committed{Version: base.Version()}, nil
	}
	done, err := t.commit(ctx, base, &appendOp{fragments: fragments, schema: base.Schema}, opts.Commit)
	if err != nil {
		return Committed{}, set.takeBack(ctx, fragments, err)
	}
	return done, nil
}

func dataVersion(text string) (file.Version, error) {
	for _, v := range []file.Version{file.V21, file.V22} {
		if v.String() == text {
			return v, nil
		}
	}
	if isLegacyVersion(text) {
		return file.Version{}, errLegacy(text)
	}
	return file.Version{}, errs.New(errs.ErrUnsupported, "writing to a table of file version %q: versions 2.1 and 2.2 are written; CREATE TABLE ... AS SELECT makes a copy of version 2.2", text)
}

// isLegacyVersion says that a table's data files are those of before version 2.0, which lakesql cannot read.
func isLegacyVersion(text string) bool {
	return text == "" || text == "legacy" || strings.HasPrefix(text, "0.")
}

func errLegacy(text string) error {
	return errs.New(errs.ErrUnsupported, "the table's data files have the legacy version %q, which lakesql neither reads nor writes: copy it with another engine to version 2.1 or 2.2", text)
}

// checkFormat refuses to change tables of legacy data files. Errors: ErrUnsupported.
func checkFormat(m *tablepb.Manifest) error {
	isLegacy := func(d *tablepb.DataFile) bool { return d.GetFileMajorVersion() < 2 }
	for _, f := range m.GetFragments() {
		if slices.ContainsFunc(f.GetFiles(), isLegacy) {
			return errLegacy(m.GetDataFormat().GetVersion())
		}
	}
	if v := m.GetDataFormat().GetVersion(); m.GetDataFormat() != nil && isLegacyVersion(v) {
		return errLegacy(v)
	}
	return nil
}

type appendOp struct {
	fragments []*tablepb.DataFragment
	schema    *schema.Schema // of the rows
}

func (o *appendOp) apply(_ *version, n *next) error { return n.addFragments(o.fragments) }

func (o *appendOp) transaction() *tablepb.Transaction {
	return &tablepb.Transaction{Operation: &tablepb.Transaction_Append_{Append: &tablepb.Transaction_Append{Fragments: o.fragments}}}
}

// allows: new rows do not touch what others do to old ones, as long as the columns stay, may hold what the rows hold and need no value that these do not have.
func (o *appendOp) allows(came *tablepb.Transaction) bool {
	switch c := came.GetOperation().(type) {
	case *tablepb.Transaction_Project_:
		return c.Project.GetPreservesNullability()
	case *tablepb.Transaction_Merge_:
		keeps, hasValues := keepsColumns(o.schema, c.Merge)
		return keeps && !hasValues
	}
	return allowsRows(came)
}

// CreateOptions tunes CreateTable. The zero value is the default.
type CreateOptions struct {
	Version      file.Version          // of the data files: V21 or V22; zero = V22
	StableRowIDs bool                  // rows keep an id through update and compaction
	NamesV1      bool                  // name manifests as old engines do
	Parts        []Batches             // first rows; see AppendParts
	Budget       *mem.Budget           // pays for what file writers keep; nil = nobody
	ImportedBy   func() []ImportedFile // that the rows come from, asked for when they are written; nil = none
	Rows         RowOptions
	Commit       CommitOptions
}

// CreateTable makes a table of that Arrow schema, with the first rows if any, as version 1. Errors: ErrExists where there is one, ErrInvalid for a schema with a
// name twice or rows that do not fit it, ErrUnsupported for a type or version that is not written, ErrIO, ErrDiskFull.
func CreateTable(ctx context.Context, t Target, columns *arrow.Schema, opts CreateOptions) (Committed, error) {
	if err := errors.Join(opts.Rows.Validate(), file.WriterOptions{Version: opts.Version}.Validate()); err != nil {
		return Committed{}, err
	}
	if opts.Version == (file.Version{}) {
		opts.Version = file.V22
	}
	s, err := schema.FromArrow(columns)
	if err != nil {
		return Committed{}, err
	}
	if err := file.CheckWritable(s, opts.Version); err != nil {
		return Committed{}, err
	}
	if err := t.clear(ctx); err != nil {
		return Committed{}, err
	}
	set := &fileSet{store: t.Store, dir: t.Dir, schema: s, version: opts.Version, opts: opts.Rows.withDefaults(), budget: opts.Budget}
	fragments, err := set.writeParts(ctx, opts.Parts)
	if err != nil {
		return Committed{}, err
	}
	op := &createOp{fragments: fragments, fields: s.ToProto(), metadata: s.Metadata, stableIDs: opts.StableRowIDs}
	if opts.ImportedBy != nil {
		op.imported = opts.ImportedBy()
	}
	done, err := t.commit(ctx, op.nothing(opts), op, CommitOptions{Now: opts.Commit.Now, Retries: -1})
	if errors.Is(err, errs.ErrConflict) {
		err = errs.New(errs.ErrExists, "table %q was created by another writer meanwhile: %w", t.Dir, err)
	}
	if err != nil {
		return Committed{}, set.takeBack(ctx, fragments, err)
	}
	return done, nil
}

// clear refuses where there is a table and removes tags and branches of one that is gone, so that they do not name versions of the new one: where the store has no
// folders, a process that drops a table may die before it has removed them. They are listed before the versions: what was there when there was no version is nobody's.
func (t Target) clear(ctx context.Context) error {
	var left []string
	for _, dir := range []string{manifest.TagsDir, manifest.BranchesDir, manifest.BranchTreeDir} {
		entries, err := t.Store.List(ctx, object.Join(t.Dir, dir))
		if err != nil {
			return err
		}
		if len(entries) > 0 {
			left = append(left, object.Join(t.Dir, dir))
		}
	}
	files, err := filesBelow(ctx, t.Store, left)
	if err != nil {
		return err
	}
	all, _, err := t.versions(ctx)
	if err != nil {
		return err
	}
	if len(all) > 0 {
		return errs.New(errs.ErrExists, "table %q already exists", t.Dir)
	}
	for _, f := range files {
		if err := t.Store.Delete(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

type createOp struct {
	fragments []*tablepb.DataFragment
	fields    []*filepb.Field
	metadata  map[string][]byte
	stableIDs bool
	imported  []ImportedFile
}

// nothing is the version before the first.
func (o *createOp) nothing(opts CreateOptions) *version {
	v := &version{Manifest: &manifest.Manifest{Proto: &tablepb.Manifest{}}}
	if opts.NamesV1 {
		v.naming = manifest.NamingV1
	}
	v.Proto.DataFormat = &tablepb.Manifest_DataStorageFormat{FileFormat: "lance", Version: opts.Version.String()}
	return v
}

func (o *createOp) apply(_ *version, n *next) error {
	n.manifest.Fields = o.fields
	if len(o.metadata) > 0 {
		n.manifest.SchemaMetadata = o.metadata
	}
	if o.stableIDs {
		n.manifest.ReaderFeatureFlags |= manifest.FlagStableRowIDs
		n.manifest.WriterFeatureFlags |= manifest.FlagStableRowIDs
	}
	if err := n.recordImports(o.imported, false); err != nil {
		return err
	}
	return n.addFragments(o.fragments)
}

func (o *createOp) transaction() *tablepb.Transaction {
	tx := &tablepb.Transaction_Overwrite{Fragments: o.fragments, Schema: o.fields, SchemaMetadata: o.metadata}
	return &tablepb.Transaction{Operation: &tablepb.Transaction_Overwrite_{Overwrite: tx}, TransactionProperties: importProperties(o.imported)}
}

func (o *createOp) allows(*tablepb.Transaction) bool { return false }
