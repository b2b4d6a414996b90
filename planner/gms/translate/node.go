package translate

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/planner"
	"github.com/lakesql/lakesql/planner/gms/provider"
	"github.com/lakesql/lakesql/planner/logical"
)

// Node is a leaf of go-mysql-server's tree: a plan of ours that covers a whole statement or a part of it.
type Node struct {
	Result *planner.Result
	schema sql.Schema
	req    *Request
	stats  *exec.Stats // set while EXPLAIN ANALYZE runs

	partial bool             // the row engine works above: its rows are capped
	fields  []sql.Expression // partial only: the columns by id
}

var (
	_ sql.ExecSourceRel      = (*Node)(nil)
	_ sql.Describable        = (*Node)(nil)
	_ sql.Projector          = (*Node)(nil)
	_ sql.CollationCoercible = (*Node)(nil)
)

// newNode plans a relation.
func newNode(ctx *sql.Context, req *Request, ids *logical.IDs, r *relation) (*Node, error) {
	result, err := planner.Plan(ctx, r.exact(), ids, req.Settings)
	if err != nil {
		return nil, err
	}
	if got, want := result.Plan.Schema().NumFields(), len(r.out); got != want {
		return nil, errs.New(errs.ErrInternal, "the plan has %d columns, the statement %d", got, want)
	}
	schema := make(sql.Schema, len(r.out))
	for i, o := range r.out {
		field := result.Plan.Schema().Field(i)
		schema[i] = &sql.Column{Name: o.name, Type: provider.TypeOf(field.Type), Nullable: field.Nullable, Source: o.table}
	}
	for _, w := range result.Warnings {
		req.Warnings.Add(w)
	}
	return &Node{Result: result, schema: schema, req: req}, nil
}

// Resolved implements sql.Node.
func (n *Node) Resolved() bool { return true }

// IsReadOnly implements sql.Node.
func (n *Node) IsReadOnly() bool { return true }

// Schema implements sql.Node.
func (n *Node) Schema() sql.Schema { return n.schema }

// Children implements sql.Node.
func (n *Node) Children() []sql.Node { return nil }

// WithChildren implements sql.Node.
func (n *Node) WithChildren(children ...sql.Node) (sql.Node, error) {
	if len(children) != 0 {
		return nil, sql.ErrInvalidChildrenNumber.New(n, len(children), 0)
	}
	return n, nil
}

// ProjectedExprs implements sql.Projector: go-mysql-server finds the ids of the columns here.
func (n *Node) ProjectedExprs() []sql.Expression { return n.fields }

// CollationCoercibility implements sql.CollationCoercible.
func (n *Node) CollationCoercibility(*sql.Context) (sql.CollationID, byte) {
	return provider.Collation, 7
}

// String implements fmt.Stringer.
func (n *Node) String() string { return n.Result.Explain(n.stats) }

// Describe implements sql.Describable.
func (n *Node) Describe(sql.DescribeOptions) string { return n.String() }

// CollectStats makes the next run count what each plan node did; String then prints it.
func (n *Node) CollectStats() { n.stats = exec.NewStats() }

// Open starts the plan. The caller closes the operator.
func (n *Node) Open(ctx context.Context) (exec.Operator, error) {
	if n.req.Env == nil {
		return nil, errs.New(errs.ErrInternal, "the statement was only prepared")
	}
	env := *n.req.Env
	env.Stats = n.stats
	var op exec.Operator
	err := spawn.Guard(func() (err error) {
		op, err = exec.Open(ctx, &env, n.Result.Plan)
		return err
	})
	return op, err
}

// RowIter implements sql.ExecSourceRel. It opens the plan at the first row, so that the engine can take the batches instead.
func (n *Node) RowIter(ctx *sql.Context, _ sql.Row) (sql.RowIter, error) {
	return &RowIter{node: n}, nil
}

// RowIter gives the plan's rows to the row engine, or hands the plan over as it is.
type RowIter struct {
	node   *Node
	op     exec.Operator
	rows   *provider.RowReader
	buffer []sql.Row
	count  int64
}

// Node returns the plan behind the rows. Who opens it must not call Next.
func (it *RowIter) Node() *Node { return it.node }

// Next implements sql.RowIter.
func (it *RowIter) Next(ctx *sql.Context) (sql.Row, error) {
	if it.op == nil {
		if err := it.open(ctx); err != nil {
			return nil, err
		}
	}
	for len(it.buffer) == 0 {
		if err := it.fill(ctx); err != nil {
			return nil, err
		}
	}
	row := it.buffer[0]
	it.buffer = it.buffer[1:]
	return row, nil
}

func (it *RowIter) open(ctx *sql.Context) error {
	op, err := it.node.Open(ctx)
	if err != nil {
		return err
	}
	it.op = op
	it.rows, err = provider.NewRowReader(op.Schema(), it.node.req.Env.Expr)
	return err
}

func (it *RowIter) fill(ctx *sql.Context) error {
	return spawn.Guard(func() error {
		batch, err := it.op.Next(ctx)
		if err != nil {
			if errors.Is(err, io.EOF) {
				return io.EOF
			}
			return err
		}
		defer batch.Release()
		if it.count += batch.NumRows(); it.node.partial && it.node.req.RowsMax > 0 && it.count > it.node.req.RowsMax {
			return errs.New(errs.ErrMemoryLimit, "this statement runs row by row above a plan of more than %d rows (%w); rewrite it or add a LIMIT", it.node.req.RowsMax, it.node.req.Reason)
		}
		it.buffer, err = it.rows.Rows(batch)
		return err
	})
}

// Close implements sql.RowIter.
func (it *RowIter) Close(*sql.Context) error {
	if it.op == nil {
		return nil
	}
	return it.op.Close()
}

func decimalLiteral(text string) (*expression.Literal, error) {
	if _, err := expr.ParseDecimal(text); err != nil {
		return nil, fmt.Errorf("number %s: %w", text, err)
	}
	p, s := expression.GetDecimalPrecisionAndScale(text)
	t, err := types.CreateDecimalType(p, s)
	if err != nil {
		return nil, errs.New(errs.ErrInvalid, "number %s: %w", text, err)
	}
	v, _, err := t.Convert(context.Background(), text)
	if err != nil {
		return nil, errs.New(errs.ErrInvalid, "number %s: %w", text, err)
	}
	return expression.NewLiteral(v, t), nil
}

func stringLiteral(text string) *expression.Literal {
	return expression.NewLiteral(text, types.CreateLongText(provider.Collation))
}

// Stats returns what CollectStats made the run count, nil if it was not called.
func (n *Node) Stats() *exec.Stats { return n.stats }
