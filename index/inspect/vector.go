package inspect

import (
	"context"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/vector"
)

// vector prints the lists of a vector segment and reads every row of them, so that faults are found.
func (p *printer) vector(ctx context.Context, open index.OpenFile, meta index.Meta) {
	s, err := vector.Open(ctx, open, meta, index.OpenOptions{})
	if err != nil {
		p.head(meta.Kind, meta)
		p.fault(err)
		return
	}
	defer func() { _ = s.Close() }()
	p.head(s.Meta().Kind, meta)
	p.line("  rows: %d in %d lists, %s", s.Rows(), s.Lists(), s.Text())
	for number := range s.Lists() {
		if number < p.opts.KeysMax {
			first, rows := s.ListRows(number)
			p.line("    list %d: %d rows from row %d", number, rows, first)
		}
		if err := s.CheckList(ctx, number); err != nil {
			p.fault(err)
		}
	}
	if more := s.Lists() - p.opts.KeysMax; more > 0 {
		p.line("    ... %d more", more)
	}
}
