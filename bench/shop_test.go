package bench

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

// orders is the saga type under measurement: a state of a usual size, one association, one deadline.
type orders struct {
	OrderID, CustomerID, Address string
	Lines                        []string
	Paid                         int
}

type (
	placed struct {
		OrderID string `json:"orderId"`
	}
	paid struct {
		OrderID string `json:"orderId"`
	}
)

const expiry = "expiry"

func (o *orders) OnPlaced(e placed, deadlines saga.Deadlines) {
	o.OrderID, o.CustomerID, o.Address = e.OrderID, "customer-4711", "12 Main Street, Springfield"
	o.Lines = []string{"apples", "pears", "plums"}
	deadlines.Schedule(expiry, 0)
}

func (o *orders) OnPaid(paid) { o.Paid++ }
func (o *orders) OnExpiry()   { o.Paid = -1 }

func definition() *saga.Definition {
	return saga.MustDefine[orders]("order",
		saga.Start((*orders).OnPlaced, saga.By("orderId")),
		saga.On((*orders).OnPaid, saga.By("orderId")),
		saga.OnDeadline(expiry, (*orders).OnExpiry),
	)
}

// databases runs body on both databases as a production system would have them, once empty and once with a
// million deadlines pending far in the future.
func databases(b *testing.B, body func(b *testing.B, db *schema.DB)) {
	for _, name := range schematest.Databases {
		for _, pending := range []int{0, 1_000_000} {
			b.Run(fmt.Sprintf("%s/pending=%d", name, pending), func(b *testing.B) {
				db := open(b, name)
				fill(b, db, pending)
				body(b, db)
			})
		}
	}
}

func open(b *testing.B, name string) *schema.DB {
	address := "sqlite://" + filepath.Join(b.TempDir(), "bench.db") + "?_synchronous=NORMAL"
	if name == "postgres" {
		address = schematest.URL(b, name)
	}
	db, err := schema.Open(context.Background(), address)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, db.Close()) })
	require.NoError(b, schema.Migrate(context.Background(), db))
	return db
}

func fill(b *testing.B, db *schema.DB, pending int) {
	_, err := db.Exec(context.Background(), `WITH RECURSIVE n (i) AS (SELECT 1 WHERE ? > 0 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO {deadline} (saga_type, saga_id, name, token, public_id, due_at, next_at)
		SELECT 'order', 'pending-' || i, 'expiry', 't' || i, 'p' || i, r.at, r.at FROM n, {rows at time}`,
		pending, pending, schema.Rows{{time.Now().AddDate(50, 0, 0)}})
	require.NoError(b, err)
	_, err = db.DB.Exec("ANALYZE")
	require.NoError(b, err)
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func newEngine(b *testing.B, db *schema.DB) *saga.Engine {
	e, err := saga.New(db, saga.Config{Logger: quiet()}, definition())
	require.NoError(b, err)
	b.Cleanup(e.Close)
	return e
}

// start makes n sagas whose ids begin with prefix, each with a deadline that is due.
func start(b *testing.B, e *saga.Engine, prefix string, n int) {
	parallel(n, func(i int) {
		require.NoError(b, e.Handle(context.Background(), placed{fmt.Sprint(prefix, i)}))
	})
}
