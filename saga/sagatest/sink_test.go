package sagatest_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/outbox"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/saga/sagatest"
)

// broker is the other end of a sink.
type broker struct {
	mu      sync.Mutex
	arrived []outbox.Command
	mended  chan struct{} // not nil: it does not answer until this is closed
}

func (b *broker) receive(c outbox.Command) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.arrived = append(b.arrived, c)
}

func (b *broker) received() []outbox.Command {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.arrived)
}

func (b *broker) outage() (mend func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	mended := make(chan struct{})
	b.mended = mended
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.mended = nil
		close(mended)
	}
}

func (b *broker) away() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mended
}

// Deliver implements outbox.Sink as it should be.
func (b *broker) Deliver(ctx context.Context, c outbox.Command) error {
	if mended := b.away(); mended != nil {
		select {
		case <-mended:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	b.receive(c)
	return nil
}

func TestSinksThatDoWhatTheRelayReliesOnPass(t *testing.T) {
	t.Run("a broker", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := &broker{}
			sagatest.Sink(t, func(testing.TB) outbox.Sink { return b }, b.received, sagatest.Outage(b.outage))
		})
	})
	t.Run("a broker that refuses", func(t *testing.T) {
		b := &broker{}
		sink := outbox.SinkFunc(func(ctx context.Context, c outbox.Command) error {
			if b.away() != nil {
				return errors.New("connection refused")
			}
			return b.Deliver(ctx, c)
		})
		synctest.Test(t, func(t *testing.T) {
			sagatest.Sink(t, func(testing.TB) outbox.Sink { return sink }, b.received, sagatest.Outage(b.outage))
		})
	})
	t.Run("a router", func(t *testing.T) {
		b := &broker{}
		sagatest.Sink(t, func(t testing.TB) outbox.Sink { return routed(t, b) }, b.received)
	})
}

// routed is norn's own router, with a handler that passes on what it is told.
func routed(t testing.TB, to *broker) outbox.Sink {
	types, err := saga.NewTypes(saga.JSON{})
	require.NoError(t, err)
	sent := map[string]string{}
	var mu sync.Mutex
	router, err := outbox.NewRouter(types, func(_ context.Context, p sagatest.Parcel) error {
		name, payload, err := types.Encode(p)
		mu.Lock()
		defer mu.Unlock()
		to.receive(outbox.Command{ID: sent[payload], Type: name, Payload: []byte(payload)})
		return err
	})
	require.NoError(t, err)
	return outbox.SinkFunc(func(ctx context.Context, c outbox.Command) error {
		mu.Lock()
		sent[string(c.Payload)] = c.ID
		mu.Unlock()
		return router.Deliver(ctx, c)
	})
}

func TestSinkThatBreaksTheContractIsFound(t *testing.T) {
	for name, broken := range map[string]struct {
		sink func(b *broker) outbox.SinkFunc
		want string
	}{
		"loses without a word": {func(*broker) outbox.SinkFunc {
			return func(context.Context, outbox.Command) error { return nil }
		}, "a command did not arrive: sagatest-1"},
		"cuts long payloads": {func(b *broker) outbox.SinkFunc {
			return func(ctx context.Context, c outbox.Command) error {
				c.Payload = c.Payload[:min(len(c.Payload), 1000)]
				return b.Deliver(ctx, c)
			}
		}, "did not arrive as it was"},
		"loses the saga": {func(b *broker) outbox.SinkFunc {
			return func(ctx context.Context, c outbox.Command) error {
				c.SagaID = "all"
				return b.Deliver(ctx, c)
			}
		}, "its saga is sagatest/all"},
		"refuses repetitions": {func(b *broker) outbox.SinkFunc {
			return func(ctx context.Context, c outbox.Command) error {
				if slices.ContainsFunc(b.received(), func(r outbox.Command) bool { return r.ID == c.ID }) {
					return errors.New("duplicate key")
				}
				return b.Deliver(ctx, c)
			}
		}, "delivered again is an error: duplicate key"},
		"keeps one back": {func(b *broker) outbox.SinkFunc {
			var mu sync.Mutex
			kept := map[string]outbox.Command{}
			return func(ctx context.Context, c outbox.Command) error {
				mu.Lock()
				defer mu.Unlock()
				before, ok := kept[c.SagaID]
				if !ok {
					kept[c.SagaID] = c
					return nil
				}
				delete(kept, c.SagaID)
				return errors.Join(b.Deliver(ctx, c), b.Deliver(ctx, before))
			}
		}, "overtook another of its saga"},
		"calls an interruption a success": {func(b *broker) outbox.SinkFunc {
			return func(ctx context.Context, c outbox.Command) error {
				if ctx.Err() != nil {
					return nil
				}
				return b.Deliver(ctx, c)
			}
		}, "whose context had ended, for which Deliver returned nil, did not arrive"},
		"remembers before it sends": {func(b *broker) outbox.SinkFunc {
			var sent sync.Map
			return func(ctx context.Context, c outbox.Command) error {
				if _, again := sent.LoadOrStore(c.ID, true); again {
					return nil
				}
				return b.Deliver(ctx, c)
			}
		}, "a command after an outage did not arrive"},
		"waits for an answer whatever becomes of its context": {func(b *broker) outbox.SinkFunc {
			return func(ctx context.Context, c outbox.Command) error { return b.Deliver(context.WithoutCancel(ctx), c) }
		}, "goes on 10s after its context ended"},
		"writes into the command": {func(b *broker) outbox.SinkFunc {
			return func(ctx context.Context, c outbox.Command) error {
				sent := c
				sent.Metadata = maps.Clone(c.Metadata)
				c.Metadata["trace"] = "x"
				return b.Deliver(ctx, sent)
			}
		}, "Deliver changes the command"},
		"panics": {func(*broker) outbox.SinkFunc {
			return func(context.Context, outbox.Command) error { panic("no connection") }
		}, "Deliver panics: no connection"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, l := &broker{}, &ledger{TB: t}
				sink := broken.sink(b)
				sagatest.Sink(l, func(testing.TB) outbox.Sink { return sink }, b.received, sagatest.Outage(b.outage))
				require.Contains(t, l.String(), broken.want)
			})
		})
	}
}
