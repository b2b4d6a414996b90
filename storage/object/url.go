package object

import (
	"context"
	"net/url"
	"strings"

	"github.com/lakesql/lakesql/internal/errs"
)

// OpenURL opens a local folder by its path or file:// URL. Object stores are opened by package cloud below, so that
// only programs that want them carry their clients. Errors: ErrUnsupported for other schemes, and what OpenLocal returns.
func OpenURL(_ context.Context, where string) (Store, error) {
	scheme, _, isURL := strings.Cut(where, "://")
	if !isURL {
		return OpenLocal(where, LocalOptions{})
	}
	if scheme != "file" {
		return nil, errs.New(errs.ErrUnsupported, "stores of scheme %q are not supported here", scheme)
	}
	u, err := url.Parse(where)
	if err != nil || u.Host != "" && u.Host != "localhost" {
		return nil, errs.New(errs.ErrInvalid, "%q is no URL of a local folder", where)
	}
	return OpenLocal(u.Path, LocalOptions{})
}
