package engine

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"
	_ "time/tzdata" // SET time_zone works on machines without a zone database

	"github.com/apache/arrow-go/v18/arrow"
	sqle "github.com/dolthub/go-mysql-server"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/rowexec"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/planner/dialect"
	"github.com/lakesql/lakesql/planner/gms/provider"
	"github.com/lakesql/lakesql/planner/gms/translate"
	"github.com/lakesql/lakesql/source"
	"github.com/lakesql/lakesql/source/lance"
	"github.com/lakesql/lakesql/upkeep"
)

// Config says what an engine opens and how far it may go. Zero fields mean the default.
type Config struct {
	Catalogs              []source.Catalog // the engine closes them
	MemoryLimitBytes      int64            // of all statements together; 0 = no limit
	QueryMemoryLimitBytes int64            // of one statement unless @@query_memory_limit says otherwise; 0 = no limit of its own
	Workers               int              // goroutines per pipeline; default the number of CPUs
	BatchRows             int              // default exec.DefaultBatchRows
	Statement             dialect.Limits   // bounds on statement text
	RowEngine             provider.Caps    // bounds on what runs row by row
	Location              *time.Location   // what the time zone SYSTEM means; default UTC
	Now                   func() time.Time // default time.Now
	Upkeep                *upkeep.Options  // tables are maintained beside statements; nil = they are not
}

func (c Config) withDefaults() Config {
	if c.Workers <= 0 {
		c.Workers = runtime.GOMAXPROCS(0)
	}
	if c.BatchRows <= 0 {
		c.BatchRows = exec.DefaultBatchRows
	}
	if c.Location == nil {
		c.Location = time.UTC
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Validate names what cannot be.
func (c Config) Validate() error {
	if c.MemoryLimitBytes < 0 || c.QueryMemoryLimitBytes < 0 {
		return errs.New(errs.ErrInvalid, "memory limits cannot be negative")
	}
	return nil
}

// Engine runs statements over catalogs. It is safe for concurrent use.
type Engine struct {
	zones    zones
	config   Config
	provider *provider.Provider
	sqle     *sqle.Engine
	budget   *mem.Budget
	pool     *mem.Pool // of all statements' batches

	upkeep    *upkeep.Runner // nil = there is none
	processes *processList

	sessions atomic.Uint32
}

// Open makes an engine. ErrInvalid for a bad configuration, ErrExists for two catalogs of one name.
func Open(ctx context.Context, config Config) (*Engine, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	config = config.withDefaults()
	provider.RegisterVariables()
	p, err := provider.New(config.Catalogs, config.RowEngine)
	if err != nil {
		return nil, err
	}
	a := analyzer.NewBuilder(p).Build()
	translate.Install(a)
	e := &Engine{config: config, provider: p, budget: mem.NewBudget("server", config.MemoryLimitBytes, nil), pool: mem.NewPool()}
	a.Catalog.StatsProvider = provider.Statistics{}
	e.sqle = sqle.New(a, &sqle.Config{})
	if err := e.maintain(ctx, a); err != nil {
		return nil, errors.Join(err, e.closeSQLE())
	}
	parser := translate.NewParser(config.Statement, func() bool { return !a.Catalog.MySQLDb.Enabled() })
	e.sqle.Parser, a.Parser = parser, parser
	if e.upkeep != nil {
		e.upkeep.Start()
	}
	return e, nil
}

// maintain prepares upkeep and the list that shows it.
func (e *Engine) maintain(ctx context.Context, a *analyzer.Analyzer) (err error) {
	if e.config.Upkeep != nil {
		var lakes []*lance.Catalog
		for _, c := range e.config.Catalogs {
			if lake, ok := c.(*lance.Catalog); ok {
				lakes = append(lakes, lake)
			}
		}
		if e.upkeep, err = upkeep.New(lakes, *e.config.Upkeep); err != nil {
			return err
		}
	}
	e.provider.AddSystemTable("upkeep", func() arrow.RecordBatch { return upkeepTable(e.upkeep) })
	e.processes = &processList{ProcessList: e.sqle.ProcessList, upkeep: e.upkeep, stages: make(map[uint32]string)}
	e.sqle.ProcessList = e.processes
	a.ExecBuilder = rowexec.NewOverrideBuilder(&explainer{processes: e.processes})
	return e.processes.install(ctx, a.Catalog.InfoSchema)
}

// SQLE returns go-mysql-server's engine, for the listener.
func (e *Engine) SQLE() *sqle.Engine { return e.sqle }

// Provider returns the databases; catalogs may be added and removed there.
func (e *Engine) Provider() *provider.Provider { return e.provider }

// Budget is the memory of all statements together.
func (e *Engine) Budget() *mem.Budget { return e.budget }

// Upkeep is what maintains the tables; nil where nothing does.
func (e *Engine) Upkeep() *upkeep.Runner { return e.upkeep }

// Close ends the job of upkeep, if one runs, and closes the catalogs. Statements must have ended.
func (e *Engine) Close() error {
	var all []error
	if e.upkeep != nil {
		all = append(all, e.upkeep.Close())
	}
	for _, c := range e.provider.Catalogs() {
		all = append(all, c.Close())
	}
	return errors.Join(append(all, e.closeSQLE())...)
}

func (e *Engine) closeSQLE() error {
	if err := e.sqle.Close(); !errors.Is(err, context.Canceled) { // what its background threads end with
		return err
	}
	return nil
}
