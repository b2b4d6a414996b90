package planner

import "github.com/lakesql/lakesql/planner/logical"

// topNRowsMax is the most rows that a top-n keeps in its heaps; a larger limit is a sort that stops early.
const topNRowsMax = 1 << 24

// sortLimitToTopN turns LIMIT over ORDER BY, in any spelling, into a top-n, and moves limits below projections.
func sortLimitToTopN(_ *Context, root logical.Node) (logical.Node, bool, error) {
	changed := false
	out, err := logical.Transform(root, func(n logical.Node) (logical.Node, error) {
		if s, ok := n.(*logical.Sort); ok {
			if in := unsorted(s.Input); in != s.Input {
				changed = true
				return &logical.Sort{Input: in, Keys: s.Keys}, nil
			}
		}
		l, ok := n.(*logical.Limit)
		if !ok {
			return n, nil
		}
		if m := limitBelow(l); m != nil {
			changed = true
			return m, nil
		}
		return n, nil
	})
	return out, changed, err
}

// unsorted drops an order that another sort above undoes.
func unsorted(n logical.Node) logical.Node {
	switch n := n.(type) {
	case *logical.Sort:
		return unsorted(n.Input)
	case *logical.Project, *logical.Filter:
		in := n.Children()[0]
		if out := unsorted(in); out != in {
			return n.WithChildren([]logical.Node{out})
		}
	}
	return n
}

// limitBelow returns l pushed into its input, nil where it has to stay.
func limitBelow(l *logical.Limit) logical.Node {
	switch in := l.Input.(type) {
	case *logical.Project:
		below := logical.Node(&logical.Limit{Input: in.Input, Count: l.Count, Offset: l.Offset})
		if m := limitBelow(below.(*logical.Limit)); m != nil {
			below = m
		}
		return &logical.Project{Input: below, Exprs: in.Exprs}
	case *logical.Sort:
		if l.Count > topNRowsMax || l.Offset > topNRowsMax {
			return nil
		}
		return &logical.TopN{Input: in.Input, Keys: in.Keys, Count: l.Count, Offset: l.Offset}
	case *logical.TopN:
		// LIMIT of a LIMIT: the inner one's rows first, then the outer window of them.
		if l.Offset >= in.Count {
			return &logical.Values{Cols: l.Columns()}
		}
		return &logical.TopN{Input: in.Input, Keys: in.Keys, Count: min(l.Count, in.Count-l.Offset), Offset: in.Offset + l.Offset}
	}
	return nil
}
