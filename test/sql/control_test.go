package sql

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/go-sql-driver/mysql"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/source"
	"github.com/lakesql/lakesql/source/memory"
	"github.com/lakesql/lakesql/test/lakes"
)

// endless is a table whose scans wait until they are told to stop.
type endless struct {
	*memory.Table
	started chan struct{}
	stopped atomic.Int32
}

func (e *endless) Scan(context.Context, exec.ScanRequest) (exec.TableScan, error) { return e, nil }
func (e *endless) Reader() exec.BatchReader                                       { return e }
func (e *endless) Close() error                                                   { return nil }
func (e *endless) Next(ctx context.Context) (arrow.RecordBatch, error) {
	e.started <- struct{}{}
	<-ctx.Done()
	e.stopped.Add(1)
	return nil, ctx.Err()
}

type endlessCatalog struct {
	source.Catalog
	table exec.Table
}

func (c *endlessCatalog) Table(context.Context, string, source.AsOf) (exec.Table, error) {
	return c.table, nil
}

// endlessLake has the table slow.endless beside the lake.
func endlessLake(t *testing.T, config engine.Config) (*lakes.Lake, *endless) {
	t.Helper()
	s := arrow.NewSchema([]arrow.Field{lakes.Field("a", lakes.Int64)}, nil)
	inner := memory.New(exec.TableRef{Source: "slow", Table: "endless"}, s, nil)
	table := &endless{Table: inner, started: make(chan struct{}, 100)}
	config.Workers = 1
	config.Catalogs = []source.Catalog{&endlessCatalog{memory.NewCatalog("slow", inner), table}}
	return smallLake(t, config), table
}

// patience is how long a statement may take to stop.
const patience = 5 * time.Second

func soon(t *testing.T, what string, done <-chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		t.Fatalf("%s did not end in %v", what, patience)
		return nil
	}
}

// TestClientsKillEachOther has two connections of which each kills the other's statement.
func TestClientsKillEachOther(t *testing.T) {
	lake, table := endlessLake(t, engine.Config{})
	conns := []int{0, 1}
	victims, killers := [2]lakes.Door{}, [2]lakes.Door{}
	var numbers [2]string
	for i := range conns {
		victim, killer := lake.Connect(t, true), lake.Connect(t, true)
		victims[i].Ask = func(ctx context.Context, text string, args ...any) ([]string, error) {
			return lakes.AskConn(ctx, victim, text, args...)
		}
		killers[i].Ask = func(ctx context.Context, text string, args ...any) ([]string, error) {
			return lakes.AskConn(ctx, killer, text, args...)
		}
		got, err := victims[i].Ask(context.Background(), "SELECT CONNECTION_ID()")
		if err != nil {
			t.Fatal(err)
		}
		numbers[i] = got[0]
	}
	done := [2]chan error{make(chan error, 1), make(chan error, 1)}
	for i := range conns {
		go func() {
			_, err := victims[i].Ask(context.Background(), "SELECT SUM(a) FROM slow.endless")
			done[i] <- err
		}()
		<-table.started
	}
	for i := range conns {
		go func() { _, _ = killers[i].Ask(context.Background(), "KILL QUERY "+numbers[1-i]) }()
	}
	for i := range conns {
		if err := soon(t, "a killed statement", done[i]); number(err) != 1317 {
			t.Errorf("client %d: %v, want 1317", i, err)
		}
		if got, err := victims[i].Ask(context.Background(), "SELECT 1"); err != nil || got[0] != "1" {
			t.Errorf("client %d afterwards: %v, %v", i, got, err)
		}
	}
	if table.stopped.Load() != 2 {
		t.Errorf("%d scans stopped", table.stopped.Load())
	}
	checkAlive(t, lake)
}

// TestALostClientStopsItsStatement closes the connection under a running statement.
func TestALostClientStopsItsStatement(t *testing.T) {
	lake, table := endlessLake(t, engine.Config{})
	for _, text := range []bool{true, false} {
		conn := lake.Connect(t, text)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() {
			var err error
			if text {
				_, err = lakes.AskConn(ctx, conn, "SELECT SUM(a) FROM slow.endless")
			} else {
				_, err = lakes.AskPrepared(ctx, conn, "SELECT SUM(a) FROM slow.endless WHERE a > ?", 1)
			}
			done <- err
		}()
		<-table.started
		before := table.stopped.Load()
		cancel() // the driver closes the connection
		if err := soon(t, "the client", done); err == nil {
			t.Error("a statement of a lost client gives no error")
		}
		for end := time.Now().Add(patience); table.stopped.Load() == before; {
			if time.Now().After(end) {
				t.Fatalf("text %v: the scan goes on without a client", text)
			}
			time.Sleep(time.Millisecond)
		}
	}
	checkAlive(t, lake)
}

func TestStatementsRunOutOfTime(t *testing.T) {
	lake, _ := endlessLake(t, engine.Config{})
	for _, door := range wire(lake) {
		for _, text := range []string{
			"SELECT /*+ MAX_EXECUTION_TIME(30) */ SUM(a) FROM slow.endless", "SELECT /*+ SET_VAR(max_execution_time = 30) */ a FROM slow.endless ORDER BY a",
			"SELECT /*+ MAX_EXECUTION_TIME(30) */ v.id FROM v JOIN slow.endless e ON e.a = v.id ORDER BY " + d + " LIMIT 3",
		} {
			if _, err := door.Ask(context.Background(), text); number(err) != 3024 {
				t.Errorf("%s: %s: %v, want 3024", door.Name, text, err)
			}
		}
		if _, err := door.Ask(context.Background(), "SET max_execution_time = 30"); err != nil {
			t.Fatal(err)
		}
		if _, err := door.Ask(context.Background(), "SELECT a FROM slow.endless"); number(err) != 3024 {
			t.Errorf("%s: by variable: %v, want 3024", door.Name, err)
		}
		if _, err := door.Ask(context.Background(), "SET max_execution_time = 0"); err != nil {
			t.Fatal(err)
		}
	}
	checkAlive(t, lake)
}

func TestStatementsRunOutOfMemory(t *testing.T) {
	lake := smallLake(t, engine.Config{QueryMemoryLimitBytes: 64 << 10})
	for _, text := range []string{
		"SELECT a.id FROM circle a JOIN circle b ON a.cat = b.cat ORDER BY a.id DESC, b.id",
		"SELECT a.id, b.id, COUNT(*) FROM circle a, circle b GROUP BY a.id, b.id",
		"SELECT DISTINCT a.id + 1000 * b.id FROM circle a, circle b",
	} {
		for _, door := range wire(lake) {
			if got, err := door.Ask(context.Background(), text); number(err) != 1041 {
				t.Errorf("%s: %s: %d rows, %v, want 1041", door.Name, text, len(got), err)
			}
		}
	}
	checkAlive(t, lake)
}

// TestAbandonedConnections leaves without a word.
func TestAbandonedConnections(t *testing.T) {
	lake := smallLake(t, engine.Config{})
	for range 20 {
		conn := lake.Connect(t, true)
		err := conn.Raw(func(c any) error {
			closer, ok := c.(interface{ Close() error })
			if !ok {
				return fmt.Errorf("%T cannot be closed", c)
			}
			return closer.Close()
		})
		if err != nil && !errors.Is(err, mysql.ErrInvalidConn) {
			t.Fatal(err)
		}
	}
	checkAlive(t, lake)
}
