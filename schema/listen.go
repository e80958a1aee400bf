package schema

import (
	"context"
	"errors"
	"fmt"
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

// Listen calls wake when it begins to listen, since wake-ups may have been missed before, and after each
// wake-up of another process. It returns nil when ctx ends, and an error when the connection is lost: call it again.
// It has a connection of its own, outside of the pool.
func (d *DB) Listen(ctx context.Context, wake func()) error {
	address, err := postgresSource(d.url, true)
	if err != nil {
		return err
	}
	notices := make(chan *pq.Notification, 16) // the connection's reader need not wait for wake
	// A pq.Listener would connect again by itself, but its Close leaves that goroutine behind.
	conn, err := pq.NewListenerConn(address, notices)
	if err != nil {
		return d.classify(err)
	}
	defer func() {
		_ = conn.Close()
		for range notices { // closed when the reader has ended
		}
	}()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // also while an answer is waited for
	if _, err := conn.Listen(d.channel()); err != nil {
		return d.listenerLost(ctx, err)
	}
	wake()
	check := time.NewTicker(90 * time.Second)
	defer check.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, open := <-notices:
			if !open {
				return d.listenerLost(ctx, errors.Join(ErrUnavailable, conn.Err()))
			}
			wake()
		case <-check.C: // a connection that died without a word shows
			if err := conn.Ping(); err != nil {
				return d.listenerLost(ctx, err)
			}
		}
	}
}

func (d *DB) listenerLost(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("schema: listen: %w", d.classify(err))
}
