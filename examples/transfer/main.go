// Command transfer runs the worked example of norn: transfers between accounts, each a saga with timeouts.
//
// It exits with 0 when all transfers have ended and no money is missing, 1 when something went wrong, 2 when
// arguments or input were refused before anything was started, and 130 when it was interrupted.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/norn-go/norn/examples/transfer/run"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	err := command().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "transfer:", err)
	}
	os.Exit(status(err))
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "transfer",
		Short:         "Transfers between accounts, each a saga with timeouts",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(runCommand(), generateCommand())
	return root
}

// usageError is a mistake in the arguments.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

const (
	failed      = 1
	refused     = 2
	interrupted = 130
)

func status(err error) int {
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage), errors.Is(err, run.ErrRefused):
		return refused
	case errors.Is(err, run.ErrInterrupted):
		return interrupted
	}
	return failed
}
