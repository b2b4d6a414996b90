package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/planner/coltype"
	"github.com/lakesql/lakesql/source/files"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/write"
)

// Mode says what an import does with the table.
type Mode int

// The modes.
const (
	ModeAuto    Mode = iota // append, or create it where there is none
	ModeCreate              // there must be none
	ModeAppend              // there must be one
	ModeReplace             // the rows take the place of all others, in one commit
)

// ImportOptions tunes Import. The zero value is the default.
type ImportOptions struct {
	Mode   Mode
	Files  files.Options
	Schema *arrow.Schema // columns of a table that is created; nil = what the files have

	Again      bool  // files that were imported before are imported again
	Atomic     bool  // one commit for all files
	CommitRows int64 // a commit follows the file that makes up these many rows; 0 = 1,048,576

	SkipBad    bool                       // bad rows are left out and counted; otherwise the first one fails its file
	BadRowsMax int64                      // how many may be left out; 0 = any number
	OnBad      func(r files.BadRow) error // gets the rows that are left out, in order; nil = nobody

	Version      file.Version // of a table that is created; zero = 2.2
	StableRowIDs bool         // of a table that is created
	FragmentRows int64        // rows of a fragment; 0 = the table's, or 1,048,576
	Budget       *mem.Budget  // pays for what is kept; nil = nobody
	Commit       write.CommitOptions
	Progress     func(Progress) // called after each batch; nil = nobody
}

const commitRowsDefault = 1 << 20

// Validate refuses what makes no sense.
func (o ImportOptions) Validate() error {
	if o.CommitRows < 0 || o.BadRowsMax < 0 || o.FragmentRows < 0 || o.FragmentRows >= 1<<32 {
		return errs.New(errs.ErrInvalid, "%d rows a commit, %d bad rows, %d rows a fragment: out of range", o.CommitRows, o.BadRowsMax, o.FragmentRows)
	}
	return o.Files.Validate()
}

// Progress is how far an import is.
type Progress struct {
	File        string // the one that is read
	FileIndex   int    // from 0, among those to import
	Files       int
	Rows        int64 // of all files so far, committed or not
	BadRows     int64
	Bytes, Size int64 // read so far; of all files
}

// Imported is what an import did.
type Imported struct {
	Version  uint64 // the newest that it committed, or the one that it found
	Created  bool
	Files    int      // imported
	Known    []string // URLs of files that were imported before
	Rows     int64    // committed
	BadRows  int64    // left out of committed files
	Commits  int
	Notes    []string // about columns
	Columns  *arrow.Schema
	Format   files.Format
	HasTable bool // the table was there before
}

// Import adds the rows of files to a table. The result says what was committed, with an error too. Errors: a *files.BadRow, ErrExists and ErrNotFound for a table that
// must not or must be there, ErrConflict, ErrDiskFull, ErrPermission, ErrMemoryLimit, and those of files.Inspect, files.Open and write.
func Import(ctx context.Context, t write.Target, found []files.File, opts ImportOptions) (Imported, error) {
	if err := opts.Validate(); err != nil {
		return Imported{}, err
	}
	if opts.CommitRows == 0 {
		opts.CommitRows = commitRowsDefault
	}
	m := &importer{target: t, opts: opts}
	m.opts.Files.Budget = opts.Budget
	if err := m.openTable(ctx); err != nil {
		return Imported{}, err
	}
	if err := m.choose(found); err != nil {
		return m.done, err
	}
	if len(m.files) == 0 {
		return m.done, nil
	}
	if err := m.plan(ctx); err != nil {
		return m.done, err
	}
	var err error
	switch {
	case m.table == nil:
		err = m.create(ctx)
	case opts.Mode == ModeReplace:
		err = m.replace(ctx)
	default:
		err = m.append(ctx)
	}
	return m.done, err
}

// importer is one import. It is used by one goroutine.
type importer struct {
	target write.Target
	opts   ImportOptions
	table  *storage.Table // nil = none yet
	base   *storage.Snapshot
	shape  *files.Shape
	schema *arrow.Schema
	files  []files.File // to import
	next   int          // of files
	done   Imported

	size, read int64 // bytes of all files; of those that were read
	rows       int64 // staged and committed
	badRows    int64
}

// openTable finds the table and holds it against the mode.
func (m *importer) openTable(ctx context.Context) error {
	table, err := storage.OpenTable(ctx, m.target.Store, m.target.Dir, storage.TableOptions{})
	if err == nil {
		m.base, err = table.Latest(ctx)
	}
	switch {
	case errors.Is(err, errs.ErrNotFound):
		if m.opts.Mode == ModeAppend {
			return errs.New(errs.ErrNotFound, "there is no table %s to append to: leave --append out, and it is created", m.target.Dir)
		}
		return nil
	case err != nil:
		return err
	case m.opts.Mode == ModeCreate:
		return errs.New(errs.ErrExists, "table %s exists: leave --create out to append to it, or go on with an import that was interrupted", m.target.Dir)
	}
	m.table, m.done.HasTable, m.done.Version = table, true, m.base.Version()
	return nil
}

func imported(f files.File, rows int64, again bool) write.ImportedFile {
	return write.ImportedFile{URL: f.URL, SizeBytes: f.Entry.SizeBytes, Stamp: f.Stamp(), Rows: uint64(rows), Again: again}
}

// choose leaves out files that were imported before.
func (m *importer) choose(found []files.File) error {
	isAgain := m.opts.Again || m.opts.Mode == ModeReplace
	var log *write.ImportLog
	if m.base != nil && !isAgain {
		var err error
		if log, err = write.ImportLogOf(m.base); err != nil {
			return err
		}
	}
	for _, f := range found {
		if log != nil {
			switch log.State(imported(f, 0, false)) {
			case write.Imported:
				m.done.Known = append(m.done.Known, f.URL)
				continue
			case write.ImportedChanged:
				return errs.New(errs.ErrExists, "%s was imported before and has changed since: its rows would stand twice; --again imports it as it is now", f.URL)
			}
		}
		m.files = append(m.files, f)
		m.size += f.Entry.SizeBytes
	}
	return nil
}

// plan looks at the files and settles the columns.
func (m *importer) plan(ctx context.Context) error {
	var err error
	if m.shape, err = files.Inspect(ctx, m.files, m.opts.Files); err != nil {
		return err
	}
	m.done.Format = m.shape.Format
	if m.base != nil && m.opts.Mode != ModeReplace {
		m.schema = m.base.ArrowSchema()
		if err := m.checkExisting(); err != nil {
			return err
		}
	} else if m.schema, err = m.newSchema(); err != nil {
		return err
	}
	m.done.Columns = m.schema
	return nil
}

// checkExisting holds what the caller says of a new table against the one that is there.
func (m *importer) checkExisting() error {
	if s := m.opts.Schema; s != nil && !sameColumns(s, m.schema) {
		return errs.New(errs.ErrInvalid, "table %s has other columns than --schema says: leave it out, for the rows take the table's", m.target.Dir)
	}
	if v := m.opts.Version; v != (file.Version{}) && v.String() != m.base.FormatVersion() {
		return errs.New(errs.ErrInvalid, "table %s has file version %s, not %s", m.target.Dir, m.base.FormatVersion(), v)
	}
	if m.opts.StableRowIDs && !m.base.HasStableRowIDs() {
		return errs.New(errs.ErrInvalid, "table %s has no stable row ids, and cannot get them", m.target.Dir)
	}
	return nil
}

func sameColumns(a, b *arrow.Schema) bool {
	if a.NumFields() != b.NumFields() {
		return false
	}
	for i, f := range a.Fields() {
		if g := b.Field(i); f.Name != g.Name || !arrow.TypeEqual(f.Type, g.Type) || f.Nullable != g.Nullable {
			return false
		}
	}
	return true
}

// newSchema is that of a table that is made.
func (m *importer) newSchema() (*arrow.Schema, error) {
	s := m.opts.Schema
	if s == nil {
		m.done.Notes = m.shape.Notes
		var err error
		if s, err = renamed(m.shape.Schema, m.opts.Files.Columns); err != nil {
			return nil, err
		}
	}
	if s.NumFields() == 0 {
		return nil, errs.New(errs.ErrInvalid, "%s has no columns: --schema says what they are", m.files[0].URL)
	}
	md := map[string]string{}
	if m.opts.FragmentRows > 0 {
		md[coltype.KeyFragmentRows] = strconv.FormatInt(m.opts.FragmentRows, 10)
	}
	meta := arrow.MetadataFrom(md)
	return arrow.NewSchema(s.Fields(), &meta), nil
}

// renamed picks the columns that are wanted, under the table's names.
func renamed(s *arrow.Schema, names files.Names) (*arrow.Schema, error) {
	if names == nil {
		return s, nil
	}
	fields := make([]arrow.Field, len(names))
	for i, n := range names {
		at := s.FieldIndices(n.Source)
		if len(at) != 1 {
			return nil, errs.New(errs.ErrUnknownColumn, "the files have no column %q", n.Source)
		}
		fields[i] = s.Field(at[0])
		fields[i].Name = n.Column
	}
	return arrow.NewSchema(fields, nil), nil
}

// rowOptions are the table's own: rows per fragment.
func (m *importer) rowOptions() write.RowOptions {
	o := write.RowOptions{FragmentRows: m.opts.FragmentRows}
	if text, ok := m.schema.Metadata().GetValue(coltype.KeyFragmentRows); ok && o.FragmentRows == 0 {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 && n < 1<<32 {
			o.FragmentRows = n
		}
	}
	return o
}

// create makes the table of the first file, or of all, and appends the others.
func (m *importer) create(ctx context.Context) error {
	first := &chain{m: m, ctx: ctx, last: 1}
	if m.opts.Atomic || m.opts.Mode == ModeReplace {
		first.last = len(m.files)
	}
	created := write.CreateOptions{Version: m.opts.Version, StableRowIDs: m.opts.StableRowIDs, Rows: m.rowOptions(), Budget: m.opts.Budget, Parts: []write.Batches{first}, Commit: m.opts.Commit}
	created.ImportedBy = func() []write.ImportedFile { return first.files }
	done, err := write.CreateTable(ctx, m.target, m.schema, created)
	if err = errors.Join(err, first.close()); err != nil {
		return m.explain(err)
	}
	m.done.Created = true
	m.committed(done, first.files)
	if m.next == len(m.files) {
		return nil
	}
	if m.table, err = storage.OpenTable(ctx, m.target.Store, m.target.Dir, storage.TableOptions{}); err != nil {
		return err
	}
	return m.append(ctx)
}

// committed counts what a version has.
func (m *importer) committed(v write.Committed, of []write.ImportedFile) {
	m.done.Version = v.Version
	m.done.Commits++
	m.done.Files += len(of)
	for _, f := range of {
		m.done.Rows += int64(f.Rows)
	}
	m.done.BadRows = m.badRows
}

// replace puts the rows of all files in the place of the table's, in one commit.
func (m *importer) replace(ctx context.Context) error {
	x, err := write.Begin(ctx, m.table, nil, m.txOptions())
	if err != nil {
		return err
	}
	all := &chain{m: m, ctx: ctx, last: len(m.files)}
	err = errors.Join(x.Replace(ctx, []write.Batches{all}, m.schema), all.close())
	if err != nil {
		return errors.Join(m.explain(err), x.Rollback(ctx))
	}
	for _, f := range all.files {
		x.RecordImport(f)
	}
	return m.commit(ctx, x, all.files)
}

func (m *importer) txOptions() write.TxOptions {
	return write.TxOptions{Rows: m.rowOptions(), Commit: m.opts.Commit, Budget: m.opts.Budget}
}

func (m *importer) commit(ctx context.Context, x *write.Tx, of []write.ImportedFile) error {
	done, err := x.Commit(ctx)
	if err != nil {
		return m.explain(err)
	}
	if done.Version > m.done.Version {
		m.committed(done, of)
		return nil
	}
	m.done.Files += len(of) // of no rows: there was nothing to commit
	return nil
}

// append adds the files that are left, in commits of about CommitRows rows.
func (m *importer) append(ctx context.Context) error {
	for m.next < len(m.files) {
		if err := m.appendSome(ctx); err != nil {
			return err
		}
	}
	return nil
}

// appendSome is one commit. Files before one that fails are committed, unless all files stand and fall together.
func (m *importer) appendSome(ctx context.Context) error {
	x, err := write.Begin(ctx, m.table, nil, m.txOptions())
	if err != nil {
		return err
	}
	if now, err := x.Snapshot(ctx); err != nil || !now.ArrowSchema().Equal(m.schema) && !sameColumns(now.ArrowSchema(), m.schema) {
		if err == nil {
			err = errs.New(errs.ErrConflict, "the columns of the table were changed meanwhile: run the import again, it goes on where it ended")
		}
		return errors.Join(err, x.Rollback(ctx))
	}
	var staged []write.ImportedFile
	badBefore := m.badRows
	for rows := int64(0); m.next < len(m.files) && (rows < m.opts.CommitRows || m.opts.Atomic); {
		one := &chain{m: m, ctx: ctx, last: m.next + 1}
		n, err := x.Append(ctx, []write.Batches{one})
		if err = errors.Join(err, one.close()); err != nil {
			err = m.explain(err)
			m.badRows = badBefore
			if m.opts.Atomic || len(staged) == 0 || ctx.Err() != nil {
				return errors.Join(err, x.Rollback(ctx))
			}
			return errors.Join(err, m.commit(ctx, x, staged))
		}
		badBefore = m.badRows
		rows += int64(n)
		for _, f := range one.files {
			x.RecordImport(f)
			staged = append(staged, f)
		}
	}
	return m.commit(ctx, x, staged)
}

// explain adds the remedy that an import has.
func (m *importer) explain(err error) error {
	if errors.Is(err, errs.ErrMemoryLimit) {
		return fmt.Errorf("%w (for an import: --memory-limit)", err)
	}
	return err
}

// chain is the rows of the next files as one stream. It implements write.Batches.
type chain struct {
	m     *importer
	ctx   context.Context //nolint:containedctx // readers outlive the call that opens them
	last  int             // the file that is not the chain's any more
	files []write.ImportedFile
	open  files.Reader
	rows  int64 // of the file that is open
}

// Next implements write.Batches.
func (c *chain) Next(ctx context.Context) (arrow.RecordBatch, error) {
	m := c.m
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if c.open == nil {
			if m.next == c.last {
				return nil, io.EOF
			}
			var err error
			if c.open, err = files.Open(c.ctx, m.files[m.next], m.shape, m.schema, m.opts.Files); err != nil {
				return nil, err
			}
			c.rows = 0
		}
		batch, bad, err := c.open.Next()
		if errors.Is(err, io.EOF) {
			if err := c.end(); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.files[m.next].URL, err)
		}
		if err := m.bad(bad); err != nil {
			if batch != nil {
				batch.Release()
			}
			return nil, err
		}
		m.report(c.open)
		if batch != nil {
			c.rows += batch.NumRows()
			m.rows += batch.NumRows()
			return batch, nil
		}
	}
}

// end closes the file that was read whole.
func (c *chain) end() error {
	m := c.m
	err := c.open.Close()
	c.open = nil
	if err != nil {
		return err
	}
	f := m.files[m.next]
	c.files = append(c.files, imported(f, c.rows, m.opts.Again || m.opts.Mode == ModeReplace))
	m.read += f.Entry.SizeBytes
	m.next++
	return nil
}

// close ends a chain that was not read to its end.
func (c *chain) close() error {
	if c.open == nil {
		return nil
	}
	err := c.open.Close()
	c.open = nil
	return err
}

// bad leaves rows out, or fails at the first one.
func (m *importer) bad(rows []files.BadRow) error {
	for i := range rows {
		if !m.opts.SkipBad {
			return &rows[i]
		}
		m.badRows++
		if m.opts.OnBad != nil {
			if err := m.opts.OnBad(rows[i]); err != nil {
				return err
			}
		}
		if m.opts.BadRowsMax > 0 && m.badRows > m.opts.BadRowsMax {
			return errs.New(errs.ErrBadValue, "more than %d bad rows: %w", m.opts.BadRowsMax, &rows[i])
		}
	}
	return nil
}

func (m *importer) report(open files.Reader) {
	if m.opts.Progress == nil {
		return
	}
	m.opts.Progress(Progress{
		File: m.files[m.next].URL, FileIndex: m.next, Files: len(m.files), Rows: m.rows, BadRows: m.badRows, Bytes: m.read + open.Progress(), Size: m.size,
	})
}
