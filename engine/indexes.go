package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/dolthub/go-mysql-server/sql"
	ast "github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/planner/dialect"
	"github.com/lakesql/lakesql/source/lance"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/write"
)

// ownStatement runs a statement that MySQL's grammar lacks.
func (c *change) ownStatement(own dialect.Own) error {
	switch x := own.(type) {
	case *dialect.CreateIndex:
		if err := c.beginIndex(x.Table, ast.AuthType_INDEX); err != nil {
			return err
		}
		return c.createIndex(x)
	case *dialect.DropIndex:
		if err := c.beginIndex(x.Table, ast.AuthType_INDEX); err != nil {
			return err
		}
		return c.dropIndex(x)
	case *dialect.OptimizeTable:
		return c.optimize(x)
	}
	return errs.New(errs.ErrInternal, "a statement of type %T", own)
}

// beginIndex checks a privilege on a table and commits what the session has open.
func (c *change) beginIndex(t dialect.TableName, privilege string) error {
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
	if len(x.Columns) != 1 {
		return errs.New(errs.ErrUnsupported, "an index covers one column; make one index for each of %s", strings.Join(x.Columns, ", "))
	}
	i := fieldIndex(table.Schema(), x.Columns[0])
	if i < 0 {
		return errs.New(errs.ErrKeyColumn, "Key column '%s' doesn't exist in table", x.Columns[0])
	}
	f := table.Schema().Field(i)
	kind, err := kindOf(x, f)
	if err != nil {
		return err
	}
	name := x.Name
	if name == "" {
		name = f.Name + "_idx"
	}
	for _, have := range table.Indexes() {
		if !strings.EqualFold(have.Name, name) {
			continue
		}
		if !x.IfNotExists {
			return errs.New(errs.ErrIndexExists, "Duplicate key name '%s'", have.Name)
		}
		c.ctx.Session.Warn(&sql.Warning{Level: "Note", Code: 1061, Message: fmt.Sprintf("Duplicate key name '%s'", have.Name)})
		return nil
	}
	budget := c.res.request.Env.Budget
	if strings.HasPrefix(string(kind), "IVF_") {
		return c.buildVectorIndex(table, name, f, kind, x.Options, budget)
	}
	spec := write.FilterIndexSpec{Name: name, Column: f.Name, Kind: kind}
	for option, value := range x.Options {
		n, err := strconv.ParseUint(value, 10, 64)
		if option != "rows_per_zone" || kind != index.KindZoneMap {
			return errs.New(errs.ErrInvalid, "a %s index has no option %s", kind, option)
		}
		if err != nil || n == 0 {
			return errs.New(errs.ErrInvalid, "rows_per_zone = %s: a number of rows", value)
		}
		spec.RowsPerZone = n
	}
	_, err = write.BuildFilterIndex(c.ctx, table.Snapshot().Table(), spec, write.FilterIndexOptions{Budget: budget})
	return err
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

// buildVectorIndex reads the options metric, num_partitions, sample_rate, max_iterations and seed.
func (c *change) buildVectorIndex(table *lance.Table, name string, f arrow.Field, kind index.Kind, options map[string]string, budget *mem.Budget) error {
	o := write.IVFFlatOptions{Name: name, Budget: budget}
	for option, value := range options {
		if option == "metric" || option == "metric_type" || option == "distance_type" {
			metric, err := metricOf(value)
			if err != nil {
				return err
			}
			o.Metric = metric
			continue
		}
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 {
			return errs.New(errs.ErrInvalid, "%s = %s: a number that is not negative", option, value)
		}
		switch option {
		case "num_partitions":
			o.Lists = n
		case "sample_rate":
			o.SampleRate = n
		case "max_iterations":
			o.Iterations = n
		case "seed":
			o.Seed = uint64(n)
		default:
			return errs.New(errs.ErrInvalid, "an %s index has no option %s; metric, num_partitions, sample_rate, max_iterations and seed are possible", kind, option)
		}
	}
	built, err := write.BuildIVFFlat(c.ctx, table.Snapshot().Table(), f.Name, o)
	if err == nil && built.Lists == 0 {
		err = errs.New(errs.ErrUnsupported, "index %s: there are no vectors in %s to train it from: insert rows first", name, table.Ref().Table)
	}
	return err
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
	snap := table.Snapshot()
	var change write.IndexChange
	for _, m := range snap.Manifest().Indices {
		if strings.EqualFold(m.GetName(), x.Name) {
			change.Removed = append(change.Removed, m.GetUuid().GetUuid())
		}
	}
	if len(change.Removed) == 0 {
		if x.IfExists {
			c.ctx.Session.Warn(&sql.Warning{Level: "Note", Code: 1091, Message: fmt.Sprintf("Can't DROP '%s'; check that column/key exists", x.Name)})
			return nil
		}
		return errs.New(errs.ErrCannotDrop, "Can't DROP '%s'; check that column/key exists", x.Name)
	}
	_, err = write.CommitIndex(c.ctx, target(snap), change, write.CommitOptions{})
	return err
}

// target is where a snapshot's table lies.
func target(snap *storage.Snapshot) write.Target {
	return write.Target{Store: snap.Table().Store(), Dir: snap.Table().Dir()}
}

func (c *change) optimize(x *dialect.OptimizeTable) error {
	return errs.New(errs.ErrUnsupported, "OPTIMIZE TABLE")
}
