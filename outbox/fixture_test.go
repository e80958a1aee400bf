package outbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/norn-go/norn/lease"
	"github.com/norn-go/norn/outbox"
	"github.com/norn-go/norn/retry"
	"github.com/norn-go/norn/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// types stores values as JSON under the names listed.
type types map[reflect.Type][]string

func (n types) Names(t reflect.Type) ([]string, error) {
	if names, ok := n[t]; ok {
		return names, nil
	}
	return nil, fmt.Errorf("no name for %s", t)
}

func (types) Decode(data []byte, into any) error { return json.Unmarshal(data, into) }

type debit struct{ Amount int }

type credit struct{ Amount int }

var stored = types{
	reflect.TypeFor[debit]():  {"debit", "old-debit"},
	reflect.TypeFor[credit](): {"credit"},
}

// bench is an outbox on a real table with a sink that writes down what it gets.
type bench struct {
	t      *testing.T
	db     *schema.DB
	store  *outbox.Store
	signal *outbox.Signal

	mu   sync.Mutex
	got  []string // saga:command
	seen []outbox.Command
	fail func(ctx context.Context, c outbox.Command) error // nil: all succeed
}

func newBench(t *testing.T, db *schema.DB) *bench {
	return &bench{t: t, db: db, store: outbox.NewStore(db), signal: outbox.NewSignal()}
}

// Deliver is the bench's sink.
func (b *bench) Deliver(ctx context.Context, c outbox.Command) error {
	b.mu.Lock()
	b.seen = append(b.seen, c)
	fail := b.fail
	b.mu.Unlock()
	if fail != nil {
		if err := fail(ctx, c); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.got = append(b.got, c.SagaID+":"+c.ID)
	return nil
}

func (b *bench) failing(fail func(ctx context.Context, c outbox.Command) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail = fail
}

func (b *bench) delivered() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string{}, b.got...)
}

func (b *bench) attempts() (ids []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.seen {
		ids = append(ids, c.ID)
	}
	return ids
}

// of keeps from delivered what one saga sent.
func (b *bench) of(sagaID string) (ids []string) {
	for _, entry := range b.delivered() {
		if id, ok := strings.CutPrefix(entry, sagaID+":"); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

func command(sagaID, id string) outbox.New {
	return outbox.New{ID: id, SagaType: "transfer", SagaID: sagaID, Type: "debit", Payload: `{"Amount":1}`, Created: time.Now()}
}

// send stores commands in one transaction and tells the relay.
func (b *bench) send(commands ...outbox.New) {
	b.t.Helper()
	require.NoError(b.t, b.put(commands...))
	b.signal.Notify()
}

func (b *bench) put(commands ...outbox.New) error {
	return b.db.Tx(b.t.Context(), func(ctx context.Context, tx *schema.Tx) error {
		var batch schema.Batch
		b.store.Put(&batch, commands)
		_, err := tx.Run(ctx, &batch)
		return err
	})
}

// relay makes a relay to the bench's sink, without jitter and with a lease of its own making.
func (b *bench) relay(change ...func(*outbox.Config)) *outbox.Relay {
	b.t.Helper()
	cfg := outbox.Config{Sink: b, Signal: b.signal, Logger: quiet,
		Retry: retry.Policy{MaxAttempts: 3, Initial: time.Second, Max: time.Minute}}
	for _, c := range change {
		c(&cfg)
	}
	locker := lease.New(b.db, "relay", lease.Config{TTL: 2 * time.Minute, Logger: quiet})
	r, err := outbox.NewRelay(b.store, locker, cfg)
	require.NoError(b.t, err)
	return r
}

// run runs r until stop is called, which waits for it.
func (b *bench) run(r *outbox.Relay) (stop func()) {
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan error, 1) // one: the result of Run
	go func() { done <- r.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(b.t, <-done)
	})
	b.t.Cleanup(stop)
	return stop
}

func (b *bench) backlog() outbox.Backlog {
	b.t.Helper()
	backlog, err := b.store.Backlog(b.t.Context())
	require.NoError(b.t, err)
	return backlog
}

func (b *bench) parked() []outbox.Stored {
	b.t.Helper()
	parked, err := b.store.Parked(b.t.Context(), "", "", 0, 100)
	require.NoError(b.t, err)
	return parked
}

var quiet = slog.New(slog.DiscardHandler)

var errBroken = errors.New("the bank is closed")

func failOn(ids ...string) func(context.Context, outbox.Command) error {
	return func(_ context.Context, c outbox.Command) error {
		for _, id := range ids {
			if c.ID == id {
				return errBroken
			}
		}
		return nil
	}
}

// logLines is a slog.Handler that keeps level and message of each line.
type logLines struct {
	mu    sync.Mutex
	lines []string
}

func (l *logLines) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }
func (l *logLines) WithAttrs([]slog.Attr) slog.Handler               { return l }
func (l *logLines) WithGroup(string) slog.Handler                    { return l }
func (l *logLines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, r.Level.String()+" "+r.Message)
	return nil
}

func (l *logLines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}
