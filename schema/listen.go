package schema

import (
	"context"
	"errors"
	"time"

	"github.com/lib/pq"
)

// CanListen reports whether processes can wake each other on this database: a Postgres that [Open]
// opened, for a listener needs a connection outside of the pool.
func (d *DB) CanListen() bool { return d.writer == nil && d.url != "" }

// channel is where wake-ups go: one for each set of tables.
func (d *DB) channel() string { return d.names.versionTable() + "_wake" }

// NotifyOthers wakes the processes that listen. It carries nothing and is sent outside of any
// transaction, since Postgres lets commits that notify wait for each other.
func (d *DB) NotifyOthers(ctx context.Context) error {
	_, err := d.pooled().exec(ctx, "SELECT pg_notify(?, '')", []any{d.channel()})
	return err
}

// Listen calls wake after each wake-up of another process, and after a reconnect, when wake-ups may
// have been missed. It returns when ctx ends; a lost connection is opened again, and polling goes on
// meanwhile.
func (d *DB) Listen(ctx context.Context, wake func()) error {
	address, err := postgresSource(d.url, true)
	if err != nil {
		return err
	}
	listener := pq.NewListener(address, time.Second, time.Minute, nil)
	defer func() { _ = listener.Close() }()
	if err := listener.Listen(d.channel()); err != nil && !errors.Is(err, pq.ErrChannelAlreadyOpen) {
		return d.classify(err)
	}
	check := time.NewTicker(90 * time.Second)
	defer check.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-listener.Notify:
			wake()
		case <-check.C:
			_ = listener.Ping() // a dead connection shows, and the listener opens another
		}
	}
}
