package write

import (
	"bytes"
	"math"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	"google.golang.org/protobuf/proto"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/filter"
	"github.com/lakesql/lakesql/index/vector"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
	"github.com/lakesql/lakesql/storage/schema"
)

// nextFragmentID is the first id that no fragment ever had.
func nextFragmentID(m *tablepb.Manifest) uint64 {
	id := uint64(0)
	if m.MaxFragmentId != nil {
		id = uint64(m.GetMaxFragmentId()) + 1
	}
	for _, f := range m.GetFragments() { // writers that forget the high mark exist
		id = max(id, f.GetId()+1)
	}
	return id
}

// addFragments gives new fragments their ids and, in tables with stable row ids, their rows theirs (I3).
func (n *next) addFragments(fragments []*tablepb.DataFragment) error {
	return n.addFragmentsAs(fragments, nil)
}

// addFragmentsAs is addFragments with ids that the caller chose, nil = count up. What a fragment says of its rows already stays.
func (n *next) addFragmentsAs(fragments []*tablepb.DataFragment, ids []uint64) error {
	m := n.manifest
	id := nextFragmentID(m)
	for i, f := range fragments {
		if ids != nil {
			id = ids[i]
		}
		if id > math.MaxUint32 {
			return errs.New(errs.ErrOverflow, "fragment ids are used up")
		}
		f, ok := proto.Clone(f).(*tablepb.DataFragment)
		if !ok {
			return errs.New(errs.ErrInternal, "a cloned fragment is no fragment")
		}
		f.Id = id
		if m.GetReaderFeatureFlags()&manifest.FlagStableRowIDs != 0 {
			if err := n.giveRowIDs(f); err != nil {
				return err
			}
		}
		m.Fragments = append(m.Fragments, f)
		top := max(uint32(id), m.GetMaxFragmentId())
		m.MaxFragmentId = &top
		n.fragments = append(n.fragments, id)
		id++
	}
	return nil
}

// giveRowIDs makes new rows of rows that have no id, and says that every row was last changed by this version, unless the fragment says otherwise.
func (n *next) giveRowIDs(f *tablepb.DataFragment) error {
	now, err := manifest.EncodeVersions([]manifest.VersionRun{{Count: f.GetPhysicalRows(), Version: n.manifest.GetVersion()}})
	if err != nil {
		return err
	}
	if f.GetRowIdSequence() == nil {
		from := n.manifest.GetNextRowId()
		if f.GetPhysicalRows() > math.MaxUint64-from {
			return errs.New(errs.ErrOverflow, "row ids are used up")
		}
		to := from + f.GetPhysicalRows()
		ids, err := proto.Marshal(&tablepb.RowIdSequence{Segments: []*tablepb.U64Segment{manifest.RangeSegment(from, to)}})
		if err != nil {
			return errs.New(errs.ErrInternal, "row ids: %w", err)
		}
		f.RowIdSequence = &tablepb.DataFragment_InlineRowIds{InlineRowIds: ids}
		f.CreatedAtVersionSequence = &tablepb.DataFragment_InlineCreatedAtVersions{InlineCreatedAtVersions: bytes.Clone(now)}
		n.manifest.NextRowId = to
	}
	if f.GetLastUpdatedAtVersionSequence() == nil {
		f.LastUpdatedAtVersionSequence = &tablepb.DataFragment_InlineLastUpdatedAtVersions{InlineLastUpdatedAtVersions: now}
	}
	return nil
}

// fieldIDs is a set of fields; all = whatever the schema has.
type fieldIDs struct {
	all bool
	ids map[int32]bool
}

func (s *fieldIDs) addID(id int32) {
	if s.ids == nil {
		s.ids = make(map[int32]bool)
	}
	s.ids[id] = true
}

// add puts the field and its descendants in.
func (s *fieldIDs) add(f *schema.Field) {
	for d := range f.All() {
		s.addID(d.ID)
	}
}

func (s fieldIDs) has(id int32) bool { return s.all || s.ids[id] }

func (s fieldIDs) hasAny(ids []int32) bool { return slices.ContainsFunc(ids, s.has) }

// list names the fields of a schema that are in the set.
func (s fieldIDs) list(of *schema.Schema) []uint32 {
	var out []uint32
	for f := range of.All() {
		if s.has(f.ID) {
			out = append(out, uint32(f.ID))
		}
	}
	return out
}

// isVectorIndex says that the segment is of a kind that finds neighbours.
func isVectorIndex(m *tablepb.IndexMetadata) bool {
	return vector.IsDetails(m.GetIndexDetails().GetTypeUrl())
}

// keepsRowIDs says that a segment names rows by their stable ids, so that it answers for a row wherever it is. Kinds that are not known do not.
func keepsRowIDs(m *tablepb.IndexMetadata) bool {
	if isVectorIndex(m) {
		return true
	}
	kind, known := filter.KindOf(m.GetIndexDetails().GetTypeUrl())
	return known && kind != index.KindZoneMap && !index.PhysicalKeys(kind, m.GetIndexVersion())
}

// setCover replaces a segment's covered fragments; segments are shared with the version before, so it is copied.
func (n *next) setCover(i int, covers *roaring.Bitmap) error {
	b, err := covers.ToBytes()
	if err != nil {
		return errs.New(errs.ErrInternal, "fragment bitmap: %w", err)
	}
	m, ok := proto.Clone(n.indices[i]).(*tablepb.IndexMetadata)
	if !ok {
		return errs.New(errs.ErrInternal, "cloned index metadata is none")
	}
	m.FragmentBitmap = b
	n.indices[i] = m
	return nil
}

// coverMoved counts fragments of updated rows as covered by the segments that still say the truth about them: rows are named by their ids, none of the segment's
// columns was modified, and all of the fragments that the rows come from were covered. Other segments leave the moved rows to a scan.
func (n *next) coverMoved(moved []uint64, from []uint32, modified fieldIDs) error {
	if len(moved) == 0 || n.manifest.GetReaderFeatureFlags()&manifest.FlagStableRowIDs == 0 {
		return nil
	}
	for i, m := range n.indices {
		if !keepsRowIDs(m) || modified.hasAny(m.GetFields()) {
			continue
		}
		covers, err := coverOf(m)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(from, func(id uint32) bool { return !covers.Contains(id) }) {
			continue
		}
		for _, id := range moved {
			covers.Add(uint32(id))
		}
		if err := n.setCover(i, covers); err != nil {
			return err
		}
	}
	return nil
}

// clearIndices takes all segments out, or, if they are kept, leaves one of each index, which covers nothing. Indices of vectors and of kinds that are not
// known go: they mean nothing without rows.
func (n *next) clearIndices(keep bool) error {
	if !keep {
		n.indices = nil
		return nil
	}
	for i, m := range n.indices {
		if _, known := filter.KindOf(m.GetIndexDetails().GetTypeUrl()); !known {
			continue
		}
		if err := n.setCover(i, roaring.New()); err != nil {
			return err
		}
	}
	n.indices = slices.DeleteFunc(n.indices, func(m *tablepb.IndexMetadata) bool {
		_, known := filter.KindOf(m.GetIndexDetails().GetTypeUrl())
		return !known
	})
	return n.retainIndices()
}

// isReuse says that a segment is no index but a list of compactions that other engines still have to apply to the segments: see retainIndices.
func isReuse(typeURL string) bool { return strings.HasSuffix(typeURL, ".FragmentReuseIndexDetails") }

func (n *next) hasReuse() bool {
	return slices.ContainsFunc(n.indices, func(m *tablepb.IndexMetadata) bool { return isReuse(m.GetIndexDetails().GetTypeUrl()) })
}

// retainIndices takes out segments without a column, and segments that cover no fragment of the table where their index has others. An index of which
// nothing is covered keeps its oldest segment, so that it can be extended, by lakesql or by the engine that knows its kind. Where a fragment reuse index says that fragments live on in
// others, segments on those that are gone still mean something to engines that follow it: all stay.
func (n *next) retainIndices() error {
	fields := make(map[int32]bool)
	for _, f := range n.manifest.GetFields() {
		fields[f.GetId()] = true
	}
	live := roaring.New()
	for _, f := range n.manifest.GetFragments() {
		live.Add(uint32(f.GetId()))
	}
	covered := make(map[string]bool)
	oldest := make(map[string]*tablepb.IndexMetadata)
	covers := make(map[*tablepb.IndexMetadata]bool)
	n.indices = slices.DeleteFunc(n.indices, func(m *tablepb.IndexMetadata) bool {
		return slices.ContainsFunc(m.GetFields(), func(id int32) bool { return !fields[id] })
	})
	if n.hasReuse() {
		return nil
	}
	for _, m := range n.indices {
		bm, err := coverOf(m)
		if err != nil {
			return err
		}
		if covers[m] = bm.Intersects(live); covers[m] {
			covered[m.GetName()] = true
		}
		if o := oldest[m.GetName()]; o == nil || m.GetDatasetVersion() < o.GetDatasetVersion() {
			oldest[m.GetName()] = m
		}
	}
	n.indices = slices.DeleteFunc(n.indices, func(m *tablepb.IndexMetadata) bool {
		switch {
		case covers[m] || len(m.GetFields()) == 0: // system indices have no column, and their bitmap means something else
			return false
		case covered[m.GetName()]:
			return true
		}
		return oldest[m.GetName()] != m
	})
	return nil
}
