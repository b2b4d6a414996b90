package engine

import (
	"errors"
	"fmt"
	"slices"

	"github.com/dolthub/go-mysql-server/sql"
	ast "github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner/dialect"
	"github.com/lakesql/lakesql/source/lance"
	"github.com/lakesql/lakesql/write"
)

// optimize compacts tables and extends their indices, and says of each what became of it.
func (c *change) optimize(x *dialect.OptimizeTable) error {
	for _, name := range x.Tables {
		if err := c.beginOn(name, ast.AuthType_INSERT); err != nil {
			return err
		}
	}
	var rows []sql.Row
	for _, name := range x.Tables {
		cat, table, err := c.own(name)
		if err != nil {
			return err
		}
		lines, err := c.optimizeTable(table)
		if err != nil {
			return fmt.Errorf("table %s.%s: %w", cat.Name(), name.Name, err)
		}
		for _, l := range lines {
			rows = append(rows, sql.NewRow(cat.Name()+"."+table.Ref().Table, "optimize", l.kind, l.text))
		}
		rows = append(rows, sql.NewRow(cat.Name()+"."+table.Ref().Table, "optimize", "status", "OK"))
	}
	c.res.schema = ownColumns(x)
	c.res.iter = sql.RowsToRowIter(rows...)
	return c.res.open()
}

// optimizeLine is one line of the report.
type optimizeLine struct{ kind, text string }

// lostCover says what becomes of an index that was not extended after its fragments were rewritten.
func lostCover(name, kind string) string {
	return fmt.Sprintf("index %s of kind %s no longer covers the rewritten rows, which are scanned until it is extended: by optimize_indices, or, if lakesql does not build this kind, by the engine that does", name, kind)
}

func (c *change) optimizeTable(table *lance.Table) ([]optimizeLine, error) {
	storage := table.Snapshot().Table()
	done, err := write.Compact(c.ctx, storage, c.compactOptions(rowOptions(table.Schema()).FragmentRows))
	if err != nil {
		return nil, err
	}
	var out []optimizeLine
	if done.FragmentsRemoved > 0 {
		out = append(out, optimizeLine{"note", fmt.Sprintf("%d fragments became %d, %d rows were rewritten", done.FragmentsRemoved, done.FragmentsAdded, done.Rows)})
	}
	for _, info := range table.Indexes() {
		changed, err := write.UpdateIndex(c.ctx, storage, info.Name, write.UpdateIndexOptions{IndexOptions: c.indexOptions()})
		switch {
		case isUnsupported(err) && slices.Contains(done.Uncovered, info.Name):
			out = append(out, optimizeLine{"warning", lostCover(info.Name, string(info.Kind))})
		case isUnsupported(err):
			out = append(out, optimizeLine{"note", fmt.Sprintf("index %s is of kind %s and stays as it is", info.Name, info.Kind)})
		case errors.Is(err, errs.ErrUnknownIndex):
			out = append(out, optimizeLine{"note", fmt.Sprintf("index %s was dropped meanwhile", info.Name)})
		case err != nil:
			return nil, err
		case changed.UUID != "":
			out = append(out, optimizeLine{"note", fmt.Sprintf("index %s covers all rows", info.Name)})
		}
	}
	return out, nil
}
