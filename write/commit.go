package write

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/invariants"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
)

const (
	writerLibrary = "lakesql"
	writerVersion = "0.1.0" // readers want a plain x.y.z
	hintName      = "latest_version_hint.json"
	// retriesMax bounds how often a lost race is run again.
	retriesMax = 100
)

// Target is a table directory in a store.
type Target struct {
	Store object.Store
	Dir   string // below the store's root; "" = the root itself
}

// CommitOptions is common to all commits. The zero value is the default.
type CommitOptions struct {
	Now     func() time.Time // the commit's timestamp; nil = time.Now
	Retries int              // how often a lost race is run again; 0 = 100, -1 = never
	// Wait sleeps between attempts; nil = by the clock.
	Wait func(ctx context.Context, d time.Duration) error
}

func (o CommitOptions) withDefaults() CommitOptions {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Wait == nil {
		o.Wait = spawn.Sleep
	}
	switch o.Retries {
	case 0:
		o.Retries = retriesMax
	case -1:
		o.Retries = 0
	}
	return o
}

// Writers that lose a race wait, so that not all of them try again at once: up to waitMin at first, twice as long each time, up to waitMax.
const (
	waitMin = 5 * time.Millisecond
	waitMax = 500 * time.Millisecond
)

// backOff is a random time that grows with the number of attempts that failed.
func backOff(attempt int) time.Duration {
	most := min(waitMin<<min(attempt, 10), waitMax)
	return time.Duration(rand.Int64N(int64(most))) //nolint:gosec // spreads writers, guards nothing
}

// Committed describes a commit that succeeded.
type Committed struct {
	Version     uint64
	FragmentIDs []uint64 // of the new fragments, in the order of the rows
}

// version is one published version that a commit starts from.
type version struct {
	*manifest.Manifest
	naming manifest.Naming
}

// next is the version in the making.
type next struct {
	manifest  *tablepb.Manifest
	indices   []*tablepb.IndexMetadata
	fragments []uint64 // ids of new fragments

	transaction string // its uuid
}

// operation is one kind of commit.
type operation interface {
	// apply changes a copy of the version that it is based on. It may be called again after a lost race.
	apply(base *version, n *next) error
	// transaction says what apply did, for other writers.
	transaction() *tablepb.Transaction
	// allows says whether the commit still means the same after another one came first.
	allows(came *tablepb.Transaction) bool
}

// preparer is an operation that does work, such as writing files, for the version that the next attempt starts from.
type preparer interface {
	prepare(ctx context.Context, base *version) error
}

// versions lists the published versions of a table, ascending.
func (t Target) versions(ctx context.Context) ([]uint64, manifest.Naming, error) {
	entries, err := t.Store.List(ctx, object.Join(t.Dir, manifest.VersionsDir))
	if err != nil {
		return nil, 0, err
	}
	var out []uint64
	naming := manifest.NamingV2
	for _, e := range entries {
		if v, n, ok := manifest.ParseName(e.Name); ok && !e.IsDir {
			out, naming = append(out, v), n
		}
	}
	slices.Sort(out)
	return out, naming, nil
}

func (t Target) manifestPath(n manifest.Naming, v uint64) string {
	return object.Join(t.Dir, manifest.VersionsDir, n.Name(v))
}

// latest reads the newest version. Errors: ErrNotFound where there is no table.
func (t Target) latest(ctx context.Context) (*version, error) {
	all, naming, err := t.versions(ctx)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, errs.New(errs.ErrNotFound, "%s has no table %q", t.Store.URL(), t.Dir)
	}
	return t.at(ctx, naming, all[len(all)-1])
}

func (t Target) at(ctx context.Context, naming manifest.Naming, v uint64) (*version, error) {
	m, err := manifest.Read(ctx, t.Store, t.manifestPath(naming, v))
	if err != nil {
		return nil, err
	}
	if m.Version() != v {
		return nil, errs.WithPath(errs.Corrupt("manifest", -1, "says version %d, its name %d", m.Version(), v), t.manifestPath(naming, v))
	}
	return &version{Manifest: m, naming: naming}, nil
}

// commit publishes op on top of base and rebases it while others win the race (I1, I4). Errors: ErrConflict, ErrUnsupported, and those of the store.
func (t Target) commit(ctx context.Context, base *version, op operation, opts CommitOptions) (Committed, error) {
	opts = opts.withDefaults()
	a := &attempts{mine: make(map[string]*next)}
	for attempt := 0; ; attempt++ {
		// Rows take time to write: what came meanwhile is looked at before the attempt, not only when it fails.
		base, ours, err := t.rebase(ctx, base, op, a)
		if err != nil {
			return Committed{}, a.failed(err)
		}
		if ours != nil {
			return Committed{Version: ours.manifest.GetVersion(), FragmentIDs: ours.fragments}, nil
		}
		if p, ok := op.(preparer); ok {
			if err := p.prepare(ctx, base); err != nil {
				return Committed{}, a.failed(err)
			}
		}
		n, content, err := t.encode(base, op, opts.Now())
		if err != nil {
			return Committed{}, a.failed(err)
		}
		v := n.manifest.GetVersion()
		a.mine[n.transaction] = n
		err = t.Store.Put(ctx, t.manifestPath(base.naming, v), content, true)
		if err != nil {
			err = t.outcome(ctx, base.naming, n, err, opts)
		}
		if err == nil {
			t.hint(ctx, v)
			return Committed{Version: v, FragmentIDs: n.fragments}, nil
		}
		if !errors.Is(err, errs.ErrExists) {
			return Committed{}, a.failed(fmt.Errorf("commit version %d: %w", v, err))
		}
		wasOpen := a.open
		a.open = errors.Is(err, errOutcome)
		if attempt >= opts.Retries && (wasOpen || !a.open) { // one more look tells what became of an attempt
			return Committed{}, a.failed(errs.New(errs.ErrConflict, "version %d was committed by another writer first, after %d attempts", v, attempt+1))
		}
		if err := opts.Wait(ctx, backOff(attempt)); err != nil {
			return Committed{}, a.failed(err)
		}
	}
}

// attempts is what one commit has tried.
type attempts struct {
	mine map[string]*next // by the uuids of their transactions
	open bool             // the last one was refused and may take effect all the same
}

// failed marks an error that leaves an attempt open.
func (a *attempts) failed(err error) error {
	if a.open && !errors.Is(err, errOutcome) {
		return fmt.Errorf("%w: %w", errOutcome, err)
	}
	return err
}

// errOutcome marks a commit that failed without saying whether the version was published: its files must stay.
var errOutcome = errors.New("it is not known whether the commit took effect")

// outcomeLooks is how often outcome looks, should looking fail as well.
const outcomeLooks = 3

// outcome looks whether a failed Put published the version all the same: an answer may get lost, and a store may retry on its own and be refused by what it has written
// itself. The error is of kind ErrExists where the attempt may be run again, and errOutcome where it may take effect all the same.
func (t Target) outcome(ctx context.Context, naming manifest.Naming, n *next, putErr error, opts CommitOptions) error {
	ctx = context.WithoutCancel(ctx)
	for look := 1; ; look++ {
		ours, err := t.isOurs(ctx, naming, n)
		switch {
		case ours:
			return nil
		case err == nil && errors.Is(putErr, errs.ErrExists):
			return putErr
		case err == nil:
			return errors.Join(errs.New(errs.ErrExists, "the version exists"), putErr)
		case errors.Is(err, errs.ErrNotFound) && isRefusal(putErr):
			return putErr
		case errors.Is(err, errs.ErrNotFound) || look == outcomeLooks:
			return fmt.Errorf("%w: %w", errOutcome, putErr)
		}
		if err := opts.Wait(ctx, backOff(look)); err != nil {
			return fmt.Errorf("%w: %w", errOutcome, putErr)
		}
	}
}

// isRefusal says that a Put that failed so has done nothing and will not. ErrExists without a version is none: two writes were under way, perhaps both of them ours.
func isRefusal(err error) bool {
	for _, kind := range []error{errs.ErrDiskFull, errs.ErrPermission, errs.ErrUnsupported, errs.ErrInvalid} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// isOurs says whether the version that stands where n was to be is n. A version whose transaction cannot be made out is another's: ours is part of the manifest.
func (t Target) isOurs(ctx context.Context, naming manifest.Naming, n *next) (bool, error) {
	there, err := t.at(ctx, naming, n.manifest.GetVersion())
	if errors.Is(err, errs.ErrCorrupt) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	tx, err := manifest.ReadTransaction(ctx, t.Store, t.Dir, there.Manifest)
	if errors.Is(err, errs.ErrCorrupt) || errors.Is(err, errs.ErrNotFound) {
		return false, nil
	}
	return err == nil && tx.GetUuid() == n.transaction, err
}

// encode builds the file of the version after base.
func (t Target) encode(base *version, op operation, now time.Time) (*next, []byte, error) {
	m := base.Proto
	if err := manifest.CheckWritable(m.GetWriterFeatureFlags()); err != nil {
		return nil, nil, err
	}
	if err := checkFormat(m); err != nil {
		return nil, nil, err
	}
	if m.GetVersion() == math.MaxUint64 {
		return nil, nil, errs.New(errs.ErrOverflow, "version %d is the last one", m.GetVersion())
	}
	copied, ok := proto.Clone(m).(*tablepb.Manifest)
	if !ok {
		return nil, nil, errs.New(errs.ErrInternal, "a cloned manifest is no manifest")
	}
	n := &next{manifest: copied, indices: slices.Clone(base.Indices)}
	readVersion := n.manifest.GetVersion()
	n.manifest.Version = readVersion + 1
	n.manifest.Timestamp = timestamppb.New(now)
	n.manifest.WriterVersion = &tablepb.Manifest_WriterVersion{Library: writerLibrary, Version: writerVersion}
	n.manifest.TransactionFile = "" // the transaction is inline
	dropNumber(n.manifest, newTransactionSection)
	n.manifest.Tag = ""
	if err := op.apply(base, n); err != nil {
		return nil, nil, err
	}
	n.setFlags()
	tx := op.transaction()
	tx.ReadVersion = readVersion
	tx.Uuid = uuid.NewString()
	n.transaction = tx.GetUuid()
	content, err := manifest.Encode(n.manifest, n.indices, tx)
	if err == nil && invariants.Enabled {
		if _, err := manifest.Decode(content); err != nil {
			panic(fmt.Sprintf("version %d that was about to be published cannot be read: %v", n.manifest.GetVersion(), err))
		}
	}
	return n, content, err
}

// newTransactionSection is where core 13 and later keep the position of the inline transaction. It is unknown here, and a position of the file that
// the version is based on must not go into another file (I2). Those engines find the transaction by the field of before as well.
const newTransactionSection protowire.Number = 23

// dropNumber removes an unknown field of a message.
func dropNumber(m proto.Message, drop protowire.Number) {
	var kept []byte
	for rest := m.ProtoReflect().GetUnknown(); len(rest) > 0; {
		number, _, size := protowire.ConsumeField(rest)
		if size < 0 {
			return // cannot happen: the bytes were parsed before
		}
		if number != drop {
			kept = append(kept, rest[:size]...)
		}
		rest = rest[size:]
	}
	m.ProtoReflect().SetUnknown(kept)
}

// setFlags recomputes the flags that follow from the content and keeps the others.
func (n *next) setFlags() {
	has := func(flag uint64, want bool, in ...*uint64) {
		for _, flags := range in {
			*flags &^= flag
			if want {
				*flags |= flag
			}
		}
	}
	reader, writer := &n.manifest.ReaderFeatureFlags, &n.manifest.WriterFeatureFlags
	deleted := slices.ContainsFunc(n.manifest.GetFragments(), func(f *tablepb.DataFragment) bool { return f.GetDeletionFile() != nil })
	has(manifest.FlagDeletionFiles, deleted, reader, writer)
	has(manifest.FlagBasePaths, len(n.manifest.GetBasePaths()) > 0, reader, writer)
	has(manifest.FlagTableConfig, len(n.manifest.GetConfig()) > 0, writer)
}

// rebase returns the newest version after checking that op may follow everything that came since base (I4), or the attempt of ours that came.
func (t Target) rebase(ctx context.Context, base *version, op operation, a *attempts) (at *version, ours *next, err error) {
	all, naming, err := t.versions(ctx)
	if err != nil {
		return nil, nil, err
	}
	at = base
	for _, v := range all {
		if v <= base.Version() {
			continue
		}
		if v != at.Version()+1 { // cleaned up: what it changed cannot be known
			return nil, nil, errs.New(errs.ErrConflict, "version %d came first and is gone; run the statement again", at.Version()+1)
		}
		if at, err = t.at(ctx, naming, v); err != nil {
			return nil, nil, err
		}
		came, err := manifest.ReadTransaction(ctx, t.Store, t.Dir, at.Manifest)
		if err != nil {
			return nil, nil, errs.New(errs.ErrConflict, "version %d came first and does not say what it changed: %w", v, err)
		}
		if n, ok := a.mine[came.GetUuid()]; ok {
			return at, n, nil
		}
		a.open = false // another's version stands where ours was to be
		if !op.allows(came) {
			return nil, nil, errs.New(errs.ErrConflict, "version %d came first with a %s that cannot be combined with this change; run the statement again",
				v, manifest.OperationName(came))
		}
	}
	return at, nil, nil
}

// hint tells other writers where the versions end. They must do without, so a failure after the commit is no failure of the commit.
func (t Target) hint(ctx context.Context, v uint64) {
	content := []byte(`{"version":` + strconv.FormatUint(v, 10) + `}`)
	_ = t.Store.Put(context.WithoutCancel(ctx), object.Join(t.Dir, manifest.VersionsDir, hintName), content, false)
}
