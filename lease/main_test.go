package lease_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/norn-go/norn/lease"
	"github.com/norn-go/norn/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ttl = 30 * time.Second

func locker(db *schema.DB) *lease.Locker {
	return lease.New(db, "sweep", lease.Config{TTL: ttl, Logger: slog.New(slog.DiscardHandler)})
}

// stored is the lease's row as it stands.
type stored struct {
	Holder  string
	Term    int64
	Expires schema.Time `db:"expires_at"`
}

func row(t *testing.T, db *schema.DB) stored {
	t.Helper()
	var s stored
	require.NoError(t, db.Get(t.Context(), &s, "SELECT holder, term, expires_at FROM {deadline_lock} WHERE name = 'sweep'"))
	return s
}

// takeOver makes the lease another's, as if it had expired and been taken.
func takeOver(t *testing.T, db *schema.DB) stored {
	t.Helper()
	_, err := db.Exec(t.Context(), "UPDATE {deadline_lock} SET holder = 'usurper', term = term + 1, expires_at = {now+} WHERE name = 'sweep'", ttl)
	require.NoError(t, err)
	return row(t, db)
}

// breakTable makes every statement on the lease's table fail until the function returned is called.
func breakTable(t *testing.T, db *schema.DB) (mend func()) {
	t.Helper()
	_, err := db.Exec(t.Context(), "ALTER TABLE {deadline_lock} RENAME TO away")
	require.NoError(t, err)
	return func() {
		_, err := db.Exec(context.WithoutCancel(t.Context()), "ALTER TABLE away RENAME TO {deadline_lock}")
		require.NoError(t, err)
	}
}

// holding starts a Hold that goes on until stop is called, and returns when it holds.
func holding(t *testing.T, l *lease.Locker) (work context.Context, stop func() error) {
	t.Helper()
	begun, over, ended := make(chan context.Context, 1), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- l.Hold(t.Context(), func(ctx context.Context) error {
			begun <- ctx
			<-over
			return nil
		})
	}()
	select {
	case work := <-begun:
		return work, func() error { close(over); return <-ended }
	case err := <-ended:
		require.NoError(t, err)
		return nil, nil
	}
}
