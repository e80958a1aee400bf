package main

import (
	"context"
	"errors"
	"fmt"

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
			RunE:  at.run(status),
		},
	)
	return c
}

func (at *place) run(do func(context.Context, *cobra.Command, *schema.DB) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, _ []string) (err error) {
		db, err := at.open(c.Context())
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		return do(c.Context(), c, db)
	}
}

func (at *place) open(ctx context.Context) (*schema.DB, error) {
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
	t := settings.Schema.Tables
	return schema.Open(ctx, settings.Database.URL, schema.WithNames(schema.Names{
		Prefix: settings.Schema.TablePrefix, Instance: t.Instance, Association: t.Association, Deadline: t.Deadline,
		DeadlineLock: t.DeadlineLock, Command: t.Command, Event: t.Event, History: t.History,
	}))
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
	return schema.Check(ctx, db)
}
