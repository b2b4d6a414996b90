package encoding

import (
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/pb/encpb"
)

// Keys of field metadata that say how a column is to be encoded. A key of a field holds for everything below it that has no such key itself.
const (
	keyCompression      = "lance-encoding:compression"       // none, lz4, zstd, fsst
	keyCompressionLevel = "lance-encoding:compression-level" // of zstd, 1 to 22
	keyRLEThreshold     = "lance-encoding:rle-threshold"     // runs per value, below which runs may be stored
	keyBSS              = "lance-encoding:bss"               // off, on, auto
	keyDictDivisor      = "lance-encoding:dict-divisor"      // values per distinct value, above which a dictionary is made
	keyStructural       = "lance-encoding:structural-encoding"
	keyPacked           = "lance-encoding:packed" // of structs: true = one column
	keyPackedOld        = "packed"
)

type splitMode uint8

const (
	splitAuto splitMode = iota
	splitOff
	splitOn
)

// leafOptions is what the metadata of a leaf's field and of those above it asks for. The zero value leaves every choice to the values.
type leafOptions struct {
	plain        bool // compression "none"
	fsst         bool // compression "fsst"
	scheme       encpb.CompressionScheme
	level        int // 0 = the scheme's own default
	rleThreshold float64
	split        splitMode
	dictDivisor  int    // 0 = dictionaryShare
	structural   string // miniblock, fullzip or empty
}

// with returns the options changed by a field's metadata. Errors: ErrInvalid naming the key whose value means nothing.
func (o leafOptions) with(path string, md arrow.Metadata) (leafOptions, error) {
	bad := func(key, value string) error {
		return errs.New(errs.ErrInvalid, "column %q: %s = %q", path, key, value)
	}
	var err error
	for i, key := range md.Keys() {
		value := md.Values()[i]
		ok := true
		switch key {
		case keyCompression:
			ok = o.setCompression(strings.ToLower(value))
		case keyCompressionLevel:
			o.level, err = strconv.Atoi(value)
			ok = err == nil && o.level >= -7 && o.level <= 22
		case keyRLEThreshold:
			o.rleThreshold, err = strconv.ParseFloat(value, 64)
			ok = err == nil && o.rleThreshold >= 0
		case keyBSS:
			o.split, ok = map[string]splitMode{"off": splitOff, "on": splitOn, "auto": splitAuto}[strings.ToLower(value)]
		case keyDictDivisor:
			o.dictDivisor, err = strconv.Atoi(value)
			ok = err == nil && o.dictDivisor > 0
		case keyStructural:
			o.structural = strings.ToLower(value)
			ok = o.structural == "miniblock" || o.structural == "fullzip"
		}
		if !ok {
			return o, bad(key, value)
		}
	}
	return o, nil
}

func (o *leafOptions) setCompression(name string) bool {
	o.plain, o.fsst, o.scheme = false, false, 0
	switch name {
	case "none":
		o.plain = true
	case "fsst":
		o.fsst = true
	case "lz4":
		o.scheme = encpb.CompressionScheme_COMPRESSION_LZ4
	case "zstd":
		o.scheme = encpb.CompressionScheme_COMPRESSION_ZSTD
	default:
		return false
	}
	return true
}
