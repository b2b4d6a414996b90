// Package source gives tables of any kind of source behind one interface: a Catalog is one MySQL database.
package source

import (
	"context"
	"fmt"
	"time"

	"github.com/lakesql/lakesql/exec"
)

// AsOf names a version of a table. The zero value is the latest. At most one field is set.
type AsOf struct {
	Version uint64
	Tag     string
	Time    time.Time
}

// IsLatest says that no version is named.
func (a AsOf) IsLatest() bool { return a == AsOf{} }

func (a AsOf) String() string {
	switch {
	case a.Version > 0:
		return fmt.Sprintf("version %d", a.Version)
	case a.Tag != "":
		return fmt.Sprintf("tag %q", a.Tag)
	case !a.Time.IsZero():
		return a.Time.UTC().Format(time.RFC3339Nano)
	}
	return "latest"
}

// Catalog is a folder or server of tables. It is safe for concurrent use.
type Catalog interface {
	// Name is the MySQL database's name.
	Name() string
	// Kind is "lance", "parquet" and so on.
	Kind() string
	// TableNames lists the tables, ascending.
	TableNames(ctx context.Context) ([]string, error)
	// Table pins one version. Errors: ErrNotFound for the table or the version, ErrUnsupported where the source has no versions.
	Table(ctx context.Context, name string, asOf AsOf) (exec.Table, error)
	Close() error
}

// Lister is a Catalog in which something may have the name of a table and be none: what is left of one that was never finished. TableNames, which is asked
// wherever a name is looked up, may list it.
type Lister interface {
	// Tables lists the tables alone, ascending.
	Tables(ctx context.Context) ([]string, error)
}

// Tables lists the tables of a catalog, ascending, for people.
func Tables(ctx context.Context, c Catalog) ([]string, error) {
	if l, ok := c.(Lister); ok {
		return l.Tables(ctx)
	}
	return c.TableNames(ctx)
}

// Knower is a Catalog that remembers names, so that a table which was used before is found without listing all of them.
type Knower interface {
	// Knows says, without I/O, that there was a table of exactly this name. Table still tells whether there is one.
	Knows(name string) bool
}
