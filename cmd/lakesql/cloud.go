package main

import (
	"context"

	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/object/cloud"
)

func cloudStore(ctx context.Context, uri string) (object.Store, error) {
	return cloud.Open(ctx, uri)
}
