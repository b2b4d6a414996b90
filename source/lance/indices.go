package lance

import (
	"context"
	"fmt"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"google.golang.org/protobuf/proto"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/bitmap"
	"github.com/lakesql/lakesql/index/btree"
	"github.com/lakesql/lakesql/index/filter"
	"github.com/lakesql/lakesql/index/labellist"
	"github.com/lakesql/lakesql/index/vector"
	"github.com/lakesql/lakesql/index/zonemap"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/pb/indexpb"
	"github.com/lakesql/lakesql/storage/rowset"
)

// indexGroup is one index: the segments of one name.
type indexGroup struct {
	info     exec.IndexInfo
	segments []storage.IndexInfo
}

// groupIndices joins the segments of each name and says what each index is.
func groupIndices(snap *storage.Snapshot) []indexGroup {
	live := roaring.New()
	for _, f := range snap.Fragments() {
		live.Add(f.ID())
	}
	var out []indexGroup
	at := make(map[string]int)
	for _, seg := range snap.Indices() {
		i, ok := at[seg.Name]
		if !ok {
			i = len(out)
			at[seg.Name] = i
			kind, metric := kindOf(seg)
			out = append(out, indexGroup{info: exec.IndexInfo{Name: seg.Name, Kind: kind, Metric: metric, Covers: roaring.New()}})
			out[i].info.Column, out[i].info.Usable, out[i].info.Reason = usable(snap, seg, kind)
		}
		g := &out[i]
		g.segments = append(g.segments, seg)
		g.info.Segments++
		if seg.Covers != nil {
			g.info.Covers.Or(roaring.And(seg.Covers, live))
		}
	}
	return out
}

// usable finds the indexed top-level column and says whether lakesql opens such an index.
func usable(snap *storage.Snapshot, seg storage.IndexInfo, kind index.Kind) (column string, ok bool, reason string) {
	if len(seg.FieldIDs) != 1 {
		return "", false, fmt.Sprintf("it covers %d columns", len(seg.FieldIDs))
	}
	for _, f := range snap.Schema().Fields {
		if f.ID == seg.FieldIDs[0] {
			column = f.Name
		}
	}
	switch {
	case column == "":
		return "", false, "its column is nested or gone"
	case seg.Covers == nil:
		return column, false, "it does not say which fragments it covers"
	}
	switch kind {
	case index.KindLabelList, index.KindBitmap, index.KindBTree, index.KindZoneMap, index.KindIVFFlat, index.KindIVFSQ, index.KindIVFPQ, index.KindIVFRQ,
		index.KindHNSWSQ, index.KindHNSWPQ, index.KindHNSWFlat:
		return column, true, ""
	}
	return column, false, fmt.Sprintf("lakesql does not read %s indices", kind)
}

// kindOf reads the kind from the details' type URL, and for vectors from the details themselves.
func kindOf(seg storage.IndexInfo) (index.Kind, index.Metric) {
	name := seg.TypeURL[strings.LastIndexAny(seg.TypeURL, "/.")+1:]
	switch strings.ToLower(name) {
	case "labellistindexdetails":
		return index.KindLabelList, ""
	case "bitmapindexdetails":
		return index.KindBitmap, ""
	case "btreeindexdetails":
		return index.KindBTree, ""
	case "zonemapindexdetails":
		return index.KindZoneMap, ""
	case "vectorindexdetails":
		return vectorKind(seg.Details)
	}
	return index.Kind(strings.ToUpper(strings.TrimSuffix(name, "IndexDetails"))), ""
}

func vectorKind(details []byte) (index.Kind, index.Metric) {
	var d indexpb.VectorIndexDetails
	if err := proto.Unmarshal(details, &d); err != nil {
		return "VECTOR", ""
	}
	metric := map[indexpb.VectorIndexDetails_MetricType]index.Metric{
		indexpb.VectorIndexDetails_L2: index.MetricL2, indexpb.VectorIndexDetails_COSINE: index.MetricCosine,
		indexpb.VectorIndexDetails_DOT: index.MetricDot, indexpb.VectorIndexDetails_HAMMING: index.MetricHamming,
	}[d.GetMetricType()]
	hnsw := d.HnswIndexConfig != nil
	switch d.Compression.(type) {
	case *indexpb.VectorIndexDetails_Pq:
		if hnsw {
			return index.KindHNSWPQ, metric
		}
		return index.KindIVFPQ, metric
	case *indexpb.VectorIndexDetails_Sq:
		if hnsw {
			return index.KindHNSWSQ, metric
		}
		return index.KindIVFSQ, metric
	case *indexpb.VectorIndexDetails_Rq:
		return index.KindIVFRQ, metric
	case *indexpb.VectorIndexDetails_Flat_:
		if hnsw {
			return index.KindHNSWFlat, metric
		}
		return index.KindIVFFlat, metric
	}
	return "VECTOR", metric
}

// Indexes implements exec.Indexed.
func (t *Table) Indexes() []exec.IndexInfo {
	out := make([]exec.IndexInfo, len(t.groups))
	for i, g := range t.groups {
		out[i] = g.info
	}
	return out
}

// IndexSegments returns the segments of an index as the manifest lists them.
func (t *Table) IndexSegments(name string) []storage.IndexInfo {
	if g := t.group(name); g != nil {
		return g.segments
	}
	return nil
}

// IndexBytes implements exec.IndexSizer.
func (t *Table) IndexBytes(ctx context.Context, name string) (int64, error) {
	g := t.group(name)
	if g == nil {
		return 0, errs.New(errs.ErrNotFound, "index %s of %s", name, t.ref)
	}
	total := int64(0)
	for _, info := range g.segments {
		n, err := t.snap.IndexBytes(ctx, info)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

func (t *Table) group(name string) *indexGroup {
	for i := range t.groups {
		if t.groups[i].info.Name == name {
			return &t.groups[i]
		}
	}
	return nil
}

// answers says, without opening a file, what a kind of index can do.
func answers(kind index.Kind, op index.Op) bool {
	switch op {
	case index.OpHas, index.OpHasAny, index.OpHasAll:
		return kind == index.KindLabelList
	case index.OpIsNull:
		return kind == index.KindLabelList || kind == index.KindBitmap || kind == index.KindBTree || kind == index.KindZoneMap
	case index.OpIsNotNull:
		return kind == index.KindBitmap || kind == index.KindBTree
	default:
		return kind == index.KindBitmap || kind == index.KindBTree || kind == index.KindZoneMap
	}
}

// rank orders kinds that answer the same question: a bitmap first, zones, whose rows are read again, last.
func rank(kind index.Kind) int {
	switch kind {
	case index.KindBitmap:
		return 0
	case index.KindZoneMap:
		return 2
	default:
		return 1
	}
}

// FilterIndex implements exec.Indexed. Where several indices answer, one that can be read as a whole does, and among these the one of the lowest rank.
func (t *Table) FilterIndex(ctx context.Context, column string, op index.Op) (exec.FilterChoice, error) {
	var out exec.FilterChoice
	isWhole := false
	for i, g := range t.groups {
		isBetter := !out.OK || rank(g.info.Kind) < rank(out.Info.Kind)
		if g.info.Column != column || !g.info.Usable || !answers(g.info.Kind, op) || isWhole && !isBetter {
			continue
		}
		c, match, ok, err := t.groupMatch(ctx, &t.groups[i], op)
		if err != nil {
			return out, fmt.Errorf("index %s of %s: %w", g.info.Name, t.ref, err)
		}
		out.Faults = append(out.Faults, c.faults...)
		if whole := len(c.faults) == 0; ok && (whole && !isWhole || whole == isWhole && isBetter) {
			out.OK, out.Info, out.Match, isWhole = true, c.info, match, whole
		}
	}
	return out, nil
}

// groupMatch is the match of the segments of an index together, as far as they can be read; false where none can, where one of them does not answer,
// or where some answers need a recheck and others cannot tell NULL from FALSE.
func (t *Table) groupMatch(ctx context.Context, g *indexGroup, op index.Op) (choice, index.Match, bool, error) {
	match, all := index.Exact, true
	c, err := t.open(ctx, g, func(_ storage.IndexInfo, s index.Segment) {
		seg, ok := s.(index.FilterSegment)
		if !ok {
			all = false
			return
		}
		m, ok := seg.Answers(op)
		all = all && ok && (match == index.Exact || m == index.Exact || m == match)
		match = max(match, m)
	})
	return c, match, err == nil && all && c.opened > 0, err
}

// meta makes the segment's description.
func (t *Table) meta(g *indexGroup, info storage.IndexInfo) index.Meta {
	return index.Meta{
		Name: info.Name, UUID: info.UUID, Kind: g.info.Kind, FieldID: info.FieldIDs[0], Covers: info.Covers, Metric: g.info.Metric, Version: info.Version,
	}
}

// segment opens a segment through the cache. Errors that are a fault (isFault) say which file.
func (t *Table) segment(ctx context.Context, g *indexGroup, info storage.IndexInfo) (index.Segment, error) {
	return t.catalog.opts.Segments.get(info.UUID, func() (index.Segment, error) {
		file := ""
		open := func(ctx context.Context, name string) (object.File, error) {
			file = name
			return t.snap.OpenIndexFile(ctx, info, name)
		}
		seg, err := t.openSegment(ctx, g, info, open)
		if err != nil {
			return nil, &openError{file: file, err: err}
		}
		return seg, nil
	})
}

func (t *Table) openSegment(ctx context.Context, g *indexGroup, info storage.IndexInfo, open index.OpenFile) (index.Segment, error) {
	meta := t.meta(g, info)
	opts := index.OpenOptions{Cache: t.catalog.opts.IndexCache, Budget: t.catalog.opts.IndexBudget, FragmentRows: t.fragmentRows}
	var err error
	if meta.Stale, err = filter.MayBeStale(ctx, t.snap, info); err != nil {
		return nil, err
	}
	switch g.info.Kind {
	case index.KindLabelList:
		return labellist.Open(ctx, open, meta, opts)
	case index.KindBitmap:
		return bitmap.Open(ctx, open, meta, opts)
	case index.KindBTree:
		return btree.Open(ctx, open, meta, opts)
	case index.KindZoneMap:
		opts.FragmentRows = t.physicalRows
		return zonemap.Open(ctx, open, meta, opts)
	default:
		return vector.Open(ctx, open, meta, opts)
	}
}

// Lookup implements exec.Indexed.
func (t *Table) Lookup(ctx context.Context, req exec.LookupRequest) (index.Truth, exec.LookupStats, error) {
	out := index.Truth{True: rowset.NewSet(), Null: rowset.NewSet()}
	g := t.group(req.Index)
	if g == nil {
		return out, exec.LookupStats{}, errs.New(errs.ErrNotFound, "index %s of %s", req.Index, t.ref)
	}
	if req.Alloc != nil {
		ctx = compute.WithAllocator(ctx, req.Alloc)
	}
	held := req.Budget.Reserve()
	defer held.Free()
	stats := exec.LookupStats{Covers: g.info.Covers.Clone()}
	for _, info := range g.segments {
		seg, truth, err := t.ask(ctx, g, info, req)
		if err != nil && !t.isFault(err) {
			return out, stats, fmt.Errorf("segment %s: %w", info.UUID, err)
		}
		if err != nil {
			stats.Faults = append(stats.Faults, t.damaged(info, err))
		}
		if seg == nil {
			stats.Covers.AndNot(info.Covers)
			continue
		}
		stats.Segments++
		// The keys and the addresses that they are mapped to, beside what other segments answered.
		if err := held.Resize(setBytes(out) + 2*setBytes(truth)); err != nil {
			return out, stats, err
		}
		for _, part := range []struct{ from, into **rowset.Set }{{&truth.True, &out.True}, {&truth.Null, &out.Null}} {
			addrs, err := t.resolve(ctx, seg.Meta(), *part.from)
			if err != nil {
				return out, stats, err
			}
			*part.into = rowset.Or(*part.into, addrs.OnlyUppers(info.Covers)) // I1
		}
	}
	if len(stats.Faults) > 0 { // a fragment of a faulty segment is scanned, whichever other segments cover it
		out.True, out.Null = out.True.OnlyUppers(stats.Covers), out.Null.OnlyUppers(stats.Covers)
	}
	return out, stats, nil
}

// ask asks one segment; it returns nil where the segment cannot be read, or answers with a match that the caller is not ready for.
func (t *Table) ask(ctx context.Context, g *indexGroup, info storage.IndexInfo, req exec.LookupRequest) (index.FilterSegment, index.Truth, error) {
	s, err := t.segment(ctx, g, info)
	if err != nil {
		return nil, index.Truth{}, err
	}
	seg, ok := s.(index.FilterSegment)
	if !ok {
		return nil, index.Truth{}, errs.New(errs.ErrInternal, "a segment of kind %s answers no predicates", g.info.Kind)
	}
	if m, ok := seg.Answers(req.Predicate.Op); !ok || m != index.Exact && m != req.Match {
		return nil, index.Truth{}, nil
	}
	var truth index.Truth
	err = spawn.Guard(func() (err error) { // a mapped file may have shrunk
		truth, _, err = seg.Lookup(ctx, req.Predicate)
		return err
	})
	if err != nil {
		return nil, index.Truth{}, err
	}
	return seg, truth, nil
}

func setBytes(t index.Truth) int64 { return t.True.SizeBytes() + t.Null.SizeBytes() }

// resolve maps a segment's stored keys to live row addresses.
func (t *Table) resolve(ctx context.Context, meta index.Meta, keys *rowset.Set) (*rowset.Set, error) {
	if !meta.PhysicalKeys || !t.snap.HasStableRowIDs() {
		return t.snap.Resolve(ctx, keys)
	}
	return t.snap.LiveOf(ctx, keys) // a segment that was opened for another version may name fragments that this one does not have
}

// fragmentRows bounds whole-fragment entries of bitmaps. Uppers of row ids are no fragments, so tables with stable row ids have no answer.
func (t *Table) fragmentRows(fragment uint32) (uint64, bool) {
	if t.snap.HasStableRowIDs() {
		return 0, false
	}
	return t.physicalRows(fragment)
}

func (t *Table) physicalRows(fragment uint32) (uint64, bool) {
	if f, ok := t.snap.Fragment(fragment); ok {
		return f.PhysicalRows(), true
	}
	return 0, false
}

// Estimate implements exec.Indexed.
func (t *Table) Estimate(ctx context.Context, name string, p index.Predicate) int64 {
	g := t.group(name)
	if g == nil {
		return -1
	}
	sum, known := int64(0), true
	_, err := t.open(ctx, g, func(_ storage.IndexInfo, s index.Segment) {
		seg, ok := s.(index.FilterSegment)
		if !ok || !known {
			known = false
			return
		}
		err := spawn.Guard(func() error { // a mapped file may have shrunk
			n, err := seg.Estimate(ctx, p)
			sum, known = sum+n, n >= 0
			return err
		})
		known = known && err == nil
	})
	if err != nil || !known { // a figure for choices only: the lookup itself will report what is wrong
		return -1
	}
	return sum
}
