package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/object"
)

// sizes is what one table takes on disk.
type sizes struct {
	columns []string
	bytes   map[string]map[string]int64 // by engine, by column; "" = files, all included
}

func (b *bench) sizesOf(name string) *sizes {
	s, ok := b.bytes[name]
	if !ok {
		s = &sizes{bytes: map[string]map[string]int64{}}
		b.bytes[name] = s
		b.tables = append(b.tables, name)
	}
	return s
}

// measureFiles adds up the data files below a folder.
func (b *bench) measureFiles(name, engine, folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*", "data", "*.lance"))
	if err != nil {
		return err
	}
	s := b.sizesOf(name)
	s.bytes[engine] = map[string]int64{}
	for _, f := range files {
		if err := s.addFile(engine, f); err != nil {
			return err
		}
	}
	return nil
}

func (s *sizes) addFile(engine, path string) error {
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
	columns, err := r.Columns()
	if err != nil {
		return err
	}
	s.bytes[engine][""] += f.SizeBytes()
	for i, c := range columns {
		name := r.Schema().Fields[i].Name
		if !slices.Contains(s.columns, name) {
			s.columns = append(s.columns, name)
		}
		s.bytes[engine][name] += r.ColumnBytes(c)
	}
	return nil
}

// measureIndex notes the bytes of the newest index segment, which holds all rows.
func (b *bench) measureIndex(kind, engine, dataset string) error {
	segments, err := filepath.Glob(filepath.Join(dataset, "_indices", "*"))
	if err != nil {
		return err
	}
	var newest string
	var at int64
	for _, s := range segments {
		info, err := os.Stat(s)
		if err != nil {
			return err
		}
		if t := info.ModTime().UnixNano(); t > at {
			newest, at = s, t
		}
	}
	files, err := os.ReadDir(newest)
	if err != nil {
		return err
	}
	s := b.sizesOf("index " + kind)
	if s.bytes[engine] == nil {
		s.bytes[engine] = map[string]int64{}
	}
	s.bytes[engine][""] = 0
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			return err
		}
		s.bytes[engine][""] += info.Size()
	}
	return nil
}

func (l *line) median(engine string, of func(measured) float64) float64 {
	var all []float64
	for _, m := range l.runs[engine] {
		all = append(all, of(m))
	}
	slices.Sort(all)
	if n := len(all); n > 0 {
		return (all[(n-1)/2] + all[n/2]) / 2
	}
	return 0
}

// report prints tables in Markdown.
func (b *bench) report(w io.Writer) {
	out := func(format string, args ...any) { fmt.Fprintf(w, format, args...) } //nolint:errcheck // standard output
	if len(b.tables) > 0 {
		b.reportSizes(out)
	}
	seconds := func(m measured) float64 { return m.Seconds }
	durable := func(m measured) float64 { return m.Durable }
	cpu := func(m measured) float64 { return m.User + m.System }
	memory := func(m measured) float64 { return m.memory }
	out("%s", "\n| work | rows | seconds | pylance | ratio | with fsync | ratio | CPU seconds | pylance | ratio | MiB | pylance | ratio |\n|---|"+strings.Repeat("---:|", 12)+"\n")
	for _, k := range b.order {
		l := b.results[k]
		out("| %s %s | %d |", l.table, l.step, l.rows)
		ours, theirs := l.median("lakesql", seconds), l.median("pylance", seconds)
		out(" %.3f | %.3f | %.2f |", ours, theirs, ours/theirs)
		if d := l.median("pylance", durable); d > theirs*1.01 {
			out(" %.3f | %.2f |", d, ours/d)
		} else {
			out(" | |")
		}
		ours, theirs = l.median("lakesql", cpu), l.median("pylance", cpu)
		out(" %.3f | %.3f | %.2f |", ours, theirs, ours/theirs)
		ours, theirs = l.median("lakesql", memory)/(1<<20), l.median("pylance", memory)/(1<<20)
		out(" %.1f | %.1f | %.2f |\n", ours, theirs, ours/theirs)
	}
	b.reportUpdates(out)
}

// reportUpdates compares updates with the build of the same index, by the same engine.
func (b *bench) reportUpdates(out func(string, ...any)) {
	first := true
	for _, k := range b.order {
		l := b.results[k]
		build, ok := b.results[l.table+"\x00build"]
		if !ok || l.step == "build" {
			continue
		}
		if first {
			out("\n| share of the build | seconds | pylance | CPU | pylance |\n|---|---:|---:|---:|---:|\n")
			first = false
		}
		share := func(engine string, of func(measured) float64) float64 {
			return 100 * l.median(engine, of) / build.median(engine, of)
		}
		seconds, cpu := func(m measured) float64 { return m.Seconds }, func(m measured) float64 { return m.User + m.System }
		out("| %s %s | %.1f %% | %.1f %% | %.1f %% | %.1f %% |\n", l.table, l.step,
			share("lakesql", seconds), share("pylance", seconds), share("lakesql", cpu), share("pylance", cpu))
	}
}

func (b *bench) reportSizes(out func(string, ...any)) {
	out("| bytes | lakesql | pylance | ratio |\n|---|---:|---:|---:|\n")
	var all, theirs int64
	for _, t := range b.tables {
		s := b.bytes[t]
		line := func(name, column string) {
			x, y := s.bytes["lakesql"][column], s.bytes["pylance"][column]
			out("| %s | %d | %d | %.3f |\n", name, x, y, float64(x)/float64(y))
		}
		for _, c := range s.columns {
			line(t+"."+c, c)
		}
		line("**"+t+"**", "")
		all += s.bytes["lakesql"][""]
		theirs += s.bytes["pylance"][""]
	}
	out("| **all** | %d | %d | %.3f |\n", all, theirs, float64(all)/float64(theirs))
}
