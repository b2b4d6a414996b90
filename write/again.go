package write

import (
	"context"
	"errors"

	"github.com/lakesql/lakesql/internal/errs"
)

// rebuildsMax bounds how often work that lost to another writer is done anew, which costs more than a commit that is tried again.
const rebuildsMax = 4

// again runs f, and once more after each conflict: f looks at the newest version first, so that it works on what the other writer left. A table that no longer has what the
// work is about is a conflict still.
func again[T any](ctx context.Context, opts CommitOptions, f func() (T, error)) (T, error) {
	opts = opts.withDefaults()
	var lost error
	for attempt := 0; ; attempt++ {
		out, err := f()
		if lost != nil && errors.Is(err, errs.ErrNotFound) {
			return out, lost
		}
		if !errors.Is(err, errs.ErrConflict) || errors.Is(err, errOutcome) || attempt >= min(opts.Retries, rebuildsMax) {
			return out, err
		}
		lost = err
		if err := opts.Wait(ctx, backOff(attempt)); err != nil {
			return out, err
		}
	}
}
