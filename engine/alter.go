package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	ast "github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner/coltype"
	"github.com/lakesql/lakesql/planner/dialect"
	"github.com/lakesql/lakesql/planner/gms/translate"
	"github.com/lakesql/lakesql/source/lance"
	"github.com/lakesql/lakesql/write"
)

// alteration is one ALTER TABLE on its way: what its clauses make of the columns.
type alteration struct {
	*change
	name    dialect.TableName
	cat     *lance.Catalog
	table   *lance.Table
	columns []*alteredColumn   // all that the table is to have, in their order
	renamed *dialect.TableName // RENAME TO
}

// alteredColumn is a column of the table as it is to be.
type alteredColumn struct {
	old   *arrow.Field // nil = it is new
	field arrow.Field
	value *translate.Computed // of a new column in the rows that exist; nil = NULL, or the type's implicit default where it is NOT NULL
}

// isRetyped says that the column's values have to be written anew. JSON of other engines, which shows as text, is stored in another form than text.
func (c *alteredColumn) isRetyped() bool {
	return c.old != nil && (!arrow.TypeEqual(c.old.Type, c.field.Type) || coltype.IsStoredJSON(*c.old) != coltype.IsStoredJSON(c.field))
}

// keepJSON leaves a column JSON in the form of other engines that is declared JSON again.
func (c *alteredColumn) keepJSON() {
	if c.old == nil || !coltype.IsStoredJSON(*c.old) || c.old.Metadata.Equal(c.field.Metadata) {
		return
	}
	if name, _ := coltype.Declared(c.field); name == "json" {
		c.field = coltype.AsStoredJSON(c.field)
	}
}

func (c *change) alterationOf(name dialect.TableName) (*alteration, error) {
	a := &alteration{change: c, name: name}
	var err error
	if a.cat, a.table, err = c.own(name); err != nil {
		return nil, err
	}
	for _, f := range a.table.Schema().Fields() {
		a.columns = append(a.columns, &alteredColumn{old: &f, field: f})
	}
	return a, nil
}

// alterTable changes columns, defaults, the declared key, indices and the name of a table.
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
	a, err := c.alterationOf(tableName(s.Table))
	if err != nil {
		return err
	}
	own := c.res.request.Rewritten.Table
	if own == nil {
		return a.run(s.Statements, nil, nil)
	}
	if len(own.Indexes)+len(own.DropIndexes) > 0 {
		if err := c.beginOn(a.name, ast.AuthType_INDEX); err != nil {
			return err
		}
	}
	return a.run(s.Statements, own.Indexes, own.DropIndexes)
}

// run makes all changes in one version. Everything is checked before anything is written.
func (a *alteration) run(clauses []*ast.DDL, add []*dialect.CreateIndex, drop []string) error {
	for _, step := range []func(*ast.DDL) error{a.redefine, a.place, a.key} {
		for _, d := range clauses {
			if err := step(d); err != nil {
				return err
			}
		}
	}
	if err := a.namesDiffer(); err != nil {
		return err
	}
	for _, c := range a.columns {
		c.keepJSON()
	}
	change := write.Alteration{}
	if a.changesColumns() {
		for _, c := range a.columns {
			column := write.AlteredColumn{Field: c.field}
			if c.old != nil {
				column.From = c.old.Name
			}
			if c.old != nil && !c.isRetyped() {
				column.Field.Type = a.table.StoredType(c.old.Name)
			}
			change.Columns = append(change.Columns, column)
		}
	}
	if err := a.indices(&change, add, drop); err != nil {
		return err
	}
	for _, c := range a.columns {
		if err := a.fits(c); err != nil {
			return err
		}
	}
	change.Values = a.compute()
	if change.Columns != nil || len(change.NewIndices)+len(change.DropIndices) > 0 {
		opts := write.EvolveOptions{Rows: rowOptions(a.table.Schema()), Alloc: a.res.request.Env.Alloc}
		if _, err := write.Alter(a.ctx, a.table.Snapshot(), change, write.IndexOptions{Budget: a.res.request.Env.Budget}, opts); err != nil {
			return err
		}
	}
	a.res.Info = fmt.Sprintf("Records: 0  Duplicates: 0  Warnings: %d", a.ctx.WarningCount())
	if a.renamed == nil {
		return nil
	}
	return a.rename(a.name, *a.renamed)
}

// changesColumns says that the list of columns is not as it was.
func (a *alteration) changesColumns() bool {
	if len(a.columns) != a.table.Schema().NumFields() {
		return true
	}
	for i, c := range a.columns {
		if c.old == nil || c.old.Name != a.table.Schema().Field(i).Name || !c.old.Equal(c.field) {
			return true
		}
	}
	return false
}

// redefine does what a clause says of columns that are there: the first pass, as in MySQL.
func (a *alteration) redefine(d *ast.DDL) error {
	switch {
	case d.DefaultSpec != nil:
		return a.setDefault(d.DefaultSpec)
	case d.NotNullSpec != nil:
		c, err := a.find(d.NotNullSpec.Column.String())
		if err == nil {
			c.field.Nullable = !strings.EqualFold(d.NotNullSpec.Action, "set")
		}
		return err
	case d.IndexSpec != nil:
		return nil
	case d.ConstraintAction != "" && d.ColumnAction == "":
		return errs.New(errs.ErrUnsupported, "FOREIGN KEY and CHECK constraints are not supported")
	case d.AlterCollationSpec != nil:
		return errs.New(errs.ErrUnsupported, "the character set of a table cannot be changed: text is utf8mb4 and compares byte for byte")
	case d.AutoIncSpec != nil:
		return errs.New(errs.ErrUnsupported, "AUTO_INCREMENT is not supported")
	}
	switch strings.ToLower(d.ColumnAction) {
	case ast.AddStr:
		return nil
	case ast.DropStr:
		return a.drop(d)
	case ast.RenameStr:
		c, err := a.find(d.Column.String())
		if err == nil {
			c.field.Name = d.ToColumn.String()
		}
		return err
	case ast.ModifyStr, ast.ChangeStr:
		return a.modify(d)
	}
	if strings.EqualFold(d.Action, ast.RenameStr) && len(d.ToTables) == 1 {
		to := tableName(d.ToTables[0])
		a.renamed = &to
		_, _, err := a.mayRename(a.name, to)
		return err
	}
	return errs.New(errs.ErrUnsupported, "this change of ALTER TABLE is not supported")
}

// find returns a column by the name that it has before the statement.
func (a *alteration) find(name string) (*alteredColumn, error) {
	if i := a.index(a.columns, name, func(c *alteredColumn) string { return c.old.Name }); i >= 0 {
		return a.columns[i], nil
	}
	return nil, errs.New(errs.ErrUnknownColumn, "Unknown column '%s' in '%s'", name, a.table.Ref().Table)
}

// index finds a column by its name of before, or its new one.
func (a *alteration) index(in []*alteredColumn, name string, nameOf func(*alteredColumn) string) int {
	if i := slices.IndexFunc(in, func(c *alteredColumn) bool { return nameOf(c) == name }); i >= 0 {
		return i
	}
	return slices.IndexFunc(in, func(c *alteredColumn) bool { return strings.EqualFold(nameOf(c), name) })
}

func newName(c *alteredColumn) string { return c.field.Name }

func (a *alteration) drop(d *ast.DDL) error {
	c, err := a.find(d.Column.String())
	if err != nil {
		if d.IfExists {
			return nil
		}
		return errs.New(errs.ErrCannotDrop, "Can't DROP '%s'; check that column/key exists", d.Column.String())
	}
	a.columns = slices.DeleteFunc(a.columns, func(other *alteredColumn) bool { return other == c })
	return nil
}

// definition reads the column of a clause.
func (a *alteration) definition(d *ast.DDL) (*ast.ColumnDefinition, error) {
	if d.TableSpec == nil || len(d.TableSpec.Columns) != 1 {
		return nil, errs.New(errs.ErrUnsupported, "ALTER TABLE with several columns in one clause: write one clause for each")
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

// modify changes a column's type, nullability, default, comment and name.
func (a *alteration) modify(d *ast.DDL) error {
	cd, err := a.definition(d)
	if err != nil {
		return err
	}
	from := cd.Name.String()
	if strings.EqualFold(d.ColumnAction, ast.ChangeStr) {
		from = d.Column.String()
	}
	c, err := a.find(from)
	if err != nil {
		return err
	}
	key := map[string]bool{}
	if _, isKey := c.old.Metadata.GetValue(coltype.KeyPrimaryKey); isKey {
		key[cd.Name.Lowered()] = true
	}
	c.field, err = a.column(cd, a.res.request.Rewritten.Table, key)
	return err
}

// setDefault changes the default of a column alone.
func (a *alteration) setDefault(d *ast.DefaultSpec) error {
	c, err := a.find(d.Column.String())
	if err != nil {
		return err
	}
	text := ""
	if strings.EqualFold(d.Action, "set") {
		text = ast.String(d.Value)
		if err := a.checkDefault(text, c.field); err != nil {
			return err
		}
	}
	c.field = metadata(c.field, coltype.KeyDefault, text)
	return nil
}

// place is the second pass: new columns come, and columns go where FIRST and AFTER want them, by the names that they have after the statement.
func (a *alteration) place(d *ast.DDL) error {
	if strings.EqualFold(d.ColumnAction, ast.AddStr) {
		return a.add(d)
	}
	if d.ColumnOrder == nil || d.TableSpec == nil || len(d.TableSpec.Columns) != 1 {
		return nil
	}
	at := a.index(a.columns, d.TableSpec.Columns[0].Name.String(), newName)
	if at < 0 {
		return errs.New(errs.ErrInternal, "a changed column is not there")
	}
	c := a.columns[at]
	a.columns = slices.Delete(a.columns, at, at+1)
	return a.insert(c, d.ColumnOrder)
}

// insert puts a column where the clause wants it, nil = at the end.
func (a *alteration) insert(c *alteredColumn, order *ast.ColumnOrder) error {
	at := len(a.columns)
	switch {
	case order == nil:
	case order.First:
		at = 0
	default:
		i := a.index(a.columns, order.AfterColumn.String(), newName)
		if i < 0 {
			return errs.New(errs.ErrUnknownColumn, "Unknown column '%s' in '%s'", order.AfterColumn.String(), a.table.Ref().Table)
		}
		at = i + 1
	}
	a.columns = slices.Insert(a.columns, at, c)
	return nil
}

func (a *alteration) add(d *ast.DDL) error {
	cd, err := a.definition(d)
	if err != nil {
		return err
	}
	name := cd.Name.String()
	c := &alteredColumn{}
	if def := cd.Type.Default; def != nil {
		if c.value, err = a.defaultOf(def); err != nil {
			return badDefault(name, err)
		}
		if len(c.value.Reads) > 0 { // an expression over other columns fills the rows that are there; it is no default for later ones
			cd.Type.Default = nil
		}
	}
	if c.field, err = a.column(cd, a.res.request.Rewritten.Table, nil); err != nil {
		return err
	}
	return a.insert(c, d.ColumnOrder)
}

// namesDiffer refuses a name that two columns would have, where the statement makes it so.
func (a *alteration) namesDiffer() error {
	if len(a.columns) == 0 {
		return errs.New(errs.ErrAllColumns, "You can't delete all columns with ALTER TABLE; use DROP TABLE instead")
	}
	for i, c := range a.columns {
		for _, other := range a.columns[:i] {
			if !strings.EqualFold(c.field.Name, other.field.Name) {
				continue
			}
			if named := func(c *alteredColumn) bool { return c.old == nil || c.old.Name != c.field.Name }; named(c) || named(other) {
				return errs.New(errs.ErrColumnExists, "Duplicate column name '%s'", c.field.Name)
			}
		}
	}
	return nil
}

// key declares the primary key over the columns as they are to be, or takes the declaration back. It is the last pass.
func (a *alteration) key(d *ast.DDL) error {
	spec := d.IndexSpec
	if spec == nil {
		return nil
	}
	if !strings.EqualFold(spec.Type, ast.PrimaryStr) {
		return errs.New(errs.ErrUnsupported, "%s %s INDEX: uniqueness is not enforced; PRIMARY KEY may be declared, and indices are made with CREATE INDEX",
			strings.ToUpper(spec.Action), strings.ToUpper(spec.Type))
	}
	isKey := func(c *alteredColumn) bool { _, is := c.field.Metadata.GetValue(coltype.KeyPrimaryKey); return is }
	declared := slices.ContainsFunc(a.columns, isKey)
	if !strings.EqualFold(spec.Action, ast.CreateStr) {
		if !declared {
			return errs.New(errs.ErrCannotDrop, "Can't DROP 'PRIMARY'; check that column/key exists")
		}
		for _, c := range a.columns {
			c.field = metadata(c.field, coltype.KeyPrimaryKey, "")
		}
		return nil
	}
	if declared {
		return errs.New(errs.ErrManyKeys, "Multiple primary key defined")
	}
	for _, col := range spec.Columns {
		i := a.index(a.columns, col.Column.String(), newName)
		if i < 0 {
			return errs.New(errs.ErrKeyColumn, "Key column '%s' doesn't exist in table", col.Column.String())
		}
		c := a.columns[i]
		c.field = metadata(c.field, coltype.KeyPrimaryKey, "true")
		c.field.Nullable = false
	}
	return nil
}

// indices checks and names the indices that go and come.
func (a *alteration) indices(change *write.Alteration, add []*dialect.CreateIndex, drop []string) error {
	have := map[string]string{} // spelling by name in lower case
	for _, info := range a.table.Indexes() {
		have[strings.ToLower(info.Name)] = info.Name
	}
	for _, name := range drop {
		spelled, ok := have[strings.ToLower(name)]
		if !ok {
			return errs.New(errs.ErrCannotDrop, "Can't DROP '%s'; check that column/key exists", name)
		}
		delete(have, strings.ToLower(name))
		change.DropIndices = append(change.DropIndices, spelled)
	}
	fields := make([]arrow.Field, len(a.columns))
	for i, c := range a.columns {
		fields[i] = c.field
	}
	for _, x := range add {
		spec, err := indexSpec(x, arrow.NewSchema(fields, nil))
		if err != nil {
			return err
		}
		if other, taken := have[strings.ToLower(spec.Name)]; taken {
			return errs.New(errs.ErrIndexExists, "Duplicate key name '%s'", other)
		}
		have[strings.ToLower(spec.Name)] = spec.Name
		change.NewIndices = append(change.NewIndices, spec)
	}
	return nil
}
