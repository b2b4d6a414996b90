package provider

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dolthub/go-mysql-server/sql"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/source"
)

// Database is one catalog, or an empty database where catalog is nil. Views live in memory until the process ends.
type Database struct {
	name    string
	catalog source.Catalog
	caps    Caps

	mu    sync.Mutex
	views map[string]sql.ViewDefinition
}

var (
	_ sql.VersionedDatabase = (*Database)(nil)
	_ sql.ViewDatabase      = (*Database)(nil)
	_ sql.CollatedDatabase  = (*Database)(nil)
)

// Name implements sql.Nameable.
func (d *Database) Name() string { return d.name }

// Catalog returns the catalog behind the database, nil for an empty one.
func (d *Database) Catalog() source.Catalog { return d.catalog }

// GetCollation implements sql.CollatedDatabase.
func (d *Database) GetCollation(*sql.Context) sql.CollationID { return Collation }

// SetCollation implements sql.CollatedDatabase: strings compare byte for byte, always.
func (d *Database) SetCollation(*sql.Context, sql.CollationID) error {
	return errs.New(errs.ErrUnsupported, "the collation of database %s cannot be changed", d.name)
}

// GetTableInsensitive implements sql.Database.
func (d *Database) GetTableInsensitive(ctx *sql.Context, name string) (sql.Table, bool, error) {
	return d.table(ctx, name, source.AsOf{})
}

// GetTableInsensitiveAsOf implements sql.VersionedDatabase.
func (d *Database) GetTableInsensitiveAsOf(ctx *sql.Context, name string, asOf any) (sql.Table, bool, error) {
	at, err := parseAsOf(asOf)
	if err != nil {
		return nil, false, err
	}
	return d.table(ctx, name, at)
}

// GetTableNames implements sql.Database.
func (d *Database) GetTableNames(ctx *sql.Context) ([]string, error) { return d.tables(ctx) }

// GetTableNamesAsOf implements sql.VersionedDatabase: tables are versioned one by one, so the names are those of now.
func (d *Database) GetTableNamesAsOf(ctx *sql.Context, _ any) ([]string, error) { return d.tables(ctx) }

func (d *Database) tables(ctx context.Context) ([]string, error) {
	if d.catalog == nil {
		return nil, nil
	}
	return source.Tables(ctx, d.catalog)
}

func (d *Database) names(ctx context.Context) ([]string, error) {
	if d.catalog == nil {
		return nil, nil
	}
	return d.catalog.TableNames(ctx)
}

func (d *Database) table(ctx context.Context, name string, asOf source.AsOf) (sql.Table, bool, error) {
	t, err := d.Resolve(ctx, name, asOf)
	if errors.Is(err, errs.ErrNotFound) && asOf.IsLatest() {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	return NewTable(d.name, t, d.caps).withKey(ctx), true, nil
}

// Resolve finds a table by its name in any case and pins it for the statement of ctx. ErrNotFound; ErrInvalid if several names
// differ by case alone and none is spelled like name.
func (d *Database) Resolve(ctx context.Context, name string, asOf source.AsOf) (exec.Table, error) {
	if k, ok := d.catalog.(source.Knower); ok && k.Knows(name) {
		t, err := StatementOf(ctx).Table(ctx, d.catalog, name, asOf)
		if err == nil || !errors.Is(err, errs.ErrNotFound) {
			return t, err
		}
	}
	found, err := d.find(ctx, name)
	if err != nil {
		return nil, err
	}
	return StatementOf(ctx).Table(ctx, d.catalog, found, asOf)
}

// find returns how the table is spelled. What stands behind an @ names a branch, which is spelled as it is; the catalog knows whether there is one.
func (d *Database) find(ctx context.Context, name string) (string, error) {
	found, err := d.findTable(ctx, name)
	if at := strings.IndexByte(name, '@'); at > 0 && errors.Is(err, errs.ErrNotFound) {
		table, err := d.findTable(ctx, name[:at])
		return table + name[at:], err
	}
	return found, err
}

// findTable returns how a table is spelled that is not a branch.
func (d *Database) findTable(ctx context.Context, name string) (string, error) {
	names, err := d.names(ctx)
	if err != nil {
		return "", err
	}
	if slices.Contains(names, name) {
		return name, nil
	}
	found := ""
	for _, n := range names {
		if !strings.EqualFold(n, name) {
			continue
		}
		if found != "" {
			return "", errs.New(errs.ErrInvalid, "tables %s and %s of database %s differ by case alone: rename one, or spell it as it is", found, n, d.name)
		}
		found = n
	}
	if found == "" {
		return "", errs.New(errs.ErrNotFound, "table %s.%s does not exist", d.name, name)
	}
	return found, nil
}

// asOfLayouts are the times that AS OF takes as text.
func asOfLayouts() []string {
	return []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999", "2006-01-02 15:04", time.DateOnly}
}

// parseAsOf reads what go-mysql-server hands over: a number or a tag as text, a time as time.Time.
func parseAsOf(v any) (source.AsOf, error) {
	switch v := v.(type) {
	case time.Time:
		return source.AsOf{Time: v}, nil
	case string:
		if n, err := strconv.ParseUint(v, 10, 64); err == nil {
			if n == 0 {
				return source.AsOf{}, errs.New(errs.ErrInvalid, "AS OF 0: versions begin at 1")
			}
			return source.AsOf{Version: n}, nil
		}
		for _, layout := range asOfLayouts() {
			if t, err := time.Parse(layout, v); err == nil {
				return source.AsOf{Time: t}, nil
			}
		}
		if v == "" {
			return source.AsOf{}, errs.New(errs.ErrInvalid, "AS OF '' names no version")
		}
		return source.AsOf{Tag: v}, nil
	case nil:
		return source.AsOf{}, errs.New(errs.ErrInvalid, "AS OF NULL names no version")
	}
	switch n := toInt(v); {
	case n > 0:
		return source.AsOf{Version: uint64(n)}, nil
	default:
		return source.AsOf{}, errs.New(errs.ErrInvalid, "AS OF %v names no version: give a number, a tag or a time", v)
	}
}

func toInt(v any) int64 {
	switch v := v.(type) {
	case int8:
		return int64(v)
	case int16:
		return int64(v)
	case int32:
		return int64(v)
	case int64:
		return v
	case int:
		return int64(v)
	case uint8:
		return int64(v)
	case uint16:
		return int64(v)
	case uint32:
		return int64(v)
	}
	return -1
}

// CreateView implements sql.ViewDatabase.
func (d *Database) CreateView(_ *sql.Context, name, selectStatement, createViewStmt string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.views[strings.ToLower(name)]; ok {
		return sql.ErrExistingView.New(d.name, name)
	}
	if d.views == nil {
		d.views = make(map[string]sql.ViewDefinition)
	}
	d.views[strings.ToLower(name)] = sql.ViewDefinition{Name: name, TextDefinition: selectStatement, CreateViewStatement: createViewStmt}
	return nil
}

// DropView implements sql.ViewDatabase.
func (d *Database) DropView(_ *sql.Context, name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.views[strings.ToLower(name)]; !ok {
		return sql.ErrViewDoesNotExist.New(d.name, name)
	}
	delete(d.views, strings.ToLower(name))
	return nil
}

// GetViewDefinition implements sql.ViewDatabase.
func (d *Database) GetViewDefinition(_ *sql.Context, name string) (sql.ViewDefinition, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	v, ok := d.views[strings.ToLower(name)]
	return v, ok, nil
}

// AllViews implements sql.ViewDatabase.
func (d *Database) AllViews(*sql.Context) ([]sql.ViewDefinition, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]sql.ViewDefinition, 0, len(d.views))
	for _, v := range d.views {
		out = append(out, v)
	}
	return out, nil
}
