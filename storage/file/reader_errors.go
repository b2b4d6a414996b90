package file

import (
	"errors"
	"fmt"

	"github.com/lakesql/lakesql/internal/errs"
)

// locate says in which section of the file an error arose: a corruption gets it in front of its own section and takes the
// offset unless it has one.
func locate(err error, section string, at int64) error {
	var c *errs.CorruptError
	if errors.As(err, &c) {
		c.Section = section + ", " + c.Section
		if c.Offset < 0 {
			c.Offset = at
		}
		return err
	}
	return fmt.Errorf("%s: %w", section, err)
}

func sectionChunk(i int) string { return fmt.Sprintf("chunk %d", i) }
