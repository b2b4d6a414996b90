package provider

import (
	"github.com/dolthub/go-mysql-server/sql"

	"github.com/lakesql/lakesql/internal/errs"
)

// Statistics answers go-mysql-server's questions about tables from what tables know; it keeps no histograms, since our planner has its own estimates.
type Statistics struct{}

var _ sql.StatsProvider = Statistics{}

// GetTableStats implements sql.StatsProvider.
func (Statistics) GetTableStats(*sql.Context, string, sql.Table) ([]sql.Statistic, error) {
	return nil, nil
}

// AnalyzeTable implements sql.StatsProvider: exact counts need no refresh.
func (Statistics) AnalyzeTable(*sql.Context, sql.Table, string) error { return nil }

// SetStats implements sql.StatsProvider.
func (Statistics) SetStats(*sql.Context, sql.Statistic) error {
	return errs.New(errs.ErrUnsupported, "statistics cannot be set")
}

// GetStats implements sql.StatsProvider.
func (Statistics) GetStats(*sql.Context, sql.StatQualifier, []string) (sql.Statistic, bool) {
	return nil, false
}

// DropStats implements sql.StatsProvider.
func (Statistics) DropStats(*sql.Context, sql.StatQualifier, []string) error { return nil }

// DropDbStats implements sql.StatsProvider.
func (Statistics) DropDbStats(*sql.Context, string, bool) error { return nil }

// RowCount implements sql.StatsProvider.
func (Statistics) RowCount(ctx *sql.Context, _ string, t sql.Table) (uint64, error) {
	if st, ok := sql.GetUnderlyingTable(t).(sql.StatisticsTable); ok {
		n, _, err := st.RowCount(ctx)
		return n, err
	}
	return 0, nil
}

// DataLength implements sql.StatsProvider.
func (Statistics) DataLength(ctx *sql.Context, _ string, t sql.Table) (uint64, error) {
	if st, ok := sql.GetUnderlyingTable(t).(sql.StatisticsTable); ok {
		return st.DataLength(ctx)
	}
	return 0, nil
}
