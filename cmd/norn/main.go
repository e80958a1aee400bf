// Command norn looks after norn's tables.
//
//	norn schema up --database sqlite:///var/lib/shop/shop.db
//	norn schema status --config norn.yaml
//	norn version
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := root().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "norn:", err)
		os.Exit(1)
	}
}

func root() *cobra.Command {
	c := &cobra.Command{
		Use:           "norn",
		Short:         "Look after norn's tables",
		SilenceErrors: true, // main prints them
		SilenceUsage:  true,
		Args:          known,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },

		SuggestionsMinimumDistance: 2,
	}
	c.AddCommand(tables(), version())
	return c
}

func version() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  cobra.NoArgs,
		Run: func(c *cobra.Command, _ []string) {
			built := "unknown"
			if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
				built = info.Main.Version
			}
			fmt.Fprintln(c.OutOrStdout(), "norn", built)
		},
	}
}
