package vector

import (
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/storage/pb/indexpb"
)

// The type URLs of vector segments in index metadata; they compare without case.
const (
	DetailsURL    = "/lance.index.pb.VectorIndexDetails"
	detailsURLOld = "/lance.table.VectorIndexDetails"
)

// IsDetails says that index metadata of this type URL is that of a vector segment.
func IsDetails(typeURL string) bool {
	return strings.EqualFold(typeURL, DetailsURL) || strings.EqualFold(typeURL, detailsURLOld)
}

// KindOf reads kind and metric from the details of index metadata. known is false where the details do not say (old writers leave them empty, and
// a broken message says nothing either): then the files do, see Open.
func KindOf(details []byte) (kind index.Kind, metric index.Metric, known bool) {
	m := &indexpb.VectorIndexDetails{}
	if len(details) == 0 || proto.Unmarshal(details, m) != nil {
		return "", "", false
	}
	graph := m.GetHnswIndexConfig() != nil
	pick := func(plain, withGraph index.Kind) index.Kind {
		if graph {
			return withGraph
		}
		return plain
	}
	switch m.GetCompression().(type) {
	case *indexpb.VectorIndexDetails_Flat_:
		kind = pick(index.KindIVFFlat, index.KindHNSWFlat)
	case *indexpb.VectorIndexDetails_Pq:
		kind = pick(index.KindIVFPQ, index.KindHNSWPQ)
	case *indexpb.VectorIndexDetails_Sq:
		kind = pick(index.KindIVFSQ, index.KindHNSWSQ)
	case *indexpb.VectorIndexDetails_Rq:
		kind = index.KindIVFRQ
	default:
		return "", "", false
	}
	switch m.GetMetricType() {
	case indexpb.VectorIndexDetails_L2:
		metric = index.MetricL2
	case indexpb.VectorIndexDetails_COSINE:
		metric = index.MetricCosine
	case indexpb.VectorIndexDetails_DOT:
		metric = index.MetricDot
	case indexpb.VectorIndexDetails_HAMMING:
		metric = index.MetricHamming
	default:
		return "", "", false
	}
	return kind, metric, true
}
