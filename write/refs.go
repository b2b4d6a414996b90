package write

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
)

// RefOptions tunes changes of tags and branches. The zero value is the default.
type RefOptions struct {
	Now func() time.Time // nil = time.Now
}

func (o RefOptions) now() time.Time {
	if o.Now == nil {
		return time.Now()
	}
	return o.Now()
}

// mainDir is the folder of the main dataset of a snapshot, which may be a branch's.
func mainDir(s *storage.Snapshot) (dir, branch string) {
	dir, branch = s.Table().Dir(), s.Manifest().Proto.GetBranch()
	if branch == "" {
		return dir, ""
	}
	root, ok := strings.CutSuffix(dir, object.Join(manifest.BranchTreeDir, branch))
	if !ok {
		return dir, "" // copied elsewhere: a dataset of its own
	}
	return strings.TrimSuffix(root, "/"), branch
}

// CreateTag names a version. A tagged version outlives cleaning up. Errors: ErrNotFound for the version, ErrExists for the name, ErrInvalid for one that other engines
// would refuse, ErrIO.
func CreateTag(ctx context.Context, table *storage.Table, name string, ref storage.Ref, opts RefOptions) error {
	return putTag(ctx, table, name, ref, opts, true)
}

// UpdateTag lets a tag name another version. Errors: ErrNotFound for the tag and the version, ErrIO.
func UpdateTag(ctx context.Context, table *storage.Table, name string, ref storage.Ref, opts RefOptions) error {
	return putTag(ctx, table, name, ref, opts, false)
}

func putTag(ctx context.Context, table *storage.Table, name string, ref storage.Ref, opts RefOptions, isNew bool) error {
	if err := manifest.CheckTagName(name); err != nil {
		return err
	}
	s, err := table.At(ctx, ref)
	if err != nil {
		return err
	}
	dir, branch := mainDir(s)
	path := object.Join(dir, manifest.TagPath(name))
	var before []byte
	if !isNew {
		if before, err = readRef(ctx, table.Store(), path); errors.Is(err, errs.ErrNotFound) {
			return errs.New(errs.ErrNotFound, "%s has no tag %q", table.Path(), name)
		} else if err != nil {
			return err
		}
	}
	b, err := manifest.EncodeTag(manifest.Tag{Name: name, Branch: branch, Version: s.Version()}, s.Manifest().SizeBytes, opts.now(), before)
	if err != nil {
		return err
	}
	err = putRef(ctx, table.Store(), path, b, isNew)
	if isNew && errors.Is(err, errs.ErrExists) {
		return errs.New(errs.ErrExists, "%s has a tag %q already", table.Path(), name)
	}
	return err
}

// putRef writes a file of which nobody else would write the same bytes. Where the answer got lost, the file tells; where that cannot be read either, the error is an errOutcome.
func putRef(ctx context.Context, store object.Store, path string, content []byte, isNew bool) error {
	err := store.Put(ctx, path, content, isNew)
	if err == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	for look := 1; ; look++ {
		there, readErr := readRef(ctx, store, path)
		switch {
		case readErr == nil && bytes.Equal(there, content):
			return nil
		case readErr == nil && errors.Is(err, errs.ErrExists), isRefusal(err):
			return err
		case readErr == nil || errors.Is(readErr, errs.ErrNotFound) || look == outcomeLooks:
			return fmt.Errorf("%w: %w", errOutcome, err)
		}
		if waitErr := spawn.Sleep(ctx, backOff(look)); waitErr != nil {
			return fmt.Errorf("%w: %w", errOutcome, err)
		}
	}
}

// DeleteTag forgets a tag; the version stays until it is cleaned up. Errors: ErrNotFound, ErrIO.
func DeleteTag(ctx context.Context, table *storage.Table, name string) error {
	s, err := table.Latest(ctx)
	if err != nil {
		return err
	}
	dir, _ := mainDir(s)
	path := object.Join(dir, manifest.TagPath(name))
	if _, err := table.Store().Stat(ctx, path); errors.Is(err, errs.ErrNotFound) {
		return errs.New(errs.ErrNotFound, "%s has no tag %q", table.Path(), name)
	} else if err != nil {
		return err
	}
	return table.Store().Delete(ctx, path)
}

// refBytesMax bounds the file of a tag or branch.
const refBytesMax = 1 << 20

func readRef(ctx context.Context, store object.Store, path string) ([]byte, error) {
	f, err := store.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	if f.SizeBytes() > refBytesMax {
		return nil, errs.WithPath(errs.Corrupt("reference", -1, "%d bytes long", f.SizeBytes()), path)
	}
	return f.Read(ctx, object.Range{Size: f.SizeBytes()})
}

// CreateBranch starts a history of its own at a version, which shares the version's files. Errors: ErrNotFound for the version, ErrExists, ErrInvalid for a name that other
// engines would refuse, ErrUnsupported for features that lakesql cannot write, ErrIO.
func CreateBranch(ctx context.Context, table *storage.Table, name string, ref storage.Ref, opts RefOptions) error {
	if err := manifest.CheckBranchName(name); err != nil {
		return err
	}
	s, err := table.At(ctx, ref)
	if err != nil {
		return err
	}
	if err := manifest.CheckWritable(s.Manifest().Proto.GetWriterFeatureFlags()); err != nil {
		return err
	}
	store := table.Store()
	dir, parent := mainDir(s)
	file := object.Join(dir, manifest.BranchPath(name))
	if _, err := store.Stat(ctx, file); err == nil {
		return errs.New(errs.ErrExists, "%s has a branch %q already", table.Path(), name)
	} else if !errors.Is(err, errs.ErrNotFound) {
		return err
	}
	target := Target{Store: store, Dir: object.Join(dir, manifest.BranchTreeDir, name)}
	left, _, err := target.versions(ctx)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return errs.New(errs.ErrExists, "%s has files of a branch %q that was not finished or not wholly dropped: drop the branch first", table.Path(), name)
	}
	forks, err := forksOf(ctx, store, dir, parent)
	if err != nil {
		return err
	}
	var id [16]byte
	if _, err := rand.Read(id[:]); err != nil {
		return errs.New(errs.ErrIO, "random bytes: %w", err)
	}
	b, err := manifest.EncodeBranch(
		manifest.Branch{Parent: parent, ParentVersion: s.Version(), Created: opts.now()},
		append(forks, manifest.Fork{Version: s.Version(), ID: hex.EncodeToString(id[:])}), s.Manifest().SizeBytes)
	if err != nil {
		return err
	}
	content, err := cloneVersion(s, name, opts.now())
	if err != nil {
		return err
	}
	if err := putRef(ctx, store, target.manifestPath(s.ManifestFile().Naming, s.Version()), content, true); err != nil {
		return err
	}
	target.hint(ctx, s.Version())
	if err := putRef(ctx, store, file, b, true); err != nil {
		if errors.Is(err, errOutcome) { // the branch may be there
			return err
		}
		return errors.Join(err, removeTree(context.WithoutCancel(ctx), store, target.Dir))
	}
	return nil
}

// forksOf reads a branch's descent; the main history has none.
func forksOf(ctx context.Context, store object.Store, dir, branch string) ([]manifest.Fork, error) {
	if branch == "" {
		return nil, nil
	}
	b, err := readRef(ctx, store, object.Join(dir, manifest.BranchPath(branch)))
	if err != nil {
		return nil, err
	}
	return manifest.ParseForks(b)
}

// cloneVersion writes the first manifest of a branch: the version as it is, with its files at their old place.
func cloneVersion(s *storage.Snapshot, branch string, now time.Time) ([]byte, error) {
	m, ok := proto.Clone(s.Manifest().Proto).(*tablepb.Manifest)
	if !ok {
		return nil, errs.New(errs.ErrInternal, "a cloned manifest is no manifest")
	}
	base := uint32(0)
	for _, b := range m.GetBasePaths() {
		base = max(base, b.GetId()+1)
	}
	path := strings.TrimPrefix(s.Table().Path(), "file://")
	m.BasePaths = append(m.BasePaths, &tablepb.BasePath{Id: base, IsDatasetRoot: true, Path: path})
	for _, f := range m.GetFragments() {
		for _, d := range f.GetFiles() {
			if d.BaseId == nil {
				d.BaseId = &base
			}
		}
		if d := f.GetDeletionFile(); d != nil && d.BaseId == nil {
			d.BaseId = &base
		}
	}
	var indices []*tablepb.IndexMetadata
	for _, i := range s.Manifest().Indices {
		c, ok := proto.Clone(i).(*tablepb.IndexMetadata)
		if !ok {
			return nil, errs.New(errs.ErrInternal, "cloned index metadata is none")
		}
		if c.BaseId == nil {
			c.BaseId = &base
		}
		indices = append(indices, c)
	}
	m.Branch, m.Timestamp, m.TransactionFile = &branch, timestamppb.New(now), ""
	m.WriterVersion = &tablepb.Manifest_WriterVersion{Library: writerLibrary, Version: writerVersion}
	dropNumber(m, newTransactionSection)
	n := &next{manifest: m}
	n.setFlags()
	tx := &tablepb.Transaction{ReadVersion: m.GetVersion(), Uuid: uuid.NewString(), Operation: &tablepb.Transaction_Clone_{
		Clone: &tablepb.Transaction_Clone{IsShallow: true, RefVersion: m.GetVersion(), RefPath: path, BranchName: &branch},
	}}
	return manifest.Encode(m, indices, tx)
}

// DeleteBranch removes a branch with its versions and the files that are its own. Errors: ErrNotFound, ErrInvalid while a branch or a tag rests on it, ErrIO.
func DeleteBranch(ctx context.Context, table *storage.Table, name string) error {
	if err := manifest.CheckBranchName(name); err != nil {
		return err
	}
	s, err := table.Latest(ctx)
	if err != nil {
		return err
	}
	store := table.Store()
	dir, current := mainDir(s)
	if current == name {
		return errs.New(errs.ErrInvalid, "branch %q is the one at hand", name)
	}
	branches, err := manifest.Branches(ctx, store, dir)
	if err != nil {
		return err
	}
	for _, b := range branches {
		if b.Parent == name {
			return errs.New(errs.ErrInvalid, "branch %q starts from branch %q: drop it first", b.Name, name)
		}
	}
	tags, err := manifest.Tags(ctx, store, dir)
	if err != nil {
		return err
	}
	for _, t := range tags {
		if t.Branch == name {
			return errs.New(errs.ErrInvalid, "tag %q names a version of branch %q: drop it first", t.Name, name)
		}
	}
	tree := object.Join(dir, manifest.BranchTreeDir, name)
	file := object.Join(dir, manifest.BranchPath(name))
	_, err = store.Stat(ctx, file)
	if errors.Is(err, errs.ErrNotFound) {
		left, _, listErr := Target{Store: store, Dir: tree}.versions(ctx)
		if listErr != nil {
			return listErr
		}
		if len(left) == 0 {
			return errs.New(errs.ErrNotFound, "%s has no branch %q", table.Path(), name)
		}
	} else if err != nil {
		return err
	}
	if err := store.Delete(ctx, file); err != nil {
		return err
	}
	return removeTree(ctx, store, tree)
}

// removeTree removes the dataset of a branch, but not the branches below it: its versions first, the oldest before the others, then what they named.
func removeTree(ctx context.Context, store object.Store, dir string) error {
	t := Target{Store: store, Dir: dir}
	all, naming, err := t.versions(ctx)
	if err != nil {
		return err
	}
	for _, v := range all {
		if err := store.Delete(ctx, t.manifestPath(naming, v)); err != nil {
			return err
		}
	}
	for _, sub := range []string{manifest.VersionsDir, manifest.DataDir, manifest.DeletionsDir, manifest.IndicesDir, manifest.TransactionsDir} {
		path := object.Join(dir, sub)
		if folders, ok := store.(object.Folders); ok {
			err = errors.Join(err, folders.RemoveFolder(ctx, path))
		} else {
			err = errors.Join(err, removeBelow(ctx, store, path, 0))
		}
	}
	if left, ok := store.(object.Leftovers); ok {
		err = errors.Join(err, left.RemoveEmptyFolder(ctx, dir))
	}
	return err
}
