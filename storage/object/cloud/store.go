package cloud

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"
	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/object"
)

// Options tunes OpenBlob. The zero value is the default.
type Options struct {
	GapBytes     int64 // ranges at most this far apart are fetched by one request; 0 = 64 KiB
	RequestBytes int64 // most bytes of one request; 0 = 8 MiB
	Parallelism  int   // requests in flight per store; 0 = 32
	CacheBytes   int64 // of cached blocks; 0 = 256 MiB; -1 = none
	IsUnordered  bool  // the store does not list by name
	// RequestWait is how long one request may take, repetitions of the client included; 0 = 1 minute; negative = for ever.
	RequestWait time.Duration
}

func (o Options) withDefaults() Options {
	if o.GapBytes == 0 {
		o.GapBytes = 64 << 10
	}
	if o.RequestBytes == 0 {
		o.RequestBytes = 8 << 20
	}
	if o.Parallelism == 0 {
		o.Parallelism = 32
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = 256 << 20
	}
	if o.RequestWait == 0 {
		o.RequestWait = time.Minute
	}
	return o
}

// mergedMaxBytes is the longest request that ranges are merged into: what lies between them is fetched in vain.
const mergedMaxBytes = 1 << 20

func (o Options) mergedBytes() int64 { return min(mergedMaxBytes, o.RequestBytes) }

// Blob is a Store over a bucket.
type Blob struct {
	bucket   *blob.Bucket
	url      string
	opts     Options
	inFlight chan struct{}
	cache    *blockCache
	fetched  func(object.Range) // told of each request, in tests

	mu          sync.Mutex
	conditional conditional
}

// conditional is what is known of a store's conditional writes.
type conditional int

const (
	untried conditional = iota
	kept                // a second write of a name was refused
	ignored             // it was not, or the store says that it has none
)

var (
	_ object.Store       = (*Blob)(nil)
	_ object.Pager       = (*Blob)(nil)
	_ object.SizedOpener = (*Blob)(nil)
)

// OpenBlob makes a store of a bucket, which it owns. url names it.
func OpenBlob(bucket *blob.Bucket, url string, opts Options) *Blob {
	opts = opts.withDefaults()
	return &Blob{
		bucket: bucket, url: url, opts: opts, inFlight: make(chan struct{}, opts.Parallelism), cache: newBlockCache(opts.CacheBytes),
	}
}

// URL implements object.Store.
func (b *Blob) URL() string { return b.url }

// Close implements object.Store.
func (b *Blob) Close() error { return kindOf(b.bucket.Close(), "close", "") }

// kindOf turns a driver's error into one of our kinds.
func kindOf(err error, op, p string) error {
	if err == nil {
		return nil
	}
	kind := errs.ErrIO
	switch gcerrors.Code(err) {
	case gcerrors.NotFound:
		kind = errs.ErrNotFound
	case gcerrors.PermissionDenied:
		kind = errs.ErrPermission
	case gcerrors.FailedPrecondition, gcerrors.AlreadyExists:
		kind = errs.ErrExists // the only precondition that is ever sent
	case gcerrors.Unimplemented:
		kind = errs.ErrUnsupported
	case gcerrors.Unknown:
		if errors.Is(err, syscall.ENOTDIR) { // a bucket of files: the parent is a file
			kind = errs.ErrNotFound
		}
	case gcerrors.Canceled:
		return errors.Join(context.Canceled, err)
	case gcerrors.DeadlineExceeded:
		return errors.Join(context.DeadlineExceeded, err)
	}
	var coded interface{ ErrorCode() string } // of S3 and what speaks its protocol, where the driver has no kind for it
	if kind == errs.ErrIO && errors.As(err, &coded) {
		switch coded.ErrorCode() {
		case "NotImplemented":
			kind = errs.ErrUnsupported
		case "SignatureDoesNotMatch", "InvalidAccessKeyId", "ExpiredToken", "AccountProblem", "Forbidden":
			kind = errs.ErrPermission
		case "NoSuchBucket":
			kind = errs.ErrNotFound
		case "ConditionalRequestConflict": // two conditional writes at one time
			kind = errs.ErrExists
		}
	}
	return errs.New(kind, "%s %q: %w", op, p, err)
}

// limited gives one request its time; done turns the error of a request that did not end in it into an ErrIO.
func (b *Blob) limited(ctx context.Context, op, p string) (limit context.Context, done func(error) error) {
	if b.opts.RequestWait < 0 {
		return ctx, func(err error) error { return err }
	}
	limit, cancel := context.WithTimeout(ctx, b.opts.RequestWait)
	return limit, func(err error) error {
		late := errors.Is(limit.Err(), context.DeadlineExceeded) && ctx.Err() == nil
		cancel()
		if err != nil && late {
			return errs.New(errs.ErrIO, "%s %q: %s did not answer within %s", op, p, b.url, b.opts.RequestWait)
		}
		return err
	}
}

func checkFile(p string) error {
	if p == "" {
		return errs.New(errs.ErrInvalid, "path %q names no file", p)
	}
	return object.CheckPath(p)
}

// Open implements object.Store. It asks the store for the size.
func (b *Blob) Open(ctx context.Context, p string) (object.File, error) {
	if err := errors.Join(ctx.Err(), checkFile(p)); err != nil {
		return nil, err
	}
	limit, done := b.limited(ctx, "open", p)
	attrs, err := b.bucket.Attributes(limit, p)
	if err = done(kindOf(err, "open", p)); err != nil {
		return nil, err
	}
	return &blobFile{of: b, path: p, size: attrs.Size}, nil
}

// OpenSized implements object.SizedOpener: nothing is sent.
func (b *Blob) OpenSized(_ context.Context, p string, sizeBytes int64) (object.File, error) {
	if err := checkFile(p); err != nil {
		return nil, err
	}
	return &blobFile{of: b, path: p, size: sizeBytes}, nil
}

// Stat implements object.Store. Folders have no time.
func (b *Blob) Stat(ctx context.Context, p string) (object.Entry, error) {
	if err := object.CheckPath(p); err != nil {
		return object.Entry{}, err
	}
	if p != "" {
		limit, done := b.limited(ctx, "stat", p)
		attrs, err := b.bucket.Attributes(limit, p)
		if err = done(kindOf(err, "stat", p)); err == nil {
			return object.Entry{Name: path.Base(p), SizeBytes: attrs.Size, ModTime: attrs.ModTime}, nil
		}
		if !errors.Is(err, errs.ErrNotFound) {
			return object.Entry{}, err
		}
	}
	limit, done := b.limited(ctx, "stat", p)
	below, _, err := b.bucket.ListPage(limit, blob.FirstPageToken, 1, &blob.ListOptions{Prefix: folder(p)})
	if err = done(kindOf(err, "stat", p)); err != nil {
		return object.Entry{}, err
	}
	if len(below) == 0 {
		return object.Entry{}, errs.New(errs.ErrNotFound, "stat %q: not found", p)
	}
	return object.Entry{Name: path.Base(p), IsDir: true}, nil
}

// folder is the prefix of what lies below dir.
func folder(dir string) string {
	if dir == "" {
		return ""
	}
	return dir + "/"
}

const listPageNames = 1000

// List implements object.Store.
func (b *Blob) List(ctx context.Context, dir string) ([]object.Entry, error) {
	if err := object.CheckPath(dir); err != nil {
		return nil, err
	}
	var out []object.Entry
	token := blob.FirstPageToken
	for {
		page, next, err := b.page(ctx, dir, token, listPageNames)
		if err != nil {
			return nil, err
		}
		out = append(out, page...)
		if len(next) == 0 {
			break
		}
		token = next
	}
	slices.SortFunc(out, func(x, y object.Entry) int { return strings.Compare(x.Name, y.Name) })
	return out, nil
}

// ListPage implements object.Pager.
func (b *Blob) ListPage(ctx context.Context, dir string, limit int) ([]object.Entry, bool, error) {
	if b.opts.IsUnordered {
		all, err := b.List(ctx, dir)
		return all, true, err
	}
	if err := object.CheckPath(dir); err != nil {
		return nil, false, err
	}
	entries, next, err := b.page(ctx, dir, blob.FirstPageToken, limit)
	return entries, len(next) == 0, err
}

func (b *Blob) page(ctx context.Context, dir string, token []byte, limit int) ([]object.Entry, []byte, error) {
	timed, done := b.limited(ctx, "list", dir)
	objects, next, err := b.bucket.ListPage(timed, token, limit, &blob.ListOptions{Prefix: folder(dir), Delimiter: "/"})
	if err = done(kindOf(err, "list", dir)); err != nil {
		return nil, nil, err
	}
	out := make([]object.Entry, 0, len(objects))
	for _, o := range objects {
		name := strings.TrimSuffix(strings.TrimPrefix(o.Key, folder(dir)), "/")
		if name == "" || strings.HasPrefix(name, object.TempPrefix) {
			continue
		}
		out = append(out, object.Entry{Name: name, SizeBytes: o.Size, ModTime: o.ModTime, IsDir: o.IsDir})
	}
	return out, next, nil
}

// contentType keeps drivers from guessing.
const contentType = "application/octet-stream"

// Put implements object.Store. ifAbsent is a conditional write of the store, which is put to the test before the first one: a store that
// takes no notice of the condition would overwrite. Such a store gives ErrUnsupported.
func (b *Blob) Put(ctx context.Context, p string, content []byte, ifAbsent bool) error {
	if err := checkFile(p); err != nil {
		return err
	}
	if ifAbsent {
		if err := b.tryConditions(ctx); err != nil {
			return err
		}
	}
	return b.put(ctx, p, content, ifAbsent)
}

func (b *Blob) put(ctx context.Context, p string, content []byte, ifAbsent bool) error {
	limit, done := b.limited(ctx, "create", p)
	err := b.bucket.Upload(limit, p, bytes.NewReader(content), &blob.WriterOptions{ContentType: contentType, IfNotExist: ifAbsent})
	if err = done(kindOf(err, "create", p)); err == nil {
		b.cache.drop(p)
	}
	return err
}

// tryConditions writes one name twice, once for each store.
func (b *Blob) tryConditions(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.conditional == untried {
		probe := object.TempPrefix + "probe_" + uuid.NewString()
		first := b.put(ctx, probe, []byte("first"), true)
		second := error(nil)
		if first == nil {
			second = b.put(ctx, probe, []byte("second"), true)
		}
		// What cannot be removed is a temporary name, which nobody lists.
		removed := b.Delete(ctx, probe)
		switch {
		case errors.Is(first, errs.ErrUnsupported), errors.Is(second, errs.ErrUnsupported), first == nil && second == nil:
			b.conditional = ignored
		case errors.Is(first, errs.ErrExists), errors.Is(second, errs.ErrExists): // the first by what it wrote itself, after an answer that got lost
			b.conditional = kept
		default:
			return errors.Join(first, second, removed)
		}
	}
	if b.conditional == ignored {
		return errs.New(errs.ErrUnsupported, "%s does not keep conditional writes (If-None-Match), without which two writers could overwrite each other: write to another store", b.url)
	}
	return nil
}

// Create implements object.Store: the file is uploaded in parts and appears when Close completes it.
func (b *Blob) Create(ctx context.Context, p string) (object.Writer, error) {
	if err := checkFile(p); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	w, err := b.bucket.NewWriter(ctx, p, &blob.WriterOptions{ContentType: contentType})
	if err != nil {
		cancel()
		return nil, kindOf(err, "create", p)
	}
	return &blobWriter{of: b, path: p, w: w, cancel: cancel}, nil
}

// Delete implements object.Store.
func (b *Blob) Delete(ctx context.Context, p string) error {
	if err := checkFile(p); err != nil {
		return err
	}
	limit, done := b.limited(ctx, "delete", p)
	err := done(kindOf(b.bucket.Delete(limit, p), "delete", p))
	if errors.Is(err, errs.ErrNotFound) {
		return nil
	}
	b.cache.drop(p)
	return err
}

// blobWriter streams one upload.
type blobWriter struct {
	of          *Blob
	path        string
	w           *blob.Writer
	cancel      context.CancelFunc
	offsetBytes int64
	isDone      bool
	err         error
}

var _ object.Writer = (*blobWriter)(nil)

func (w *blobWriter) OffsetBytes() int64 { return w.offsetBytes }

func (w *blobWriter) Write(p []byte) (int, error) {
	if w.isDone {
		return 0, errs.New(errs.ErrInternal, "write to %q after its end", w.path)
	}
	n, err := w.w.Write(p)
	w.offsetBytes += int64(n)
	if err != nil {
		w.err = kindOf(err, "write", w.path)
	}
	return n, w.err
}

// Close completes the upload, unless a write failed: then it drops it and returns that error again.
func (w *blobWriter) Close() error {
	if w.isDone {
		return nil
	}
	if w.err != nil {
		return errors.Join(w.err, w.Abort())
	}
	w.isDone = true
	defer w.cancel()
	err := kindOf(w.w.Close(), "create", w.path)
	if err == nil {
		w.of.cache.drop(w.path)
	}
	return err
}

// Abort drops the upload: a writer whose context has ended never completes.
func (w *blobWriter) Abort() error {
	if w.isDone {
		return nil
	}
	w.isDone = true
	w.cancel()
	if err := w.w.Close(); err == nil {
		return errs.New(errs.ErrInternal, "abort %q: the upload was completed", w.path)
	}
	return nil
}

// fetch reads one range of an object with one request, into dst.
func (b *Blob) fetch(ctx context.Context, p string, r object.Range, dst []byte) error {
	select {
	case b.inFlight <- struct{}{}:
		defer func() { <-b.inFlight }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if b.fetched != nil {
		b.fetched(r)
	}
	limit, done := b.limited(ctx, "read", p)
	return done(b.fetchNow(limit, p, r, dst))
}

func (b *Blob) fetchNow(ctx context.Context, p string, r object.Range, dst []byte) error {
	rd, err := b.bucket.NewRangeReader(ctx, p, r.Offset, r.Size, nil)
	if err != nil {
		return kindOf(err, "read", p)
	}
	_, err = io.ReadFull(rd, dst)
	if err = errors.Join(err, rd.Close()); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return errs.New(errs.ErrIO, "read %q: %d bytes at %d: %w", p, r.Size, r.Offset, err)
	}
	return nil
}
