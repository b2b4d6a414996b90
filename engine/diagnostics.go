package engine

import (
	"strings"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/lakesql/lakesql/planner/dialect"
	"github.com/lakesql/lakesql/planner/gms/mysqlerr"
	"github.com/lakesql/lakesql/planner/gms/provider"
)

// startDiagnostics clears what the statement before had to say. Statements that ask for it leave it in place: keeps is then true.
func startDiagnostics(ctx *sql.Context, rewritten *dialect.Result) (keeps bool) {
	if rewritten != nil {
		if _, shows := rewritten.Own.(*dialect.ShowDiagnostics); shows || asksForCounts(rewritten.Original) {
			return true
		}
	}
	ctx.ClearWarnings()
	return false
}

// asksForCounts says that a statement reads @@warning_count or @@error_count.
func asksForCounts(text string) bool {
	if !strings.Contains(text, "@@") || len(text) > 1<<12 {
		return false
	}
	text = strings.ToLower(text)
	return strings.Contains(text, provider.VarWarningCount) || strings.Contains(text, provider.VarErrorCount)
}

// failed makes an error the last thing that the statement has to say.
func failed(ctx *sql.Context, err error) {
	if err == nil || ctx == nil || ctx.WarningCount() >= warningsMax {
		return
	}
	e := mysqlerr.Convert(err)
	ctx.Session.Warn(&sql.Warning{Level: provider.LevelError, Code: e.Num, Message: e.Message})
}

// ownColumns are the columns of the rows that a statement of our own returns, nil where it returns none.
func ownColumns(own dialect.Own) sql.Schema {
	switch x := own.(type) {
	case *dialect.OptimizeTable:
		return textColumns("Table", "Op", "Msg_type", "Msg_text")
	case *dialect.ShowDiagnostics:
		name := provider.VarWarningCount
		if x.Errors {
			name = provider.VarErrorCount
		}
		if x.Count {
			return sql.Schema{{Name: "@@session." + name, Type: types.Uint64}}
		}
		return sql.Schema{{Name: "Level", Type: types.Text}, {Name: "Code", Type: types.Uint32}, {Name: "Message", Type: types.Text}}
	}
	return nil
}

// showDiagnostics answers SHOW WARNINGS and its like, the oldest first.
func (c *change) showDiagnostics(x *dialect.ShowDiagnostics) error {
	var rows []sql.Row
	all := c.ctx.Warnings()
	for i := len(all) - 1; i >= 0; i-- {
		if w := all[i]; !x.Errors || w.Level == provider.LevelError {
			rows = append(rows, sql.NewRow(w.Level, uint32(w.Code), w.Message))
		}
	}
	c.res.schema = ownColumns(x)
	if x.Count {
		c.res.iter = sql.RowsToRowIter(sql.NewRow(uint64(len(rows))))
		return c.res.open()
	}
	rows = rows[min(x.Offset, len(rows)):]
	if x.Limit >= 0 {
		rows = rows[:min(x.Limit, len(rows))]
	}
	c.res.iter = sql.RowsToRowIter(rows...)
	return c.res.open()
}

// endTransaction ends the session's transaction and begins the next one, or lets go of the connection.
func (c *change) endTransaction(x *dialect.EndTransaction) error {
	c.res.Release = x.Release
	switch {
	case x.Chain:
		return c.session.Chain(c.ctx, x.Commit)
	case x.Commit:
		return c.session.CommitNow(c.ctx)
	}
	return c.session.RollbackNow(c.ctx)
}
