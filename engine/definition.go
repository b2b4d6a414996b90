package engine

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
	ast "github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner/dialect"
	"github.com/lakesql/lakesql/planner/gms/provider"
	"github.com/lakesql/lakesql/planner/gms/translate"
	"github.com/lakesql/lakesql/source"
	"github.com/lakesql/lakesql/source/lance"
	"github.com/lakesql/lakesql/write"
)

func isExists(err error) bool { return errors.Is(err, errs.ErrExists) }

func isUnsupported(err error) bool { return errors.Is(err, errs.ErrUnsupported) }

// textColumns is the schema of a report.
func textColumns(names ...string) sql.Schema {
	out := make(sql.Schema, len(names))
	for i, n := range names {
		out[i] = &sql.Column{Name: n, Type: types.LongText, Nullable: true}
	}
	return out
}

// table resolves a table's name as it is now.
func (c *change) table(name dialect.TableName) (exec.Table, error) {
	database, err := databaseOf(c.ctx, name.Database)
	if err != nil {
		return nil, err
	}
	db, err := c.e.provider.Database(c.ctx, database)
	if err != nil {
		return nil, err
	}
	own, ok := db.(*provider.Database)
	if !ok || own.Catalog() == nil {
		return nil, errs.New(errs.ErrUnsupported, "database %s has no tables that can be changed", database)
	}
	// A view of a transaction, or a version that a statement has pinned, is not what a definition changes.
	return own.Resolve(provider.WithStatement(c.ctx, nil), name.Name, source.AsOf{})
}

// own finds a table that a definition may change, and its lake.
func (c *change) own(name dialect.TableName) (*lance.Catalog, *lance.Table, error) {
	cat, err := c.lakeOf(name.Database)
	if err != nil {
		return nil, nil, err
	}
	t, err := c.table(name)
	if err != nil {
		return nil, nil, err
	}
	table, ok := t.(*lance.Table)
	if !ok {
		return nil, nil, errs.New(errs.ErrUnsupported, "table %s cannot be changed", t.Ref())
	}
	return cat, table, nil
}

// dropTables drops every table that is there; one that is not is named, as MySQL does, before anything is dropped.
func (c *change) dropTables(s *ast.DDL) error {
	if err := c.begin(s.Auth); err != nil {
		return err
	}
	type victim struct {
		cat  *lance.Catalog
		name string
	}
	var victims []victim
	var missing []string
	for _, t := range s.FromTables {
		cat, err := c.lakeOf(t.DbQualifier.String())
		if err != nil {
			return err
		}
		name, err := spelled(c.ctx, cat, t.Name.String())
		if err != nil {
			return err
		}
		if name == "" {
			missing = append(missing, cat.Name()+"."+t.Name.String())
			continue
		}
		victims = append(victims, victim{cat, name})
	}
	if len(missing) > 0 && !s.IfExists {
		return errs.New(errs.ErrUnknownTable, "Unknown table '%s'", strings.Join(missing, ","))
	}
	for _, name := range missing {
		c.ctx.Session.Warn(&sql.Warning{Level: "Note", Code: 1051, Message: fmt.Sprintf("Unknown table '%s'", name)})
	}
	for _, v := range victims {
		target, err := targetOf(v.cat, v.name)
		if err != nil {
			return err
		}
		err = write.DropTable(c.ctx, target)
		v.cat.Forget(v.name)
		if errors.Is(err, errs.ErrNotFound) { // a folder without a version
			err = nil
		}
		if err != nil {
			return fmt.Errorf("table %s.%s: %w", v.cat.Name(), v.name, err)
		}
	}
	return nil
}

func targetOf(cat *lance.Catalog, name string) (write.Target, error) {
	dir, err := cat.Dir(name)
	return write.Target{Store: cat.Store(), Dir: dir}, err
}

// truncate is a definition for MySQL: it commits, and commits by itself.
func (c *change) truncate(s *ast.DDL) error {
	if err := c.session.CommitNow(c.ctx); err != nil {
		return err
	}
	tx, _, err := c.session.Begun(c.ctx)
	if err != nil {
		return err
	}
	node, err := c.bound(c.ctx, s)
	if err == nil {
		st, planErr := translate.Write(c.ctx, c.res.request, node)
		if err = planErr; err == nil {
			err = c.run(c.ctx, st, false, tx, true)
		}
	}
	if err != nil {
		return errors.Join(err, c.session.RollbackNow(c.ctx))
	}
	return nil
}

func (c *change) renameTables(s *ast.DDL) error {
	if err := c.begin(s.Auth); err != nil {
		return err
	}
	if len(s.FromTables) != 1 || len(s.ToTables) != 1 {
		return errs.New(errs.ErrUnsupported, "RENAME TABLE renames one table at a time")
	}
	to := s.ToTables[0]
	return c.rename(tableName(s.FromTables[0]), tableName(to))
}

func tableName(t ast.TableName) dialect.TableName {
	return dialect.TableName{Database: t.DbQualifier.String(), Name: t.Name.String()}
}

func (c *change) rename(from, to dialect.TableName) error {
	cat, name, err := c.mayRename(from, to)
	if err != nil {
		return err
	}
	target, err := targetOf(cat, name)
	if err != nil {
		return err
	}
	dir, err := cat.NewDir(to.Name)
	if err != nil {
		return err
	}
	err = write.RenameTable(c.ctx, target, dir)
	cat.Forget(name)
	cat.Forget(to.Name)
	return err
}

// mayRename finds the table to rename, and refuses a name that is taken.
func (c *change) mayRename(from, to dialect.TableName) (cat *lance.Catalog, name string, err error) {
	if cat, err = c.lakeOf(from.Database); err != nil {
		return nil, "", err
	}
	if to.Database != "" && !strings.EqualFold(to.Database, cat.Name()) {
		return nil, "", errs.New(errs.ErrUnsupported, "a table cannot move to another database")
	}
	if name, err = spelled(c.ctx, cat, from.Name); err != nil {
		return nil, "", err
	}
	if name == "" {
		return nil, "", errs.New(errs.ErrNotFound, "Table '%s.%s' doesn't exist", cat.Name(), from.Name)
	}
	taken, err := spelled(c.ctx, cat, to.Name)
	if err != nil {
		return nil, "", err
	}
	if taken != "" && taken != name {
		return nil, "", errs.New(errs.ErrExists, "Table '%s' already exists", taken)
	}
	return cat, name, nil
}

// database refuses CREATE and DROP DATABASE: databases are the lakes of the configuration.
func (c *change) database(s *ast.DBDDL) error {
	if err := c.begin(s.Auth); err != nil {
		return err
	}
	exists := c.e.provider.HasDatabase(c.ctx, s.DBName)
	switch strings.ToLower(s.Action) {
	case ast.CreateStr:
		if exists && s.IfNotExists {
			c.ctx.Session.Warn(&sql.Warning{Level: "Note", Code: 1007, Message: fmt.Sprintf("Can't create database '%s'; database exists", s.DBName)})
			c.res.AffectedRows = 1
			return nil
		}
		if exists {
			return sql.ErrDatabaseExists.New(s.DBName)
		}
		return errs.New(errs.ErrUnsupported, "CREATE DATABASE: a database is a lake, a folder or bucket that the server is started with: serve --lake %s=FOLDER", s.DBName)
	case ast.DropStr:
		if !exists && s.IfExists {
			c.ctx.Session.Warn(&sql.Warning{Level: "Note", Code: 1008, Message: fmt.Sprintf("Can't drop database '%s'; database doesn't exist", s.DBName)})
			return nil
		}
		if !exists {
			return sql.ErrDatabaseNotFound.New(s.DBName)
		}
		return errs.New(errs.ErrUnsupported, "DROP DATABASE: a database is a lake that the server is started with; drop its tables")
	}
	return errs.New(errs.ErrUnsupported, "%s DATABASE", strings.ToUpper(s.Action))
}
