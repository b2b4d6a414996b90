package encoding

import "github.com/lakesql/lakesql/internal/errs"

// Maximums for numbers that come from a file and that no bytes of the file back.
const (
	// MaxPageLevels bounds the levels of one page that are decoded in one piece (constant pages).
	MaxPageLevels = 1 << 26
	// MaxRawBytes bounds what one compressed buffer may expand to.
	MaxRawBytes = 1 << 30
	// MaxLayers bounds the nesting of a column.
	MaxLayers = 64
	// MaxValueBytes bounds the width of a fixed-width value.
	MaxValueBytes = 1 << 24
	// maxChunkValues is the largest value count that a chunk can declare: 15 is the largest exponent in a chunk word.
	maxChunkValues = 1 << 15
	// maxCodecDepth bounds how deep compression messages nest.
	maxCodecDepth = 8
	// lz4RatioMax and zstdRatioMax are the largest expansions that the two formats can express.
	lz4RatioMax  = 255
	zstdRatioMax = 1 << 15
)

func corrupt(section, format string, args ...any) error {
	return errs.Corrupt(section, -1, format, args...)
}

func unsupported(format string, args ...any) error {
	return errs.New(errs.ErrUnsupported, format, args...)
}
