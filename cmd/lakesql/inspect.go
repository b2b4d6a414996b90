package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/lakesql/lakesql/index"
	indexinspect "github.com/lakesql/lakesql/index/inspect"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/object"
)

func inspectCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "inspect",
		Short: "Show what is in a dataset's files, and every fault found",
		Long:  "inspect prints the structures of Lance datasets as text. Exit code 1 if a fault was found.",
		Example: `  lakesql inspect manifest demo/images.lance
  lakesql inspect fragments demo/images.lance
  lakesql inspect file demo/images.lance/data/0101.lance
  lakesql inspect page demo/images.lance/data/0101.lance --column 3 --page 0
  lakesql inspect index demo/images.lance/_indices/7fb2c563-2020-42c1-9fbe-5531527a3ca6`,
	}
	cmd.AddCommand(inspectManifestCommand(), inspectFragmentsCommand(), inspectFileCommand(), inspectPageCommand(), inspectIndexCommand())
	return cmd
}

func inspectIndexCommand() *cobra.Command {
	var keys int
	cmd := &cobra.Command{
		Use:   "index FOLDER",
		Short: "Print an index segment: keys and bitmaps, pages, partitions",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := filepath.Clean(args[0])
			if info, err := os.Stat(dir); err != nil || !info.IsDir() {
				return errs.New(errs.ErrNotFound, "%s is not the folder of an index segment, such as DATASET/_indices/UUID", args[0])
			}
			store, err := object.OpenLocal(dir, object.LocalOptions{})
			if err != nil {
				return err
			}
			defer func() { _ = store.Close() }()
			open := func(ctx context.Context, name string) (object.File, error) { return store.Open(ctx, name) }
			meta := index.Meta{Name: filepath.Base(dir), UUID: filepath.Base(dir)}
			faults, err := indexinspect.Segment(cmd.Context(), cmd.OutOrStdout(), open, meta, indexinspect.Options{KeysMax: keys})
			return faultsFound(cmd, faults, err)
		},
	}
	cmd.Flags().IntVar(&keys, "keys", 0, "keys or pages to print (default 50)")
	return cmd
}

// faultsFound turns a count of faults into the exit code.
func faultsFound(cmd *cobra.Command, faults int, err error) error {
	if err != nil {
		return err
	}
	if faults > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "%d faults found\n", faults)
		return errReported
	}
	return nil
}
