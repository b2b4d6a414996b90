package lance

import (
	"context"
	"strings"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage"
)

// IsReadOnly says that statements that change tables are refused.
func (c *Catalog) IsReadOnly() bool { return c.opts.ReadOnly }

// NewDir is Dir for a table to come, which must not be called like a branch of another.
func (c *Catalog) NewDir(name string) (string, error) {
	if strings.Contains(name, branchMark) {
		return "", errs.New(errs.ErrInvalid, "'%s' cannot be the name of a new table: %s parts a table's name from a branch; CALL lakesql.create_branch makes one", name, branchMark)
	}
	return c.Dir(name)
}

// Dir is the folder of a table in the catalog's store, be it there or not. ErrInvalid for names that no table can have.
func (c *Catalog) Dir(name string) (string, error) {
	if err := checkName(name); err != nil {
		return "", errs.New(errs.ErrInvalid, "'%s' cannot be the name of a table", name)
	}
	return name + suffix, nil
}

// Dataset opens a table for writing. ErrNotFound.
func (c *Catalog) Dataset(ctx context.Context, name string) (*storage.Table, error) {
	t, err := c.open(ctx, name)
	if err != nil {
		return nil, err
	}
	return t.table, nil
}

// View shows a version of a table to plans: one that a transaction staged, too.
func (c *Catalog) View(name string, snap *storage.Snapshot) exec.Table {
	return newTable(c, name, snap)
}

// Forget drops what is known of a table and its branches, after it was dropped or renamed, and of a branch (t@branch) that was.
func (c *Catalog) Forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for known := range c.tables {
		if known == name || strings.HasPrefix(known, name+branchMark) {
			delete(c.tables, known)
		}
	}
	delete(c.listed, name)
}
