package main

import (
	"context"
	"io"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/storage/inspect"
	"github.com/lakesql/lakesql/storage/object"
)

func inspectManifestCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "manifest PATH",
		Short: "Print a manifest: schema, fragments, index segments, transaction",
		Long:  "PATH is a manifest file, or a dataset, whose latest version is printed. It may be the URL of an object store.",
		Args:  cobra.ExactArgs(1),
		RunE: inspectPath(func(ctx context.Context, w io.Writer, s object.Store, p string) (int, error) {
			return inspect.Manifest(ctx, w, s, p)
		}),
	}
}

func inspectFragmentsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "fragments DATASET",
		Short: "Print the fragments of the latest version, and open every file of them",
		Args:  cobra.ExactArgs(1),
		RunE: inspectPath(func(ctx context.Context, w io.Writer, s object.Store, p string) (int, error) {
			return inspect.Fragments(ctx, w, s, p)
		}),
	}
}

func inspectFileCommand() *cobra.Command {
	var opts inspect.FileOptions
	cmd := &cobra.Command{
		Use:   "file FILE",
		Short: "Print a data or index file: footer, schema, columns, pages",
		Args:  cobra.ExactArgs(1),
		RunE: inspectPath(func(ctx context.Context, w io.Writer, s object.Store, p string) (int, error) {
			return inspect.File(ctx, w, s, p, opts)
		}),
	}
	cmd.Flags().BoolVar(&opts.ReadRows, "rows", false, "decode every row, so that faults in pages show")
	return cmd
}

func inspectPageCommand() *cobra.Command {
	var ref inspect.PageRef
	cmd := &cobra.Command{
		Use:   "page FILE",
		Short: "Print one page: buffers, encoding, first values",
		Args:  cobra.ExactArgs(1),
		RunE: inspectPath(func(ctx context.Context, w io.Writer, s object.Store, p string) (int, error) {
			return inspect.Page(ctx, w, s, p, ref)
		}),
	}
	cmd.Flags().IntVar(&ref.Column, "column", 0, "physical column, as `lakesql inspect file` numbers them")
	cmd.Flags().IntVar(&ref.Page, "page", 0, "page of the column")
	return cmd
}

// inspectPath opens the store that holds the path and runs show on it.
func inspectPath(show func(ctx context.Context, w io.Writer, s object.Store, p string) (int, error)) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		root, p, err := splitPath(args[0])
		if err != nil {
			return err
		}
		store, err := openStore(cmd.Context(), root)
		if err != nil {
			return err
		}
		defer func() { _ = store.Close() }()
		faults := 0
		err = spawn.Guard(func() (err error) { // a file may shrink while it is read
			faults, err = show(cmd.Context(), cmd.OutOrStdout(), store, p)
			return err
		})
		return faultsFound(cmd, faults, err)
	}
}

// splitPath splits a path or URL into a store and a path in it: the last element, or for a manifest the last two, so that the dataset
// around it is in reach.
func splitPath(where string) (root, p string, err error) {
	if !isRemote(where) {
		abs, err := filepath.Abs(strings.TrimPrefix(where, "file://"))
		if err != nil {
			return "", "", errs.New(errs.ErrInvalid, "%s: %w", where, err)
		}
		where = filepath.ToSlash(abs)
	}
	where = strings.TrimRight(where, "/")
	cut := strings.LastIndexByte(where, '/')
	if cut > 0 && path.Base(where[:cut]) == "_versions" {
		cut = strings.LastIndexByte(where[:cut], '/')
	}
	if cut < 0 || cut == len(where)-1 || strings.HasSuffix(where[:cut], ":/") {
		return "", "", errs.New(errs.ErrInvalid, "%q is no path of a file or dataset", where)
	}
	return where[:max(cut, 1)], where[cut+1:], nil
}
