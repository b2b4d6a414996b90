package provider

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/dolthub/go-mysql-server/sql"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/source"
)

// SystemDatabase is the database with lakesql's own tables.
const SystemDatabase = "lakesql"

// Provider gives go-mysql-server the catalogs as databases, beside lakesql and the empty databases that clients probe.
// Catalogs may be added and removed at run time. It is safe for concurrent use.
type Provider struct {
	mu       sync.RWMutex
	catalogs map[string]*Database // by lower-case name
	system   map[string]func() arrow.RecordBatch
	fixed    map[string]sql.Database
	funcs    map[string]sql.Function
	noUsers  error // go-mysql-server asks for the database mysql before every statement: an error each time, with its stack, would cost more than parsing
	caps     Caps
}

// Caps bounds what the row engine may read of one table in one scan; our own plans are bounded by memory budgets instead.
type Caps struct {
	RowsMax int64 // default 1,000,000
}

// WithDefaults returns the caps with zero fields set.
func (c Caps) WithDefaults() Caps {
	if c.RowsMax == 0 {
		c.RowsMax = 1_000_000
	}
	return c
}

var (
	_ sql.DatabaseProvider = (*Provider)(nil)
	_ sql.FunctionProvider = (*Provider)(nil)
)

// New returns a provider of the catalogs. ErrExists where two have one name or a name is taken.
func New(catalogs []source.Catalog, caps Caps) (*Provider, error) {
	p := &Provider{catalogs: make(map[string]*Database), fixed: make(map[string]sql.Database), funcs: functions(), noUsers: sql.ErrDatabaseNotFound.New("mysql"), caps: caps.WithDefaults()}
	p.fixed["performance_schema"] = &Database{name: "performance_schema", caps: p.caps}
	p.fixed["sys"] = &Database{name: "sys", caps: p.caps}
	p.fixed[SystemDatabase] = &Database{name: SystemDatabase, catalog: &systemCatalog{provider: p}, caps: p.caps}
	for _, c := range catalogs {
		if err := p.Add(c); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Add makes a catalog a database. ErrExists if the name is taken, ErrInvalid if it is empty.
func (p *Provider) Add(c source.Catalog) error {
	name := strings.ToLower(c.Name())
	if name == "" {
		return errs.New(errs.ErrInvalid, "a catalog needs a name")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, taken := p.fixed[name]; taken || name == "mysql" || name == sql.InformationSchemaDatabaseName {
		return errs.New(errs.ErrExists, "the database name %s is reserved", c.Name())
	}
	if _, taken := p.catalogs[name]; taken {
		return errs.New(errs.ErrExists, "there is a database %s already", c.Name())
	}
	p.catalogs[name] = &Database{name: c.Name(), catalog: c, caps: p.caps}
	return nil
}

// AddSystemTable adds a table to the database lakesql, which is made anew each time that a statement names it.
func (p *Provider) AddSystemTable(name string, rows func() arrow.RecordBatch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.system == nil {
		p.system = make(map[string]func() arrow.RecordBatch)
	}
	p.system[name] = rows
}

func (p *Provider) systemTables() map[string]func() arrow.RecordBatch {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return maps.Clone(p.system)
}

// Remove takes a catalog away and returns it for closing; running statements keep their tables.
func (p *Provider) Remove(name string) (source.Catalog, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	db, ok := p.catalogs[strings.ToLower(name)]
	if !ok {
		return nil, errs.New(errs.ErrNotFound, "there is no catalog %s", name)
	}
	delete(p.catalogs, strings.ToLower(name))
	return db.catalog, nil
}

// Catalogs returns the catalogs by name.
func (p *Provider) Catalogs() []source.Catalog {
	p.mu.RLock()
	defer p.mu.RUnlock()
	out := make([]source.Catalog, 0, len(p.catalogs))
	for _, db := range p.catalogs {
		out = append(out, db.catalog)
	}
	slices.SortFunc(out, func(a, b source.Catalog) int { return strings.Compare(a.Name(), b.Name()) })
	return out
}

// Database implements sql.DatabaseProvider.
func (p *Provider) Database(_ *sql.Context, name string) (sql.Database, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	name = strings.ToLower(name)
	if db, ok := p.catalogs[name]; ok {
		return db, nil
	}
	if db, ok := p.fixed[name]; ok {
		return db, nil
	}
	if name == "mysql" {
		return nil, p.noUsers
	}
	return nil, sql.ErrDatabaseNotFound.New(name)
}

// HasDatabase implements sql.DatabaseProvider.
func (p *Provider) HasDatabase(ctx *sql.Context, name string) bool {
	_, err := p.Database(ctx, name)
	return err == nil
}

// AllDatabases implements sql.DatabaseProvider.
func (p *Provider) AllDatabases(*sql.Context) []sql.Database {
	p.mu.RLock()
	defer p.mu.RUnlock()
	out := make([]sql.Database, 0, len(p.catalogs)+len(p.fixed))
	for _, db := range p.catalogs {
		out = append(out, db)
	}
	for _, db := range p.fixed {
		out = append(out, db)
	}
	slices.SortFunc(out, func(a, b sql.Database) int { return strings.Compare(a.Name(), b.Name()) })
	return out
}

// Function implements sql.FunctionProvider; it wins over built-in functions of the same name.
func (p *Provider) Function(_ *sql.Context, name string) (sql.Function, bool) {
	f, ok := p.funcs[strings.ToLower(name)]
	return f, ok
}

// String names the provider in logs.
func (p *Provider) String() string {
	return fmt.Sprintf("lakesql provider of %d catalogs", len(p.Catalogs()))
}
