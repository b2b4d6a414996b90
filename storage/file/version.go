package file

import "fmt"

// Version is the format version of a data file.
type Version struct{ Major, Minor uint16 }

// The versions that lakesql knows. It reads all three and writes the last two.
var (
	V20 = Version{2, 0}
	V21 = Version{2, 1}
	V22 = Version{2, 2}
)

func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }
