// Package encoding holds the page codecs of Lance data files: bytes to Arrow buffers (and, in the encode_*.go files, back). It does no I/O
// and knows no files: package file decides which bytes belong to which rows and hands them over here.
//
// The parts, in the order in which a page goes through them:
//
//   - Levels turns repetition and definition buffers into u16 arrays;
//   - MiniBlock, Zip and Block turn value buffers of the three contexts (chunks, single values, whole arrays) into Values;
//   - Nesting turns levels into the validity bitmaps and offsets of each layer above the values.
//
// Invariants:
//
//	I1: no decoder reads outside the slices it is given or panics on their content; bytes that make no sense are an errs.ErrCorrupt.
//	I2: a count or length that comes from the bytes sizes an allocation only after it was checked against the bytes that must hold
//	    it, or against a named maximum of limits.go where no bytes do (runs, constants, compressed frames).
//	I3: compiled codecs (MiniBlock, Zip, Block, Levels) are immutable and safe for concurrent use; all state of one read lives in
//	    Chunk, Values and Nesting, which belong to one goroutine.
//	I4: all integers are little-endian, and so is the machine: buffers are used as they lie in the file.
//	I5: a ColumnEncoder refers to no array after Append returns, and the pages it emits refer to nothing of its own. Buffers are used again
//	    once Recycle or Release gave them up, by any encoder.
//
// Writing goes the other way: encode.go (a column's arrays to pages), encode_shred.go and encode_leaf.go (arrays to levels and values),
// encode_levels.go, encode_miniblock.go, encode_fullzip.go and encode_constant.go (pages); encode_values.go, encode_fixed.go, encode_vector.go, encode_packed.go,
// encode_dictionary.go, encode_fsst.go and encode_compress.go (what chunks and zipped values hold). docs/format/writing.md has the choices.
//
// Start at values.go, then miniblock.go; for writing at encode.go. Byte layouts are drawn in docs/format/page.md.
package encoding
