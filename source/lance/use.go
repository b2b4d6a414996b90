package lance

import (
	"runtime"
	"slices"
	"weak"

	"github.com/lakesql/lakesql/storage"
)

// handedOut remembers the tables that a catalog has shown, by the folder of their dataset, without keeping them: statements and transactions hold the tables that they
// read, so a version that somebody may still read is one whose table is reachable (I3).
type handedOut map[string][]weak.Pointer[Table]

func (h handedOut) add(t *Table) {
	dir := t.snap.Table().Dir()
	kept := slices.DeleteFunc(h[dir], func(p weak.Pointer[Table]) bool { return p.Value() == nil })
	h[dir] = append(kept, weak.Make(t))
}

// oldest is the lowest version of a dataset that is reachable; false where there is none.
func (h handedOut) oldest(dir string) (version uint64, some bool) {
	for _, p := range h[dir] {
		if t := p.Value(); t != nil && (!some || t.snap.Version() < version) {
			version, some = t.snap.Version(), true
		}
	}
	return version, some
}

// OldestInUse is the lowest version of a dataset of this lake that a statement or a transaction of this process may still read; 0 = none of those before the newest. Whoever cleans up
// keeps that version and the later ones. It may be lower than what is in use in truth, never higher.
func (c *Catalog) OldestInUse(table *storage.Table, newest uint64) uint64 {
	look := func() (uint64, bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.handed.oldest(table.Dir())
	}
	version, some := look()
	if some && version < newest {
		runtime.GC() // statements that have ended hold nothing, but the collector decides when that shows
		version, some = look()
	}
	if !some || version >= newest {
		return 0
	}
	return version
}
