// Command ingest measures what lakesql and the pylance of an interpreter make of the same rows, in one run: bytes per column, rows written a second, the time and
// memory of index builds, and what it costs to bring an index up to date after 1 % more rows.
//
//	go run ./bench/ingest [flags] -python PATH DATASET.lance...
//
// Every piece of work runs in a process of its own (the work that this command does itself too), the engines take turns within a round, and the table has the
// medians of the rounds. bench/README.md says what each line means.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// options of a run.
type options struct {
	python  string
	out     string
	version string
	rowsMax int64
	rounds  int
	indices string // of which dataset
	lists   int
	only    string
}

func main() {
	var o options
	flag.StringVar(&o.python, "python", "", "interpreter that has pylance")
	flag.StringVar(&o.out, "out", os.TempDir(), "folder for what is written; on the file system of the datasets, data files are linked instead of copied")
	flag.StringVar(&o.version, "version", "2.2", "file version, 2.1 or 2.2")
	flag.Int64Var(&o.rowsMax, "rows", 1<<40, "most rows of each dataset to write")
	flag.IntVar(&o.rounds, "rounds", 5, "rounds, of which the median counts")
	flag.StringVar(&o.indices, "index", "", `what to index: DATASET:COLUMN=KIND,COLUMN=KIND...`)
	flag.IntVar(&o.lists, "lists", 1000, "partitions of vector indices")
	flag.StringVar(&o.only, "only", "", "write, copy or index; empty = all")
	task := flag.String("task", "", "")
	flag.Usage = usage
	flag.Parse()
	var err error
	if *task != "" {
		err = runTask(context.Background(), *task, &signals{in: os.Stdin, out: os.Stdout})
	} else {
		err = run(o, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "ingest:", err)
		os.Exit(1)
	}
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: ingest [flags] -python PATH DATASET.lance...")
	flag.VisitAll(func(f *flag.Flag) {
		if f.Usage != "" {
			fmt.Fprintf(os.Stderr, "  -%s\t%s (%s)\n", f.Name, f.Usage, f.DefValue)
		}
	})
}

func run(o options, datasets []string) error {
	if o.python == "" {
		return fmt.Errorf("name the interpreter that has pylance: -python PATH")
	}
	tmp, err := os.MkdirTemp(o.out, "ingest")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // a temporary folder
	engines, err := enginesOf(o.python)
	if err != nil {
		return err
	}
	b := &bench{options: o, tmp: tmp, engines: engines, results: map[string]*line{}, bytes: map[string]*sizes{}}
	indices, err := parseIndices(o.indices)
	if err != nil {
		return err
	}
	for round := range o.rounds {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, o.rounds)
		for _, path := range datasets {
			if err := b.writes(round, path); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
		for _, i := range indices {
			if err := b.index(round, i); err != nil {
				return fmt.Errorf("%s on %s of %s: %w", i.kind, i.column, i.dataset, err)
			}
		}
	}
	b.report(os.Stdout)
	return nil
}

// indexed is one index that is built and kept up to date.
type indexed struct{ dataset, column, kind string }

func parseIndices(text string) ([]indexed, error) {
	if text == "" {
		return nil, nil
	}
	dataset, list, ok := strings.Cut(text, ":")
	if !ok {
		return nil, fmt.Errorf("-index %q: want DATASET:COLUMN=KIND", text)
	}
	var out []indexed
	for part := range strings.SplitSeq(list, ",") {
		column, kind, ok := strings.Cut(part, "=")
		if !ok {
			return nil, fmt.Errorf("-index: %q is not COLUMN=KIND", part)
		}
		out = append(out, indexed{dataset: dataset, column: column, kind: kind})
	}
	return out, nil
}

func (o options) does(what string) bool { return o.only == "" || o.only == what }

func tableName(path string) string { return strings.TrimSuffix(filepath.Base(path), ".lance") }
