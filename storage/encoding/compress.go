package encoding

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/pb/encpb"
)

// Codecs holds the decompression state that readers share. It is safe for concurrent use; the zero value is ready.
type Codecs struct {
	once sync.Once
	zstd *zstd.Decoder
	err  error
}

// decoder makes the zstd decoder when the first frame is met: most files have none. It runs in the calling goroutine.
func (c *Codecs) decoder() (*zstd.Decoder, error) {
	c.once.Do(func() {
		c.zstd, c.err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(MaxRawBytes), zstd.WithDecodeAllCapLimit(true))
	})
	return c.zstd, c.err
}

const (
	lz4Section  = "lz4 buffer"
	zstdSection = "zstd buffer"
	zstdMagic   = 0xFD2FB528
)

// expand decompresses src into dst[:0], growing it as needed. Layout: docs/format/page.md section 6.
func (c *Codecs) expand(dst []byte, scheme encpb.CompressionScheme, src []byte) ([]byte, error) {
	raw, body, err := rawSize(scheme, src)
	if err != nil {
		return nil, err
	}
	dst = slices.Grow(dst[:0], raw)[:raw]
	return dst, c.expandInto(dst, scheme, body)
}

// rawSize reads the header of a compressed buffer: the size it expands to, verified to be possible for the bytes that follow.
func rawSize(scheme encpb.CompressionScheme, src []byte) (raw int, body []byte, err error) {
	switch scheme {
	case encpb.CompressionScheme_COMPRESSION_LZ4:
		if len(src) < 4 {
			return 0, nil, corrupt(lz4Section, "%d bytes hold no header", len(src))
		}
		n := uint64(binary.LittleEndian.Uint32(src))
		if n > MaxRawBytes || n > uint64(len(src))*lz4RatioMax {
			return 0, nil, corrupt(lz4Section, "%d raw bytes in %d", n, len(src))
		}
		return int(n), src[4:], nil
	case encpb.CompressionScheme_COMPRESSION_ZSTD:
		return zstdRawSize(src)
	default:
		return 0, nil, unsupported("compression scheme %d", scheme)
	}
}

// zstdRawSize accepts a u64 size before the frame and, from old writers, a bare frame that declares its size.
func zstdRawSize(src []byte) (raw int, body []byte, err error) {
	var n uint64
	switch {
	case len(src) >= 4 && binary.LittleEndian.Uint32(src) == zstdMagic:
		var h zstd.Header
		if err := h.Decode(src); err != nil || !h.HasFCS {
			return 0, nil, corrupt(zstdSection, "a frame without its size")
		}
		n, body = h.FrameContentSize, src
	case len(src) >= 8:
		n, body = binary.LittleEndian.Uint64(src), src[8:]
	default:
		return 0, nil, corrupt(zstdSection, "%d bytes hold no header", len(src))
	}
	if n > MaxRawBytes || n > uint64(len(src))*zstdRatioMax {
		return 0, nil, corrupt(zstdSection, "%d raw bytes in %d", n, len(src))
	}
	return int(n), body, nil
}

// expandInto decompresses body into exactly dst.
func (c *Codecs) expandInto(dst []byte, scheme encpb.CompressionScheme, body []byte) error {
	if len(dst) == 0 {
		return nil
	}
	if scheme == encpb.CompressionScheme_COMPRESSION_LZ4 {
		n, err := lz4.UncompressBlock(body, dst)
		if err != nil {
			return corrupt(lz4Section, "%w", err)
		}
		if n != len(dst) {
			return corrupt(lz4Section, "%d raw bytes, the header says %d", n, len(dst))
		}
		return nil
	}
	d, err := c.decoder()
	if err != nil {
		return errs.New(errs.ErrInternal, "zstd: %w", err)
	}
	// The capacity of dst limits what DecodeAll may write (WithDecodeAllCapLimit).
	out, err := d.DecodeAll(body, dst[:0:len(dst)])
	if err != nil {
		return corrupt(zstdSection, "%w", err)
	}
	if len(out) != len(dst) {
		return corrupt(zstdSection, "%d raw bytes, the header says %d", len(out), len(dst))
	}
	return nil
}

// schemeOf maps the scheme names of version 2.0.
func schemeOf(name string) (encpb.CompressionScheme, error) {
	switch name {
	case "zstd":
		return encpb.CompressionScheme_COMPRESSION_ZSTD, nil
	case "lz4":
		return encpb.CompressionScheme_COMPRESSION_LZ4, nil
	default:
		return 0, unsupported("compression scheme %q", name)
	}
}
