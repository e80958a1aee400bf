package saga_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/retry"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

// wire stands between a driver and the server. It counts round trips, a request followed by its answer, and can lose
// the answer to a COMMIT.
type wire struct {
	trips atomic.Int64
	lose  atomic.Int64 // so many more COMMITs, or requests that contain the word, lose their answer
	word  string
	lost  func() // called when one is lost
	mu    sync.Mutex
	wait  int    // so many more requests until
	then  func() // this is called
}

// at calls then when that many more requests have been sent.
func (w *wire) at(requests int, then func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wait, w.then = requests, then
}

func (w *wire) request() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.wait--; w.wait == -1 && w.then != nil {
		w.then()
	}
}

// between returns an address that leads to the server through w.
func (w *wire) between(t *testing.T, server string) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var connections sync.WaitGroup
	t.Cleanup(func() {
		_ = listener.Close()
		connections.Wait()
	})
	connections.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			behind, err := net.Dial("tcp", server)
			if err != nil {
				_ = client.Close()
				return
			}
			c := &wiredConn{wire: w, client: client.(*net.TCPConn), server: behind}
			connections.Go(c.requests)
			connections.Go(c.answers)
		}
	})
	return listener.Addr().String()
}

type wiredConn struct {
	wire   *wire
	client *net.TCPConn
	server net.Conn
	mu     sync.Mutex
	asked  bool
	losing bool
}

func (c *wiredConn) requests() {
	defer func() { _ = c.server.Close() }()
	for p := make([]byte, 1<<16); ; {
		n, err := c.client.Read(p)
		if err != nil || !c.pass(p[:n]) {
			return
		}
	}
}

// pass holds back the answer until the request is counted.
func (c *wiredConn) pass(p []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = true
	if bytes.Contains(bytes.ToUpper(p), []byte(cmp.Or(c.wire.word, "COMMIT\x00"))) && c.wire.lose.Load() > 0 {
		c.wire.lose.Add(-1)
		c.losing = true
	}
	_, err := c.server.Write(p)
	c.wire.request()
	return err == nil
}

func (c *wiredConn) answers() {
	defer func() { _ = c.client.Close() }()
	for p := make([]byte, 1<<16); ; {
		n, err := c.server.Read(p)
		if err != nil || !c.answer(p[:n]) {
			return
		}
	}
}

func (c *wiredConn) answer(p []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked {
		c.asked = false
		c.wire.trips.Add(1)
	}
	if c.losing { // the server has committed, and nobody will know
		if c.wire.lost != nil {
			c.wire.lost()
		}
		_ = c.client.SetLinger(0) // the client's connection is reset
		return false
	}
	_, err := c.client.Write(p)
	return err == nil
}

// wired opens a migrated Postgres through a wire.
func wired(t *testing.T, parameters url.Values, opts ...schema.Option) (*wire, *schema.DB) {
	t.Helper()
	address, err := url.Parse(schematest.URL(t, "postgres"))
	require.NoError(t, err)
	query := address.Query()
	for name, values := range parameters {
		query[name] = values
	}
	w := &wire{}
	address.RawQuery, address.Host = query.Encode(), w.between(t, address.Host)
	return w, schematest.Open(t, address.String(), opts...)
}

func TestEventOfAnExistingSagaTakesFiveRoundTrips(t *testing.T) {
	for name, open := range map[string]func(*testing.T) (*wire, *schema.DB){
		"prepared": func(t *testing.T) (*wire, *schema.DB) { return wired(t, nil) },
		"unprepared": func(t *testing.T) (*wire, *schema.DB) {
			return wired(t, url.Values{"binary_parameters": {"yes"}}, schema.WithoutPrepare())
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, db := open(t)
			s := newStage(t, db, saga.Config{})
			s.begin("1", nil)
			act := func(sc Scene) error {
				sc.Send(Note{"a"})
				sc.Send(Note{"b"})
				sc.Schedule("t", time.Hour)
				sc.Schedule("u", time.Hour)
				sc.Cancel("v")
				sc.Add("tag", "x")
				sc.Remove("tag", "y")
				return nil
			}
			for range 3 {
				s.next("1", act)
			}
			before := w.trips.Load()
			s.next("1", act)
			require.EqualValues(t, 5, w.trips.Load()-before) // begin, associations, load, flush, commit
			require.Equal(t, 5, s.count("1"))
		})
	}
}

func TestStatementWhoseAnswerIsLostMayBeRunAgain(t *testing.T) {
	w, db := wired(t, nil)
	w.word = "SAGA_EVENT"
	for query, args := range map[string][]any{"DELETE FROM {event}": nil, "DELETE FROM {event} WHERE event_id = ?": {"e"}} {
		remove := func(ctx context.Context, tx *schema.Tx) error {
			_, err := tx.Exec(ctx, query, args...)
			return err
		}
		w.lose.Store(1)
		require.ErrorIs(t, db.Tx(t.Context(), remove), schema.ErrUnavailable, query)
		require.Zero(t, w.lose.Load())
		require.NoError(t, db.Tx(t.Context(), remove))
	}
}

// P-78, SEMANTICS 1.30. On SQLite COMMIT is a call within the process, whose answer cannot get lost.
func TestP78LostAnswerToCommitIsLookedUp(t *testing.T) {
	w, db := wired(t, nil)
	s := newStage(t, db, saga.Config{})
	act := func(sc Scene) error { sc.Send(Note{"once"}); sc.Schedule("t", 0); return nil }
	w.lose.Store(1)
	s.begin("1", act)
	require.Zero(t, w.lose.Load())
	require.Equal(t, 1, s.count("1"))
	require.Equal(t, []string{"once"}, s.notes())
	require.Len(t, s.pending("1"), 1)
	require.Len(t, s.signal.C(), 1) // who has to hear of it does
	require.Len(t, s.outbox.C(), 1)

	w.lose.Store(2)
	s.next("1", act)
	require.Equal(t, 2, s.count("1"))
	require.Equal(t, []string{"once", "once"}, s.notes())

	s.script.on("t", act) // reschedules its own name: the token tells
	w.lose.Store(1)
	_, errs := s.sweep()
	require.Empty(t, errs)
	require.Equal(t, 3, s.count("1"))
	require.Equal(t, []string{"t"}, s.script.names())
	require.Len(t, s.pending("1"), 1)

	w.lose.Store(1)
	s.next("1", end)
	require.True(t, s.instance("1").Ended)
	require.Equal(t, 4, s.count("1"))
}

// P-78: what stays unknown is said to be unknown, and never called handled or failed.
func TestP78OutcomeThatStaysUnknownIsReturned(t *testing.T) {
	w, db := wired(t, nil)
	s := newStage(t, db, saga.Config{})
	s.begin("1", nil)
	ctx, cancel := context.WithCancel(t.Context())
	w.lost = cancel
	w.lose.Store(1)
	err := s.Handle(ctx, Next{ID: "1"}, saga.WithID("e"))
	require.ErrorIs(t, err, saga.ErrUnknownOutcome)
	require.ErrorIs(t, err, context.Canceled)
	require.Regexp(t, "outcome of the commit is unknown: .*(reset|closed)", err.Error())
	require.False(t, schema.Retryable(err))
	require.NotContains(t, err.Error(), "%!")
	require.NoError(t, s.Handle(t.Context(), Next{ID: "1"}, saga.WithID("e"))) // safe under the same id
	require.Equal(t, 2, s.count("1"))

	s.next("1", func(sc Scene) error { sc.Schedule("t", 0); return nil })
	due := s.due()[0]
	ctx, w.lost = context.WithCancel(t.Context())
	w.lose.Store(1)
	require.True(t, retry.IsUncounted(s.Dispatch(ctx, due)))
	require.NoError(t, s.Dispatch(t.Context(), due))
	require.Equal(t, []string{"t"}, s.script.names())
	require.Equal(t, 4, s.count("1"))
}

// A context that is cancelled at any step leaves all or nothing, and a pool that works.
func TestP79ContextCancelledAtAnyStepLeavesAllOrNothing(t *testing.T) {
	w, db := wired(t, nil)
	s := newStage(t, db, saga.Config{})
	s.begin("1", nil)
	act := func(sc Scene) error { sc.Send(Note{"x"}); return nil }
	s.next("1", act)
	count := s.count("1")
	for step := range 8 {
		ctx, cancel := context.WithCancel(t.Context())
		w.at(step, cancel)
		id := fmt.Sprint("e", step)
		if err := s.Handle(ctx, Next{ID: "1", Do: act}, saga.WithID(id)); err != nil {
			require.ErrorIs(t, err, context.Canceled, step)
		}
		w.at(-1, nil)
		cancel()
		require.NoError(t, s.Handle(t.Context(), Next{ID: "1", Do: act}, saga.WithID(id)))
		count++
		require.Equal(t, count, s.count("1"), step)
	}
	require.Len(t, s.notes(), 9)
}
