package exec

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/mem"
)

// distinctAcc is COUNT, SUM or AVG over the distinct arguments of each group: a set of (group, arguments) beside the plain aggregate, which sees only
// rows that are new to the set. Rows with a NULL argument are not counted.
type distinctAcc struct {
	alloc  memory.Allocator
	res    *mem.Reservation
	inner  accumulator
	set    *bytesTable // encoded rows of fewer than 8 columns: a byte of NULLs (0), the group in 4 bytes, the arguments
	enc    rowEncoder
	ids    []uint32
	groups int

	sums   bool // inner needs the values
	typ    arrow.DataType
	values []arrow.Array // sums: the argument of each entry, in chunks

	starts, order []uint32 // entries by group, made by seal
}

func newDistinctAcc(env *Env, res *mem.Reservation, a AggSpec) (accumulator, error) {
	plain := a
	plain.Distinct = false
	inner, err := newAccumulator(env, res, plain)
	if err != nil {
		return nil, err
	}
	set, err := newBytesTable(res)
	if err != nil {
		return nil, err
	}
	set.nullID = noGroup - 1 // rows with NULLs get this id and are not added
	return &distinctAcc{alloc: env.Alloc, res: res, inner: inner, set: set, sums: a.Func != AggCount, typ: plainType(a.Args[0].Type())}, nil
}

func (d *distinctAcc) resize(n int) error {
	d.groups = max(d.groups, n)
	return d.inner.resize(n)
}

func (d *distinctAcc) update(ids []uint32, args []arrow.Array) error {
	groups := uint32Array(ids)
	defer groups.Release()
	keys, err := d.enc.encode(append([]arrow.Array{groups}, args...), len(ids))
	if err != nil {
		return err
	}
	keys.bits = allValid(args, len(ids))
	d.ids = resized(d.ids, len(ids))
	next := uint32(d.set.count())
	if err := assignBytes(d.set, keys, d.ids); err != nil {
		return err
	}
	var fresh []int32
	var groupOf []uint32
	for i, id := range d.ids {
		if id == next {
			next++
			groupOf = append(groupOf, ids[i])
			fresh = append(fresh, int32(i))
		}
	}
	return d.added(groupOf, args[0], fresh)
}

// uint32Array is ids as an array, without copying.
func uint32Array(ids []uint32) arrow.Array {
	buf := memory.NewBufferBytes(arrow.Uint32Traits.CastToBytes(ids))
	return makeArray(arrow.PrimitiveTypes.Uint32, len(ids), 0, nil, nil, buf)
}

// added tells the plain aggregate of new entries: rows idx of arg, for the groups groupOf.
func (d *distinctAcc) added(groupOf []uint32, arg arrow.Array, idx []int32) error {
	if len(groupOf) == 0 {
		return nil
	}
	if !d.sums {
		return d.inner.update(groupOf, nil)
	}
	v, err := expr.TakeArray(d.alloc, arg, idx)
	if err != nil {
		return err
	}
	d.values = append(d.values, v)
	return d.inner.update(groupOf, []arrow.Array{v})
}

// seal lists the entries of each group and joins the values.
func (d *distinctAcc) seal() error {
	if err := d.joinValues(); err != nil {
		return err
	}
	n := d.set.count()
	if err := d.res.Grow(int64(n+d.groups+1) * 4); err != nil {
		return err
	}
	d.starts, d.order = make([]uint32, d.groups+2), make([]uint32, n)
	for e := range n {
		d.starts[d.groupOf(e)+2]++
	}
	for g := 2; g < len(d.starts); g++ {
		d.starts[g] += d.starts[g-1]
	}
	for e := range n {
		at := &d.starts[d.groupOf(e)+1]
		d.order[*at] = uint32(e)
		*at++
	}
	return nil
}

func (d *distinctAcc) groupOf(entry int) uint32 {
	return binary.LittleEndian.Uint32(d.set.key(entry)[1:])
}

func (d *distinctAcc) merge(src accumulator, from, to []uint32) error {
	s := src.(*distinctAcc)
	var groupOf []uint32
	var fresh []int32
	var key []byte
	for i, g := range from {
		for _, e := range s.order[s.starts[g]:s.starts[g+1]] {
			key = append(key[:0], s.set.key(int(e))...)
			binary.LittleEndian.PutUint32(key[1:], to[i])
			before := d.set.count()
			if _, err := d.set.insert(key, 0, len(key)); err != nil {
				return err
			}
			if d.set.count() > before {
				groupOf = append(groupOf, to[i])
				fresh = append(fresh, int32(e))
			}
		}
	}
	if !d.sums {
		return d.added(groupOf, nil, nil)
	}
	if len(fresh) == 0 {
		return nil
	}
	return d.added(groupOf, s.values[0], fresh)
}

func (d *distinctAcc) joinValues() error {
	if len(d.values) < 2 {
		return nil
	}
	whole, err := concatArrays(d.alloc, d.typ, d.values)
	if err != nil {
		return err
	}
	releaseArrays(d.values)
	d.values = []arrow.Array{whole}
	return nil
}

func (d *distinctAcc) finish() error { return d.inner.finish() }

func (d *distinctAcc) result(alloc memory.Allocator, t arrow.DataType, from, to int) (arrow.Array, error) {
	return d.inner.result(alloc, t, from, to)
}

func (d *distinctAcc) close() {
	releaseArrays(d.values)
	d.values, d.set = nil, nil
	d.inner.close()
}
