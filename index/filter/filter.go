// Package filter opens filter segments by kind. It is the visible switch over the kinds that lakesql reads; the kinds
// themselves are packages of their own.
package filter

import (
	"context"
	"strings"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/bitmap"
	"github.com/lakesql/lakesql/index/btree"
	"github.com/lakesql/lakesql/index/labellist"
	"github.com/lakesql/lakesql/index/zonemap"
	"github.com/lakesql/lakesql/internal/errs"
)

// KindOf returns the kind that a manifest's type URL names; false for vector kinds, whose details tell, and for kinds that lakesql does not know.
// Type URLs compare case-insensitively, and with or without a host before the slash.
func KindOf(typeURL string) (index.Kind, bool) {
	name := typeURL[strings.LastIndexByte(typeURL, '/')+1:]
	switch strings.ToLower(name) {
	case "lance.table.labellistindexdetails":
		return index.KindLabelList, true
	case "lance.table.bitmapindexdetails":
		return index.KindBitmap, true
	case "lance.table.btreeindexdetails":
		return index.KindBTree, true
	case "lance.table.zonemapindexdetails":
		return index.KindZoneMap, true
	default:
		return "", false
	}
}

// Open opens a segment by its kind. Errors: ErrUnsupported, by name, for a kind or an index_version that is not read: the caller
// scans instead; and what the kind's own Open returns.
func Open(ctx context.Context, open index.OpenFile, meta index.Meta, opts index.OpenOptions) (index.FilterSegment, error) {
	switch meta.Kind {
	case index.KindLabelList:
		return nilOnError(labellist.Open(ctx, open, meta, opts))
	case index.KindBitmap:
		return nilOnError(bitmap.Open(ctx, open, meta, opts))
	case index.KindBTree:
		return nilOnError(btree.Open(ctx, open, meta, opts))
	case index.KindZoneMap:
		return nilOnError(zonemap.Open(ctx, open, meta, opts))
	default:
		return nil, errs.New(errs.ErrUnsupported, "index %s: kind %s is not read", meta.Name, meta.Kind)
	}
}

// nilOnError keeps a nil pointer from becoming an interface that is not nil.
func nilOnError[S index.FilterSegment](s S, err error) (index.FilterSegment, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}
