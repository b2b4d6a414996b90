package expr

import (
	"errors"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/scalar"

	"github.com/lakesql/lakesql/internal/errs"
)

// Fold computes constant parts of e, with env's time zone and statement time, and simplifies boolean operators in ways that keep three-valued logic.
// A constant that cannot be computed because a value is out of range stays: it fails when a row needs it. ErrInvalid, e.g. text that is no vector.
func Fold(e Expr, env *Env) (Expr, error) {
	var failed error
	out := Transform(e, func(n Expr) Expr {
		c, ok := n.(*Call)
		if !ok || failed != nil {
			return n
		}
		folded, err := foldCall(c, env)
		if err != nil {
			failed = err
			return n
		}
		return folded
	})
	return out, failed
}

func foldCall(c *Call, env *Env) (Expr, error) {
	switch c.Func {
	case "and":
		return foldJunction(c, true), nil
	case "or":
		return foldJunction(c, false), nil
	case "not":
		return foldNot(c), nil
	case "case":
		if e := foldCase(c); e != c {
			return e, nil
		}
	}
	for _, a := range c.Args {
		if _, ok := a.(*Literal); !ok {
			return retype(c)
		}
	}
	lit, err := evalConstant(c, env)
	switch {
	case err == nil:
		return lit, nil
	case errors.Is(err, errs.ErrInvalid):
		return nil, err
	}
	return c, nil
}

// retype resolves a comparison anew once its other side became a constant, so that the constant is converted to the column's type.
func retype(c *Call) (Expr, error) {
	switch c.Func {
	case "=", "<>", "<", "<=", ">", ">=", "<=>", "array_has", "array_has_any", "array_has_all",
		"l2_distance", "l2sq_distance", "cosine_distance", "dot_distance", "hamming_distance", "cosine_similarity", "inner_product",
		"vec_distance", "vec_distance_l2_squared", "vec_distance_euclidean", "vec_distance_cosine", "approx_l2_distance", "approx_cosine_similarity":
		for _, a := range c.Args {
			if _, ok := a.(*Literal); ok {
				return NewCall(c.Func, c.Args...)
			}
		}
	}
	return c, nil
}

func evalConstant(e Expr, env *Env) (*Literal, error) {
	p, err := Compile(e, nil)
	if err != nil {
		return nil, err
	}
	if n, ok := p.root.(*callNode); ok && n.im.volatile {
		return nil, errs.New(errs.ErrUnsupported, "%s has a new value for every row", n.name)
	}
	s := newState()
	s.begin(env, nil, 1)
	defer s.held.Free() // the literal is its owner's to count
	v, err := p.root.eval(s)
	if err != nil {
		return nil, err
	}
	return s.vectorLiteral(&v, p.t)
}

// boolOf reads a boolean literal: TRUE, FALSE or NULL.
func boolOf(e Expr) (value, null, ok bool) {
	lit, isLit := e.(*Literal)
	if !isLit {
		return false, false, false
	}
	if !lit.Value.IsValid() {
		return false, true, true
	}
	v, err := literalVector(lit)
	if err != nil || v.c == classNested {
		return false, false, false
	}
	s := newState()
	b, err := s.cast(&v, typeBool(), castTruth)
	if err != nil {
		return false, false, false
	}
	return b.bit(0), false, true
}

func boolLiteral(v bool) *Literal { return &Literal{scalar.NewBooleanScalar(v)} }

// foldJunction drops the neutral constants of AND (TRUE) or OR (FALSE), lets the absorbing one win, and flattens nested calls. A NULL constant stays,
// once: it can still lose against the absorbing one.
func foldJunction(c *Call, neutral bool) Expr {
	args := make([]Expr, 0, len(c.Args))
	hasNull, changed := false, false
	var add func(a Expr) bool
	add = func(a Expr) bool {
		if sub, ok := a.(*Call); ok && sub.Func == c.Func {
			changed = true
			for _, b := range sub.Args {
				if !add(b) {
					return false
				}
			}
			return true
		}
		value, null, ok := boolOf(a)
		switch {
		case !ok:
			args = append(args, a)
		case null:
			changed = changed || hasNull
			hasNull = true
		case value != neutral:
			return false
		default:
			changed = true
		}
		return true
	}
	for _, a := range c.Args {
		if !add(a) {
			return boolLiteral(!neutral)
		}
	}
	if hasNull {
		args = append(args, Null(typeBool()))
	}
	switch {
	case len(args) == 0:
		return boolLiteral(neutral)
	case len(args) == 1 && classOf(args[0].Type()) == classBool:
		return args[0]
	case changed || len(args) != len(c.Args):
		return &Call{Func: c.Func, Args: args, T: typeBool()}
	}
	return c
}

// foldNot removes double negation and turns the operator around where that is exact: NOT (a < b) is a >= b, both NULL where a or b is.
func foldNot(c *Call) Expr {
	if value, null, ok := boolOf(c.Args[0]); ok {
		if null {
			return Null(typeBool())
		}
		return boolLiteral(!value)
	}
	sub, ok := c.Args[0].(*Call)
	if !ok {
		return c
	}
	negated := map[string]string{"=": "<>", "<>": "=", "is_null": "is_not_null", "is_not_null": "is_null"}
	if classOf(argType(sub)) != classFloat && len(sub.Args) == 2 && classOf(sub.Args[1].Type()) != classFloat {
		negated["<"], negated["<="], negated[">"], negated[">="] = ">=", ">", "<=", "<"
	}
	if sub.Func == "not" && classOf(sub.Args[0].Type()) == classBool {
		return sub.Args[0]
	}
	if f, ok := negated[sub.Func]; ok {
		return &Call{Func: f, Args: sub.Args, T: sub.T}
	}
	return c
}

func argType(c *Call) arrow.DataType {
	if len(c.Args) == 0 {
		return arrow.Null
	}
	return c.Args[0].Type()
}

// foldCase drops branches whose condition is constant.
func foldCase(c *Call) Expr {
	args := c.Args
	var kept []Expr
	changed := false
	for ; len(args) >= 2; args = args[2:] {
		value, _, ok := boolOf(args[0])
		if !ok {
			kept = append(kept, args[0], args[1])
			continue
		}
		changed = true
		if value {
			args = args[1:2]
			break
		}
	}
	if !changed {
		return c
	}
	if len(kept) > 0 {
		if len(args) == 1 {
			kept = append(kept, args[0])
		}
		return &Call{Func: "case", Args: ofType(kept, c.T), T: c.T}
	}
	if len(args) == 0 {
		return Null(c.T)
	}
	e, err := NewCoerce(args[0], c.T)
	if err != nil {
		return c
	}
	return e
}

// ofType makes the first value of a CASE have the CASE's type, so that fewer branches do not change it.
func ofType(args []Expr, t arrow.DataType) []Expr {
	if e, err := NewCoerce(args[1], t); err == nil {
		args[1] = e
	}
	return args
}

// Equal reports whether two expressions are the same: the same functions over the same columns and constants.
func Equal(a, b Expr) bool {
	switch x := a.(type) {
	case *Column:
		y, ok := b.(*Column)
		return ok && x.ID == y.ID && arrow.TypeEqual(x.T, y.T)
	case *Literal:
		y, ok := b.(*Literal)
		return ok && equalLiterals(x, y)
	case *Call:
		y, ok := b.(*Call)
		if !ok || x.Func != y.Func || len(x.Args) != len(y.Args) || !arrow.TypeEqual(x.T, y.T) {
			return false
		}
		for i := range x.Args {
			if !Equal(x.Args[i], y.Args[i]) {
				return false
			}
		}
		return true
	}
	return a == nil && b == nil
}

func equalLiterals(x, y *Literal) bool {
	if !arrow.TypeEqual(x.Type(), y.Type()) || x.Value.IsValid() != y.Value.IsValid() {
		return false
	}
	return !x.Value.IsValid() || scalar.Equals(x.Value, y.Value)
}
