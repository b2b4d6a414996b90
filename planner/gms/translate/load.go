package translate

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner/coltype"
	"github.com/lakesql/lakesql/planner/dml"
	"github.com/lakesql/lakesql/planner/logical"
)

// Load plans a bound LOAD DATA. fields are the names of the column list, columns and @variables; empty = all columns of the table. set are the columns that SET
// names, with what the parser made of their values. The statement's source lacks its input, which the caller opens.
func Load(ctx *sql.Context, req *Request, n sql.Node, fields []string, set map[string]sql.Expression) (dml.Statement, *dml.Load, error) {
	ins, ok := n.(*plan.InsertInto)
	if !ok {
		return nil, nil, errs.New(errs.ErrInternal, "LOAD DATA became a %T", n)
	}
	node, ok := ins.Source.(*plan.LoadData)
	dest, isDest := ins.Destination.(*plan.InsertDestination)
	if !ok || !isDest {
		return nil, nil, errs.New(errs.ErrInternal, "LOAD DATA from a %T", ins.Source)
	}
	w := &writer{t: newTranslator(ctx, req), req: req}
	table, err := w.target(dest.Child)
	if err != nil {
		return nil, nil, err
	}
	schema := table.Exec().Schema()
	if len(fields) == 0 {
		for _, f := range schema.Fields() {
			fields = append(fields, f.Name)
		}
	}
	l := &loadPlan{w: w, columns: &insertColumns{w: w, schema: schema, defaults: dest.Sch}, fields: fields}
	load := &dml.Load{Fields: len(fields), Format: formatOf(node), Env: req.Env}
	if load.Values, err = l.values(set); err != nil {
		return nil, nil, err
	}
	source := dml.Source{Load: load, NoDefault: l.columns.noDefault}
	into := targetOf(table)
	key := coltype.Key(schema)
	mode := dml.Mode("")
	switch {
	case node.IsReplace:
		mode = dml.ModeReplace
	case node.IsIgnore:
		mode = dml.ModeIgnore
	}
	if mode == "" || len(key) == 0 {
		return &dml.Insert{Into: into, Source: source, LoadData: true}, load, nil
	}
	return &dml.Keyed{Into: into, Source: source, Key: key, Mode: mode}, load, nil
}

func formatOf(n *plan.LoadData) dml.Format {
	return dml.Format{
		FieldEnd: n.FieldsTerminatedBy, Enclosed: n.FieldsEnclosedBy, Escape: n.FieldsEscapedBy,
		LineStart: n.LinesStartingBy, LineEnd: n.LinesTerminatedBy, IgnoreRows: n.IgnoreNum,
	}
}

// variables is the table name under which the @variables of the column list are bound.
const variables = "@"

// loadPlan maps fields of lines to columns.
type loadPlan struct {
	w       *writer
	columns *insertColumns
	fields  []string
}

func (l *loadPlan) values(set map[string]sql.Expression) ([]dml.LoadValue, error) {
	schema := l.columns.schema
	rel := &relation{node: &logical.Values{}}
	input := make([]arrow.Field, len(l.fields))
	field := make(map[int]int) // by column of the table
	for i, name := range l.fields {
		input[i] = arrow.Field{Name: name, Type: arrow.BinaryTypes.String, Nullable: true}
		o := output{name: name, col: logical.Column{ID: i, Name: name, Type: arrow.BinaryTypes.String, Nullable: true}}
		if v, isVariable := strings.CutPrefix(name, "@"); isVariable {
			o.table, o.name = variables, v
		} else {
			at := fieldIndex(schema, name)
			if at < 0 {
				return nil, errs.New(errs.ErrUnknownColumn, "Unknown column '%s' in 'field list'", name)
			}
			field[at] = i
		}
		rel.out = append(rel.out, o)
	}
	sc := &scope{t: l.w.t, rel: rel}
	text := arrow.NewSchema(input, nil)
	out := make([]dml.LoadValue, schema.NumFields())
	for i, f := range schema.Fields() {
		out[i].Field = -1
		var value sql.Expression
		if v, ok := set[strings.ToLower(f.Name)]; ok {
			value = l.bindVariables(v)
		} else if at, ok := field[i]; ok {
			out[i].Field = at
			continue
		} else if value = l.columns.defaultOf(i); value == nil {
			if !f.Nullable {
				l.columns.noDefault = append(l.columns.noDefault, f.Name)
			}
			continue
		}
		e, err := sc.expr(value)
		if err != nil {
			return nil, err
		}
		if out[i].Program, err = expr.Compile(e, text); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// bindVariables turns the @variables of the column list into columns.
func (l *loadPlan) bindVariables(e sql.Expression) sql.Expression {
	out, _, err := transform.Expr(e, func(e sql.Expression) (sql.Expression, transform.TreeIdentity, error) {
		v, ok := e.(*expression.UserVar)
		if !ok {
			return e, transform.SameTree, nil
		}
		for _, name := range l.fields {
			if strings.EqualFold(name, "@"+v.Name) {
				return expression.NewGetFieldWithTable(0, 0, types.LongText, "", variables, v.Name, true), transform.NewTree, nil
			}
		}
		return e, transform.SameTree, nil
	})
	if err != nil {
		return e
	}
	return out
}
