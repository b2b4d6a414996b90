package index

import (
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/storage/rowset"
)

// Progress hears how far a build is: done of total in a stage, which is named by what it does. It is called from one goroutine at a time.
type Progress func(stage string, done, total int64)

// BuildOptions says how a filter segment is built. The zero value is ready.
type BuildOptions struct {
	Budget      *mem.Budget // pays for what is collected; nil = nobody
	MemoryBytes int64       // collected in memory before it is written to a sorted run; 0 = 256 MiB. A budget that refuses has the same effect
	TempDir     string      // folder of the runs; "" = the system's folder for temporary files
	Rows        uint64      // about how many are added; 0 = not known. Who knows needs less memory
	Progress    Progress    // of writing; nil = nobody listens
}

// WithDefaults fills in what is zero.
func (o BuildOptions) WithDefaults() BuildOptions {
	if o.MemoryBytes <= 0 {
		o.MemoryBytes = 256 << 20
	}
	if o.Progress == nil {
		o.Progress = func(string, int64, int64) {}
	}
	return o
}

// KeyMap says which stored keys of a segment go into another one, and as which keys.
type KeyMap interface {
	// Map returns the new key of one row; false = it is left out.
	Map(key uint64) (now uint64, ok bool)
	// MapSet is Map for a set. It may return the set itself; neither may be changed afterwards.
	MapSet(s *rowset.Set) *rowset.Set
}

// Only keeps the keys of a set as they are.
type Only struct{ Keys *rowset.Set }

// Map implements KeyMap.
func (o Only) Map(key uint64) (uint64, bool) { return key, o.Keys.Contains(key) }

// MapSet implements KeyMap.
func (o Only) MapSet(s *rowset.Set) *rowset.Set { return rowset.And(s, o.Keys) }

// Moved gives rows of rewritten fragments their new addresses.
type Moved struct{ Remap *rowset.Remap }

// Map implements KeyMap.
func (m Moved) Map(key uint64) (uint64, bool) {
	now, ok := m.Remap.Map(rowset.RowAddr(key))
	return uint64(now), ok
}

// MapSet implements KeyMap.
func (m Moved) MapSet(s *rowset.Set) *rowset.Set { return m.Remap.MapSet(s) }
