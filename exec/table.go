package exec

import (
	"context"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/storage/rowset"
)

// TableRef names one version of one table. Equal refs give equal rows, for ever.
type TableRef struct {
	Source  string // catalog (MySQL database)
	Table   string
	Branch  string // "" = main
	Version uint64 // 0 where the source has no versions
}

func (r TableRef) String() string {
	s := r.Source + "." + r.Table
	if r.Branch != "" {
		s += "@" + r.Branch
	}
	if r.Version > 0 {
		s += fmt.Sprintf("@v%d", r.Version)
	}
	return s
}

// TableOpener finds the table of a ref; within a statement it gives the pinned one.
type TableOpener interface {
	OpenTable(ctx context.Context, ref TableRef) (Table, error)
}

// Table is one version of one table of any source. It is immutable and safe for concurrent use.
type Table interface {
	Ref() TableRef
	// Schema is the full schema; Scan takes its column names.
	Schema() *arrow.Schema
	// Rows is the exact number of live rows, or -1 where the source cannot tell.
	Rows() int64
	// ColumnBytes is about how many bytes of storage the column has; -1 = unknown.
	ColumnBytes(ctx context.Context, column string) int64
	Scan(ctx context.Context, req ScanRequest) (TableScan, error)
}

// ScanRequest says what to read.
type ScanRequest struct {
	Columns   []string    // in output order; may be empty (rows without columns, for counting)
	Among     *rowset.Set // row addresses; nil = every live row. Only for tables that are Addressable.
	Fragments []uint32    // nil = all. Only for tables that are Addressable.
	RowAddr   bool        // append a uint64 column "_rowaddr". Only for tables that are Addressable.
	Codes     []string    // of Columns: text of these may come as dictionary arrays (codesType), batch by batch
	BatchRows int
	Alloc     memory.Allocator
}

// TableScan is a started scan: each worker takes a reader of its own, together they yield every row once.
type TableScan interface {
	Reader() BatchReader
}

// BatchReader yields batches until io.EOF; the caller releases each. It is used by one goroutine.
type BatchReader interface {
	Next(ctx context.Context) (arrow.RecordBatch, error)
	// Close frees what was read ahead and not handed out. It is idempotent.
	Close() error
}

// RowAddrColumn is the name of the row address column.
const RowAddrColumn = "_rowaddr"

// Addressable is a table whose rows have addresses.
type Addressable interface {
	Table
	// Take reads columns of the rows at addrs, in that order, duplicates kept.
	Take(ctx context.Context, addrs []rowset.RowAddr, columns []string, alloc memory.Allocator) (arrow.RecordBatch, error)
	// LiveRows returns the addresses of all live rows, of the given fragments (nil = all).
	LiveRows(ctx context.Context, fragments []uint32) (*rowset.Set, error)
	FragmentIDs() []uint32
}

// IndexInfo describes one index of a table (all its segments).
type IndexInfo struct {
	Name     string
	Kind     index.Kind
	Column   string
	Metric   index.Metric    // vector kinds
	Segments int             //
	Covers   *roaring.Bitmap // live fragments covered by a segment; where an index is chosen, by one that can be read
	Usable   bool            // lakesql can open it
	Reason   string          // why not usable
}

// IndexFault is a segment of an index that cannot be read: its files are damaged, gone, or of a version that lakesql does not know. The rows that it
// covers are scanned.
type IndexFault struct {
	Index, Segment string // the segment's UUID
	File           string // "" where it is not known
	Err            error
}

func (f IndexFault) String() string {
	file := ""
	if f.File != "" {
		file = " file " + f.File
	}
	return fmt.Sprintf("index %s segment %.8s%s: %v", f.Index, f.Segment, file, f.Err)
}

// FilterChoice is the index that answers an operator on a column.
type FilterChoice struct {
	OK     bool // there is one
	Info   IndexInfo
	Match  index.Match
	Faults []IndexFault // of it and of others that were looked at
}

// VectorChoice is the index that searches a vector column.
type VectorChoice struct {
	OK     bool // there is one
	Info   IndexInfo
	Reason string       // why not
	Faults []IndexFault // of it and of others that were looked at
}

// Indexed is a table with indices.
type Indexed interface {
	Addressable
	Indexes() []IndexInfo
	// FilterIndex chooses an index of the column that answers the operator. Segments that cannot be read are faults of the choice; ErrIO,
	// ErrPermission and the like where the store fails.
	FilterIndex(ctx context.Context, column string, op index.Op) (FilterChoice, error)
	// Lookup answers a predicate through an index: live row addresses of fragments that LookupStats.Covers names. The caller pays for the answer.
	Lookup(ctx context.Context, req LookupRequest) (index.Truth, LookupStats, error)
	// Estimate is about how many rows match; -1 = unknown.
	Estimate(ctx context.Context, indexName string, p index.Predicate) int64
}

// IndexSizer is a table that knows the sizes of its indices' files without opening them.
type IndexSizer interface {
	// IndexBytes is the size of all segments of an index. Errors: ErrNotFound, ErrIO, ErrPermission.
	IndexBytes(ctx context.Context, name string) (int64, error)
}

// LookupRequest asks an index of a table.
type LookupRequest struct {
	Index     string
	Predicate index.Predicate
	Match     index.Match      // that the caller is ready for, besides Exact: segments with another do not answer
	Alloc     memory.Allocator // of what is read for the answer; nil = memory.DefaultAllocator
	Budget    *mem.Budget      // pays for the sets that a lookup holds while it runs; nil = nobody counts
}

// LookupStats counts one index lookup.
type LookupStats struct {
	Segments  int
	BytesRead int64
	Covers    *roaring.Bitmap // fragments that the answer is about
	Faults    []IndexFault    // of segments that did not answer
}

// SearchRequest asks for the K nearest rows of a vector column.
type SearchRequest struct {
	Column    string
	Metric    index.Metric
	Query     []float32
	K         int
	Index     string      // "" = exact
	Among     *rowset.Set // row addresses that may be hits; nil = every live row, empty = none
	MinProbes int         // 0 = default
	MaxProbes int         // 0 = all lists
	// Fault is told of segments that cannot be read, whose rows are compared one by one instead. Tasks call it side by side; nil = nobody asks.
	Fault  func(IndexFault)
	Budget *mem.Budget // pays for what tasks hold while they run; nil = nobody counts
}

// SearchHit is a row found.
type SearchHit struct {
	Addr     rowset.RowAddr
	Distance float32
}

// SearchTask is one independent part of a search: an index segment, or a group of fragments that no segment covers. The tasks
// of one request cover every visible row exactly once.
type SearchTask interface {
	// Describe is a short name for EXPLAIN: "segment 7fb2c563", "fragments 3-9".
	Describe() string
	// Run returns at most K hits, nearest first, ties by address. approximate says the distances want a refine.
	Run(ctx context.Context) (hits []SearchHit, approximate bool, stats index.NearestStats, err error)
}

// VectorTable is a table that searches vectors.
type VectorTable interface {
	Indexed
	// VectorIndex chooses an index of the column with the metric that lakesql can search. Errors as of FilterIndex.
	VectorIndex(ctx context.Context, column string, metric index.Metric) (VectorChoice, error)
	SearchTasks(ctx context.Context, req SearchRequest) ([]SearchTask, error)
	// Distances computes the exact distances of the query of req to the rows at addrs; NaN where the vector is NULL or the distance undefined. The budget of
	// req pays for vectors that have to be fetched.
	Distances(ctx context.Context, req SearchRequest, addrs []rowset.RowAddr) ([]float32, error)
}
