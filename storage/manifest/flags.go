package manifest

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/lakesql/lakesql/internal/errs"
)

// Feature flags of reader_feature_flags and writer_feature_flags.
const (
	FlagDeletionFiles     uint64 = 1 << iota // deletion files are present
	FlagStableRowIDs                         // rows have ids that outlive their addresses
	FlagV2Format                             // obsolete
	FlagTableConfig                          // table config is present
	FlagBasePaths                            // files may lie outside the dataset
	FlagNoTransactionFile                    // transactions are inline only
	FlagOverlays                             // data overlay files
	FlagIndexCovering                        // indices with covering columns
	FlagMixedFiles                           // data files of several versions
	FlagReuseStable                          // fragment reuse index with stable row ids
	FlagReuseTransitions                     // fragment reuse index with transitions
	FlagManagedBlobs                         // managed blobs
)

// ReadableFlags are the features that lakesql reads.
const ReadableFlags = FlagDeletionFiles | FlagStableRowIDs | FlagV2Format | FlagTableConfig | FlagBasePaths |
	FlagNoTransactionFile | FlagMixedFiles

// WritableFlags are the features that lakesql keeps right when it commits.
const WritableFlags = FlagDeletionFiles | FlagStableRowIDs | FlagV2Format | FlagTableConfig | FlagBasePaths | FlagNoTransactionFile

// FlagNames names the set bits, for people.
func FlagNames(flags uint64) string {
	names := [...]string{
		"deletion files", "stable row ids", "v2 format", "table config", "base paths", "no transaction files", "data overlay files",
		"index covering columns", "mixed data file versions", "fragment reuse with stable row ids", "fragment reuse transitions",
		"managed blobs",
	}
	var out []string
	for flags != 0 {
		bit := bits.TrailingZeros64(flags)
		flags &^= 1 << bit
		name := "unknown feature"
		if bit < len(names) {
			name = names[bit]
		}
		out = append(out, fmt.Sprintf("%s (flag %d)", name, uint64(1)<<bit))
	}
	return strings.Join(out, ", ")
}

// CheckReadable refuses datasets that use features which lakesql cannot read. Errors: ErrUnsupported.
func CheckReadable(flags uint64) error {
	if unknown := flags &^ ReadableFlags; unknown != 0 {
		return errs.New(errs.ErrUnsupported, "the dataset uses features that lakesql cannot read: %s", FlagNames(unknown))
	}
	return nil
}

// CheckWritable refuses commits to datasets whose features lakesql would break. Errors: ErrUnsupported.
func CheckWritable(flags uint64) error {
	if unknown := flags &^ WritableFlags; unknown != 0 {
		return errs.New(errs.ErrUnsupported, "the dataset uses features that lakesql cannot write: %s", FlagNames(unknown))
	}
	return nil
}
