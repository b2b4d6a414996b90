package bitmap

import (
	"context"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/key"
	"github.com/lakesql/lakesql/index/state"
	"github.com/lakesql/lakesql/internal/errs"
)

const stateKind = "bitmap"

var _ index.Stateful = (*Segment)(nil)

// MarshalState implements index.Stateful.
func (s *Segment) MarshalState() ([]byte, error) { return s.file.MarshalState(nil), nil }

// MarshalState keeps the keys, and more that belongs to the same segment, for StateMore.
func (f *File) MarshalState(more []byte) []byte {
	w := state.NewWriter(stateKind)
	w.Number(f.reader.Rows())
	f.keys.AppendState(w)
	w.Bytes(more)
	return w.Finish()
}

// readState takes the keys out of the state that the file was opened with.
func (f *File) readState(context.Context) error {
	_, codec, err := f.columns()
	if err != nil {
		return err
	}
	r, err := state.NewReader(stateKind, f.opts.State)
	if err != nil {
		return err
	}
	rows := r.Number()
	keys, err := key.DictOfState(codec, r)
	if err != nil {
		return err
	}
	f.more = r.Bytes()
	if err := r.Err(); err != nil {
		return err
	}
	if have := uint64(keys.Len() + len(keys.NullRows())); rows != f.reader.Rows() || have != rows {
		return errs.Corrupt("segment state", -1, "%d keys, the file has %d", have, f.reader.Rows())
	}
	f.keys = keys
	return nil
}

// StateMore returns what MarshalState was given, of a file that was opened with a state; false = it was opened without.
func (f *File) StateMore() ([]byte, bool) { return f.more, f.opts.State != nil }
