// Package index holds what every kind of index shares: segments, predicates, three-valued answers, hits.
//
// A Segment is one immutable set of index files covering some fragments; several segments under one name form an index.
// Segments answer in stored keys (row addresses, or row ids in tables with stable row ids). storage.Snapshot.Resolve
// maps keys to addresses and masks deleted and retired rows, so a cached segment outlives versions.
//
// I1: Truth.True and Truth.Null are disjoint. I2: rows of the universe in neither are FALSE.
package index

import (
	"context"
	"fmt"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/storage/rowset"
)

// Kind is the kind of an index, spelled as in CREATE INDEX ... USING.
type Kind string

// The kinds that lakesql knows by name. Others are listed under the name that their type URL gives and never opened.
const (
	KindLabelList Kind = "LABEL_LIST"
	KindBitmap    Kind = "BITMAP"
	KindBTree     Kind = "BTREE"
	KindZoneMap   Kind = "ZONEMAP"
	KindIVFFlat   Kind = "IVF_FLAT"
	KindIVFSQ     Kind = "IVF_SQ"
	KindIVFPQ     Kind = "IVF_PQ"
	KindIVFRQ     Kind = "IVF_RQ"
	KindHNSWSQ    Kind = "IVF_HNSW_SQ"
	KindHNSWPQ    Kind = "IVF_HNSW_PQ"
	KindHNSWFlat  Kind = "IVF_HNSW_FLAT"
)

// Metric is a vector distance as Lance defines it: l2 is squared Euclidean, cosine 1-cos, dot 1-inner product, hamming differing bits.
type Metric string

// The metrics.
const (
	MetricL2      Metric = "l2"
	MetricCosine  Metric = "cosine"
	MetricDot     Metric = "dot"
	MetricHamming Metric = "hamming"
)

// Meta describes a segment.
type Meta struct {
	Name    string          // of the index
	UUID    string          // of the segment, hyphenated
	Kind    Kind            //
	FieldID int32           // the indexed field; for lists the list field
	Covers  *roaring.Bitmap // fragment ids; may hold ids of fragments that are gone
	Metric  Metric          // vector kinds
	Version int32           // index_version
	// PhysicalKeys says that the stored keys are row addresses even where the table has stable row ids; a segment sets it from
	// Kind and Version when it is opened. Without it the keys are row ids in such tables, row addresses in all others.
	PhysicalKeys bool
	// Stale says that the segment may still hold entries of rows as they were before an update that kept their row id: the real engine
	// leaves them in when it merges segments of a table with stable row ids. Whoever opens the segment finds out (filter.MayBeStale).
	// Such a segment answers Match AtMost.
	Stale bool
}

// PhysicalKeys says whether segments of a kind and index_version store row addresses in tables with stable row ids, see Meta.
func PhysicalKeys(kind Kind, version int32) bool {
	switch kind {
	case KindBTree, KindBitmap:
		return version >= 1
	case KindLabelList:
		return version >= 2
	case KindZoneMap:
		return true
	default:
		return false
	}
}

// Segment is what every segment can do. It is safe for concurrent use. Close drops what it cached.
type Segment interface {
	Meta() Meta
	Close() error
}

// Op is what a predicate asks.
type Op int

// The operators of a Predicate. Each follows SQL's three-valued logic: the answer of any operator but IsNull and IsNotNull is NULL where the column
// is NULL. Has* look at the elements of a list: a NULL element never matches.
const (
	OpEq        Op = iota // column = Values[0]
	OpIn                  // column IN (Values)
	OpRange               // Lower <[=] column <[=] Upper
	OpIsNull              // column IS NULL, never NULL
	OpIsNotNull           // column IS NOT NULL, never NULL
	OpHas                 // array_has(column, Values[0])
	OpHasAny              // array_has_any(column, Values)
	OpHasAll              // array_has_all(column, Values)
)

// Predicate is one question about one column, with literals already converted to the column's type (for lists, the
// element's). Values holds no NULL.
type Predicate struct {
	Op     Op
	Values arrow.Array // Eq, Has: 1; In, HasAny, HasAll: 1 or more; Range: 2 (lower, upper), NULL = unbounded
	// Range only: whether the bound itself belongs to it.
	LowerInclusive, UpperInclusive bool
}

func (p Predicate) String() string {
	vals := func() string {
		parts := make([]string, 0, min(p.Values.Len(), 4))
		for i := range min(p.Values.Len(), 3) {
			parts = append(parts, p.Values.ValueStr(i))
		}
		if p.Values.Len() > 3 {
			parts = append(parts, fmt.Sprintf("... %d in all", p.Values.Len()))
		}
		return strings.Join(parts, ", ")
	}
	switch p.Op {
	case OpEq:
		return "= " + vals()
	case OpIn:
		return "IN (" + vals() + ")"
	case OpRange:
		lo, hi := "(", ")"
		if p.LowerInclusive {
			lo = "["
		}
		if p.UpperInclusive {
			hi = "]"
		}
		return "IN RANGE " + lo + vals() + hi
	case OpIsNull:
		return "IS NULL"
	case OpIsNotNull:
		return "IS NOT NULL"
	case OpHas:
		return "HAS " + vals()
	case OpHasAny:
		return "HAS ANY (" + vals() + ")"
	case OpHasAll:
		return "HAS ALL (" + vals() + ")"
	}
	return fmt.Sprintf("op %d", int(p.Op))
}

// Truth is a predicate's answer in three-valued logic over some universe of rows; rows in neither set are FALSE.
type Truth struct{ True, Null *rowset.Set }

// And is exact: TRUE where both are, FALSE where either is, else NULL.
func (t Truth) And(o Truth) Truth {
	return Truth{
		True: rowset.And(t.True, o.True),
		// NULL unless one side is FALSE or both are TRUE: (N1 & (T2|N2)) | (T1 & N2).
		Null: rowset.Or(rowset.And(t.Null, rowset.Or(o.True, o.Null)), rowset.And(t.True, o.Null)),
	}
}

// Or is exact: TRUE where either is, FALSE where both are, else NULL.
func (t Truth) Or(o Truth) Truth {
	isTrue := rowset.Or(t.True, o.True)
	return Truth{True: isTrue, Null: rowset.AndNot(rowset.Or(t.Null, o.Null), isTrue)}
}

// CountNot is how many rows of the universe Not makes TRUE.
func (t Truth) CountNot(universe *rowset.Set) uint64 {
	return universe.Count() - rowset.AndCount(universe, t.True) - rowset.AndCount(universe, t.Null) // I1
}

// Not is exact within the universe: TRUE where t is FALSE, NULL where t is NULL.
func (t Truth) Not(universe *rowset.Set) Truth {
	return Truth{
		True: rowset.AndNot(rowset.AndNot(universe, t.True), t.Null),
		Null: rowset.And(t.Null, universe),
	}
}

// Match says how far an answer can be trusted.
type Match int

const (
	// Exact means that the sets are the answer.
	Exact Match = iota
	// AtMost means that the TRUE set may hold rows that are not TRUE, and the NULL set rows that are not NULL; the caller rechecks both. Rows
	// in neither are FALSE.
	AtMost
	// TrueOnly means that the TRUE set is exact but NULL cannot be told from FALSE (label lists of old writers).
	TrueOnly
)

// FilterSegment answers predicates for the fragments in Meta().Covers.
type FilterSegment interface {
	Segment
	// Answers says, without I/O, whether Lookup supports the operator, and with which Match.
	Answers(op Op) (Match, bool)
	// Lookup returns the stored keys where p is TRUE and where it is NULL. The sets may be shared with the segment's cache:
	// the caller must not change them. What is read for the answer is allocated with the allocator of ctx
	// (compute.WithAllocator). Errors: ErrInvalid for a predicate of another type than the column, ErrUnsupported for
	// an operator that Answers refuses, ErrCorrupt, ErrIO, ErrMemoryLimit.
	Lookup(ctx context.Context, p Predicate) (Truth, Match, error)
	// Estimate returns about how many rows p matches, from what is in memory or cheap to read; -1 = unknown.
	Estimate(ctx context.Context, p Predicate) (int64, error)
}

// Hit is a row found by a vector search.
type Hit struct {
	Key      uint64 // stored key
	Distance float32
}

// NearestQuery asks for the K nearest rows.
type NearestQuery struct {
	Vector    []float32     // length = the column's dimension; for hamming the bytes as numbers 0..255
	Metric    Metric        // must be the segment's
	K         int           // > 0
	Among     *rowset.Set   // stored keys that may be hits; nil = all, empty = none
	MinProbes int           // lists probed in the first round; 0 = 20
	MaxProbes int           // most lists probed while fewer than K hits are found; 0 = all
	Stats     *NearestStats // filled in if not nil
	Budget    *mem.Budget   // pays for the hits and codes that are held; nil = nobody counts
}

// NearestStats counts what one search did.
type NearestStats struct {
	ListsProbed, ListsTotal int64
	RowsCompared            int64
	BytesRead               int64
}

// NearestSegment finds at most q.K hits, nearest first, ties by stored key.
type NearestSegment interface {
	Segment
	// Nearest returns distances as the index has them: exact for IVF_FLAT, approximate for quantized kinds.
	Nearest(ctx context.Context, q NearestQuery) ([]Hit, error)
	// Quantized says that distances are approximate, so that the caller refines.
	Quantized() bool
}
