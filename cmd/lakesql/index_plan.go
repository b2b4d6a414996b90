package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/write"
)

func indexPlanCommand() *cobra.Command {
	var spec specFlags
	var build buildFlags
	var tasks int
	var out string
	cmd := &cobra.Command{
		Use:   "plan DATASET --column COLUMN --kind KIND",
		Short: "Cut the building of an index into independent tasks",
		Long: `plan writes a file that says all that a task must know: the dataset, its version, the index, the fragments of each task, for vectors the trained centroids.
Nothing is changed in the dataset.`,
		Example: `  lakesql index plan lake/images.lance --column labels --kind LABEL_LIST --tasks 4 --out plan.json
  lakesql index plan s3://bucket/lake/images.lance --column embedding --kind IVF_FLAT --tasks 32 > plan.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts, closeBar, err := build.options(cmd)
			if err != nil {
				return err
			}
			defer closeBar()
			return withDataset(cmd.Context(), args[0], func(t *storage.Table) error {
				plan, err := write.PlanIndex(cmd.Context(), t, spec.index(), write.PlanIndexOptions{Tasks: tasks, Replace: spec.replace, Extend: spec.extend, IndexOptions: opts})
				closeBar()
				if err != nil {
					return err
				}
				root, name, err := splitPath(args[0])
				if err != nil {
					return err
				}
				plan.Dataset = strings.TrimRight(root, "/") + "/" + name // true in other folders too
				text, err := json.MarshalIndent(plan, "", "  ")
				if err != nil {
					return errs.New(errs.ErrInternal, "plan: %w", err)
				}
				if err := writeText(cmd, out, append(text, '\n')); err != nil {
					return err
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "%d tasks over version %d\n", len(plan.Tasks), plan.Version)
				return nil
			})
		},
	}
	spec.add(cmd)
	build.add(cmd)
	cmd.Flags().IntVar(&tasks, "tasks", 0, "number of tasks, at most one for each fragment (default one for each)")
	cmd.Flags().StringVar(&out, "out", "", "file of the plan (default standard output)")
	return cmd
}

// readText reads a JSON file into v.
func readText(name string, v any) error {
	text, err := os.ReadFile(name) //nolint:gosec // the user names it
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return errs.New(errs.ErrInvalid, "%s: %w", name, err)
	}
	return nil
}

func indexBuildCommand() *cobra.Command {
	var build buildFlags
	var task int
	var out, dataset string
	cmd := &cobra.Command{
		Use:   "build PLAN --task I",
		Short: "Run one task of a plan",
		Long: `build reads the fragments of one task and writes a segment into the dataset's folder of indices, which nothing names until commit does. What it made is written
as a small file. A task may be run again; only the results that are committed count.`,
		Example: "  lakesql index build plan.json --task 2 --out result2.json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var plan write.IndexPlan
			if err := readText(args[0], &plan); err != nil {
				return err
			}
			if dataset == "" {
				dataset = plan.Dataset
			}
			opts, closeBar, err := build.options(cmd)
			if err != nil {
				return err
			}
			defer closeBar()
			return withDataset(cmd.Context(), dataset, func(t *storage.Table) error {
				result, err := write.BuildTask(cmd.Context(), t, &plan, task, opts)
				closeBar()
				if err != nil {
					return err
				}
				text, err := json.Marshal(result)
				if err != nil {
					return errs.New(errs.ErrInternal, "result: %w", err)
				}
				return writeText(cmd, out, append(text, '\n'))
			})
		},
	}
	build.add(cmd)
	cmd.Flags().IntVar(&task, "task", 0, "number of the task, from 0")
	cmd.Flags().StringVar(&out, "out", "", "file of the result (default standard output)")
	cmd.Flags().StringVar(&dataset, "dataset", "", "where this process finds the dataset (default what the plan says)")
	_ = cmd.MarkFlagRequired("task") // the flag is there
	return cmd
}

func indexCommitCommand() *cobra.Command {
	var build buildFlags
	var merge bool
	var dataset string
	cmd := &cobra.Command{
		Use:   "commit PLAN RESULT...",
		Short: "Register what the tasks of a plan made, in one version",
		Example: `  lakesql index commit plan.json result*.json
  lakesql index commit plan.json result*.json --merge   # one segment`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var plan write.IndexPlan
			if err := readText(args[0], &plan); err != nil {
				return err
			}
			var results []*write.IndexTaskResult
			for _, name := range args[1:] {
				r := &write.IndexTaskResult{}
				if err := readText(name, r); err != nil {
					return err
				}
				if r.UUID == "" {
					return errs.New(errs.ErrInvalid, "%s is no result of a task", path.Base(name))
				}
				results = append(results, r)
			}
			if dataset == "" {
				dataset = plan.Dataset
			}
			opts, closeBar, err := build.options(cmd)
			if err != nil {
				return err
			}
			defer closeBar()
			return withDataset(cmd.Context(), dataset, func(t *storage.Table) error {
				done, err := write.CommitPlan(cmd.Context(), t, &plan, results, write.CommitPlanOptions{Merge: merge, IndexOptions: opts})
				closeBar()
				if err != nil {
					return err
				}
				return printChange(cmd, plan.Index.Name, done)
			})
		},
	}
	build.add(cmd)
	cmd.Flags().BoolVar(&merge, "merge", false, "make one segment of those of the tasks")
	cmd.Flags().StringVar(&dataset, "dataset", "", "where this process finds the dataset (default what the plan says)")
	return cmd
}
