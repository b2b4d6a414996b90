package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/information_schema"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/upkeep"
)

// processList is go-mysql-server's list of connections, with what their statements tell of their progress, and the job of upkeep beside them.
type processList struct {
	sql.ProcessList
	upkeep *upkeep.Runner // nil = there is none

	mu     sync.Mutex
	stages map[uint32]string // of statements, by connection
}

// upkeepUser and daemon are what the list shows of a job.
const (
	upkeepUser                    = "upkeep"
	daemon     sql.ProcessCommand = "Daemon"
)

// Processes implements sql.ProcessList, by number.
func (p *processList) Processes() []sql.Process {
	out := p.ProcessList.Processes()
	if j, ok := p.job(); ok {
		out = append(out, sql.Process{
			Connection: j.ID, User: upkeepUser, Host: "localhost", Database: j.Lake, Command: daemon, StartedAt: j.Started, Query: "upkeep of " + j.Table + ": " + j.Name,
		})
	}
	slices.SortFunc(out, func(a, b sql.Process) int { return cmp.Compare(a.Connection, b.Connection) })
	return out
}

func (p *processList) job() (upkeep.Job, bool) {
	if p.upkeep == nil {
		return upkeep.Job{}, false
	}
	return p.upkeep.Running()
}

// Kill implements sql.ProcessList.
func (p *processList) Kill(id uint32) {
	if p.upkeep == nil || !p.upkeep.Kill(id) {
		p.ProcessList.Kill(id)
	}
}

// EndQuery implements sql.ProcessList.
func (p *processList) EndQuery(ctx *sql.Context) {
	p.ProcessList.EndQuery(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.stages, ctx.Session.ID())
}

// onlookers is the list for sessions without a connection: they see it and may end what is in it, and are not in it themselves.
type onlookers struct {
	sql.EmptyProcessList
	list *processList
}

// Processes implements sql.ProcessList.
func (o onlookers) Processes() []sql.Process { return o.list.Processes() }

// Kill implements sql.ProcessList.
func (o onlookers) Kill(id uint32) { o.list.Kill(id) }

// progress returns what takes note of how far the statement of a connection is. Sessions without one are in no list.
func (p *processList) progress(ctx *sql.Context) index.Progress {
	id := ctx.Session.ID()
	if !slices.ContainsFunc(p.ProcessList.Processes(), func(proc sql.Process) bool { return proc.Connection == id && proc.QueryPid == ctx.Pid() }) {
		return nil
	}
	return func(stage string, done, total int64) {
		text := fmt.Sprintf("%s: %d", stage, done)
		if total > 0 {
			text = fmt.Sprintf("%s: %d of %d", stage, done, total)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.stages[id] = text
	}
}

// state is the column State of a process.
func (p *processList) state(proc sql.Process) string {
	if j, ok := p.job(); ok && j.ID == proc.Connection {
		return j.Stage
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if stage, ok := p.stages[proc.Connection]; ok && proc.Command == sql.ProcessCommandQuery {
		return stage
	}
	if proc.Command == sql.ProcessCommandQuery {
		return "running"
	}
	return ""
}

// show is SHOW PROCESSLIST.
func (p *processList) show() sql.RowIter {
	var rows []sql.Row
	for _, proc := range p.Processes() {
		rows = append(rows, sql.NewRow(int64(proc.Connection), proc.User, proc.Host, orNull(proc.Database), string(proc.Command), int64(proc.Seconds()), p.state(proc), proc.Query))
	}
	return sql.RowsToRowIter(rows...)
}

// install shows the same in information_schema.processlist.
func (p *processList) install(ctx context.Context, schema sql.Database) error {
	name := information_schema.ProcessListTableName
	t, ok, err := schema.GetTableInsensitive(sql.NewContext(ctx), name)
	if err != nil || !ok {
		return fmt.Errorf("information_schema.%s: %t, %w", name, ok, err)
	}
	table, ok := t.(*information_schema.InformationSchemaTable)
	if !ok {
		return fmt.Errorf("information_schema.%s is a %T", name, t)
	}
	table.Reader = func(*sql.Context, sql.Catalog) (sql.RowIter, error) {
		var rows []sql.Row
		for _, proc := range p.Processes() {
			rows = append(rows, sql.Row{
				uint64(proc.Connection), proc.User, proc.Host, orNull(proc.Database), string(proc.Command), int32(proc.Seconds()), p.state(proc), proc.Query,
			})
		}
		return sql.RowsToRowIter(rows...), nil
	}
	return nil
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}
