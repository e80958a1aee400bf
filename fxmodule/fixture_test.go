package fxmodule_test

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"
	"go.uber.org/goleak"

	"github.com/norn-go/norn/fxmodule"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func each(t *testing.T, body func(t *testing.T, address string)) {
	t.Helper()
	for _, name := range schematest.Databases {
		t.Run(name, func(t *testing.T) { body(t, schematest.URL(t, name)) })
	}
}

// bubble is each in virtual time. A goroutine that is left behind fails it.
func bubble(t *testing.T, body func(t *testing.T, address string)) {
	t.Helper()
	each(t, func(t *testing.T, address string) {
		synctest.Test(t, func(t *testing.T) { body(t, address) })
	})
}

// newApp is an application with norn as its last part.
func newApp(address string, opts ...fx.Option) *fx.App {
	return fx.New(
		quiet,
		fxmodule.ConfigFile(""),
		fxmodule.Override("database.url", address),
		fxmodule.Override("saga.clock", "process"),
		fxmodule.Override("saga.wake.listen", "false"),
		fx.Options(opts...),
		fxmodule.Module,
	)
}

var quiet = fx.Options(
	fx.WithLogger(func() fxevent.Logger { return fxevent.NopLogger }),
	fx.Provide(func() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }),
)

// run starts an application and stops it with the test.
func run(t *testing.T, address string, opts ...fx.Option) *saga.Engine {
	t.Helper()
	var engine *saga.Engine
	app := newApp(address, fx.Options(opts...), fx.Populate(&engine))
	start(t, app)
	t.Cleanup(func() { stop(t, app) })
	return engine
}

func start(t *testing.T, app *fx.App) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), app.StartTimeout())
	defer cancel()
	require.NoError(t, app.Start(ctx))
}

func stop(t *testing.T, app *fx.App) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), app.StopTimeout())
	defer cancel()
	require.NoError(t, app.Stop(ctx))
}

// golden compares the mistakes that stop an application with a file. fx puts nothing before them.
func golden(t *testing.T, err error) {
	t.Helper()
	require.Error(t, err)
	require.NotContains(t, err.Error(), "makeFuncStub")
	got := err.Error() + "\n"
	file := filepath.Join("testdata", t.Name()+".golden")
	if os.Getenv("NORN_UPDATE_GOLDEN") != "" {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

type leaseRow struct {
	Name, Holder string
	Term         int64
	Expires      schema.Time `db:"expires_at"`
}

// look opens the database beside the application.
func look(t *testing.T, address string) *schema.DB {
	t.Helper()
	db, err := schema.Open(context.Background(), address, schema.WithProcessClock())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func leases(t *testing.T, db *schema.DB) (rows []leaseRow) {
	t.Helper()
	require.NoError(t, db.Select(context.Background(), &rows, "SELECT name, holder, term, expires_at FROM {deadline_lock} ORDER BY name"))
	return rows
}

func requireNoLeaseHeld(t *testing.T, db *schema.DB) {
	t.Helper()
	for _, row := range leases(t, db) {
		require.False(t, row.Expires.After(time.Now()), "%s is held by %s", row.Name, row.Holder)
	}
}

// journal records what happened, in its order.
type journal struct {
	mu      sync.Mutex
	entries []string
}

func (j *journal) add(entry string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, entry)
}

func (j *journal) list() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]string{}, j.entries...)
}
