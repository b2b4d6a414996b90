// Command lakesql queries Lance lakehouses in SQL: over the MySQL protocol (serve), or from the command line (query). It also moves files into
// tables and back (import, export), makes a lake to try (demo) and shows what is in its files (inspect).
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
)

// version is set by the linker.
var version = "dev" //nolint:gochecknoglobals // the linker needs a variable

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := rootCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		if !errors.Is(err, errReported) {
			fmt.Fprintln(os.Stderr, "lakesql:", err)
		}
		os.Exit(1)
	}
}

// errReported ends the program with exit code 1 after the reason was printed.
var errReported = errors.New("reported") //nolint:gochecknoglobals // a sentinel

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "lakesql",
		Short: "SQL over Lance lakehouses, in one binary",
		Long: `lakesql answers SQL over Lance datasets where they lie: it filters list columns through label indices, finds nearest vectors,
reads wide columns only for the rows that survive, and joins, aggregates and sorts the rest.`,
		Example: `  lakesql demo                                         # make a lake and serve it
  lakesql serve --lake prod=/data/lake                 # serve a folder of NAME.lance to MySQL clients
  lakesql query --lake prod=/data/lake -e 'SHOW TABLES'
  lakesql import 'data/*.parquet' --lake prod=/data/lake --into prod.images
  lakesql export prod.images --lake prod=/data/lake --to images.parquet`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(serveCommand(), queryCommand(), demoCommand(), inspectCommand(), indexCommand(), importCommand(), exportCommand(), versionCommand())
	return root
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text := version
			if info, ok := debug.ReadBuildInfo(); ok && text == "dev" && info.Main.Version != "" && info.Main.Version != "(devel)" {
				text = info.Main.Version
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "lakesql %s (%s, %s/%s)\n", text, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
