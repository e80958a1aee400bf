package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/norn-go/norn/config"
	"github.com/norn-go/norn/fxmodule"
	"github.com/norn-go/norn/schema"
)

// place says where the tables are. What is not given comes from the settings, as in an application.
type place struct{ database, prefix, file string }

func tables() *cobra.Command {
	var at place
	c := &cobra.Command{
		Use:   "schema",
		Short: "Create, migrate or look at norn's tables",
		Args:  known,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
		// cobra suggests nothing by itself below the root
		SuggestionsMinimumDistance: 2,
	}
	flags := c.PersistentFlags()
	flags.StringVar(&at.database, "database", "", "URL of the database: sqlite://FILE or postgres://USER@HOST/NAME (default: database.url of the settings)")
	flags.StringVar(&at.prefix, "table-prefix", "", "put before every default table name (default: saga.schema.table-prefix of the settings)")
	flags.StringVar(&at.file, "config", "", "file with the settings (default: $NORN_CONFIG, else norn.yaml if there is one)")
	c.AddCommand(
		&cobra.Command{
			Use:   "up",
			Short: "Create the tables, or bring them to the version of this program; run again it does nothing",
			Args:  cobra.NoArgs,
			RunE:  at.run(up),
		},
		&cobra.Command{
			Use:   "status",
			Short: "Tell the version of the tables; the exit code is 1 if they are missing or too old",
			Args:  cobra.NoArgs,
			RunE:  at.run(status, schema.WithoutCreating()),
		},
	)
	return c
}

// known refuses what is no subcommand.
func known(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("unknown command %q for %q", args[0], c.CommandPath())
	if meant := c.SuggestionsFor(args[0]); len(meant) > 0 {
		return fmt.Errorf("%s: did you mean %s?", text, strings.Join(meant, " or "))
	}
	return fmt.Errorf("%s: see %s --help", text, c.CommandPath())
}

func (at *place) run(do func(context.Context, *cobra.Command, *schema.DB) error, opts ...schema.Option) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, _ []string) (err error) {
		db, err := at.open(c.Context(), opts)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		return do(c.Context(), c, db)
	}
}

func (at *place) open(ctx context.Context, opts []schema.Option) (*schema.DB, error) {
	file, err := at.file, error(nil)
	if file == "" {
		file, err = fxmodule.DefaultConfigFile()
	}
	if err != nil {
		return nil, err
	}
	source, err := config.Load(file,
		config.Override("database.url", at.database),
		config.Override("saga.schema.table-prefix", at.prefix))
	if err != nil {
		return nil, err
	}
	settings, err := source.Norn()
	if err != nil {
		return nil, err
	}
	if settings.Database.URL == "" {
		return nil, errors.New("no database: give --database URL, or set database.url (DATABASE_URL)")
	}
	return schema.Open(ctx, settings.Database.URL, append(opts, schema.WithNames(fxmodule.TableNames(settings)))...)
}

func up(ctx context.Context, c *cobra.Command, db *schema.DB) error {
	before, _, err := schema.Versions(ctx, db)
	if err != nil {
		return err
	}
	if err := schema.Migrate(ctx, db); err != nil {
		return err
	}
	after, _, err := schema.Versions(ctx, db)
	if err != nil {
		return err
	}
	if before == after {
		fmt.Fprintf(c.OutOrStdout(), "the tables are at version %d already\n", after)
		return nil
	}
	fmt.Fprintf(c.OutOrStdout(), "the tables went from version %d to %d\n", before, after)
	return nil
}

func status(ctx context.Context, c *cobra.Command, db *schema.DB) error {
	current, wanted, err := schema.Versions(ctx, db)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.OutOrStdout(), "version %d, wanted %d\n", current, wanted)
	if current < wanted {
		return fmt.Errorf("%w: `norn schema up` with the same flags creates or migrates them", schema.ErrMissing)
	}
	return schema.Check(ctx, db)
}
