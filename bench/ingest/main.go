// Command ingest writes the rows of Lance datasets anew, by lakesql and, if an interpreter is named, by pylance, and compares bytes per column and rows a second.
//
//	go run ./bench/ingest [-python PATH] [-out DIR] [-rows N] DATASET.lance...
//
// Both sides hold the rows of one fragment in memory, write them as one file to the same disk and are timed for that alone, one after the other.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/schema"
)

func main() {
	python := flag.String("python", "", "interpreter that has pylance; empty = sizes of the files as they are")
	out := flag.String("out", os.TempDir(), "folder for what is written")
	rowsMax := flag.Int64("rows", 1<<40, "most rows of each dataset")
	version := flag.String("version", "2.2", "file version, 2.1 or 2.2")
	flag.Parse()
	if err := run(*python, *out, *rowsMax, *version, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "ingest:", err)
		os.Exit(1)
	}
}

// side is what one engine wrote.
type side struct {
	bytes   map[string]int64 // by column
	total   int64            // files, all included
	rows    int64
	seconds float64
	cpu     float64 // seconds of all threads
}

func (s side) rate() float64 { return float64(s.rows) / s.seconds }

// cpuSeconds is what this process has used so far.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

func run(python, out string, rowsMax int64, version string, datasets []string) error {
	v := file.V22
	if version == file.V21.String() {
		v = file.V21
	}
	tmp, err := os.MkdirTemp(out, "ingest")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // a temporary folder
	for _, path := range datasets {
		ours, theirs, err := rewrite(path, filepath.Join(tmp, "ours"), rowsMax, v)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if python != "" {
			if theirs, err = pylance(python, path, filepath.Join(tmp, "theirs"), rowsMax, version); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
		report(filepath.Base(path), ours, theirs)
		if err := os.RemoveAll(tmp); err != nil {
			return err
		}
	}
	return nil
}

// rewrite writes the fragments of a dataset and adds up the sizes of what was written and of what is there.
func rewrite(path, out string, rowsMax int64, v file.Version) (ours, there side, err error) {
	ctx := context.Background()
	ours, there = side{bytes: map[string]int64{}}, side{bytes: map[string]int64{}}
	store, err := object.OpenLocal(filepath.Dir(path), object.LocalOptions{})
	if err != nil {
		return ours, there, err
	}
	defer store.Close() //nolint:errcheck // read only
	if err := os.MkdirAll(out, 0o755); err != nil {
		return ours, there, err
	}
	to, err := object.OpenLocal(out, object.LocalOptions{})
	if err != nil {
		return ours, there, err
	}
	defer to.Close() //nolint:errcheck // thrown away
	table, err := storage.OpenTable(ctx, store, filepath.Base(path), storage.TableOptions{})
	if err != nil {
		return ours, there, err
	}
	snap, err := table.Latest(ctx)
	if err != nil {
		return ours, there, err
	}
	for _, f := range snap.Fragments() {
		if ours.rows >= rowsMax {
			break
		}
		batches, err := readAll(ctx, snap, f.ID())
		if err != nil {
			return ours, there, err
		}
		for i := range f.Proto().GetFiles() {
			r, err := f.OpenFile(ctx, i)
			if err != nil {
				return ours, there, err
			}
			if err := there.add(r); err != nil {
				return ours, there, err
			}
			there.total += int64(f.Proto().GetFiles()[i].GetFileSizeBytes())
		}
		name := fmt.Sprintf("%s-%d.lance", filepath.Base(path), f.ID())
		if err := ours.write(ctx, to, name, snap.Schema(), batches, v); err != nil {
			return ours, there, err
		}
	}
	return ours, there, nil
}

func readAll(ctx context.Context, snap *storage.Snapshot, fragment uint32) ([]arrow.RecordBatch, error) {
	scan, err := snap.Scan(ctx, storage.ScanOptions{Fragments: []uint32{fragment}})
	if err != nil {
		return nil, err
	}
	reader := scan.Reader()
	defer reader.Close() //nolint:errcheck // read only
	var out []arrow.RecordBatch
	for {
		b, err := reader.Next(ctx)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
}

func (s *side) write(ctx context.Context, store object.Store, name string, sc *schema.Schema, batches []arrow.RecordBatch, v file.Version) error {
	start, cpu := time.Now(), cpuSeconds()
	out, err := store.Create(ctx, name)
	if err != nil {
		return err
	}
	w, err := file.NewWriter(out, sc, file.WriterOptions{Version: v})
	if err != nil {
		return err
	}
	for _, b := range batches {
		if err := w.Write(ctx, b); err != nil {
			return err
		}
		s.rows += b.NumRows()
	}
	written, err := w.Finish(ctx)
	if err != nil {
		return err
	}
	s.seconds += time.Since(start).Seconds()
	s.cpu += cpuSeconds() - cpu
	s.total += written.SizeBytes
	for _, b := range batches {
		b.Release()
	}
	f, err := store.Open(ctx, name)
	if err != nil {
		return err
	}
	r, err := file.Open(ctx, f, file.Options{})
	if err != nil {
		return err
	}
	return s.add(r)
}

func (s *side) add(r *file.Reader) error {
	cols, err := r.Columns()
	if err != nil {
		return err
	}
	for i, c := range cols {
		s.bytes[r.Schema().Fields[i].Name] += r.ColumnBytes(c)
	}
	return nil
}

// pylance runs the script beside this file, which prints a JSON line per fragment, and sums up its files.
func pylance(python, path, out string, rowsMax int64, version string) (side, error) {
	s := side{bytes: map[string]int64{}}
	script, err := filepath.Abs("bench/ingest/pylance.py")
	if err != nil {
		return s, err
	}
	cmd := exec.Command(python, script, path, out, fmt.Sprint(rowsMax), version)
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return s, err
	}
	if err := cmd.Start(); err != nil {
		return s, err
	}
	lines := bufio.NewScanner(pipe)
	for lines.Scan() {
		var line struct {
			Rows    int64
			Seconds float64
			CPU     float64
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return s, err
		}
		s.rows += line.Rows
		s.seconds += line.Seconds
		s.cpu += line.CPU
	}
	if err := cmd.Wait(); err != nil {
		return s, err
	}
	files, err := filepath.Glob(filepath.Join(out, "*", "data", "*.lance"))
	if err != nil {
		return s, err
	}
	for _, f := range files {
		if err := s.addFile(f); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (s *side) addFile(path string) error {
	ctx := context.Background()
	store, err := object.OpenLocal(filepath.Dir(path), object.LocalOptions{})
	if err != nil {
		return err
	}
	defer store.Close() //nolint:errcheck // read only
	f, err := store.Open(ctx, filepath.Base(path))
	if err != nil {
		return err
	}
	r, err := file.Open(ctx, f, file.Options{})
	if err != nil {
		return err
	}
	s.total += f.SizeBytes()
	return s.add(r)
}

func report(name string, ours, theirs side) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%s\tlakesql\tother\tratio\t\n", strings.TrimSuffix(name, ".lance")) //nolint:errcheck // standard output
	var names []string
	for n := range ours.bytes {
		names = append(names, n)
	}
	sort.Strings(names)
	line := func(name string, a, b float64) { fmt.Fprintf(w, "%s\t%.0f\t%.0f\t%.3f\t\n", name, a, b, a/b) } //nolint:errcheck // standard output
	for _, n := range names {
		line(n, float64(ours.bytes[n]), float64(theirs.bytes[n]))
	}
	line("bytes of files", float64(ours.total), float64(theirs.total))
	if theirs.seconds > 0 {
		line("rows a second", ours.rate(), theirs.rate())
		line("rows a second of CPU", float64(ours.rows)/ours.cpu, float64(theirs.rows)/theirs.cpu)
	} else {
		fmt.Fprintf(w, "rows a second\t%.0f\t\t\t\n", ours.rate()) //nolint:errcheck // standard output
	}
	w.Flush() //nolint:errcheck // standard output
}
