package cloud

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"syscall"

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
}

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
	return errs.New(kind, "%s %q: %w", op, p, err)
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
	attrs, err := b.bucket.Attributes(ctx, p)
	if err != nil {
		return nil, kindOf(err, "open", p)
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
		attrs, err := b.bucket.Attributes(ctx, p)
		if err == nil {
			return object.Entry{Name: path.Base(p), SizeBytes: attrs.Size, ModTime: attrs.ModTime}, nil
		}
		if err = kindOf(err, "stat", p); !errors.Is(err, errs.ErrNotFound) {
			return object.Entry{}, err
		}
	}
	below, _, err := b.bucket.ListPage(ctx, blob.FirstPageToken, 1, &blob.ListOptions{Prefix: folder(p)})
	if err != nil {
		return object.Entry{}, kindOf(err, "stat", p)
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
	objects, next, err := b.bucket.ListPage(ctx, token, limit, &blob.ListOptions{Prefix: folder(dir), Delimiter: "/"})
	if err != nil {
		return nil, nil, kindOf(err, "list", dir)
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

// Put implements object.Store. ifAbsent is a conditional write of the store.
func (b *Blob) Put(ctx context.Context, p string, content []byte, ifAbsent bool) error {
	if err := checkFile(p); err != nil {
		return err
	}
	err := b.bucket.Upload(ctx, p, bytes.NewReader(content), &blob.WriterOptions{ContentType: contentType, IfNotExist: ifAbsent})
	if err = kindOf(err, "create", p); err == nil {
		b.cache.drop(p)
	}
	return err
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
	err := kindOf(b.bucket.Delete(ctx, p), "delete", p)
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
