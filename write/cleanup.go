package write

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/object"
)

const (
	keepDefault = 7 * 24 * time.Hour
	// unfinishedAge: files that no version ever named may belong to a running writer until they are so old.
	unfinishedAge = 7 * 24 * time.Hour
	// cleanupReads is how many versions are read at the same time.
	cleanupReads = 8
)

// farFuture is after every file's time.
var farFuture = time.Unix(1<<40, 0)

// CleanupOptions tunes Cleanup. The zero value is the default.
type CleanupOptions struct {
	OlderThan  time.Duration // versions of this age go; 0 = 7 days, negative = of any age
	KeepLatest int           // so many of the newest versions stay whatever their age; 0 = 1
	// KeepFrom names, for the newest version, one that is read by somebody: it and the later ones stay. It is asked when the versions have been read; 0 or nil = none.
	KeepFrom func(newest uint64) uint64
	// Unfinished also removes young files that no version ever named. Only right while nobody writes.
	Unfinished bool
	DryRun     bool             // remove nothing, only say what would go
	Now        func() time.Time // nil = time.Now
}

func (o CleanupOptions) withDefaults() CleanupOptions {
	if o.OlderThan == 0 {
		o.OlderThan = keepDefault
	}
	o.OlderThan = max(o.OlderThan, 0)
	o.KeepLatest = max(o.KeepLatest, 1)
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Cleaned says what Cleanup removed.
type Cleaned struct {
	Versions      []uint64
	Protected     []uint64 // old versions that a tag or a branch keeps
	InUse         []uint64 // old versions that stay because of CleanupOptions.KeepFrom
	DataFiles     int
	DeletionFiles int
	IndexFiles    int
	Transactions  int
	Bytes         int64
}

// Cleanup removes old versions and the files that only they name. The newest version stays, and so do versions with a tag, versions that a branch starts from, and every file that a
// branch names. Versions go before their files, the oldest first: after a failure what is left can be read, and the next run goes on. Errors: ErrInvalid
// for options that make no sense, ErrCorrupt for a version that cannot be read (what it names cannot be known, so nothing is removed), ErrIO, ErrPermission.
func Cleanup(ctx context.Context, table *storage.Table, opts CleanupOptions) (Cleaned, error) {
	if opts.KeepLatest < 0 {
		return Cleaned{}, errs.New(errs.ErrInvalid, "keeping %d versions", opts.KeepLatest)
	}
	opts = opts.withDefaults()
	s, err := table.Latest(ctx)
	if err != nil {
		return Cleaned{}, err
	}
	if err := manifest.CheckWritable(s.Manifest().Proto.GetWriterFeatureFlags()); err != nil {
		return Cleaned{}, err
	}
	c := &cleanup{
		target: Target{Store: table.Store(), Dir: table.Dir()}, opts: opts, now: opts.Now(), latest: s,
		keep: make(map[string]bool), old: make(map[string]bool),
	}
	if err := c.readVersions(ctx); err != nil {
		return Cleaned{}, err
	}
	if err := c.readBranches(ctx); err != nil {
		return Cleaned{}, err
	}
	err = c.run(ctx)
	return c.out, err
}

// cleanup is one run of Cleanup.
type cleanup struct {
	target Target
	opts   CleanupOptions
	now    time.Time
	latest *storage.Snapshot
	out    Cleaned

	expired []manifest.File
	keep    map[string]bool // paths, relative to the dataset, that a version names which stays
	old     map[string]bool // that a version names which goes
}

// readVersions sorts the versions and notes what they name.
func (c *cleanup) readVersions(ctx context.Context) error {
	files, err := manifest.Versions(ctx, c.target.Store, c.target.Dir)
	if err != nil {
		return err
	}
	protected, err := c.protected(ctx)
	if err != nil {
		return err
	}
	keepFrom := uint64(0)
	if c.opts.KeepFrom != nil {
		keepFrom = c.opts.KeepFrom(c.latest.Version())
	}
	var mu sync.Mutex
	group, groupCtx := spawn.WithContext(ctx, cleanupReads)
	for i, f := range files {
		group.Go(fmt.Sprintf("read version %d", f.Version), func() error {
			m, err := manifest.ReadFile(groupCtx, c.target.Store, f)
			if errors.Is(err, errs.ErrNotFound) {
				return nil // another cleanup runs
			}
			if err != nil {
				return err
			}
			isOld := i < len(files)-c.opts.KeepLatest && f.Version < c.latest.Version() && !m.Timestamp().After(c.now.Add(-c.opts.OlderThan))
			mu.Lock()
			defer mu.Unlock()
			if isOld && !protected[f.Version] && keepFrom > 0 && f.Version >= keepFrom {
				c.out.InUse = append(c.out.InUse, f.Version)
				isOld = false
			}
			c.sort(f, m, isOld, protected[f.Version])
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	slices.SortFunc(c.expired, func(a, b manifest.File) int { return cmp.Compare(a.Version, b.Version) })
	slices.Sort(c.out.Protected)
	slices.Sort(c.out.InUse)
	return nil
}

// sort decides about one version.
func (c *cleanup) sort(f manifest.File, m *manifest.Manifest, isOld, isProtected bool) {
	if isOld && !isProtected {
		c.expired = append(c.expired, f)
		c.note(m, c.old)
		return
	}
	if isOld {
		c.out.Protected = append(c.out.Protected, f.Version)
	}
	c.note(m, c.keep)
}

func (c *cleanup) note(m *manifest.Manifest, in map[string]bool) {
	for path := range filesOfVersion(m) {
		in[path] = true
	}
	if name := m.Proto.GetTransactionFile(); name != "" {
		in[object.Join(manifest.TransactionsDir, name)] = true
	}
}

// protected are the versions that a tag names or a branch starts from.
func (c *cleanup) protected(ctx context.Context) (map[uint64]bool, error) {
	out := make(map[uint64]bool)
	dir, branch := mainDir(c.latest)
	tags, err := manifest.Tags(ctx, c.target.Store, dir)
	if err != nil {
		return nil, err
	}
	for _, t := range tags {
		if t.Branch == branch {
			out[t.Version] = true
		}
	}
	branches, err := manifest.Branches(ctx, c.target.Store, dir)
	if err != nil {
		return nil, err
	}
	for _, b := range branches {
		if b.Parent == branch {
			out[b.ParentVersion] = true
		}
	}
	return out, nil
}

// readBranches notes the files of this dataset that versions of any branch name. Every folder below tree/ counts: a branch may be in the making.
func (c *cleanup) readBranches(ctx context.Context) error {
	dir, _ := mainDir(c.latest)
	return c.readTree(ctx, object.Join(dir, manifest.BranchTreeDir))
}

func (c *cleanup) readTree(ctx context.Context, dir string) error {
	entries, err := c.target.Store.List(ctx, dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := object.Join(dir, e.Name)
		switch {
		case !e.IsDir || e.Name == manifest.DataDir || strings.HasPrefix(e.Name, "_") && e.Name != manifest.VersionsDir:
		case e.Name != manifest.VersionsDir:
			if err := c.readTree(ctx, path); err != nil {
				return err
			}
		case dir != c.target.Dir:
			if err := c.readBranch(ctx, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// readBranch notes what one branch names of this dataset: files under a base path that is this dataset's folder.
func (c *cleanup) readBranch(ctx context.Context, dir string) error {
	files, err := manifest.Versions(ctx, c.target.Store, dir)
	if err != nil {
		return err
	}
	own := strings.TrimPrefix(object.Join(c.target.Store.URL(), c.target.Dir), "file://")
	for _, f := range files {
		m, err := manifest.ReadFile(ctx, c.target.Store, f)
		if errors.Is(err, errs.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		here := make(map[uint32]bool)
		for _, b := range m.Proto.GetBasePaths() {
			here[b.GetId()] = strings.TrimPrefix(strings.TrimSuffix(b.GetPath(), "/"), "file://") == own
		}
		for path := range filesAtBase(m, func(id *uint32) bool { return id != nil && here[*id] }) {
			c.keep[path] = true
		}
	}
	return nil
}

func (c *cleanup) run(ctx context.Context) error {
	for _, f := range c.expired { // oldest first
		if err := c.remove(ctx, f.Path, f.Entry.SizeBytes); err != nil {
			return err
		}
		c.out.Versions = append(c.out.Versions, f.Version)
	}
	if err := c.readNewer(ctx); err != nil {
		return err
	}
	for _, sub := range []struct {
		dir   string
		count *int
	}{
		{manifest.DataDir, &c.out.DataFiles}, {manifest.DeletionsDir, &c.out.DeletionFiles}, {manifest.TransactionsDir, &c.out.Transactions},
	} {
		if err := c.sweep(ctx, sub.dir, "", sub.count); err != nil {
			return err
		}
	}
	// Temporary files go before the folders of segments, which may hold nothing else.
	if left, ok := c.target.Store.(object.Leftovers); ok && !c.opts.DryRun {
		before := c.now.Add(-unfinishedAge)
		if c.opts.Unfinished {
			before = farFuture
		}
		freed, err := left.RemoveTemporary(ctx, c.target.Dir, before)
		c.out.Bytes += freed
		if err != nil {
			return err
		}
	}
	return c.sweepIndices(ctx)
}

// readNewer notes what versions name that came since: one may have brought an old version back.
func (c *cleanup) readNewer(ctx context.Context) error {
	files, err := manifest.Versions(ctx, c.target.Store, c.target.Dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if f.Version <= c.latest.Version() {
			continue
		}
		m, err := manifest.ReadFile(ctx, c.target.Store, f)
		if err != nil {
			return err
		}
		c.note(m, c.keep)
	}
	return nil
}

// sweep removes files of a folder that no version names any more. named is the path by which versions name them, "" = their own.
func (c *cleanup) sweep(ctx context.Context, dir, named string, count *int) error {
	entries, err := c.target.Store.List(ctx, object.Join(c.target.Dir, dir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := object.Join(dir, e.Name)
		name := path
		if named != "" {
			name = named
		}
		if e.IsDir || c.keep[name] || !c.mayGo(name, e) {
			continue
		}
		if err := c.remove(ctx, object.Join(c.target.Dir, path), e.SizeBytes); err != nil {
			return err
		}
		*count++
	}
	return nil
}

// mayGo says that no running writer can want the file: a version that goes named it, or it is old.
func (c *cleanup) mayGo(name string, e object.Entry) bool {
	return c.old[name] || c.opts.Unfinished || (!e.ModTime.IsZero() && e.ModTime.Before(c.now.Add(-unfinishedAge)))
}

func (c *cleanup) sweepIndices(ctx context.Context) error {
	dir := object.Join(c.target.Dir, manifest.IndicesDir)
	entries, err := c.target.Store.List(ctx, dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		segment := object.Join(manifest.IndicesDir, e.Name)
		if !e.IsDir || c.keep[segment] {
			continue
		}
		if err := c.sweep(ctx, segment, segment, &c.out.IndexFiles); err != nil {
			return err
		}
		if left, ok := c.target.Store.(object.Leftovers); ok && !c.opts.DryRun {
			if err := left.RemoveEmptyFolder(ctx, object.Join(dir, e.Name)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *cleanup) remove(ctx context.Context, path string, sizeBytes int64) error {
	if !c.opts.DryRun {
		if err := c.target.Store.Delete(ctx, path); err != nil {
			return err
		}
	}
	c.out.Bytes += sizeBytes
	return nil
}
