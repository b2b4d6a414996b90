package encoding

import (
	"encoding/binary"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/pb/encpb"
)

// compressor is the general compression of one column: frames with the size of what they hold in front (docs/format/page.md section 6).
type compressor struct {
	scheme  encpb.CompressionScheme
	level   int
	zstd    *zstd.Encoder
	lz4     lz4.Compressor
	scratch []byte
}

func newCompressor(scheme encpb.CompressionScheme, level int) (*compressor, error) {
	c := &compressor{scheme: scheme, level: level}
	if scheme != encpb.CompressionScheme_COMPRESSION_ZSTD {
		return c, nil
	}
	speed := zstd.SpeedDefault
	if level != 0 {
		speed = zstd.EncoderLevelFromZstd(level)
	}
	var err error
	c.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(speed), zstd.WithEncoderConcurrency(1), zstd.WithSingleSegment(true))
	if err != nil {
		return nil, errs.New(errs.ErrInternal, "zstd: %w", err)
	}
	return c, nil
}

// append appends raw in compressed form.
func (c *compressor) append(dst, raw []byte) []byte {
	if c.scheme == encpb.CompressionScheme_COMPRESSION_ZSTD {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(len(raw)))
		return c.zstd.EncodeAll(raw, dst)
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(raw)))
	if need := lz4.CompressBlockBound(len(raw)); cap(c.scratch) < need {
		c.scratch = make([]byte, need)
	}
	n, err := c.lz4.CompressBlock(raw, c.scratch[:cap(c.scratch)])
	if err != nil || n == 0 { // not compressible: literals alone
		return appendLiterals(dst, raw)
	}
	return append(dst, c.scratch[:n]...)
}

// appendLiterals appends an LZ4 block that holds raw as it is.
func appendLiterals(dst, raw []byte) []byte {
	n := len(raw)
	if n < 15 {
		dst = append(dst, byte(n)<<4)
	} else {
		dst = append(dst, 15<<4)
		for n -= 15; n >= 255; n -= 255 {
			dst = append(dst, 255)
		}
		dst = append(dst, byte(n))
	}
	return append(dst, raw...)
}

func generalEncoding(scheme encpb.CompressionScheme, level int, values *encpb.CompressiveEncoding) *encpb.CompressiveEncoding {
	b := &encpb.BufferCompression{Scheme: scheme}
	if level != 0 {
		l := int32(level)
		b.Level = &l
	}
	return &encpb.CompressiveEncoding{Compression: &encpb.CompressiveEncoding_General{General: &encpb.General{Compression: b, Values: values}}}
}

// generalValues compresses the first buffer of every chunk.
type generalValues struct {
	chunkValues
	c       *compressor
	scratch []byte
}

// saves tries chunks at even distances.
func (v *generalValues) saves(slots int) bool {
	const samples = 8
	raw, zipped := 0, 0
	var plain, out []byte
	for i := range samples {
		first := slots / samples * i
		n := min(1<<v.chunkLog(first), slots-first)
		plain = v.chunkValues.appendBuffer(plain[:0], 0, first, n)
		out = v.c.append(out[:0], plain)
		raw += len(plain)
		zipped += len(out)
	}
	return zipped < raw
}

func (v *generalValues) message() *encpb.CompressiveEncoding {
	return generalEncoding(v.c.scheme, v.c.level, v.chunkValues.message())
}

func (v *generalValues) appendBuffer(dst []byte, i, first, n int) []byte {
	if i != 0 {
		return v.chunkValues.appendBuffer(dst, i, first, n)
	}
	v.scratch = v.chunkValues.appendBuffer(v.scratch[:0], 0, first, n)
	return v.c.append(dst, v.scratch)
}
