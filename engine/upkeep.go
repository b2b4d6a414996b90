package engine

import (
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/dolthub/go-mysql-server/sql"
	ast "github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/upkeep"
)

func upkeepSchema() *arrow.Schema {
	text, number, at := arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64, &arrow.TimestampType{Unit: arrow.Microsecond}
	return arrow.NewSchema([]arrow.Field{
		{Name: "database_name", Type: text}, {Name: "table_name", Type: text}, {Name: "job", Type: text, Nullable: true}, {Name: "state", Type: text},
		{Name: "stage", Type: text, Nullable: true}, {Name: "last_run", Type: at, Nullable: true}, {Name: "duration_ms", Type: number, Nullable: true},
		{Name: "rows", Type: number, Nullable: true}, {Name: "bytes", Type: number, Nullable: true}, {Name: "last_error", Type: text, Nullable: true},
		{Name: "next_run", Type: at, Nullable: true},
	}, nil)
}

// upkeepTable is lakesql.upkeep: a row for each table that is maintained.
func upkeepTable(r *upkeep.Runner) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, upkeepSchema())
	defer b.Release()
	if r == nil {
		return b.NewRecordBatch()
	}
	on := r.IsOn()
	for _, s := range r.Tables() {
		ran := !s.LastRun.IsZero()
		if !on && s.State != upkeep.StateRunning {
			s.State, s.NextRun = "off", time.Time{}
		}
		for i, v := range []string{0: s.Lake, 1: s.Table, 2: s.Job, 3: s.State, 4: s.Stage, 9: s.LastError} {
			f, ok := b.Field(i).(*array.StringBuilder)
			switch {
			case !ok:
			case v == "" && b.Schema().Field(i).Nullable:
				f.AppendNull()
			default:
				f.Append(v)
			}
		}
		appendTime(b.Field(5), s.LastRun)
		for i, v := range map[int]int64{6: s.Duration.Milliseconds(), 7: s.Rows, 8: s.Bytes} {
			if f := b.Field(i).(*array.Int64Builder); ran {
				f.Append(v)
			} else {
				f.AppendNull()
			}
		}
		appendTime(b.Field(10), s.NextRun)
	}
	return b.NewRecordBatch()
}

func appendTime(b array.Builder, t time.Time) {
	f := b.(*array.TimestampBuilder)
	if t.IsZero() {
		f.AppendNull()
		return
	}
	f.Append(arrow.Timestamp(t.UnixMicro()))
}

const upkeepUsage = "upkeep('on' | 'off' | 'run' [, 'DATABASE.TABLE'])"

// upkeepCall is CALL lakesql.upkeep: it switches upkeep off and on, and has tables looked at without waiting for their time.
func (c *change) upkeepCall(args []string) error {
	if err := c.begin(ast.AuthInformation{AuthType: ast.AuthType_SUPER}); err != nil {
		return err
	}
	r := c.e.upkeep
	if r == nil {
		return errs.New(errs.ErrUnsupported, "CALL lakesql.upkeep: this server does not maintain tables; start it with an upkeep section in its configuration")
	}
	pattern := "*.*"
	if len(args) > 1 {
		pattern = args[1]
	}
	state := "on"
	switch {
	case args[0] == "run":
		n, err := r.LookNow(c.ctx, pattern)
		if err != nil {
			return fmt.Errorf("CALL lakesql.upkeep: %w", err)
		}
		if n == 0 {
			return errs.New(errs.ErrNotFound, "CALL lakesql.upkeep: no table that is maintained is called %s", pattern)
		}
		state = fmt.Sprintf("%d tables are looked at", n)
	case (args[0] == "on" || args[0] == "off") && len(args) == 1:
		if err := r.Switch(c.ctx, args[0] == "on"); err != nil {
			return err
		}
		state = args[0]
	default:
		return errs.New(errs.ErrInvalid, "CALL lakesql.%s: '%s' was given", upkeepUsage, args[0])
	}
	c.res.schema = textColumns("state")
	c.res.iter = sql.RowsToRowIter(sql.NewRow(state))
	return c.res.open()
}
