package expr

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// literalCharsMax is how much of a long literal EXPLAIN shows.
const literalCharsMax = 64

func (l *Literal) String() string {
	if !l.Value.IsValid() {
		return "NULL"
	}
	if id := l.Value.DataType().ID(); id == arrow.STRING || id == arrow.LARGE_STRING {
		return "'" + strings.ReplaceAll(l.Value.String(), "'", "''") + "'"
	}
	text := l.Value.String()
	if len(text) > literalCharsMax {
		text = text[:literalCharsMax] + "..."
	}
	return text
}

func (c *Call) String() string {
	args := make([]string, len(c.Args))
	for i, a := range c.Args {
		args[i] = a.String()
	}
	if len(args) == 2 && isInfix(c.Func) {
		return "(" + args[0] + " " + strings.ToUpper(c.Func) + " " + args[1] + ")"
	}
	if c.Func == "cast" {
		return fmt.Sprintf("CAST(%s AS %s)", args[0], c.T)
	}
	return c.Func + "(" + strings.Join(args, ", ") + ")"
}

func isInfix(name string) bool {
	switch name {
	case "and", "or", "xor", "=", "<>", "<", "<=", ">", ">=", "<=>", "+", "-", "*", "/", "div", "%", "like", "in", "&", "|", "^", "<<", ">>":
		return true
	}
	return false
}

// Transform rebuilds e bottom-up: f gets every node after its children were transformed. It returns e itself where nothing changed.
func Transform(e Expr, f func(Expr) Expr) Expr {
	if c, ok := e.(*Call); ok {
		var args []Expr
		for i, a := range c.Args {
			if b := Transform(a, f); b != a {
				if args == nil {
					args = append([]Expr(nil), c.Args...)
				}
				args[i] = b
			}
		}
		if args != nil {
			e = &Call{Func: c.Func, Args: args, T: c.T}
		}
	}
	return f(e)
}

// Walk calls f for every node, parents first, and skips the children of nodes where it returns false.
func Walk(e Expr, f func(Expr) bool) {
	if f(e) {
		for _, c := range e.Children() {
			Walk(c, f)
		}
	}
}

// Columns returns the distinct column ids that the expressions use, in order of appearance.
func Columns(es ...Expr) []int {
	var ids []int
	seen := make(map[int]bool)
	for _, e := range es {
		Walk(e, func(n Expr) bool {
			if c, ok := n.(*Column); ok && !seen[c.ID] {
				seen[c.ID] = true
				ids = append(ids, c.ID)
			}
			return true
		})
	}
	return ids
}

// Rebind replaces every column id by position[id]. An id without a position is an error that names the column.
func Rebind(e Expr, position map[int]int) (Expr, error) {
	var missing *Column
	out := Transform(e, func(n Expr) Expr {
		c, ok := n.(*Column)
		if !ok {
			return n
		}
		p, ok := position[c.ID]
		if !ok {
			missing = c
			return n
		}
		return &Column{ID: p, Name: c.Name, T: c.T}
	})
	if missing != nil {
		return nil, fmt.Errorf("column %s (id %d) is not in the input", missing.Name, missing.ID)
	}
	return out, nil
}

// Conjuncts splits an AND tree.
func Conjuncts(e Expr) []Expr {
	if c, ok := e.(*Call); ok && c.Func == "and" {
		var out []Expr
		for _, a := range c.Args {
			out = append(out, Conjuncts(a)...)
		}
		return out
	}
	return []Expr{e}
}
