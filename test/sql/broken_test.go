package sql

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	arrowmem "github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/source"
	"github.com/lakesql/lakesql/source/memory"
	"github.com/lakesql/lakesql/test/lakes"
)

// breaking is a table whose scans fail after some batches of rows, numbered from 0.
type breaking struct {
	*memory.Table
	batches, rows int
}

func (b *breaking) Scan(context.Context, exec.ScanRequest) (exec.TableScan, error) {
	return &breakingScan{of: b}, nil
}

type breakingScan struct {
	of *breaking
	at int
}

func (s *breakingScan) Reader() exec.BatchReader { return s }
func (s *breakingScan) Close() error             { return nil }
func (s *breakingScan) Next(context.Context) (arrow.RecordBatch, error) {
	if s.at == s.of.batches {
		return nil, errs.New(errs.ErrIO, "the disk is on fire: 100%%")
	}
	if s.at > s.of.batches {
		return nil, io.EOF
	}
	b := array.NewInt64Builder(arrowmem.DefaultAllocator)
	defer b.Release()
	for i := range s.of.rows {
		b.Append(int64(s.at*s.of.rows + i))
	}
	s.at++
	col := b.NewArray()
	defer col.Release()
	return array.NewRecordBatch(s.of.Schema(), []arrow.Array{col}, int64(s.of.rows)), nil
}

// TestErrorsAfterTheFirstRows fails results of several sizes in the middle, in both protocols: the client gets the rows before the error and the error
// itself, and goes on with the same connection.
func TestErrorsAfterTheFirstRows(t *testing.T) {
	s := arrow.NewSchema([]arrow.Field{lakes.Field("a", lakes.Int64)}, nil)
	inner := memory.New(exec.TableRef{Source: "hell", Table: "t"}, s, nil)
	table := &breaking{Table: inner}
	lake := smallLake(t, engine.Config{Workers: 1, Catalogs: []source.Catalog{&endlessCatalog{memory.NewCatalog("hell", inner), table}}})
	for _, text := range []bool{true, false} {
		conn := lake.Connect(t, text)
		var id string
		if err := conn.QueryRowContext(context.Background(), "SELECT CONNECTION_ID()").Scan(&id); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct{ batches, rows int }{{1, 1}, {1, 7}, {3, 1000}, {1, 5000}, {40, 4096}} {
			table.batches, table.rows = c.batches, c.rows
			got, err := countRows(conn, "SELECT a FROM hell.t WHERE a >= ?", 0)
			if number(err) != 1815 || !strings.Contains(err.Error(), "the disk is on fire: 100%") || got != c.batches*c.rows {
				t.Errorf("%+v text %v: %d rows, %v", c, text, got, err)
			}
			var again string
			if err := conn.QueryRowContext(context.Background(), "SELECT CONNECTION_ID()").Scan(&again); err != nil || again != id {
				t.Fatalf("%+v text %v: afterwards connection %s, %v, before %s", c, text, again, err, id)
			}
		}
		table.batches = 0
		if got, err := countRows(conn, "SELECT a FROM hell.t"); number(err) != 1815 || got != 0 {
			t.Errorf("before the first row: %d rows, %v", got, err)
		}
	}
}

func countRows(conn *sql.Conn, text string, args ...any) (n int, err error) {
	rows, err := conn.QueryContext(context.Background(), text, args...)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		n++
	}
	return n, rows.Err()
}
