package saga_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"log/slog"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/lease"
	"github.com/norn-go/norn/outbox"
	"github.com/norn-go/norn/poller"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
)

// node is one process of the model's world: engine, poller and relay on a pool of their own.
type node struct {
	*knife
	pool   *sqlx.DB
	db     *schema.DB
	engine *saga.Engine
	signal *deadline.Signal
	outbox *outbox.Signal
	poller *poller.Poller // under the lease that all nodes share
	rival  *poller.Poller // under a lease of its own, as one who believes to lead
	relay  *outbox.Relay
}

const (
	modelTTL  = time.Minute
	whileDead = 2 * modelTTL // when a killed node's leases have expired
)

// open makes a node's parts on the world's tables.
func (n *node) open(w *world, name string) (err error) {
	n.knife = newKnife()
	if n.pool, n.db, err = w.place.open(n.knife); err != nil {
		return err
	}
	quiet := slog.New(slog.DiscardHandler)
	n.signal, n.outbox = deadline.NewSignal(), outbox.NewSignal()
	n.engine, err = saga.New(n.db, saga.Config{
		Workers: 4, Service: saga.Services(w.script), Now: w.clock, Signal: n.signal, Outbox: n.outbox, Logger: quiet,
	}, w.definition)
	if err != nil {
		return err
	}
	if n.poller, err = n.newPoller("poller", w, quiet); err != nil {
		return err
	}
	if n.rival, err = n.newPoller("poller of "+name, w, quiet); err != nil {
		return err
	}
	n.relay, err = outbox.NewRelay(outbox.NewStore(n.db), lease.New(n.db, "relay", lease.Config{TTL: modelTTL, Logger: quiet}), outbox.Config{
		Sink: w.sink, Retry: modelRetry, BatchSize: 2, Workers: 2, Now: w.clock, Logger: quiet,
	})
	return err
}

func (n *node) newPoller(name string, w *world, quiet *slog.Logger) (*poller.Poller, error) {
	locker := lease.New(n.db, name, lease.Config{TTL: modelTTL, Logger: quiet})
	return poller.New(deadline.NewStore(n.db), locker, n.engine, poller.Config{Retry: modelRetry, BatchSize: 2, Now: w.clock, Logger: quiet})
}

func (n *node) close() error {
	if n.engine != nil {
		n.engine.Close()
	}
	var errs []error
	if n.db != nil {
		errs = append(errs, n.db.Close())
	}
	if n.pool != nil {
		errs = append(errs, n.pool.Close())
	}
	return errors.Join(errs...)
}

// handle lets the event meet its sagas on this node.
func (n *node) handle(h happening) error {
	return n.engine.Handle(context.Background(), h.event(), saga.WithID(h.Event))
}

// leading runs work that needs a lease, once more after a lease that was lost on the way has expired.
func leading(work func(context.Context) error) error {
	err := work(context.Background())
	if errors.Is(err, lease.ErrHeld) {
		time.Sleep(whileDead)
		err = work(context.Background())
	}
	return err
}

// place is where a world's tables are, and the driver to reach them by.
type place struct {
	driver    driver.Driver
	name, dsn string
}

// Connect and Driver make a place a [driver.Connector].
func (p place) Connect(context.Context) (driver.Conn, error) { return p.driver.Open(p.dsn) }
func (p place) Driver() driver.Driver                        { return p.driver }

func (p place) open(k *knife) (*sqlx.DB, *schema.DB, error) {
	pool := sqlx.NewDb(sql.OpenDB(connector{p, k}), p.name)
	pool.SetMaxOpenConns(8)
	pool.SetMaxIdleConns(8)
	db, err := schema.Wrap(pool, schema.WithProcessClock(), schema.WithoutPrepare(), schema.WithLogger(slog.New(slog.DiscardHandler)))
	return pool, db, err
}
