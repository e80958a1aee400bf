package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/norn-go/norn/examples/transfer/input"
)

func generateCommand() *cobra.Command {
	var n int
	var seed uint64
	var out string
	c := &cobra.Command{
		Use:   "generate --count N --seed S",
		Short: "Write an input of made-up transfers",
		Long: `Generate writes transfers as JSON lines. The same count and seed give the same lines. Most
banks confirm within a tenth of a second; some confirmations never come.`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if n < 1 {
				return usageError{fmt.Errorf("--count must be at least 1, got %d", n)}
			}
			to := c.OutOrStdout()
			if out != "" {
				f, err := os.Create(out)
				if err != nil {
					return fmt.Errorf("generate: %w", err)
				}
				defer func() { err = errors.Join(err, f.Close()) }()
				to = f
			}
			return input.Write(to, input.Generate(n, seed))
		},
	}
	c.Flags().IntVar(&n, "count", 1000, "how many transfers")
	c.Flags().Uint64Var(&seed, "seed", 1, "what they are made from")
	c.Flags().StringVar(&out, "out", "", "file to write (default: standard output)")
	return c
}
