package key

import (
	"slices"

	"github.com/lakesql/lakesql/index/state"
	"github.com/lakesql/lakesql/internal/errs"
)

// AppendState writes the finished Dict to w.
func (d *Dict) AppendState(w *state.Writer) {
	w.Number(uint64(d.count))
	w.Words(d.words)
	w.Bytes(d.text)
	for _, s := range [][]uint32{d.ends, d.rows, d.order, d.nulls} {
		w.Halves(s)
	}
}

// DictOfState reads what AppendState wrote for the same codec. The Dict views the state, and holds no memory of its own. Errors: ErrCorrupt.
func DictOfState(codec Codec, r *state.Reader) (*Dict, error) {
	d := NewDict(codec, nil)
	count := r.Number()
	d.count, d.words, d.text = uint32(count), r.Words(), r.Bytes()
	d.ends, d.rows, d.order, d.nulls = r.Halves(), r.Halves(), r.Halves(), r.Halves()
	n := d.entries()
	beyond := func(s []uint32, end int) bool {
		return slices.ContainsFunc(s, func(x uint32) bool { return uint64(x) >= uint64(end) })
	}
	switch {
	case count > 1<<32-1 || n+len(d.nulls) != int(count):
	case codec.wide && (len(d.words) > 0 || !slices.IsSorted(d.ends) || n > 0 && int(d.ends[n-1]) != len(d.text)):
	case !codec.wide && len(d.text)+len(d.ends) > 0:
	case len(d.rows) != 0 && len(d.rows) != n || len(d.order) != 0 && len(d.order) != n || len(d.nulls) > 0 && len(d.rows) != n:
	case beyond(d.rows, int(count)) || beyond(d.order, n) || beyond(d.nulls, int(count)):
	default:
		if len(d.nulls) > 0 && d.rows == nil {
			d.rows = []uint32{} // every row is NULL
		}
		return d, nil
	}
	return nil, errs.Corrupt("segment state", -1, "%d keys of %d rows do not fit together", n, count)
}
