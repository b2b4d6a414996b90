package exec

import (
	"slices"

	"github.com/lakesql/lakesql/exec/expr"
)

// narrowInput lets input gather only the columns that exprs use, where it is a join (or filters over one), and returns the expressions over the narrower
// input. Gathering a column costs a join as much as finding the match.
func narrowInput(input Plan, exprs ...[]expr.Expr) (Plan, [][]expr.Expr, error) {
	var all []expr.Expr
	for _, es := range exprs {
		all = append(all, es...)
	}
	out, position, err := prune(input, sortedColumns(all...))
	if err != nil || out == input {
		return input, exprs, err
	}
	rebound := make([][]expr.Expr, len(exprs))
	for i, es := range exprs {
		if rebound[i], err = rebindAll(es, position); err != nil {
			return nil, nil, err
		}
	}
	return out, rebound, nil
}

func sortedColumns(es ...expr.Expr) []int {
	ids := expr.Columns(es...)
	slices.Sort(ids)
	return ids
}

func rebindAll(es []expr.Expr, position map[int]int) ([]expr.Expr, error) {
	if es == nil {
		return nil, nil
	}
	out := make([]expr.Expr, len(es))
	for i, e := range es {
		var err error
		if out[i], err = expr.Rebind(e, position); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// prune returns a plan with the same rows as p that outputs at least the columns used (ascending), and where each column went. It returns p itself where
// nothing is gained.
func prune(p Plan, used []int) (Plan, map[int]int, error) {
	switch p := p.(type) {
	case *Filter:
		need := sortedColumns(p.Cond)
		need = append(need, used...)
		slices.Sort(need)
		in, position, err := prune(p.Input, slices.Compact(need))
		if err != nil || in == p.Input {
			return p, nil, err
		}
		cond, err := expr.Rebind(p.Cond, position)
		if err != nil {
			return nil, nil, err
		}
		return &Filter{Input: in, Cond: cond}, position, nil
	case *HashJoin:
		return p.prune(used)
	}
	return p, nil, nil
}

func (p *HashJoin) prune(used []int) (Plan, map[int]int, error) {
	if p.Spec.Output != nil || len(used) == p.out.NumFields() {
		return p, nil, nil
	}
	spec := p.Spec
	spec.Output = slices.Clone(used)
	if spec.Output == nil {
		spec.Output = []int{}
	}
	if err := spec.pruneInputs(); err != nil {
		return nil, nil, err
	}
	out, err := NewHashJoin(spec)
	position := make(map[int]int, len(used))
	for i, c := range used {
		position[c] = i
	}
	return out, position, err
}

// pruneInputs narrows joins below to what this one uses.
func (s *JoinSpec) pruneInputs() error {
	left := s.Left.Schema().NumFields()
	needLeft, needRight := sortedColumns(s.LeftKeys...), sortedColumns(s.RightKeys...)
	both := append([]int(nil), s.Output...)
	if s.Residual != nil {
		both = append(both, expr.Columns(s.Residual)...)
	}
	mark := s.Kind == JoinMark
	for _, c := range both {
		switch {
		case c < left:
			needLeft = append(needLeft, c)
		case !mark || s.Residual != nil && slices.Contains(expr.Columns(s.Residual), c):
			needRight = append(needRight, c-left)
		}
	}
	slices.Sort(needLeft)
	slices.Sort(needRight)
	l, leftAt, err := prune(s.Left, slices.Compact(needLeft))
	if err != nil {
		return err
	}
	r, rightAt, err := prune(s.Right, slices.Compact(needRight))
	if err != nil || (l == s.Left && r == s.Right) {
		return err
	}
	return s.replaceInputs(l, leftAt, r, rightAt)
}

// replaceInputs puts narrower inputs in; nil maps say that a side stayed as it was.
func (s *JoinSpec) replaceInputs(l Plan, leftAt map[int]int, r Plan, rightAt map[int]int) error {
	left, newLeft := s.Left.Schema().NumFields(), l.Schema().NumFields()
	position := make(map[int]int)
	for c := range left {
		if leftAt == nil {
			position[c] = c
		} else if at, ok := leftAt[c]; ok {
			position[c] = at
		}
	}
	for c := range s.Right.Schema().NumFields() {
		if rightAt == nil {
			position[left+c] = newLeft + c
		} else if at, ok := rightAt[c]; ok {
			position[left+c] = newLeft + at
		}
	}
	for i, c := range s.Output {
		if s.Kind == JoinMark && c == left {
			s.Output[i] = newLeft
		} else {
			s.Output[i] = position[c]
		}
	}
	var err error
	if leftAt != nil {
		if s.LeftKeys, err = rebindAll(s.LeftKeys, leftAt); err != nil {
			return err
		}
	}
	if rightAt != nil {
		if s.RightKeys, err = rebindAll(s.RightKeys, rightAt); err != nil {
			return err
		}
	}
	if s.Residual != nil {
		if s.Residual, err = expr.Rebind(s.Residual, position); err != nil {
			return err
		}
	}
	s.Left, s.Right = l, r
	return nil
}
