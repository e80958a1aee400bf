package sagatest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/norn-go/norn/lease"
	"github.com/norn-go/norn/outbox"
	"github.com/norn-go/norn/retry"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

// Parcel is the command that [Sink] sends, stored under its usual name, sagatest.Parcel, with the codec [saga.JSON].
type Parcel struct {
	Number int
	Text   string
}

// SinkOption is more that a test of a sink can do.
type SinkOption func(*sinkCheck)

// Outage lets [Sink] check what becomes of commands while the sink's other end is gone: begin makes it unreachable, or have
// it never answer, until mend is called.
func Outage(begin func() (mend func())) SinkOption {
	return func(c *sinkCheck) { c.outage = begin }
}

// Sink checks that a sink of one's own does what the relay relies on. t goes on after a failure. Run it under the race
// detector.
//
// newSink makes a sink; it is called once, or again when the sending process is said to have restarted, and what it makes
// leads to the same other end. received lists what arrived at that end so far, in the order of its arrival and with all repetitions,
// as a consumer sees it. ID, Type and Payload must be there; other fields are compared unless they are zero.
//
//   - A command for which Deliver returned nil has arrived, whole and unchanged, with its id by which a consumer knows
//     repetitions.
//   - A command that is delivered again, also by a process that has just started, is no error.
//   - An error of Deliver means that the command will come again: then it arrives.
//   - Commands of one saga, which come one after the other, arrive in their order, repetitions left out.
//   - Commands of different sagas come in parallel.
//   - Deliver returns soon after its context has ended, and never returns nil for a command that did not arrive.
//   - Deliver changes nothing of the command that it is given.
//
// The commands are stored and relayed as in production, on SQLite.
func Sink(t testing.TB, newSink func(t testing.TB) outbox.Sink, received func() []outbox.Command, opts ...SinkOption) {
	t.Helper()
	c := &sinkCheck{t: t, newSink: newSink, received: received, now: schema.Microseconds(time.Now())}
	for _, opt := range opts {
		opt(c)
	}
	c.db = schematest.Connect(t, schematest.URL(t, "sqlite"), schema.WithProcessClock())
	if err := schema.Migrate(t.Context(), c.db); err != nil {
		t.Fatalf("sagatest: sink: %v", err)
	}
	c.sink = newSink(t)
	c.arriveWholeAndInOrder()
	c.comeAgain()
	c.outlastTheirContext()
	if c.outage != nil {
		c.outlastAnOutage()
	}
}

type sinkCheck struct {
	t        testing.TB
	newSink  func(t testing.TB) outbox.Sink
	received func() []outbox.Command
	outage   func() (mend func())

	db    *schema.DB
	sink  outbox.Sink
	now   time.Time // of the relay, so that retries need no waiting
	count int
}

// store puts n commands of each saga into the outbox, in turns.
func (c *sinkCheck) store(sagas []string, n int) (stored []outbox.Command) {
	c.t.Helper()
	for range n {
		for _, id := range sagas {
			stored = append(stored, c.command(id))
		}
	}
	rows := make([]outbox.New, len(stored))
	for i, s := range stored {
		rows[i] = outbox.New{ID: s.ID, SagaType: s.SagaType, SagaID: s.SagaID, Type: s.Type, Payload: string(s.Payload), Metadata: s.Metadata, Created: s.Created}
	}
	err := c.db.Tx(c.t.Context(), func(ctx context.Context, tx *schema.Tx) error {
		var b schema.Batch
		outbox.NewStore(c.db).Put(&b, rows)
		_, err := tx.Run(ctx, &b)
		return err
	})
	if err != nil {
		c.t.Fatalf("sagatest: sink: store commands: %v", err)
	}
	return stored
}

// command makes the next one, of texts that are hard on a wire.
func (c *sinkCheck) command(sagaID string) outbox.Command {
	c.t.Helper()
	texts := []string{"plain", "", "NUL \x00, \"quoted\", <tag> & \\ \u2028 \r\n", "𝄞 \ufffd ß 漢", strings.Repeat("long ", 13<<10)}
	c.count++
	payload, err := saga.JSON{}.Marshal(Parcel{c.count, texts[c.count%len(texts)]})
	if err != nil {
		c.t.Fatalf("sagatest: sink: %v", err)
	}
	return outbox.Command{
		ID: fmt.Sprintf("sagatest-%d", c.count), Type: "sagatest.Parcel", Payload: payload,
		Metadata: map[string]string{"correlationId": fmt.Sprint("ß-", c.count)},
		SagaType: "sagatest", SagaID: sagaID, Created: c.now, Attempt: 1,
	}
}

// relay delivers what waits, through wrap, until nothing is due, and once more for everything that failed.
func (c *sinkCheck) relay(wrap func(ctx context.Context, command outbox.Command) error) {
	c.t.Helper()
	r, err := outbox.NewRelay(outbox.NewStore(c.db), lease.New(c.db, "sagatest-sink", lease.Config{Logger: quiet}), outbox.Config{
		Sink: outbox.SinkFunc(wrap), Retry: retry.Policy{Initial: time.Second, Max: time.Second}, Logger: quiet,
		Now: func() time.Time { return c.now },
	})
	if err != nil {
		c.t.Fatalf("sagatest: sink: %v", err)
	}
	for range 3 {
		if err := r.Flush(c.t.Context()); err != nil {
			c.t.Fatalf("sagatest: sink: relay commands: %v", err)
		}
		c.now = c.now.Add(2 * time.Second)
	}
}

var quiet = slog.New(slog.DiscardHandler)

// deliver hands one command to the sink and looks at what the sink did to it.
func (c *sinkCheck) deliver(ctx context.Context, command outbox.Command) (err error) {
	given := command
	given.Payload, given.Metadata = slices.Clone(command.Payload), maps.Clone(command.Metadata)
	defer func() {
		if r := recover(); r != nil {
			c.t.Errorf("sagatest: sink: Deliver panics: %v", r)
			err = fmt.Errorf("panic: %v", r)
		}
		if string(given.Payload) != string(command.Payload) || !maps.Equal(given.Metadata, command.Metadata) {
			c.t.Errorf("sagatest: sink: Deliver changes the command %s", command.ID)
		}
	}()
	return c.sink.Deliver(ctx, given)
}

func (c *sinkCheck) arriveWholeAndInOrder() {
	c.t.Helper()
	var sagas []string
	for i := range 12 {
		sagas = append(sagas, fmt.Sprint("parallel-", i))
	}
	stored := c.store(sagas, 10)
	var once sync.Once
	c.relay(func(ctx context.Context, command outbox.Command) error {
		err := c.deliver(ctx, command)
		if err != nil {
			once.Do(func() { c.t.Errorf("sagatest: sink: Deliver of %s: %v", command.ID, err) })
		}
		return err
	})
	c.expect("a command", stored)
}

var errUnrecorded = errors.New("sagatest: the process died before it recorded the delivery")

// comeAgain delivers each command, forgets that it was, and delivers it once more, half of them by a new sink.
func (c *sinkCheck) comeAgain() {
	c.t.Helper()
	stored := c.store([]string{"again-1", "again-2"}, 4)
	for i, command := range stored {
		if i == len(stored)/2 {
			c.sink = c.newSink(c.t)
		}
		for attempt := 1; attempt <= 2; attempt++ {
			command.Attempt = attempt
			if err := c.deliver(c.t.Context(), command); err != nil && attempt == 2 {
				c.t.Errorf("sagatest: sink: a command that is delivered again is an error: %v", err)
			}
		}
	}
	var mu sync.Mutex
	seen := map[string]bool{}
	c.relay(func(ctx context.Context, command outbox.Command) error {
		mu.Lock()
		first := !seen[command.ID]
		seen[command.ID] = true
		mu.Unlock()
		return errors.Join(c.deliver(ctx, command), map[bool]error{true: errUnrecorded}[first])
	})
	c.expect("a command that came again", stored)
}

// outlastTheirContext delivers commands whose context has ended, which may or may not arrive, and delivers them again.
func (c *sinkCheck) outlastTheirContext() {
	c.t.Helper()
	ended, cancel := context.WithCancel(c.t.Context())
	cancel()
	stored := c.interrupted(ended, "whose context had ended")
	c.relay(c.deliver)
	c.expect("a command whose context had ended the first time", stored)
}

func (c *sinkCheck) outlastAnOutage() {
	c.t.Helper()
	mend := c.outage()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Second)
	defer cancel()
	stored := c.interrupted(ctx, "in an outage")
	mend()
	c.relay(c.deliver)
	c.expect("a command after an outage", stored)
}

// soon is how long Deliver may take to notice that its context has ended.
const soon = 10 * time.Second

// interrupted stores commands and delivers them under a context that ends.
func (c *sinkCheck) interrupted(ctx context.Context, what string) (stored []outbox.Command) {
	c.t.Helper()
	stored = c.store([]string{what + " 1", what + " 2"}, 1)
	for _, command := range stored {
		returned := make(chan error, 1) // one: nobody may be there to take it
		go func() { returned <- c.deliver(ctx, command) }()
		<-ctx.Done()
		select {
		case err := <-returned:
			if err == nil {
				c.expect("a command "+what+", for which Deliver returned nil,", []outbox.Command{command})
			}
		case <-time.After(soon):
			c.t.Errorf("sagatest: sink: Deliver of a command %s goes on %v after its context ended", what, soon)
		}
	}
	return stored
}

// expect compares what arrived of the commands, repetitions left out, with what was sent.
func (c *sinkCheck) expect(what string, sent []outbox.Command) {
	c.t.Helper()
	position, first := map[string]int{}, map[string]outbox.Command{}
	for i, arrived := range c.received() {
		if _, again := first[arrived.ID]; !again {
			position[arrived.ID], first[arrived.ID] = i, arrived
		}
	}
	last := map[string]outbox.Command{}
	for _, want := range sent {
		got, ok := first[want.ID]
		if !ok {
			c.t.Errorf("sagatest: sink: %s did not arrive: %s of saga %s", what, want.ID, want.SagaID)
			return
		}
		if field := change(got, want); field != "" {
			c.t.Errorf("sagatest: sink: %s did not arrive as it was: %s: %s", what, want.ID, field)
			return
		}
		if before, ok := last[want.SagaID]; ok && position[before.ID] > position[want.ID] {
			c.t.Errorf("sagatest: sink: %s overtook another of its saga %s: %s arrived before %s", what, want.SagaID, want.ID, before.ID)
			return
		}
		last[want.SagaID] = want
	}
}

// change names what differs between a command as it arrived and as it was sent; empty: nothing.
func change(got, want outbox.Command) string {
	switch {
	case got.Type != want.Type:
		return fmt.Sprintf("its type is %q, want %q", got.Type, want.Type)
	case string(got.Payload) != string(want.Payload):
		return fmt.Sprintf("its payload is %s, want %s", excerpt(got.Payload), excerpt(want.Payload))
	case got.Metadata != nil && !maps.Equal(got.Metadata, want.Metadata):
		return fmt.Sprintf("its metadata are %v, want %v", got.Metadata, want.Metadata)
	case got.SagaType+got.SagaID != "" && (got.SagaType != want.SagaType || got.SagaID != want.SagaID):
		return fmt.Sprintf("its saga is %s/%s, want %s/%s", got.SagaType, got.SagaID, want.SagaType, want.SagaID)
	case !got.Created.IsZero() && !got.Created.Equal(want.Created):
		return fmt.Sprintf("its time is %v, want %v", got.Created, want.Created)
	}
	return ""
}
