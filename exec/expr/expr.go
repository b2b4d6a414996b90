package expr

import (
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/arrow/scalar"

	"github.com/lakesql/lakesql/internal/mem"
)

// Env is what evaluation may depend on besides its input.
type Env struct {
	Alloc    memory.Allocator // of results; nil = memory.DefaultAllocator
	Budget   *mem.Budget      // pays for intermediate values; nil = nobody counts
	Location *time.Location   // session time zone; nil = UTC
	Now      time.Time        // statement time
}

// Expr is a typed scalar expression: *Column, *Literal or *Call.
type Expr interface {
	Type() arrow.DataType
	Children() []Expr
	String() string // SQL-like, for EXPLAIN
}

// Column refers to an input column.
type Column struct {
	ID   int // see the package comment
	Name string
	T    arrow.DataType
}

// Literal is a constant. A NULL literal has a scalar with Valid false. Lists (needles of array_has_any, values of IN, query vectors) are list scalars.
type Literal struct{ Value scalar.Scalar }

// Call applies the function named Func, in lower case, to Args. Operators are functions too: "and", "or", "not", "=", "<>", "<", "<=", ">", ">=", "<=>", "+",
// "-", "*", "/", "div", "%", "neg", "is_null", "is_true", "is_false", "case" (cond, value, ..., else), "in" (value, list literal), "like", "cast" (to T) and so on.
type Call struct {
	Func string
	Args []Expr
	T    arrow.DataType
}

var (
	_ Expr = (*Column)(nil)
	_ Expr = (*Literal)(nil)
	_ Expr = (*Call)(nil)
)

// Type implements Expr.
func (c *Column) Type() arrow.DataType { return c.T }

// Type implements Expr.
func (l *Literal) Type() arrow.DataType { return l.Value.DataType() }

// Type implements Expr.
func (c *Call) Type() arrow.DataType { return c.T }

// Children implements Expr.
func (c *Column) Children() []Expr { return nil }

// Children implements Expr.
func (l *Literal) Children() []Expr { return nil }

// WholeNumber is the value of a literal that is a whole number and not negative.
func WholeNumber(e Expr) (uint64, bool) {
	lit, ok := e.(*Literal)
	if !ok || !lit.Value.IsValid() {
		return 0, false
	}
	switch v := lit.Value.(type) {
	case *scalar.Int64:
		return uint64(v.Value), v.Value >= 0
	case *scalar.Int32:
		return uint64(v.Value), v.Value >= 0
	case *scalar.Int16:
		return uint64(v.Value), v.Value >= 0
	case *scalar.Int8:
		return uint64(v.Value), v.Value >= 0
	case *scalar.Uint64:
		return v.Value, true
	case *scalar.Uint32:
		return uint64(v.Value), true
	case *scalar.Uint16:
		return uint64(v.Value), true
	case *scalar.Uint8:
		return uint64(v.Value), true
	}
	return 0, false
}

// Children implements Expr.
func (c *Call) Children() []Expr { return c.Args }

func (c *Column) String() string {
	if c.Name == "" {
		return fmt.Sprintf("#%d", c.ID)
	}
	return c.Name
}
