package write

import (
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/vector"
	"github.com/lakesql/lakesql/storage"
)

// IndexStatus is what the manifest tells of an index: no file of it is opened.
type IndexStatus struct {
	Name          string
	Columns       []string     // "?" for one that is nested or gone
	Kind          string       // as in IndexSpec.Kind; for kinds that lakesql does not know the name in the type URL
	Metric        index.Metric // vector kinds
	Segments      int
	CoveredRows   uint64
	UncoveredRows uint64
	SizeBytes     int64 // 0 where the writer did not say
}

// ListIndices returns the indices of a snapshot, in the order of the manifest.
func ListIndices(snap *storage.Snapshot) []IndexStatus {
	var out []IndexStatus
	covers := make(map[string]*roaring.Bitmap)
	for _, info := range snap.Indices() {
		at := slices.IndexFunc(out, func(s IndexStatus) bool { return s.Name == info.Name })
		if at < 0 {
			at = len(out)
			out = append(out, describeIndex(snap, info))
			covers[info.Name] = roaring.New()
		}
		out[at].Segments++
		for _, f := range info.Files {
			out[at].SizeBytes += f.SizeBytes
		}
		covers[info.Name].Or(info.Covers)
	}
	for i := range out {
		for _, f := range snap.Fragments() {
			if covers[out[i].Name].Contains(f.ID()) {
				out[i].CoveredRows += f.Rows()
			} else {
				out[i].UncoveredRows += f.Rows()
			}
		}
	}
	return out
}

func describeIndex(snap *storage.Snapshot, info storage.IndexInfo) IndexStatus {
	s := IndexStatus{Name: info.Name}
	for _, id := range info.FieldIDs {
		name := "?"
		for _, f := range snap.Schema().Fields {
			if f.ID == id {
				name = f.Name
			}
		}
		s.Columns = append(s.Columns, name)
	}
	if kind, known := segmentKind(info); known {
		s.Kind = string(kind)
	} else {
		s.Kind = strings.TrimSuffix(info.TypeURL[strings.LastIndexAny(info.TypeURL, "/.")+1:], "IndexDetails")
	}
	if _, metric, known := vector.KindOf(info.Details); known && vector.IsDetails(info.TypeURL) {
		s.Metric = metric
	}
	return s
}
