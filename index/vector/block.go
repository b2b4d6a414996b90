package vector

// Block is a run of fixed-width values: value i is Data[OffsetBytes+i*StrideBytes:][:ValueBytes]. Validity is nil where all are valid.
type Block struct {
	FirstRow                             uint64
	Rows                                 int
	Data                                 []byte
	OffsetBytes, StrideBytes, ValueBytes int
	Validity                             func(i int) bool
}

func (b *Block) valid(i int) bool { return b.Validity == nil || b.Validity(i) }

func (b *Block) holds(row uint32) bool {
	return uint64(row) >= b.FirstRow && uint64(row)-b.FirstRow < uint64(b.Rows)
}
