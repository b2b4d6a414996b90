package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/lakesql/lakesql/demo"
	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/write"
)

func indexCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "index",
		Short: "Create, update, merge and drop indices; build them in parts on many machines",
		Long: `index works on the indices of one dataset, a folder NAME.lance or the URL of one in an object store.

create, update, merge and drop are one process each. plan, build and commit cut the work: plan writes a file of independent tasks, each build is one process anywhere
that can read and write the dataset, commit registers what they made in one version. Ray, Spark or Argo may schedule the tasks; they know nothing of each other.`,
		Example: `  lakesql index list lake/images.lance
  lakesql index create lake/images.lance --column labels --kind LABEL_LIST
  lakesql index update lake/images.lance labels_idx
  lakesql index plan lake/images.lance --column labels --kind LABEL_LIST --tasks 4 --out plan.json
  for i in 0 1 2 3; do lakesql index build plan.json --task $i --out result$i.json & done; wait
  lakesql index commit plan.json result*.json`,
	}
	cmd.AddCommand(indexListCommand(), indexCreateCommand(), indexUpdateCommand(), indexMergeCommand(), indexDropCommand(),
		indexPlanCommand(), indexBuildCommand(), indexCommitCommand())
	return cmd
}

// buildFlags are common to what builds segments.
type buildFlags struct {
	memoryMiB int64
	tempDir   string
	threads   int
}

func (f *buildFlags) add(cmd *cobra.Command) {
	cmd.Flags().Int64Var(&f.memoryMiB, "memory", 256, "MiB to collect in memory before rows go to temporary files")
	cmd.Flags().StringVar(&f.tempDir, "temp-dir", "", "folder for temporary files (default the system's)")
	cmd.Flags().IntVar(&f.threads, "threads", 0, "threads for vectors (default one per core)")
}

// options makes the options of a build whose progress bar draws; close ends the bar.
func (f *buildFlags) options(cmd *cobra.Command) (opts write.IndexOptions, closeBar func(), err error) {
	if f.memoryMiB < 1 || f.memoryMiB > math.MaxInt64>>20 || f.threads < 0 {
		return opts, nil, errs.New(errs.ErrInvalid, "memory of %d MiB, %d threads", f.memoryMiB, f.threads)
	}
	bar := &stepBar{out: cmd.ErrOrStderr()}
	return write.IndexOptions{
		MemoryBytes: f.memoryMiB << 20, TempDir: f.tempDir, Parallelism: f.threads, Budget: mem.NewBudget("index", 0, nil),
		Progress: func(stage string, done, total int64) { bar.show(demo.Progress{Step: stage, Done: done, Total: total}) },
	}, bar.finish, nil
}

// specFlags name an index that is made.
type specFlags struct {
	spec            write.IndexSpec
	kind, metric    string
	replace, extend bool
}

func (f *specFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.spec.Column, "column", "", "column to index")
	flags.StringVar(&f.kind, "kind", "", "LABEL_LIST, BITMAP, BTREE, ZONEMAP or IVF_FLAT")
	flags.StringVar(&f.spec.Name, "name", "", "name of the index (default COLUMN_idx)")
	flags.BoolVar(&f.replace, "replace", false, "replace an index of this name")
	flags.BoolVar(&f.extend, "extend", false, "cover what an index of this name does not cover yet")
	flags.Uint64Var(&f.spec.RowsPerZone, "rows-per-zone", 0, "ZONEMAP: rows of a zone (default 8192)")
	flags.BoolVar(&f.spec.RowAddresses, "row-addresses", false, "store row addresses in tables with stable row ids, as core 14 does for BTREE")
	flags.StringVar(&f.metric, "metric", "", "IVF_FLAT: l2, cosine or dot (default l2)")
	flags.IntVar(&f.spec.Lists, "lists", 0, "IVF_FLAT: number of partitions (default the square root of the rows)")
	flags.IntVar(&f.spec.SampleRate, "sample-rate", 0, "IVF_FLAT: rows per partition to train from (default 256)")
	_ = cmd.MarkFlagRequired("column") // the flag is there
	_ = cmd.MarkFlagRequired("kind")
}

func (f *specFlags) index() write.IndexSpec {
	f.spec.Kind = index.Kind(strings.ToUpper(f.kind))
	f.spec.Metric = index.Metric(strings.ToLower(f.metric))
	return f.spec
}

// withDataset runs f on a dataset.
func withDataset(ctx context.Context, where string, f func(*storage.Table) error) (err error) {
	root, name, err := splitPath(where)
	if err != nil {
		return err
	}
	store, err := openStore(ctx, root)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := store.Close(); err == nil {
			err = closeErr
		}
	}()
	table, err := storage.OpenTable(ctx, store, name, storage.TableOptions{})
	if err != nil {
		return err
	}
	return spawn.Guard(func() error { return f(table) }) // a file may shrink while it is read
}

func indexListCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "list DATASET",
		Short:   "Show the indices of a dataset: kind, covered and uncovered rows, segments, bytes",
		Example: "  lakesql index list lake/images.lance",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withDataset(cmd.Context(), args[0], func(t *storage.Table) error {
				snap, err := t.Latest(cmd.Context())
				if err != nil {
					return err
				}
				return printIndices(cmd.OutOrStdout(), write.ListIndices(snap))
			})
		},
	}
}

func printIndices(out io.Writer, indices []write.IndexStatus) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tCOLUMN\tKIND\tMETRIC\tSEGMENTS\tCOVERED ROWS\tUNCOVERED ROWS\tBYTES")
	for _, i := range indices {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\n", i.Name, strings.Join(i.Columns, ","), i.Kind, i.Metric, i.Segments, i.CoveredRows, i.UncoveredRows, i.SizeBytes)
	}
	return w.Flush()
}

// printChange says what became of an index.
func printChange(cmd *cobra.Command, name string, c write.IndexChanged) error {
	text := "index %s: nothing to do at version %d\n"
	if c.UUID != "" {
		text = "index %s: committed as version %d"
		if len(c.Replaced) > 0 {
			text += fmt.Sprintf(", %d segments replaced", len(c.Replaced))
		}
		text += fmt.Sprintf(", %d fragments read\n", len(c.Read))
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), text, name, c.Version)
	return err
}

func indexCreateCommand() *cobra.Command {
	var spec specFlags
	var build buildFlags
	cmd := &cobra.Command{
		Use:   "create DATASET --column COLUMN --kind KIND",
		Short: "Build an index over the newest version and commit it",
		Example: `  lakesql index create lake/images.lance --column labels --kind LABEL_LIST
  lakesql index create lake/images.lance --column embedding --kind IVF_FLAT --metric cosine --lists 1000
  lakesql index create s3://bucket/lake/images.lance --column captured_at --kind BTREE --replace`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts, closeBar, err := build.options(cmd)
			if err != nil {
				return err
			}
			defer closeBar()
			return withDataset(cmd.Context(), args[0], func(t *storage.Table) error {
				s := spec.index()
				done, err := write.CreateIndex(cmd.Context(), t, s, write.CreateIndexOptions{Replace: spec.replace, Extend: spec.extend, IndexOptions: opts})
				closeBar()
				if err != nil {
					return err
				}
				if s.Name == "" {
					s.Name = s.Column + "_idx"
				}
				return printChange(cmd, s.Name, done)
			})
		},
	}
	spec.add(cmd)
	build.add(cmd)
	return cmd
}

func indexUpdateCommand() *cobra.Command {
	var merge int
	var build buildFlags
	cmd := &cobra.Command{
		Use:   "update DATASET INDEX",
		Short: "Cover rows that an index does not cover yet",
		Example: `  lakesql index update lake/images.lance labels_idx
  lakesql index update lake/images.lance labels_idx --merge 0   # a segment of the new rows alone: fastest`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if merge < 0 {
				return errs.New(errs.ErrInvalid, "--merge %d", merge)
			}
			opts := write.UpdateIndexOptions{Merge: merge}
			if merge == 0 {
				opts.Merge = -1
			}
			return updateIndex(cmd, args, opts, &build)
		},
	}
	cmd.Flags().IntVar(&merge, "merge", 1, "how many of the newest segments become one with the new rows; 0 = none")
	build.add(cmd)
	return cmd
}

func updateIndex(cmd *cobra.Command, args []string, opts write.UpdateIndexOptions, build *buildFlags) error {
	var closeBar func()
	var err error
	if opts.IndexOptions, closeBar, err = build.options(cmd); err != nil {
		return err
	}
	defer closeBar()
	return withDataset(cmd.Context(), args[0], func(t *storage.Table) error {
		done, err := write.UpdateIndex(cmd.Context(), t, args[1], opts)
		closeBar()
		if err != nil {
			return err
		}
		return printChange(cmd, args[1], done)
	})
}

func indexMergeCommand() *cobra.Command {
	var build buildFlags
	cmd := &cobra.Command{
		Use:     "merge DATASET INDEX",
		Short:   "Make one segment of all segments of an index, without reading the table",
		Long:    "merge reads the index alone. Entries of rows that were deleted, updated or rewritten since drop out; rows that are not covered stay so.",
		Example: "  lakesql index merge lake/images.lance labels_idx",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return updateIndex(cmd, args, write.UpdateIndexOptions{Merge: math.MaxInt32, SegmentsOnly: true}, &build)
		},
	}
	build.add(cmd)
	return cmd
}

func indexDropCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "drop DATASET INDEX",
		Short:   "Take an index out of a dataset",
		Long:    "drop takes an index of any kind out of the newest version. Its files stay for older versions until those are cleaned up.",
		Example: "  lakesql index drop lake/images.lance labels_idx",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withDataset(cmd.Context(), args[0], func(t *storage.Table) error {
				done, err := write.DropIndex(cmd.Context(), t, args[1], write.CommitOptions{})
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "index %s: dropped in version %d\n", args[1], done.Version)
				return err
			})
		},
	}
}

// writeText writes to a file, or to standard output where its name is "" or "-". The file appears whole or not at all.
func writeText(cmd *cobra.Command, name string, text []byte) error {
	if name == "" || name == "-" {
		_, err := cmd.OutOrStdout().Write(text)
		return err
	}
	temp := name + ".part"
	if err := os.WriteFile(temp, text, 0o600); err != nil {
		return err
	}
	return os.Rename(temp, name)
}
