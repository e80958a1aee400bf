package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/norn-go/norn/examples/transfer/run"
)

func runCommand() *cobra.Command {
	var o run.Options
	c := &cobra.Command{
		Use:   "run --input FILE --database URL",
		Short: "Run all transfers of an input to their end",
		Long: `Run starts a transfer for each line of the input and waits until all have ended.

Killed or interrupted at any moment, the same command goes on where it was. On Postgres it
may run several times at once.`,
		Example: `  transfer run --input testdata/transfers-1000.jsonl --database sqlite:///tmp/transfers.db
  transfer run --input transfers.jsonl --database postgres://app@localhost/app --timeout 30s --json`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("timeout") && o.Timeout <= 0 {
				return usageError{fmt.Errorf("--timeout must be more than 0, got %v", o.Timeout)}
			}
			if o.Input == "" || o.Database == "" {
				return usageError{errors.New("run wants --input FILE and --database URL; see --help")}
			}
			o.Out, o.Err = c.OutOrStdout(), c.ErrOrStderr()
			return run.Run(c.Context(), o)
		},
	}
	c.Flags().StringVar(&o.Input, "input", "", "file of transfers, one JSON object a line")
	c.Flags().StringVar(&o.Database, "database", "", "sqlite://FILE or postgres://USER@HOST/NAME")
	c.Flags().DurationVar(&o.Timeout, "timeout", 0, "how long a transfer waits for each confirmation (default 2s, or $TRANSFER_TIMEOUT)")
	c.Flags().BoolVar(&o.JSON, "json", false, "print the summary as one JSON object")
	c.Flags().BoolVar(&o.SkipInvalid, "skip-invalid", false, "report bad lines and leave them out, instead of refusing the input")
	c.Flags().BoolVar(&o.Verbose, "verbose", false, "log what norn does")
	return c
}

func noArguments(c *cobra.Command, args []string) error {
	if err := cobra.NoArgs(c, args); err != nil {
		return usageError{err}
	}
	return nil
}
