package engine

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/dolthub/go-mysql-server/sql"
	ast "github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner/coltype"
	"github.com/lakesql/lakesql/planner/dialect"
	"github.com/lakesql/lakesql/planner/dml"
	"github.com/lakesql/lakesql/planner/gms/translate"
	"github.com/lakesql/lakesql/source/lance"
	"github.com/lakesql/lakesql/write"
)

// alteration is one ALTER TABLE. Versions are committed change by change, so one statement makes one kind of change.
type alteration struct {
	*change
	name  dialect.TableName
	cat   *lance.Catalog
	table *lance.Table
	opts  write.EvolveOptions
}

// alterTable changes columns, defaults, the declared key and the name. Indices are statements of our own (indexes.go).
func (c *change) alterTable(s *ast.AlterTable) error {
	if err := c.beginOn(tableName(s.Table), ast.AuthType_ALTER); err != nil { // the parser names no table in its own
		return err
	}
	if len(s.PartitionSpecs) > 0 {
		return errs.New(errs.ErrUnsupported, "partitions are not supported")
	}
	if len(s.Statements) == 0 {
		return nil
	}
	a := &alteration{change: c, name: tableName(s.Table)}
	var err error
	if a.cat, a.table, err = c.own(a.name); err != nil {
		return err
	}
	a.opts = write.EvolveOptions{Rows: rowOptions(a.table.Schema()), Alloc: c.res.request.Env.Alloc}
	if len(s.Statements) == 1 {
		return a.one(s.Statements[0])
	}
	kind := strings.ToLower(s.Statements[0].ColumnAction)
	for _, d := range s.Statements {
		if k := strings.ToLower(d.ColumnAction); k != kind || k != ast.AddStr && k != ast.DropStr || isOther(d) {
			return errs.New(errs.ErrUnsupported, "ALTER TABLE makes one change, or adds or drops several columns: write a statement for each change")
		}
	}
	if kind == ast.AddStr {
		return a.addColumns(s.Statements)
	}
	return a.dropColumns(s.Statements)
}

// isOther says that a clause is about more than columns.
func isOther(d *ast.DDL) bool {
	return d.IndexSpec != nil || d.DefaultSpec != nil || d.NotNullSpec != nil || d.AlterCollationSpec != nil || d.AutoIncSpec != nil
}

func (a *alteration) one(d *ast.DDL) error {
	switch {
	case d.IndexSpec != nil:
		return a.key(d.IndexSpec)
	case d.DefaultSpec != nil:
		return a.setDefault(d.DefaultSpec)
	case d.NotNullSpec != nil:
		return a.setNotNull(d.NotNullSpec)
	case d.ConstraintAction != "" && d.ColumnAction == "":
		return errs.New(errs.ErrUnsupported, "FOREIGN KEY and CHECK constraints are not supported")
	case d.AlterCollationSpec != nil:
		return errs.New(errs.ErrUnsupported, "the character set of a table cannot be changed: text is utf8mb4 and compares byte for byte")
	case d.AutoIncSpec != nil:
		return errs.New(errs.ErrUnsupported, "AUTO_INCREMENT is not supported")
	}
	switch strings.ToLower(d.ColumnAction) {
	case ast.AddStr:
		return a.addColumns([]*ast.DDL{d})
	case ast.DropStr:
		return a.dropColumns([]*ast.DDL{d})
	case ast.RenameStr:
		return a.renameColumn(d.Column.String(), d.ToColumn.String())
	case ast.ModifyStr, ast.ChangeStr:
		return a.modify(d)
	}
	if strings.EqualFold(d.Action, ast.RenameStr) && len(d.ToTables) == 1 {
		return a.rename(a.name, tableName(d.ToTables[0]))
	}
	return errs.New(errs.ErrUnsupported, "this change of ALTER TABLE is not supported")
}

// find returns a column of the table.
func (a *alteration) find(name string) (arrow.Field, error) {
	i := fieldIndex(a.table.Schema(), name)
	if i < 0 {
		return arrow.Field{}, errs.New(errs.ErrUnknownColumn, "Unknown column '%s' in '%s'", name, a.table.Ref().Table)
	}
	return a.table.Schema().Field(i), nil
}

func (a *alteration) dropColumns(clauses []*ast.DDL) error {
	var names []string
	for _, d := range clauses {
		f, err := a.find(d.Column.String())
		if err != nil {
			if d.IfExists {
				continue
			}
			return errs.New(errs.ErrCannotDrop, "Can't DROP '%s'; check that column/key exists", d.Column.String())
		}
		names = append(names, f.Name)
	}
	if len(names) == 0 {
		return nil
	}
	if len(names) >= a.table.Schema().NumFields() {
		return errs.New(errs.ErrInvalid, "You can't delete all columns with ALTER TABLE; use DROP TABLE instead")
	}
	_, err := write.DropColumns(a.ctx, a.table.Snapshot().Table(), names, a.opts)
	return err
}

func (a *alteration) renameColumn(from, to string) error {
	f, err := a.find(from)
	if err != nil {
		return err
	}
	if err := a.free(to, f.Name); err != nil {
		return err
	}
	_, err = write.RenameColumn(a.ctx, a.table.Snapshot().Table(), f.Name, to, a.opts)
	return err
}

// free refuses a name that another column has.
func (a *alteration) free(name, except string) error {
	for _, f := range a.table.Schema().Fields() {
		if strings.EqualFold(f.Name, name) && f.Name != except {
			return errs.New(errs.ErrColumnExists, "Duplicate column name '%s'", f.Name)
		}
	}
	return nil
}

// definition reads the column of a clause.
func (a *alteration) definition(d *ast.DDL) (*ast.ColumnDefinition, error) {
	if d.TableSpec == nil || len(d.TableSpec.Columns) != 1 {
		return nil, errs.New(errs.ErrUnsupported, "ALTER TABLE with several columns in one clause: write one clause for each")
	}
	if d.ColumnOrder != nil {
		return nil, errs.New(errs.ErrUnsupported, "FIRST and AFTER are not supported: new columns stand at the end")
	}
	if len(d.TableSpec.Constraints) > 0 {
		return nil, errs.New(errs.ErrUnsupported, "FOREIGN KEY and CHECK constraints are not supported")
	}
	cd := d.TableSpec.Columns[0]
	if cd.Type.KeyOpt != keyNone {
		return nil, errs.New(errs.ErrUnsupported, "column %s: declare the key with ALTER TABLE ... ADD PRIMARY KEY", cd.Name.String())
	}
	return cd, nil
}

func (a *alteration) addColumns(clauses []*ast.DDL) error {
	var fields []arrow.Field
	var values []columnValue
	backfill := false
	for _, d := range clauses {
		cd, err := a.definition(d)
		if err != nil {
			return err
		}
		name := cd.Name.String()
		if err := a.free(name, ""); err != nil {
			return err
		}
		if hasColumn(fields, name) {
			return errs.New(errs.ErrColumnExists, "Duplicate column name '%s'", name)
		}
		v := columnValue{}
		if def := cd.Type.Default; def != nil {
			if v.value, err = a.defaultOf(def); err != nil {
				return errs.New(errs.ErrBadDefault, "Invalid default value for '%s': %w", name, err)
			}
			if len(v.value.Reads) > 0 { // an expression over other columns fills the rows that are there; it is no default for later ones
				cd.Type.Default = nil
			}
		}
		f, err := a.column(cd, a.res.request.Rewritten.Table, nil)
		if err != nil {
			return err
		}
		v.field = f
		backfill = backfill || v.value != nil || !f.Nullable
		fields, values = append(fields, f), append(values, v)
	}
	var compute *write.ColumnValues
	if backfill && a.table.Rows() > 0 {
		compute = a.compute(values)
	}
	_, err := write.AddColumns(a.ctx, a.table.Snapshot().Table(), fields, compute, a.opts)
	if err == nil && compute != nil {
		a.res.AffectedRows = 0
		a.res.Info = "Records: 0  Duplicates: 0  Warnings: 0"
	}
	return err
}

// columnValue is a new column and what the rows that are there get: NULL, the type's implicit default where it is NOT NULL, or value.
type columnValue struct {
	field arrow.Field
	value *translate.Computed
}

// defaultOf plans the default of a new column over the table's columns.
func (a *alteration) defaultOf(def ast.Expr) (*translate.Computed, error) {
	database := a.table.Ref().Source
	query := &ast.Select{
		SelectExprs: ast.SelectExprs{&ast.AliasedExpr{Expr: def, As: ast.NewColIdent("value")}},
		From: ast.TableExprs{&ast.AliasedTableExpr{
			Expr: ast.TableName{DbQualifier: ast.NewTableIdent(database), Name: ast.NewTableIdent(a.table.Ref().Table)},
			Auth: ast.AuthInformation{AuthType: ast.AuthType_IGNORE},
		}},
	}
	node, err := a.bound(a.ctx, query)
	if err != nil {
		return nil, err
	}
	return translate.Compute(a.ctx, a.res.request, node)
}

// compute makes the new columns' values, batch by batch.
func (a *alteration) compute(values []columnValue) *write.ColumnValues {
	out := &write.ColumnValues{}
	for _, v := range values {
		if v.value == nil {
			continue
		}
		for _, name := range v.value.Reads {
			if !containsName(out.Reads, name) {
				out.Reads = append(out.Reads, name)
			}
		}
	}
	var mu sync.Mutex // warnings go to the session one at a time
	out.Compute = func(ctx context.Context, rows arrow.RecordBatch) ([]arrow.Array, error) {
		env := a.env(a.ctx, a.cat, a.table.Ref().Table, false)
		warn := env.Warn
		env.Warn = func(err error) { mu.Lock(); defer mu.Unlock(); warn(err) }
		made := make([]arrow.Array, 0, len(values))
		for _, v := range values {
			col, err := a.values(env, v, rows)
			if err != nil {
				for _, m := range made {
					m.Release()
				}
				return nil, err
			}
			made = append(made, col)
		}
		return made, nil
	}
	return out
}

func containsName(names []string, name string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}

func (a *alteration) values(env *dml.Env, v columnValue, rows arrow.RecordBatch) (arrow.Array, error) {
	if v.value == nil {
		b := array.NewBuilder(env.Exec.Alloc, v.field.Type)
		defer b.Release()
		if v.field.Nullable {
			b.AppendNulls(int(rows.NumRows()))
		} else {
			b.AppendEmptyValues(int(rows.NumRows()))
		}
		return b.NewArray(), nil
	}
	raw, err := v.value.Eval(&env.Exec.Expr, rows)
	if err != nil {
		return nil, err
	}
	defer raw.Release()
	return dml.Assign(env, raw, v.field)
}

// modify changes a column's type, nullability, default, comment and name. Values that the new definition cannot hold are refused.
func (a *alteration) modify(d *ast.DDL) error {
	cd, err := a.definition(d)
	if err != nil {
		return err
	}
	from := cd.Name.String()
	if strings.EqualFold(d.ColumnAction, ast.ChangeStr) {
		from = d.Column.String()
	}
	old, err := a.find(from)
	if err != nil {
		return err
	}
	if err := a.free(cd.Name.String(), old.Name); err != nil {
		return err
	}
	key := map[string]bool{}
	if _, isKey := old.Metadata.GetValue(coltype.KeyPrimaryKey); isKey {
		key[cd.Name.Lowered()] = true
	}
	to, err := a.column(cd, a.res.request.Rewritten.Table, key)
	if err != nil {
		return err
	}
	return a.evolve(old, to)
}

// evolve gives a column another definition. What is there is checked first, or converted.
func (a *alteration) evolve(old, to arrow.Field) error {
	convert := func(ctx context.Context, values arrow.Array) (arrow.Array, error) {
		return dml.Assign(a.env(a.ctx, a.cat, a.table.Ref().Table, false), values, to)
	}
	if arrow.TypeEqual(old.Type, to.Type) && (coltype.LimitsOf(old) != coltype.LimitsOf(to) || old.Nullable && !to.Nullable) {
		if err := a.fits(old, to, convert); err != nil {
			return err
		}
	}
	_, err := write.ModifyColumn(a.ctx, a.table.Snapshot().Table(), old.Name, to, convert, a.opts)
	return err
}

// fits reads a column and refuses a definition that some of its values do not fit. Nothing is written where they do.
func (a *alteration) fits(old, to arrow.Field, convert func(context.Context, arrow.Array) (arrow.Array, error)) error {
	return dml.Each(a.ctx, a.res.request.Env, a.table, old.Name, func(values arrow.Array) error {
		col, err := convert(a.ctx, values)
		if err != nil {
			return err
		}
		defer col.Release()
		if !array.Equal(col, values) {
			return errs.New(errs.ErrTruncated, "Data truncated for column '%s'", to.Name)
		}
		return nil
	})
}

// metadata returns the field with one key of its metadata set, or taken out where the value is "".
func metadata(f arrow.Field, key, value string) arrow.Field {
	md := f.Metadata.ToMap()
	delete(md, key)
	if value != "" {
		md[key] = value
	}
	f.Metadata = arrow.MetadataFrom(md)
	return f
}

func (a *alteration) setDefault(d *ast.DefaultSpec) error {
	f, err := a.find(d.Column.String())
	if err != nil {
		return err
	}
	text := ""
	if strings.EqualFold(d.Action, "set") {
		text = ast.String(d.Value)
		if err := a.checkDefault(text, f); err != nil {
			return err
		}
	}
	return a.evolve(f, metadata(f, coltype.KeyDefault, text))
}

func (a *alteration) setNotNull(d *ast.NotNullSpec) error {
	f, err := a.find(d.Column.String())
	if err != nil {
		return err
	}
	to := f
	to.Nullable = !strings.EqualFold(d.Action, "set")
	return a.evolve(f, to)
}

// key declares the primary key, or takes the declaration back.
func (a *alteration) key(d *ast.IndexSpec) error {
	if !strings.EqualFold(d.Type, ast.PrimaryStr) {
		return errs.New(errs.ErrUnsupported, "%s %s INDEX: uniqueness is not enforced; PRIMARY KEY may be declared, and indices are made with CREATE INDEX", strings.ToUpper(d.Action), strings.ToUpper(d.Type))
	}
	want := map[string]bool{}
	if strings.EqualFold(d.Action, ast.CreateStr) {
		if len(coltype.Key(a.table.Schema())) > 0 {
			return errs.New(errs.ErrIndexExists, "Multiple primary key defined")
		}
		for _, col := range d.Columns {
			f, err := a.find(col.Column.String())
			if err != nil {
				return errs.New(errs.ErrKeyColumn, "Key column '%s' doesn't exist in table", col.Column.String())
			}
			want[f.Name] = true
		}
	} else if len(coltype.Key(a.table.Schema())) == 0 {
		return errs.New(errs.ErrCannotDrop, "Can't DROP 'PRIMARY'; check that column/key exists")
	}
	for _, f := range a.table.Schema().Fields() {
		_, isKey := f.Metadata.GetValue(coltype.KeyPrimaryKey)
		to := f
		switch {
		case want[f.Name] && !isKey:
			to = metadata(f, coltype.KeyPrimaryKey, "true")
			to.Nullable = false
		case !want[f.Name] && isKey:
			to = metadata(f, coltype.KeyPrimaryKey, "")
		default:
			continue
		}
		if err := a.evolve(f, to); err != nil {
			return err
		}
	}
	return nil
}

// optimize compacts tables and extends their indices, and says of each what became of it.
func (c *change) optimize(x *dialect.OptimizeTable) error {
	for _, name := range x.Tables {
		if err := c.beginOn(name, ast.AuthType_INSERT); err != nil {
			return err
		}
	}
	var rows []sql.Row
	for _, name := range x.Tables {
		cat, table, err := c.own(name)
		if err != nil {
			return err
		}
		lines, err := c.optimizeTable(table)
		if err != nil {
			return fmt.Errorf("table %s.%s: %w", cat.Name(), name.Name, err)
		}
		for _, l := range lines {
			rows = append(rows, sql.NewRow(cat.Name()+"."+table.Ref().Table, "optimize", "note", l))
		}
		rows = append(rows, sql.NewRow(cat.Name()+"."+table.Ref().Table, "optimize", "status", "OK"))
	}
	c.res.schema = textColumns("Table", "Op", "Msg_type", "Msg_text")
	c.res.iter = sql.RowsToRowIter(rows...)
	return c.res.open()
}

func (c *change) optimizeTable(table *lance.Table) ([]string, error) {
	budget := c.res.request.Env.Budget
	storage := table.Snapshot().Table()
	rows := rowOptions(table.Schema())
	done, err := write.Compact(c.ctx, storage, write.CompactOptions{
		TargetRows: rows.FragmentRows, Remapper: write.IndexRemapper{Options: write.IndexOptions{Budget: budget}}, Alloc: c.res.request.Env.Alloc, Budget: budget,
	})
	if err != nil {
		return nil, err
	}
	var out []string
	if done.FragmentsRemoved > 0 {
		out = append(out, fmt.Sprintf("%d fragments became %d, %d rows were rewritten", done.FragmentsRemoved, done.FragmentsAdded, done.Rows))
	}
	for _, info := range table.Indexes() {
		changed, err := write.UpdateIndex(c.ctx, storage, info.Name, write.UpdateIndexOptions{IndexOptions: write.IndexOptions{Budget: budget}})
		switch {
		case isUnsupported(err):
			out = append(out, fmt.Sprintf("index %s is of kind %s and stays as it is", info.Name, info.Kind))
		case err != nil:
			return nil, err
		case changed.UUID != "":
			out = append(out, fmt.Sprintf("index %s covers all rows", info.Name))
		}
	}
	return out, nil
}
