package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/source"
	"github.com/lakesql/lakesql/source/lance"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/write"
)

// signals is how a task talks with the process that measures it: an empty object when a step may begin, then what it took.
type signals struct {
	in  io.Reader
	out io.Writer
}

func (s *signals) step(name string, work func() (rows int64, err error)) error {
	fmt.Fprintln(s.out, "{}") //nolint:errcheck // the answer would not come
	if _, err := bufio.NewReader(s.in).ReadString('\n'); err != nil {
		return err
	}
	start := time.Now()
	user, system := cpuSeconds()
	rows, err := work()
	if err != nil {
		return err
	}
	m := measured{Step: name, Rows: rows, Seconds: time.Since(start).Seconds()}
	m.Durable = m.Seconds
	m.User, m.System = cpuSeconds()
	m.User, m.System = m.User-user, m.System-system
	return json.NewEncoder(s.out).Encode(m)
}

// cpuSeconds is what all threads of this process have used so far, in their own code and in the system's.
func cpuSeconds() (user, system float64) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, 0
	}
	return float64(u.Utime.Nano()) / 1e9, float64(u.Stime.Nano()) / 1e9
}

// runTask does lakesql's side of a task.
func runTask(ctx context.Context, text string, s *signals) error {
	var t task
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return err
	}
	switch t.Do {
	case "write":
		return t.write(ctx, s)
	case "copy":
		return t.copy(ctx, s)
	case "index":
		return t.index(ctx, s)
	}
	return fmt.Errorf("task %q", t.Do)
}

func (t task) fileVersion() file.Version {
	if t.Version == file.V21.String() {
		return file.V21
	}
	return file.V22
}

func openTable(ctx context.Context, path string) (*storage.Table, object.Store, error) {
	store, err := object.OpenLocal(filepath.Dir(path), object.LocalOptions{})
	if err != nil {
		return nil, nil, err
	}
	table, err := storage.OpenTable(ctx, store, filepath.Base(path), storage.TableOptions{})
	return table, store, err
}

// write makes a table of each fragment, whose rows are in memory before.
func (t task) write(ctx context.Context, s *signals) error {
	table, store, err := openTable(ctx, t.Dataset)
	if err != nil {
		return err
	}
	defer store.Close() //nolint:errcheck // read only
	snap, err := table.Latest(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(t.Out, 0o750); err != nil {
		return err
	}
	to, err := object.OpenLocal(t.Out, object.LocalOptions{})
	if err != nil {
		return err
	}
	defer to.Close() //nolint:errcheck // nothing was read
	rows := int64(0)
	for _, f := range snap.Fragments() {
		if rows >= t.RowsMax {
			break
		}
		held, err := readAll(ctx, snap, []uint32{f.ID()}, 1<<40)
		if err != nil {
			return err
		}
		rows += held.rows
		err = s.step(t.Do, func() (int64, error) {
			_, err := write.CreateTable(ctx, write.Target{Store: to, Dir: fmt.Sprintf("%d.lance", f.ID())}, snap.Schema().Arrow(),
				write.CreateOptions{Version: t.fileVersion(), Parts: []write.Batches{held}})
			return held.rows, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// heldRows hands out batches that are in memory.
type heldRows struct {
	batches []arrow.RecordBatch
	rows    int64
}

func (h *heldRows) Next(context.Context) (arrow.RecordBatch, error) {
	if len(h.batches) == 0 {
		return nil, io.EOF
	}
	b := h.batches[0]
	h.batches = h.batches[1:]
	return b, nil
}

func readAll(ctx context.Context, snap *storage.Snapshot, fragments []uint32, rowsMax int64) (*heldRows, error) {
	scan, err := snap.Scan(ctx, storage.ScanOptions{Fragments: fragments})
	if err != nil {
		return nil, err
	}
	reader := scan.Reader()
	defer reader.Close() //nolint:errcheck // read only
	out := &heldRows{}
	for out.rows < rowsMax {
		b, err := reader.Next(ctx)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if over := out.rows + b.NumRows() - rowsMax; over > 0 {
			b = b.NewSlice(0, b.NumRows()-over)
		}
		out.batches = append(out.batches, b)
		out.rows += b.NumRows()
	}
	return out, nil
}

// copy is CREATE TABLE ... AS SELECT * by a statement.
func (t task) copy(ctx context.Context, s *signals) error {
	if err := os.MkdirAll(t.Out, 0o750); err != nil {
		return err
	}
	var catalogs []source.Catalog
	for name, folder := range map[string]string{"source": filepath.Dir(t.Dataset), "target": t.Out} {
		store, err := object.OpenLocal(folder, object.LocalOptions{})
		if err != nil {
			return err
		}
		catalogs = append(catalogs, lance.Open(name, store, lance.Options{}))
	}
	e, err := engine.Open(ctx, engine.Config{Catalogs: catalogs})
	if err != nil {
		return err
	}
	defer e.Close() //nolint:errcheck // the process ends
	session := e.NewSession(engine.SessionOptions{Database: "target"})
	defer session.Close()
	return s.step(t.Do, func() (int64, error) {
		res, err := session.Query(ctx, "CREATE TABLE copied AS SELECT * FROM source."+tableName(t.Dataset))
		if err != nil {
			return 0, err
		}
		rows := int64(res.AffectedRows) //nolint:gosec // no table has that many
		return rows, res.Close()
	})
}

// index builds one, appends 1 % and updates it twice.
func (t task) index(ctx context.Context, s *signals) error {
	table, store, err := openTable(ctx, t.Dataset)
	if err != nil {
		return err
	}
	defer store.Close() //nolint:errcheck // the process ends
	snap, err := table.Latest(ctx)
	if err != nil {
		return err
	}
	name, rows := "bench_"+t.Column, int64(snap.Rows()) //nolint:gosec // no table has that many
	err = s.step("build", func() (int64, error) {
		_, err := write.CreateIndex(ctx, table, write.IndexSpec{Name: name, Column: t.Column, Kind: index.Kind(t.Kind), Lists: t.Lists}, write.CreateIndexOptions{})
		return rows, err
	})
	if err != nil {
		return err
	}
	for _, u := range []struct {
		step  string
		merge int
	}{{"update, own segment", -1}, {"update, merged", 2}} {
		more, err := readAll(ctx, snap, nil, rows/100)
		if err != nil {
			return err
		}
		if _, err := write.Append(ctx, write.Target{Store: store, Dir: filepath.Base(t.Dataset)}, more, write.AppendOptions{}); err != nil {
			return err
		}
		err = s.step(u.step, func() (int64, error) {
			_, err := write.UpdateIndex(ctx, table, name, write.UpdateIndexOptions{Merge: u.merge})
			return more.rows, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
