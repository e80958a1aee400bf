package sagatest

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Option is a registration for [Test] that is not part of a saga type's definition.
type Option func(*kit) error

// Database is where a test runs.
type Database string

// The databases that a test can run [On].
const (
	SQLite   Database = "sqlite"   // in a temporary file
	Postgres Database = "postgres" // in a schema of its own on the server that NORN_TEST_POSTGRES names
)

// On runs the test once on each of the databases instead of on SQLite alone.
func On(databases ...Database) Option {
	return func(k *kit) error {
		for _, d := range databases {
			if d != SQLite && d != Postgres {
				return fmt.Errorf("sagatest: On: unknown database %q: want sagatest.SQLite or sagatest.Postgres", d)
			}
			if !slices.Contains(k.databases, d) {
				k.databases = append(k.databases, d)
			}
		}
		return nil
	}
}

// OnBoth runs the test on SQLite and on Postgres.
func OnBoth() Option { return On(SQLite, Postgres) }

// Provide offers services and settings to the handlers that inject their types: to each the value of exactly the type,
// else the first that implements the interface. A function with one result, and without parameters or with a *schema.DB,
// the node's database, makes one, anew for each node: for each database, after each [Fixture.WhenRestarted], and in
// [Crash] for each run and after each death. A value is the same for all of them.
func Provide(services ...any) Option {
	return func(k *kit) error {
		if slices.Contains(services, nil) {
			return errors.New("sagatest: Provide: a service is nil")
		}
		k.services = append(k.services, services...)
		return nil
	}
}

// StartAt lets the test begin at a time, 2000-01-01 UTC or later.
func StartAt(at time.Time) Option {
	return func(k *kit) error {
		if at.Before(epoch) {
			return fmt.Errorf("sagatest: StartAt: %s is before %s, when virtual time begins", stamp(at), stamp(epoch))
		}
		k.start = at
		return nil
	}
}

// epoch is when the time of a testing/synctest bubble begins.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// CommandHandler registers the handler of a command type, a func(context.Context, C) error with a value type C.
// Commands reach it when [Fixture.WhenCommandsDelivered] says so. More than one may be given, also by several options.
func CommandHandler(handlers ...any) Option {
	return func(k *kit) error {
		k.handlers = append(k.handlers, handlers...)
		return nil
	}
}

// Synchronous hands events to the sagas by saga.Engine.HandleTx, on the test's goroutine and in a transaction that is
// committed if it returns no error and else rolled back. Without it they go through saga.Engine.Handle.
func Synchronous() Option {
	return func(k *kit) error {
		k.synchronous = true
		return nil
	}
}
