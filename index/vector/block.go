package vector

import "github.com/lakesql/lakesql/storage/file"

// Block is a run of stored values: value i is Data[OffsetBytes+i*StrideBytes:][:ValueBytes].
type Block = file.FixedBlock

// valid says that value i of b is not NULL.
func valid(b *Block, i int) bool { return b.Validity == nil || b.Validity(i) }

// holds says that row lies in b.
func holds(b *Block, row uint32) bool {
	return uint64(row) >= b.FirstRow && uint64(row)-b.FirstRow < uint64(b.Rows)
}
