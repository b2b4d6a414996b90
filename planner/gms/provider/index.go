package provider

import (
	"fmt"
	"strings"

	"github.com/dolthub/go-mysql-server/sql"

	"github.com/lakesql/lakesql/exec"
)

// Index shows an index of ours in SHOW INDEX; go-mysql-server never looks anything up in it.
type Index struct {
	info  exec.IndexInfo
	table *Table
}

var _ sql.Index = (*Index)(nil)

// ID implements sql.Index.
func (x *Index) ID() string { return x.info.Name }

// Database implements sql.Index.
func (x *Index) Database() string { return x.table.database }

// Table implements sql.Index.
func (x *Index) Table() string { return x.table.Name() }

// Expressions implements sql.Index.
func (x *Index) Expressions() []string { return []string{x.table.Name() + "." + x.info.Column} }

// IsUnique implements sql.Index.
func (x *Index) IsUnique() bool { return false }

// IsSpatial implements sql.Index.
func (x *Index) IsSpatial() bool { return false }

// IsFullText implements sql.Index.
func (x *Index) IsFullText() bool { return false }

// IsVector implements sql.Index.
func (x *Index) IsVector() bool { return strings.HasPrefix(string(x.info.Kind), "IVF_") }

// Comment implements sql.Index.
func (x *Index) Comment() string {
	if !x.info.Usable {
		return "not used: " + x.info.Reason
	}
	if x.info.Metric != "" { // SHOW CREATE TABLE prints this as well, so it tells nothing that every append changes
		return fmt.Sprintf("metric=%s, segments=%d", x.info.Metric, x.info.Segments)
	}
	return fmt.Sprintf("segments=%d", x.info.Segments)
}

// IndexType implements sql.Index.
func (x *Index) IndexType() string { return string(x.info.Kind) }

// IsGenerated implements sql.Index.
func (x *Index) IsGenerated() bool { return false }

// ColumnExpressionTypes implements sql.Index.
func (x *Index) ColumnExpressionTypes() []sql.ColumnExpressionType {
	i := x.table.schema.IndexOfColName(strings.ToLower(x.info.Column))
	if i < 0 {
		return nil
	}
	return []sql.ColumnExpressionType{{Expression: x.Expressions()[0], Type: x.table.schema[i].Type}}
}

// CanSupport implements sql.Index.
func (x *Index) CanSupport(*sql.Context, ...sql.Range) bool { return false }

// CanSupportOrderBy implements sql.Index.
func (x *Index) CanSupportOrderBy(sql.Expression) bool { return false }

// PrefixLengths implements sql.Index.
func (x *Index) PrefixLengths() []uint16 { return nil }
