package planner

import (
	"slices"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner/logical"
)

// candidates makes the plan of all of a scan's conditions. indexed says that an index or a mask takes part.
func (c *Context) candidates(n *logical.Scan) (exec.CandidatePlan, bool, error) {
	b := &candidateBuilder{c: c, scan: n}
	switch c.Settings.Prefilter {
	case PrefilterScan, PrefilterBruteForce:
	default:
		b.table, _ = n.Table.(exec.Indexed)
	}
	var plans []exec.CandidatePlan
	indexed := len(n.Masks) > 0
	if len(n.Filter) > 0 {
		p, byIndex, err := b.conjunction(splitAll(n.Filter), true)
		if err != nil {
			return nil, false, err
		}
		plans = append(plans, p)
		indexed = indexed || byIndex
	}
	for _, m := range n.Masks {
		p, err := c.mask(b, m)
		if err != nil {
			return nil, false, err
		}
		plans = append(plans, p)
	}
	if len(plans) == 1 {
		return plans[0], indexed, nil
	}
	return &exec.CandidateAnd{Inputs: plans}, indexed, nil
}

func (c *Context) mask(b *candidateBuilder, m logical.Mask) (exec.CandidatePlan, error) {
	keys, err := c.lowerNode(m.Keys)
	if err != nil {
		return nil, err
	}
	if len(m.Cols) == 1 && m.Kind == logical.JoinSemi {
		return c.keyMask(b, m.Cols[0], keys)
	}
	out := &exec.JoinMask{Table: b.scan.Table.Ref(), Kind: exec.JoinKind(m.Kind), Keys: keys.plan}
	for _, id := range m.Cols {
		at := slices.IndexFunc(b.scan.Cols, func(col logical.ScanColumn) bool { return col.ID == id })
		if at < 0 {
			return nil, errs.New(errs.ErrInternal, "mask on column #%d, which the scan does not read", id)
		}
		out.Columns = append(out.Columns, b.scan.Cols[at].Source)
	}
	return out, nil
}

// keyMask is a mask that an index may answer.
func (c *Context) keyMask(b *candidateBuilder, id logical.ColumnID, keys lowered) (exec.CandidatePlan, error) {
	for _, col := range b.scan.Cols {
		if col.ID != id {
			continue
		}
		mask := &exec.KeyMask{Table: b.scan.Table.Ref(), Column: col.Source, Keys: keys.plan}
		if b.table != nil {
			chosen, err := b.table.FilterIndex(c.Ctx, col.Source, index.OpIn)
			if err != nil {
				return nil, err
			}
			mask.Reason = c.faulty(b.table.Ref(), chosen.Faults)
			if chosen.OK && chosen.Match == index.Exact {
				mask.Index, mask.Kind, mask.Reason = chosen.Info.Name, chosen.Info.Kind, ""
				mask.Coverage = exec.CoverageOf(b.table, chosen.Info, chosen.Faults)
			}
		}
		return mask, nil
	}
	return nil, errs.New(errs.ErrInternal, "mask on column #%d, which the scan does not read", id)
}

// readFirstShare and readFirstWidth: a filter that keeps less than this share of the rows, over columns that are this many times narrower than
// the others, is answered first, and the others are read for the rows that are left.
const (
	readFirstShare = 0.15
	readFirstWidth = 2
)

func (c *Context) lowerScan(n *logical.Scan) (lowered, error) {
	spec := exec.ScanSpec{RowAddr: n.RowAddr != nil}
	byCandidates := len(n.Masks) > 0
	if _, ok := n.Table.(exec.Addressable); ok && len(n.Filter)+len(n.Masks) > 0 {
		plan, indexed, err := c.candidates(n)
		if err != nil {
			return lowered{}, err
		}
		if byCandidates = indexed || c.filterFirst(n); byCandidates {
			spec.Candidates = plan
		} else if scan, ok := plan.(*exec.CandidateScan); ok {
			spec.Reason = scan.Reason
		}
	}
	var cols []logical.Column
	for _, col := range n.Cols {
		if byCandidates && col.FilterOnly {
			continue
		}
		spec.Columns = append(spec.Columns, col.Source)
		spec.Names = append(spec.Names, col.Name)
		cols = append(cols, col.Column)
	}
	if n.RowAddr != nil {
		cols = append(cols, *n.RowAddr)
	}
	pos := positions(cols)
	if !byCandidates && len(n.Filter) > 0 {
		all, err := andAll(n.Filter)
		if err != nil {
			return lowered{}, err
		}
		if spec.Filter, err = expr.Rebind(all, pos); err != nil {
			return lowered{}, errs.New(errs.ErrInternal, "scan filter: %w", err)
		}
	}
	p, err := exec.NewScan(n.Table, spec)
	if err != nil {
		return lowered{}, err
	}
	out := lowered{plan: p, pos: pos}
	if want := n.Columns(); len(want) != len(cols) {
		exprs := passAll(want)
		return lowerProject(out, exprs)
	}
	return out, nil
}

// filterFirst says that the filter's columns are so narrow, and so few rows pass, that reading the others afterwards pays.
func (c *Context) filterFirst(n *logical.Scan) bool {
	rows := n.Table.Rows()
	if rows <= 0 || c.scanRows(n) > readFirstShare*float64(rows) {
		return false
	}
	used := expr.Columns(n.Filter...)
	filter, rest := int64(0), int64(0)
	for _, col := range n.Cols {
		size := n.Table.ColumnBytes(c.Ctx, col.Source)
		if slices.Contains(used, col.ID) {
			filter += size
		} else if !col.FilterOnly {
			rest += size
		}
	}
	return rest > readFirstWidth*filter
}

func (c *Context) lowerSearch(n *logical.Search) (lowered, error) {
	var among exec.CandidatePlan
	if len(n.Scan.Filter)+len(n.Scan.Masks) > 0 {
		var err error
		if among, _, err = c.candidates(n.Scan); err != nil {
			return lowered{}, err
		}
	}
	s := exec.VectorSearch{
		Table: n.Scan.Table.Ref(), Column: n.Vector, Metric: n.Metric, Query: n.Query, K: int(n.K), Ties: n.Ties, Candidates: among,
		Method: exec.SearchMethod{
			Index: n.Spec.Index, Kind: n.Spec.Kind, Coverage: n.Spec.Coverage, IndexedOnly: n.Spec.IndexedOnly, Reason: n.Spec.Reason, MinProbes: n.Spec.MinProbes, MaxProbes: n.Spec.MaxProbes,
			RefineFactor: n.Spec.RefineFactor, ExactBelow: n.Spec.ExactBelow, VectorBytes: n.Spec.VectorBytes, ParallelTasks: c.Settings.SearchParallelism,
		},
	}
	fields, sources := scanFields(n.Scan.Cols)
	if !n.Spec.Early {
		p, err := exec.NewVectorSearch(s, nil)
		if err != nil {
			return lowered{}, err
		}
		out := lowered{plan: p, pos: map[logical.ColumnID]int{n.Distance.ID: 1}}
		if n.Scan.RowAddr != nil {
			out.pos[n.Scan.RowAddr.ID] = 0
		}
		if len(sources) == 0 {
			return out, nil
		}
		if out.plan, err = c.fetch(p, 0, n.Scan.Table, n.Scan.Cols, n.Spec.LateReason); err != nil {
			return lowered{}, err
		}
		addPositions(out.pos, n.Scan.Cols, 2)
		return out, nil
	}
	s.Early = sources
	p, err := exec.NewVectorSearch(s, fields)
	if err != nil {
		return lowered{}, err
	}
	pos := map[logical.ColumnID]int{n.Distance.ID: len(sources) + 1}
	if n.Scan.RowAddr != nil {
		pos[n.Scan.RowAddr.ID] = len(sources)
	}
	addPositions(pos, n.Scan.Cols, 0)
	return lowered{plan: p, pos: pos}, nil
}

func addPositions(pos map[logical.ColumnID]int, cols []logical.ScanColumn, at int) {
	for _, col := range cols {
		if !col.FilterOnly {
			pos[col.ID] = at
			at++
		}
	}
}
