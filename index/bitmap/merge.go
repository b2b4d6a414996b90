package bitmap

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"

	"github.com/lakesql/lakesql/index/key"
	"github.com/lakesql/lakesql/index/spill"
	"github.com/lakesql/lakesql/storage/rowset"
)

// source yields entries in ascending order, the NULL key first.
type source interface {
	// next moves to the next entry; io.EOF at the end.
	next(ctx context.Context) error
	// head is the key of the entry; valid until next is called.
	head() (isNull bool, k key.Key)
	// add puts the rows of the entry into u.
	add(u *union) error
}

// union collects the rows of one key. Keys and sets may not overlap between sources, which costs nothing if they do.
type union struct {
	keys []uint64
	sets []*rowset.Set
	make setMaker
}

func (u *union) rows() *rowset.Set {
	if len(u.keys) > 0 {
		u.sets = append(u.sets, u.make.set(u.keys))
	}
	var out *rowset.Set
	switch len(u.sets) {
	case 0:
		out = &rowset.Set{}
	case 1:
		out = u.sets[0]
	default:
		out = rowset.Union(u.sets...)
	}
	clear(u.sets)
	u.keys, u.sets = u.keys[:0], u.sets[:0]
	return out
}

// memorySource is what the Collector holds in memory.
type memorySource struct {
	null    *postings // nil once it is behind
	entries []entry
	at      int // of the entry; -1 = the NULL key
}

func (c *Collector) memorySource() *memorySource {
	s := &memorySource{entries: c.sorted(), at: -1}
	if c.null.count > 0 {
		s.at, s.null = -2, &c.null
	}
	return s
}

func (s *memorySource) next(context.Context) error {
	if s.at++; s.at >= len(s.entries) {
		return io.EOF
	}
	return nil
}

func (s *memorySource) head() (bool, key.Key) {
	if s.at < 0 {
		return true, key.Key{}
	}
	return false, s.entries[s.at].key
}

func (s *memorySource) add(u *union) (err error) {
	p := s.null
	if s.at >= 0 {
		p = s.entries[s.at].rows
	}
	u.keys, err = decodeDeltas(u.keys, p.deltas)
	return err
}

// runSource is a run on disk.
type runSource struct {
	*spill.Reader
	wide bool
}

func (s *runSource) next(context.Context) error { return s.Next() }

func (s *runSource) head() (bool, key.Key) {
	switch {
	case s.Key[0] == runNull:
		return true, key.Key{}
	case s.wide:
		return false, key.Key{Bytes: s.Key[1:]}
	}
	return false, key.Key{Word: binary.BigEndian.Uint64(s.Key[1:])}
}

func (s *runSource) add(u *union) (err error) {
	u.keys, err = decodeChunks(u.keys, s.Value)
	return err
}

// segmentSource is the entries of a file, those that keep leaves without a row left out.
type segmentSource struct {
	segmentPart
	at    int // place among the NULL rows of the file, then among its keys
	ahead []*rowset.Set
	rows  *rowset.Set
}

func (s *segmentSource) entries() int { return len(s.file.keys.NullRows()) + s.file.keys.Len() }

func (s *segmentSource) row(at int) uint32 {
	if nulls := s.file.keys.NullRows(); at < len(nulls) {
		return nulls[at]
	}
	return s.file.keys.Row(at - len(s.file.keys.NullRows()))
}

func (s *segmentSource) next(ctx context.Context) error {
	for {
		if s.at++; s.at >= s.entries() {
			return io.EOF
		}
		if len(s.ahead) == 0 {
			if err := s.read(ctx); err != nil {
				return err
			}
		}
		set := s.ahead[0]
		s.ahead[0] = nil
		s.ahead = s.ahead[1:]
		if s.rows = s.keep.MapSet(set); !s.rows.IsEmpty() {
			return nil
		}
	}
}

// read reads the sets of the entries from at on.
func (s *segmentSource) read(ctx context.Context) error {
	rows := make([]uint32, 0, s.file.atOnce)
	places := make(map[uint32]int, s.file.atOnce)
	for at := s.at; at < s.entries() && len(rows) < s.file.atOnce; at++ {
		places[s.row(at)] = len(rows)
		rows = append(rows, s.row(at))
	}
	s.ahead = make([]*rowset.Set, len(rows))
	return s.file.read(ctx, rows, false, func(row uint32, set *rowset.Set) { s.ahead[places[row]] = set })
}

func (s *segmentSource) head() (bool, key.Key) {
	if at := s.at - len(s.file.keys.NullRows()); at >= 0 {
		return false, s.file.keys.Key(at)
	}
	return true, key.Key{}
}

func (s *segmentSource) add(u *union) error {
	u.sets = append(u.sets, s.rows)
	return nil
}

// sources opens everything that was collected; release closes it.
func (c *Collector) sources(ctx context.Context) (all []source, entries int64, release func() error, err error) {
	if err := c.settle(ctx); err != nil {
		return nil, 0, nil, err
	}
	readers, err := c.runs.Open()
	if err != nil {
		return nil, 0, nil, err
	}
	release = func() error {
		var err error
		for _, r := range readers {
			err = errors.Join(err, r.Close())
		}
		return err
	}
	memory := c.memorySource()
	all = append(all, memory)
	entries = int64(len(memory.entries))
	for _, r := range readers {
		all = append(all, &runSource{Reader: r, wide: c.codec.IsWide()})
	}
	for _, p := range c.segments {
		s := &segmentSource{segmentPart: p, at: -1}
		all = append(all, s)
		entries += int64(s.entries())
	}
	return all, entries, release, nil
}

// each calls use with every key, ascending, NULL first, and its rows. Keys are valid during the call alone.
func (c *Collector) each(ctx context.Context, use func(isNull bool, k key.Key, rows *rowset.Set) error) (err error) {
	sources, entries, release, err := c.sources(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	h := spill.Heap[source]{Less: c.less, Next: func(s source) error { return s.next(ctx) }}
	if err := h.Fill(sources); err != nil {
		return err
	}
	var group []source
	var u union
	for done := int64(0); ; {
		if group = h.Group(group[:0]); len(group) == 0 {
			return nil
		}
		for _, s := range group {
			if err := s.add(&u); err != nil {
				return err
			}
		}
		isNull, k := group[0].head()
		if err := use(isNull, k, u.rows()); err != nil {
			return err
		}
		if done++; done%1024 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			c.opts.Progress("write index", min(done, entries), max(done, entries))
		}
		if err := h.Advance(group); err != nil {
			return err
		}
	}
}

func (c *Collector) less(a, b source) bool {
	aNull, aKey := a.head()
	bNull, bKey := b.head()
	if aNull || bNull {
		return aNull && !bNull
	}
	if c.codec.IsWide() {
		return bytes.Compare(aKey.Bytes, bKey.Bytes) < 0
	}
	return aKey.Word < bKey.Word
}
