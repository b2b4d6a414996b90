package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/dolthub/go-mysql-server/sql"
	ast "github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner/dialect"
	"github.com/lakesql/lakesql/write"
)

// ownStatement runs a statement that MySQL's grammar lacks.
func (c *change) ownStatement(own dialect.Own) error {
	switch x := own.(type) {
	case *dialect.CreateIndex:
		if err := c.beginOn(x.Table, ast.AuthType_INDEX); err != nil {
			return err
		}
		return c.createIndex(x)
	case *dialect.DropIndex:
		if err := c.beginOn(x.Table, ast.AuthType_INDEX); err != nil {
			return err
		}
		return c.dropIndex(x)
	case *dialect.AlterIndexes:
		if err := c.beginOn(x.Table, ast.AuthType_INDEX); err != nil {
			return err
		}
		a, err := c.alterationOf(x.Table)
		if err != nil {
			return err
		}
		return a.run(nil, x.Add, x.Drop)
	case *dialect.OptimizeTable:
		return c.optimize(x)
	case *dialect.EndTransaction:
		return c.endTransaction(x)
	case *dialect.ShowDiagnostics:
		return c.showDiagnostics(x)
	}
	return errs.New(errs.ErrInternal, "a statement of type %T", own)
}

// beginOn checks a privilege on a table and commits what the session has open.
func (c *change) beginOn(t dialect.TableName, privilege string) error {
	database, err := databaseOf(c.ctx, t.Database)
	if err != nil {
		return err
	}
	return c.begin(ast.AuthInformation{AuthType: privilege, TargetType: ast.AuthTargetType_SingleTableIdentifier, TargetNames: []string{database, t.Name}})
}

// createIndex builds an index and commits it.
func (c *change) createIndex(x *dialect.CreateIndex) error {
	_, table, err := c.own(x.Table)
	if err != nil {
		return err
	}
	spec, err := indexSpec(x, table.Schema())
	if err != nil {
		return err
	}
	for _, have := range table.Indexes() {
		if !strings.EqualFold(have.Name, spec.Name) {
			continue
		}
		if !x.IfNotExists {
			return errs.New(errs.ErrIndexExists, "Duplicate key name '%s'", have.Name)
		}
		c.ctx.Session.Warn(&sql.Warning{Level: "Note", Code: 1061, Message: fmt.Sprintf("Duplicate key name '%s'", have.Name)})
		return nil
	}
	built, err := write.CreateIndex(c.ctx, table.Snapshot().Table(), spec, write.CreateIndexOptions{IndexOptions: c.indexOptions()})
	if err == nil && built.UUID == "" {
		err = errs.New(errs.ErrUnsupported, "index %s: there are no vectors in %s to train it from: insert rows first", spec.Name, table.Ref().Table)
	}
	return err
}

// indexOptions are those of everything that a statement builds: its memory, and progress in the process list.
func (c *change) indexOptions() write.IndexOptions {
	return write.IndexOptions{Budget: c.res.request.Env.Budget, Progress: c.e.processes.progress(c.ctx)}
}

// compactOptions are those of a compaction by a statement.
func (c *change) compactOptions(targetRows int64) write.CompactOptions {
	progress := c.e.processes.progress(c.ctx)
	opts := write.CompactOptions{
		TargetRows: targetRows, Remapper: write.IndexRemapper{Options: c.indexOptions()}, Alloc: c.res.request.Env.Alloc, Budget: c.res.request.Env.Budget,
	}
	if progress != nil {
		var done atomic.Int64
		opts.Progress = func(rows int) { progress("rewrite rows", done.Add(int64(rows)), 0) }
	}
	return opts
}

// indexSpec reads what an index of a table with these columns is.
func indexSpec(x *dialect.CreateIndex, columns *arrow.Schema) (write.IndexSpec, error) {
	if len(x.Columns) != 1 {
		return write.IndexSpec{}, errs.New(errs.ErrUnsupported, "an index covers one column; make one index for each of %s", strings.Join(x.Columns, ", "))
	}
	i := fieldIndex(columns, x.Columns[0])
	if i < 0 {
		return write.IndexSpec{}, errs.New(errs.ErrKeyColumn, "Key column '%s' doesn't exist in table", x.Columns[0])
	}
	f := columns.Field(i)
	kind, err := kindOf(x, f)
	if err != nil {
		return write.IndexSpec{}, err
	}
	name := x.Name
	if name == "" {
		name = f.Name + "_idx"
	}
	spec := write.IndexSpec{Name: name, Column: f.Name, Kind: kind}
	return spec, indexSettings(&spec, x.Options)
}

// indexSettings reads WITH (...): metric, num_partitions, sample_rate, max_iterations and seed of IVF_FLAT, rows_per_zone of ZONEMAP.
func indexSettings(spec *write.IndexSpec, options map[string]string) error {
	for option, value := range options {
		isVector := spec.Kind == index.KindIVFFlat
		if isVector && (option == "metric" || option == "metric_type" || option == "distance_type") {
			metric, err := metricOf(value)
			if err != nil {
				return err
			}
			spec.Metric = metric
			continue
		}
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 {
			return errs.New(errs.ErrInvalid, "%s = %s: a number that is not negative", option, value)
		}
		switch {
		case isVector && option == "num_partitions":
			spec.Lists = n
		case isVector && option == "sample_rate":
			spec.SampleRate = n
		case isVector && option == "max_iterations":
			spec.Iterations = n
		case isVector && option == "seed":
			spec.Seed = uint64(n)
		case spec.Kind == index.KindZoneMap && option == "rows_per_zone":
			spec.RowsPerZone = uint64(n)
		default:
			return errs.New(errs.ErrInvalid, "a %s index has no option %s", spec.Kind, option)
		}
	}
	return nil
}

func fieldIndex(s *arrow.Schema, name string) int {
	if i := slices.IndexFunc(s.Fields(), func(f arrow.Field) bool { return f.Name == name }); i >= 0 {
		return i
	}
	return slices.IndexFunc(s.Fields(), func(f arrow.Field) bool { return strings.EqualFold(f.Name, name) })
}

// kindOf is the kind that the statement names, or the one that suits the column.
func kindOf(x *dialect.CreateIndex, f arrow.Field) (index.Kind, error) {
	_, isVector := f.Type.(*arrow.FixedSizeListType)
	switch x.Kind {
	case "":
		switch {
		case isVector:
			return index.KindIVFFlat, nil
		case x.Vector:
			return "", errs.New(errs.ErrInvalid, "column %s holds no vectors: a VECTOR INDEX wants a VECTOR column", f.Name)
		case f.Type.ID() == arrow.LIST || f.Type.ID() == arrow.LARGE_LIST:
			return index.KindLabelList, nil
		}
		return index.KindBTree, nil
	case string(index.KindLabelList), string(index.KindBitmap), string(index.KindBTree), string(index.KindZoneMap), string(index.KindIVFFlat):
		return index.Kind(x.Kind), nil
	case "HASH":
		return index.KindBTree, nil
	}
	return "", errs.New(errs.ErrUnsupported, "index kind %s cannot be built; LABEL_LIST, BITMAP, BTREE, ZONEMAP and IVF_FLAT can", x.Kind)
}

func metricOf(text string) (index.Metric, error) {
	switch strings.ToLower(text) {
	case "l2", "euclidean":
		return index.MetricL2, nil
	case "cosine":
		return index.MetricCosine, nil
	case "dot", "ip", "inner_product":
		return index.MetricDot, nil
	}
	return "", errs.New(errs.ErrInvalid, "metric = %s; l2, cosine and dot are possible", text)
}

// dropIndex takes an index out of the table; its files stay for older versions until clean-up.
func (c *change) dropIndex(x *dialect.DropIndex) error {
	_, table, err := c.own(x.Table)
	if err != nil {
		return err
	}
	for _, info := range table.Indexes() {
		if strings.EqualFold(info.Name, x.Name) {
			_, err := write.DropIndex(c.ctx, table.Snapshot().Table(), info.Name, write.CommitOptions{})
			return err
		}
	}
	if x.IfExists {
		c.ctx.Session.Warn(&sql.Warning{Level: "Note", Code: 1091, Message: fmt.Sprintf("Can't DROP '%s'; check that column/key exists", x.Name)})
		return nil
	}
	return errs.New(errs.ErrCannotDrop, "Can't DROP '%s'; check that column/key exists", x.Name)
}
