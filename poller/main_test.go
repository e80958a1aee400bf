package poller_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/lease"
	"github.com/norn-go/norn/poller"
	"github.com/norn-go/norn/retry"
	"github.com/norn-go/norn/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	ttl      = 30 * time.Second
	interval = 10 * time.Second
	sagaType = "transfer-saga"
)

var quiet = slog.New(slog.DiscardHandler)

// timer is the only kind of deadline that the dispatcher of these tests knows.
var timer = deadline.Kind{Type: sagaType, Name: "timer"}

// node is one process: a poller with all it needs, on a database that others may share.
type node struct {
	*poller.Poller
	db     *schema.DB
	store  *deadline.Store
	locker *lease.Locker
	signal *deadline.Signal
	before func(ctx context.Context, d deadline.Due) error // outside of the transaction, before the claim
	handle func(ctx context.Context, c deadline.Claimed) error

	mu    sync.Mutex
	calls []string // ids, when their handler begins
	fired []string // ids, after the commit
}

type option func(n *node, c *poller.Config)

func newNode(t *testing.T, db *schema.DB, opts ...option) *node {
	t.Helper()
	n := &node{db: db, store: deadline.NewStore(db), signal: deadline.NewSignal()}
	cfg := poller.Config{
		Interval: interval, BatchSize: 10, Signal: n.signal, Logger: quiet,
		Retry: retry.Policy{MaxAttempts: 3, Initial: time.Second, Max: time.Minute},
	}
	for _, opt := range opts {
		opt(n, &cfg)
	}
	n.locker = lease.New(db, "sweep", lease.Config{TTL: ttl, Logger: cfg.Logger})
	var err error
	n.Poller, err = poller.New(n.store, n.locker, n, cfg)
	require.NoError(t, err)
	return n
}

func handling(handle func(ctx context.Context, c deadline.Claimed) error) option {
	return func(n *node, _ *poller.Config) { n.handle = handle }
}

func beforeClaim(before func(ctx context.Context, d deadline.Due) error) option {
	return func(n *node, _ *poller.Config) { n.before = before }
}

func config(change func(c *poller.Config)) option {
	return func(_ *node, c *poller.Config) { change(c) }
}

func (n *node) Kinds() []deadline.Kind { return []deadline.Kind{timer} }

// Dispatch claims d and stores one effect with the claim, which no second one could join.
func (n *node) Dispatch(ctx context.Context, d deadline.Due) error {
	if n.before != nil {
		if err := n.before(ctx, d); err != nil {
			return err
		}
	}
	claimed := false
	err := n.db.Tx(ctx, func(ctx context.Context, tx *schema.Tx) error {
		c, ok, err := n.store.Claim(ctx, tx, d)
		if err != nil || !ok {
			return err
		}
		n.note(&n.calls, d)
		if n.handle != nil {
			if err := n.handle(ctx, c); err != nil {
				return err
			}
		}
		claimed = true
		_, err = tx.Exec(ctx, "INSERT INTO {event} (saga_type, saga_id, event_id, handled_at) VALUES (?, ?, ?, {now})", d.Type, d.ID, d.Token)
		return err
	})
	if err == nil && claimed {
		n.note(&n.fired, d)
	}
	if schema.Retryable(err) {
		return retry.Uncounted(err)
	}
	return err
}

func (n *node) note(list *[]string, d deadline.Due) {
	n.mu.Lock()
	defer n.mu.Unlock()
	*list = append(*list, d.ID)
}

func (n *node) seen(list *[]string) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string{}, *list...)
}

// run starts Run until the function returned is called.
func (n *node) run(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	return func() { cancel(); require.NoError(t, <-ended) }
}

// put stores deadlines called "timer" of sagas with the ids, all due at the same time.
func put(t *testing.T, db *schema.DB, due time.Time, ids ...string) {
	t.Helper()
	putNamed(t, db, timer, due, ids...)
}

func putNamed(t *testing.T, db *schema.DB, kind deadline.Kind, due time.Time, ids ...string) {
	t.Helper()
	rows := make([]deadline.New, len(ids))
	for i, id := range ids {
		key := deadline.Key{Type: kind.Type, ID: id, Name: kind.Name}
		rows[i] = deadline.New{Key: key, Token: fmt.Sprint(id, kind.Name, due.UnixMicro()), PublicID: deadline.DefaultPublicID(key), Due: due}
	}
	store := deadline.NewStore(db)
	require.NoError(t, db.Tx(context.WithoutCancel(t.Context()), func(ctx context.Context, tx *schema.Tx) error {
		var b schema.Batch
		store.Put(&b, rows)
		_, err := tx.Run(ctx, &b)
		return err
	}))
}

// ids are count ids beginning with prefix, in key order.
func ids(prefix string, count int) []string {
	list := make([]string, count)
	for i := range list {
		list[i] = fmt.Sprintf("%s%05d", prefix, i)
	}
	return list
}

func pending(t *testing.T, db *schema.DB) (rows []deadline.Pending) {
	t.Helper()
	require.NoError(t, db.Select(t.Context(), &rows, `SELECT saga_type, saga_id, name, public_id, token, due_at, next_at,
		payload_type, payload, attempts, last_error, parked_at FROM {deadline} ORDER BY saga_type, saga_id, name`))
	return rows
}

func count(t *testing.T, db *schema.DB, table string) (n int) {
	t.Helper()
	require.NoError(t, db.Get(t.Context(), &n, "SELECT count(*) FROM "+table))
	return n
}
