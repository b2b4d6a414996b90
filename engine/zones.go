package engine

import (
	"strings"
	"sync"
	"time"

	"github.com/lakesql/lakesql/internal/errs"
)

// zones remembers the time zones that sessions asked for: each statement needs its own, and the database may be files whose reads can fail for a moment. The
// zero value is ready; it is safe for concurrent use. Only zones that exist are kept, so that there are some hundred at most.
type zones struct {
	mu     sync.Mutex
	byName map[string]*time.Location
	load   func(name string) (*time.Location, error) // nil = time.LoadLocation
}

// loadAttempts: a read that a signal interrupted is an error to package time.
const loadAttempts = 3

// find returns a zone by its name in the database. Errors: ErrInvalid.
func (z *zones) find(name string) (*time.Location, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if loc, ok := z.byName[name]; ok {
		return loc, nil
	}
	load := z.load
	if load == nil {
		load = time.LoadLocation
	}
	loc, err := load(name)
	for attempt := 1; err != nil && attempt < loadAttempts; attempt++ {
		loc, err = load(name)
	}
	if err != nil {
		return nil, errs.New(errs.ErrInvalid, "unknown or incorrect time zone: '%s'", name)
	}
	if z.byName == nil {
		z.byName = make(map[string]*time.Location)
	}
	z.byName[strings.Clone(name)] = loc
	return loc, nil
}
