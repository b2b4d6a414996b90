//go:build unix && !linux

package object

import "github.com/lakesql/lakesql/internal/errs"

func renameNoReplace(string, string) error { return errs.ErrUnsupported }
