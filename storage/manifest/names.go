package manifest

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Folders and names of a dataset, relative to its root.
const (
	VersionsDir     = "_versions"
	TransactionsDir = "_transactions"
	DeletionsDir    = "_deletions"
	IndicesDir      = "_indices"
	DataDir         = "data"
	TagsDir         = "_refs/tags"
	BranchesDir     = "_refs/branches"
	BranchTreeDir   = "tree"

	suffix = ".manifest"
)

// Naming is how manifests of a dataset are named.
type Naming int

const (
	// NamingV2 counts down in 20 digits, so that the newest version sorts first.
	NamingV2 Naming = iota
	// NamingV1 is the plain version number.
	NamingV1
)

func (n Naming) String() string {
	if n == NamingV1 {
		return "V1"
	}
	return "V2"
}

// Name returns the file name of a version.
func (n Naming) Name(version uint64) string {
	if n == NamingV1 {
		return strconv.FormatUint(version, 10) + suffix
	}
	return fmt.Sprintf("%020d%s", math.MaxUint64-version, suffix)
}

// ParseName reads a file name under _versions. ok is false for detached versions, temporary names and anything else that is
// not part of the history.
func ParseName(name string) (version uint64, n Naming, ok bool) {
	digits, isManifest := strings.CutSuffix(name, suffix)
	if !isManifest || digits == "" || strings.TrimLeft(digits, "0123456789") != "" {
		return 0, 0, false
	}
	v, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return 0, 0, false
	}
	if len(digits) == 20 {
		return math.MaxUint64 - v, NamingV2, true
	}
	return v, NamingV1, true
}
