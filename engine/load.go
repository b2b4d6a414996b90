package engine

import (
	"errors"
	"io"
	"strings"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/plan"
	ast "github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner/dml"
	"github.com/lakesql/lakesql/planner/gms/translate"
)

// load runs LOAD DATA LOCAL: the client sends the file. Files of the server's own disk are nobody's to read.
func (c *change) load(s *ast.Load) error {
	if !bool(s.Local) {
		return errs.New(errs.ErrUnsupported, "LOAD DATA reads files of the client: write LOAD DATA LOCAL INFILE")
	}
	if on, err := c.localInfile(); err != nil || !on {
		return errors.Join(err, errs.New(errs.ErrLocalInfile, "Loading local data is disabled; this must be enabled on both the client and server sides: SET GLOBAL local_infile = 1"))
	}
	switch strings.ToLower(s.Charset) {
	case "", "utf8mb4", "utf8", "utf8mb3", "binary", "ascii":
	default:
		return errs.New(errs.ErrUnsupported, "CHARACTER SET %s: text is utf8mb4", s.Charset)
	}
	tx, alone, err := c.session.Begun(c.ctx)
	if err != nil {
		return err
	}
	if err = c.loadIn(s, func(st dml.Statement) error { return c.run(c.ctx, st, true, tx, alone) }); err != nil && alone {
		return errors.Join(err, c.session.RollbackNow(c.ctx))
	}
	return err
}

func (c *change) localInfile() (bool, error) {
	_, v, ok := sql.SystemVariables.GetGlobal("local_infile")
	if !ok {
		return false, nil
	}
	return sql.ConvertToBool(c.ctx, v)
}

// loadIn binds the statement, asks the client for the file and runs it.
func (c *change) loadIn(s *ast.Load, run func(dml.Statement) error) error {
	fields := make([]string, len(s.Columns))
	for i, col := range s.Columns {
		fields[i] = col.String()
	}
	node, err := c.bound(c.ctx, s)
	if err != nil {
		return err
	}
	set := make(map[string]sql.Expression)
	if ins, ok := node.(*plan.InsertInto); ok {
		if l, ok := ins.Source.(*plan.LoadData); ok {
			for i, e := range l.SetExprs {
				if e != nil && i < len(l.DestSch) {
					set[strings.ToLower(l.DestSch[i].Name)] = e
				}
			}
		}
	}
	st, reader, err := translate.Load(c.ctx, c.res.request, node, fields, set)
	if err != nil {
		return err
	}
	if _, err := c.writable(st.Target().Catalog); err != nil {
		return err
	}
	file, err := c.ctx.LoadInfile(s.Infile)
	if err != nil {
		return errs.New(errs.ErrIO, "file '%s' of the client: %w", s.Infile, err)
	}
	reader.Source = &drained{ReadCloser: file}
	reader.Warn = func(err error) { warnOf(c.ctx, err) }
	return run(st)
}

// drained reads what is left before it closes: the client sends the whole file whatever becomes of it.
type drained struct {
	io.ReadCloser
	closed bool
}

// Close implements io.Closer.
func (d *drained) Close() error {
	if d.closed {
		return nil
	}
	d.closed = true
	_, err := io.Copy(io.Discard, d.ReadCloser)
	return errors.Join(err, d.ReadCloser.Close())
}
