package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/dolthub/go-mysql-server/sql"
	ast "github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner/coltype"
	"github.com/lakesql/lakesql/planner/dialect"
	"github.com/lakesql/lakesql/planner/dml"
	"github.com/lakesql/lakesql/planner/gms/translate"
	"github.com/lakesql/lakesql/source/lance"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/write"
)

// keyPrimary is the parser's mark of PRIMARY KEY behind a column; it does not export the name. keyNone is no mark.
const (
	keyNone    ast.ColumnKeyOption = 0
	keyPrimary ast.ColumnKeyOption = 1
)

// definition runs CREATE, DROP, TRUNCATE and RENAME TABLE.
func (c *change) definition(s *ast.DDL) error {
	switch strings.ToLower(s.Action) {
	case ast.CreateStr:
		return c.createTable(s)
	case ast.DropStr:
		return c.dropTables(s)
	case ast.TruncateStr:
		return c.truncate(s)
	case ast.RenameStr:
		return c.renameTables(s)
	}
	return errs.New(errs.ErrUnsupported, "%s", s.Action)
}

// begin checks the privilege of a definition and commits what the session has open, as MySQL does before every definition.
func (c *change) begin(auth ast.AuthInformation) error {
	if err := c.authorize(auth); err != nil {
		return err
	}
	return c.session.CommitNow(c.ctx)
}

// lakeOf finds the lake of a table's name.
func (c *change) lakeOf(database string) (*lance.Catalog, error) {
	name, err := databaseOf(c.ctx, database)
	if err != nil {
		return nil, err
	}
	return c.writable(name)
}

// spelled returns how a table of the lake is spelled, "" where there is none.
func spelled(ctx context.Context, cat *lance.Catalog, name string) (string, error) {
	names, err := cat.TableNames(ctx)
	if err != nil {
		return "", err
	}
	found := ""
	for _, n := range names {
		if !strings.EqualFold(n, name) {
			continue
		}
		is, err := cat.IsTable(ctx, n)
		switch {
		case err != nil:
			return "", err
		case is && n == name:
			return n, nil
		case is:
			found = n
		}
	}
	return found, nil
}

// newTable is a table in the making.
type newTable struct {
	columns  []arrow.Field
	comment  string
	options  write.CreateOptions
	metadata map[string]string
	indexes  []*dialect.CreateIndex
}

func (c *change) createTable(s *ast.DDL) error {
	if err := c.begin(s.Auth); err != nil {
		return err
	}
	switch {
	case s.Temporary:
		return errs.New(errs.ErrUnsupported, "temporary tables are not supported")
	case s.OptLike != nil:
		return c.createLike(s)
	}
	cat, err := c.lakeOf(s.Table.DbQualifier.String())
	if err != nil {
		return err
	}
	name := s.Table.Name.String()
	dir, err := cat.NewDir(name)
	if err != nil {
		return err
	}
	if done, err := c.existing(cat, name, s.IfNotExists); done || err != nil {
		return err
	}
	t, err := c.tableOf(s.TableSpec)
	if err != nil {
		return err
	}
	query, err := c.query()
	if err != nil {
		return err
	}
	var source *dml.Source
	if query != nil {
		if source, err = c.selected(query, t); err != nil {
			return err
		}
	}
	if len(t.columns) == 0 {
		return errs.New(errs.ErrInvalid, "A table must have at least 1 column")
	}
	count, err := c.create(cat, dir, name, t, source)
	if err != nil {
		return c.alreadyThere(err, cat, name, s.IfNotExists)
	}
	if source != nil {
		c.res.AffectedRows = count
		c.res.Info = fmt.Sprintf("Records: %d  Duplicates: 0  Warnings: %d", count, c.ctx.WarningCount())
	}
	for _, x := range t.indexes {
		x.Table = dialect.TableName{Database: cat.Name(), Name: name}
		if count == 0 && c.isTrained(x, t) {
			warnOf(c.ctx, errs.New(errs.ErrUnsupported, "index %s is trained from rows, and there are none: run CREATE VECTOR INDEX when there are", x.Name))
			continue
		}
		err := c.createIndex(x)
		if err != nil {
			return fmt.Errorf("table %s was created, but not its index: %w", name, err)
		}
	}
	return nil
}

// isTrained says that an index of the new table can only be made of rows.
func (c *change) isTrained(x *dialect.CreateIndex, t *newTable) bool {
	for _, f := range t.columns {
		if len(x.Columns) == 1 && strings.EqualFold(f.Name, x.Columns[0]) {
			kind, err := kindOf(x, f)
			return err == nil && kind == index.KindIVFFlat
		}
	}
	return false
}

// query is the SELECT of a CREATE TABLE, nil where it has none.
func (c *change) query() (ast.SelectStatement, error) {
	own := c.res.request.Rewritten.Table
	if own == nil || own.Select == "" {
		return nil, nil //nolint:nilnil // nil is "none"
	}
	stmt, _, _, err := c.e.sqle.Parser.ParseWithOptions(c.ctx, own.Select, ';', false, sql.LoadSqlMode(c.ctx).ParserOptions())
	if err != nil {
		return nil, err
	}
	query, ok := stmt.(ast.SelectStatement)
	if !ok {
		return nil, errs.New(errs.ErrSyntax, "CREATE TABLE ... SELECT wants a query, not '%.32s'", own.Select)
	}
	return query, nil
}

// existing says that the table is there already and need not be made.
func (c *change) existing(cat *lance.Catalog, name string, ifNotExists bool) (bool, error) {
	have, err := spelled(c.ctx, cat, name)
	if err != nil || have == "" {
		return false, err
	}
	return true, c.alreadyThere(errs.New(errs.ErrExists, "Table '%s' already exists", have), cat, have, ifNotExists)
}

func (c *change) alreadyThere(err error, _ *lance.Catalog, name string, ifNotExists bool) error {
	if !ifNotExists || !isExists(err) {
		return err
	}
	c.ctx.Session.Warn(&sql.Warning{Level: "Note", Code: 1050, Message: fmt.Sprintf("Table '%s' already exists", name)})
	return nil
}

// create writes the table, with the rows of source if it is not nil.
func (c *change) create(cat *lance.Catalog, dir, name string, t *newTable, source *dml.Source) (uint64, error) {
	if t.comment != "" {
		t.metadata[coltype.KeyComment] = t.comment
	}
	md := arrow.MetadataFrom(t.metadata)
	schema := arrow.NewSchema(t.columns, &md)
	opts := t.options
	opts.Rows = rowOptions(schema)
	count := uint64(0)
	if source != nil {
		env := c.env(c.ctx, cat, name, false)
		rows, err := source.Open(c.ctx, env, schema)
		if err != nil {
			return 0, err
		}
		defer func() { _ = rows.Close() }() // what it yielded was written; nothing is left to report
		opts.Parts = []write.Batches{rows}
		defer func() { count = rows.Count() }()
		_, err = write.CreateTable(c.ctx, write.Target{Store: cat.Store(), Dir: dir}, schema, opts)
		return rows.Count(), err
	}
	_, err := write.CreateTable(c.ctx, write.Target{Store: cat.Store(), Dir: dir}, schema, opts)
	return count, err
}

// rowOptions are the table's own: rows per fragment.
func rowOptions(s *arrow.Schema) write.RowOptions {
	var o write.RowOptions
	if text, ok := s.Metadata().GetValue(coltype.KeyFragmentRows); ok {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 && n < 1<<32 {
			o.FragmentRows = n
		}
	}
	return o
}

// tableOf reads the specification of a table; nil is that of CREATE TABLE ... SELECT without one.
func (c *change) tableOf(spec *ast.TableSpec) (*newTable, error) {
	t := &newTable{metadata: map[string]string{}}
	own := c.res.request.Rewritten.Table
	if own != nil {
		t.indexes = own.Indexes
		if err := t.with(own.Options); err != nil {
			return nil, err
		}
	}
	if spec == nil {
		return t, nil
	}
	if len(spec.Constraints) > 0 {
		return nil, errs.New(errs.ErrUnsupported, "FOREIGN KEY and CHECK constraints are not supported: leave them out")
	}
	if spec.PartitionOpt != nil {
		return nil, errs.New(errs.ErrUnsupported, "PARTITION BY is not supported: a table's fragments need no partitions")
	}
	key, err := primaryKey(spec)
	if err != nil {
		return nil, err
	}
	for _, cd := range spec.Columns {
		f, err := c.column(cd, own, key)
		if err != nil {
			return nil, err
		}
		for _, have := range t.columns {
			if strings.EqualFold(have.Name, f.Name) {
				return nil, errs.New(errs.ErrColumnExists, "Duplicate column name '%s'", f.Name)
			}
		}
		t.columns = append(t.columns, f)
	}
	for name := range key {
		if !hasColumn(t.columns, name) {
			return nil, errs.New(errs.ErrKeyColumn, "Key column '%s' doesn't exist in table", name)
		}
	}
	for _, opt := range spec.TableOpts {
		if strings.EqualFold(opt.Name, "comment") {
			t.comment = strings.Trim(opt.Value, "'\"")
		}
	}
	return t, nil
}

func hasColumn(columns []arrow.Field, name string) bool {
	for _, f := range columns {
		if strings.EqualFold(f.Name, name) {
			return true
		}
	}
	return false
}

// primaryKey lists the columns of PRIMARY KEY, in lower case. Other keys are refused.
func primaryKey(spec *ast.TableSpec) (map[string]bool, error) {
	key := map[string]bool{}
	for _, def := range spec.Indexes {
		switch {
		case def.Info.Primary:
			for _, col := range def.Columns {
				key[col.Column.Lowered()] = true
			}
		case def.Info.Unique:
			return nil, errs.New(errs.ErrUnsupported, "UNIQUE KEY %s: uniqueness is not enforced, so only PRIMARY KEY may be declared", def.Info.Name.String())
		default:
			return nil, errs.New(errs.ErrUnsupported, "%s indices are not supported", strings.ToUpper(def.Info.Type))
		}
	}
	for _, cd := range spec.Columns {
		switch cd.Type.KeyOpt {
		case keyNone:
		case keyPrimary:
			key[cd.Name.Lowered()] = true
		default:
			return nil, errs.New(errs.ErrUnsupported, "column %s: uniqueness is not enforced, so only PRIMARY KEY may be declared", cd.Name.String())
		}
	}
	return key, nil
}

// with reads WITH (file_version = '2.2', stable_row_ids = true, rows_per_fragment = 1000000).
func (t *newTable) with(options map[string]string) error {
	for name, value := range options {
		switch name {
		case "file_version":
			switch value {
			case "2.1":
				t.options.Version = file.V21
			case "2.2":
				t.options.Version = file.V22
			default:
				return errs.New(errs.ErrInvalid, "file_version = '%s'; '2.1' and '2.2' are possible", value)
			}
		case "stable_row_ids":
			on, err := strconv.ParseBool(strings.ToLower(value))
			if err != nil {
				return errs.New(errs.ErrInvalid, "stable_row_ids = %s; true and false are possible", value)
			}
			t.options.StableRowIDs = on
		case "rows_per_fragment":
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil || n < 1 || n >= 1<<32 {
				return errs.New(errs.ErrInvalid, "rows_per_fragment = %s; 1 to 4294967295 are possible", value)
			}
			t.metadata[coltype.KeyFragmentRows] = value
		default:
			return errs.New(errs.ErrInvalid, "there is no table option %s; file_version, stable_row_ids and rows_per_fragment are possible", name)
		}
	}
	return nil
}

// column reads the definition of a column. key holds the names of the primary key, in lower case.
func (c *change) column(cd *ast.ColumnDefinition, own *dialect.Table, key map[string]bool) (arrow.Field, error) {
	name := cd.Name.String()
	t := cd.Type
	switch {
	case bool(t.Autoincrement):
		return arrow.Field{}, errs.New(errs.ErrUnsupported, "column %s: AUTO_INCREMENT is not supported: give the values, or a DEFAULT such as (uuid())", name)
	case t.GeneratedExpr != nil:
		return arrow.Field{}, errs.New(errs.ErrUnsupported, "column %s: generated columns are not supported", name)
	case t.OnUpdate != nil:
		return arrow.Field{}, errs.New(errs.ErrUnsupported, "column %s: ON UPDATE is not supported", name)
	case t.ForeignKeyDef != nil || t.Constraint != nil:
		return arrow.Field{}, errs.New(errs.ErrUnsupported, "column %s: FOREIGN KEY and CHECK constraints are not supported", name)
	}
	comment := ""
	if t.Comment != nil {
		comment = string(t.Comment.Val)
	}
	typ, comment, err := columnType(name, &t, own, comment)
	if err != nil {
		return arrow.Field{}, fmt.Errorf("column %s: %w", name, err)
	}
	isKey := key[strings.ToLower(name)]
	nullable := !bool(t.NotNull) && !isKey
	f := typ.Field(name, nullable, isKey, comment, "")
	if t.Default == nil {
		return f, nil
	}
	def := ast.String(t.Default)
	if _, null := t.Default.(*ast.NullVal); null {
		if !nullable {
			return arrow.Field{}, errs.New(errs.ErrBadDefault, "Invalid default value for '%s'", name)
		}
		return f, nil
	}
	if err := c.checkDefault(def, f); err != nil {
		return arrow.Field{}, err
	}
	return typ.Field(name, nullable, isKey, comment, def), nil
}

// columnType finds the type of a column: one of our own that the dialect read, one that the comment of a JSON column spells, or MySQL's.
func columnType(name string, t *ast.ColumnType, own *dialect.Table, comment string) (coltype.Type, string, error) {
	if own != nil {
		for _, col := range own.Columns {
			if strings.EqualFold(col.Name, name) {
				return col.Type, comment, nil
			}
		}
	}
	if strings.EqualFold(t.Type, "json") && comment != "" {
		if spelled, n, err := coltype.ParsePrefix(comment); err == nil && coltype.Text(spelled.Arrow) != "" {
			rest := strings.TrimSpace(comment[n:])
			if rest == "" || rest[0] == ';' || rest[0] == ',' {
				return spelled, strings.TrimSpace(strings.TrimLeft(rest, ";,")), nil
			}
		}
	}
	text := t.Type
	switch {
	case t.Length != nil && t.Scale != nil:
		text += fmt.Sprintf("(%s,%s)", t.Length.Val, t.Scale.Val)
	case t.Length != nil:
		text += fmt.Sprintf("(%s)", t.Length.Val)
	}
	if t.Unsigned {
		text += " unsigned"
	}
	if t.Zerofill {
		text += " zerofill"
	}
	typ, err := coltype.Parse(text)
	return typ, comment, err
}

// checkDefault evaluates a default once, so that a wrong one is refused now and not at the first INSERT.
func (c *change) checkDefault(def string, f arrow.Field) error {
	stmt, _, _, err := c.e.sqle.Parser.ParseWithOptions(c.ctx, "SELECT "+def, ';', false, sql.LoadSqlMode(c.ctx).ParserOptions())
	if err != nil {
		return badDefault(f.Name, err)
	}
	node, err := c.bound(c.ctx, stmt)
	if err != nil {
		return badDefault(f.Name, err)
	}
	plan, err := translate.Query(c.ctx, c.res.request, node, nil)
	if err == nil {
		err = dml.CheckValue(c.ctx, c.env(c.ctx, nil, "", false), plan.Plan, f)
	}
	if err != nil {
		return badDefault(f.Name, err)
	}
	return nil
}

// badDefault is the error of a default that cannot be had. What is not the default's fault stays what it is.
func badDefault(name string, err error) error {
	for _, kind := range []error{errs.ErrIO, errs.ErrCorrupt, errs.ErrPermission, errs.ErrDiskFull, errs.ErrMemoryLimit, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, kind) {
			return err
		}
	}
	return errs.New(errs.ErrBadDefault, "Invalid default value for '%s': %w", name, err)
}

// selected plans CREATE TABLE ... SELECT and gives the table the columns of the query that the specification lacks; those that it has alone stay first.
func (c *change) selected(s ast.SelectStatement, t *newTable) (*dml.Source, error) {
	node, err := c.bound(c.ctx, s)
	if err != nil {
		return nil, err
	}
	var columns []arrow.Field
	pick := func(out []arrow.Field) ([]translate.Pick, error) {
		var picks []translate.Pick
		used := make(map[int]bool)
		for _, f := range t.columns {
			at := -1
			for i, o := range out {
				if strings.EqualFold(o.Name, f.Name) {
					at = i
				}
			}
			if at < 0 {
				columns = append(columns, f)
				picks = append(picks, translate.Pick{From: -1})
			} else {
				used[at] = true
			}
		}
		for i, o := range out {
			f := stored(o)
			for _, spec := range t.columns {
				if used[i] && strings.EqualFold(spec.Name, o.Name) {
					f = spec
				}
			}
			if hasColumn(columns, f.Name) {
				return nil, errs.New(errs.ErrColumnExists, "Duplicate column name '%s'", f.Name)
			}
			columns = append(columns, f)
			picks = append(picks, translate.Pick{From: i})
		}
		return picks, nil
	}
	plan, err := translate.Query(c.ctx, c.res.request, node, pick)
	if err != nil {
		return nil, err
	}
	t.columns = columns
	return &dml.Source{Plan: plan.Plan}, nil
}

// stored is the column that holds a query's output.
func stored(f arrow.Field) arrow.Field {
	out := arrow.Field{Name: f.Name, Type: f.Type, Nullable: true, Metadata: f.Metadata}
	switch t := f.Type.(type) {
	case *arrow.NullType:
		out.Type = arrow.BinaryTypes.String
	case *arrow.DictionaryType:
		out.Type = t.ValueType
	case *arrow.StringViewType:
		out.Type = arrow.BinaryTypes.String
	case *arrow.BinaryViewType:
		out.Type = arrow.BinaryTypes.Binary
	case *arrow.DurationType:
		if t.Unit != arrow.Nanosecond { // which only a column has: it is kept whole
			out.Type = arrow.FixedWidthTypes.Duration_us
		}
	}
	return out
}

// createLike makes an empty table with the columns of another.
func (c *change) createLike(s *ast.DDL) error {
	if len(s.OptLike.LikeTables) != 1 {
		return errs.New(errs.ErrUnsupported, "CREATE TABLE LIKE of several tables")
	}
	cat, err := c.lakeOf(s.Table.DbQualifier.String())
	if err != nil {
		return err
	}
	name := s.Table.Name.String()
	dir, err := cat.NewDir(name)
	if err != nil {
		return err
	}
	like := s.OptLike.LikeTables[0]
	if err := c.authorize(ast.AuthInformation{AuthType: ast.AuthType_SELECT, TargetType: ast.AuthTargetType_SingleTableIdentifier, TargetNames: []string{like.DbQualifier.String(), like.Name.String()}}); err != nil {
		return err
	}
	table, err := c.table(dialect.TableName{Database: like.DbQualifier.String(), Name: like.Name.String()})
	if err != nil {
		return err
	}
	if done, err := c.existing(cat, name, s.IfNotExists); done || err != nil {
		return err
	}
	t := &newTable{columns: table.Schema().Fields(), metadata: table.Schema().Metadata().ToMap()}
	if lake, ok := table.(*lance.Table); ok {
		t.options.StableRowIDs = lake.Snapshot().HasStableRowIDs()
	}
	_, err = c.create(cat, dir, name, t, nil)
	return c.alreadyThere(err, cat, name, s.IfNotExists)
}
