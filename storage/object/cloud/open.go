package cloud

import (
	"context"
	"net/url"
	"strings"

	"gocloud.dev/blob"
	_ "gocloud.dev/blob/azureblob" // azblob://
	_ "gocloud.dev/blob/gcsblob"   // gs://
	_ "gocloud.dev/blob/s3blob"    // s3://

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/object"
)

const responseChecksums = "response_checksum_validation" // a parameter of s3:// URLs

// Open opens a store by URL: a path or file:// is a local folder; s3://BUCKET/PREFIX, gs://BUCKET/PREFIX and azblob://CONTAINER/PREFIX are
// remote, with the credentials and parameters (region, endpoint, ...) of gocloud.dev/blob. Nothing is sent before the first read. Errors:
// ErrUnsupported for other schemes, ErrInvalid, and what object.OpenLocal returns.
func Open(ctx context.Context, where string) (object.Store, error) {
	scheme, _, isURL := strings.Cut(where, "://")
	if !isURL || scheme == "file" {
		return object.OpenURL(ctx, where)
	}
	switch scheme {
	case "s3", "gs", "azblob":
	default:
		return nil, errs.New(errs.ErrUnsupported, "stores of scheme %q are not supported: use a path, file://, s3://, gs:// or azblob://", scheme)
	}
	u, err := url.Parse(where)
	if err != nil || u.Host == "" {
		return nil, errs.New(errs.ErrInvalid, "%q is no URL of a bucket", where)
	}
	prefix := strings.Trim(u.Path, "/")
	root := *u
	root.Path = ""
	if q := root.Query(); scheme == "s3" && !q.Has(responseChecksums) {
		// Ranges have no checksums, and the client says so on standard error at each one.
		q.Set(responseChecksums, "when_required")
		root.RawQuery = q.Encode()
	}
	bucket, err := blob.OpenBucket(ctx, root.String())
	if err != nil {
		return nil, errs.New(errs.ErrInvalid, "open %s: %w", u.Redacted(), err)
	}
	if prefix != "" {
		bucket = blob.PrefixedBucket(bucket, prefix+"/")
	}
	name := scheme + "://" + u.Host
	if prefix != "" {
		name += "/" + prefix
	}
	// Directory buckets list in no order, so their first page says nothing about the newest version.
	return OpenBlob(bucket, name, Options{IsUnordered: strings.HasSuffix(u.Host, "--x-s3")}), nil
}
