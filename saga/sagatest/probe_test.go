package sagatest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/saga/sagatest"
	"github.com/norn-go/norn/schema/schematest"
)

// Probe is a saga whose handlers do what the test says.
type Probe struct {
	Count int
	Text  string
}

// Hands are what a handler got.
type Hands struct {
	saga.Commands
	saga.Deadlines
	saga.Lifecycle
	saga.Associations
	Metadata saga.Metadata
	State    *Probe
}

type (
	Begin struct {
		ID string `json:"id"`
		do func(Hands) error
	}
	Move struct {
		ID string `json:"id"`
		do func(Hands) error
	}
	// Timers say what the deadlines do, by name.
	Timers map[string]func(Hands) error

	Note   struct{ Text string }
	Order  struct{ Text string }
	Parcel struct{ Weight int }
)

func (p *Probe) act(do func(Hands) error, h Hands) error {
	p.Count++
	h.State = p
	if do == nil {
		return nil
	}
	return do(h)
}

func (p *Probe) OnBegin(e Begin, c saga.Commands, d saga.Deadlines, l saga.Lifecycle, a saga.Associations, m saga.Metadata) error {
	return p.act(e.do, Hands{Commands: c, Deadlines: d, Lifecycle: l, Associations: a, Metadata: m})
}

func (p *Probe) OnMove(e Move, c saga.Commands, d saga.Deadlines, l saga.Lifecycle, a saga.Associations, m saga.Metadata) error {
	return p.act(e.do, Hands{Commands: c, Deadlines: d, Lifecycle: l, Associations: a, Metadata: m})
}

func (p *Probe) OnTimer(f saga.Firing, t *Timers, c saga.Commands, d saga.Deadlines, l saga.Lifecycle) error {
	c.Send(Note{f.Name})
	return p.act((*t)[f.Name], Hands{Commands: c, Deadlines: d, Lifecycle: l})
}

func (p *Probe) OnParcel(parcel Parcel, c saga.Commands) {
	c.Send(Note{fmt.Sprint("parcel of ", parcel.Weight)})
}

// probe is the registrations of a Probe.
func probe(timers Timers, more ...any) []any {
	return append([]any{
		saga.Start((*Probe).OnBegin, saga.By("id")),
		saga.On((*Probe).OnMove, saga.By("id"), saga.By("tag")),
		saga.OnDeadline("t", (*Probe).OnTimer),
		saga.OnDeadline("u", (*Probe).OnTimer),
		saga.OnDeadline("parcel", (*Probe).OnParcel),
		sagatest.Provide(&timers),
	}, more...)
}

var errHandler = errors.New("the handler refuses")

func refuse(Hands) error { return errHandler }

// both runs a body that must pass, on both databases, with events by Handle and by HandleTx.
func both(t *testing.T, timers Timers, body func(f *sagatest.Fixture[Probe]), more ...any) {
	t.Helper()
	t.Run("handle", func(t *testing.T) {
		sagatest.Test(t, "probe", body, probe(timers, append(more, sagatest.OnBoth())...)...)
	})
	t.Run("synchronous", func(t *testing.T) {
		sagatest.Test(t, "probe", body, probe(timers, append(more, sagatest.OnBoth(), sagatest.Synchronous())...)...)
	})
}

// recorder is a test that keeps its failures to itself.
type recorder struct {
	testing.TB
	failures []string
	stopped  bool
}

func (r *recorder) Helper()           {}
func (r *recorder) Error(args ...any) { r.failures = append(r.failures, fmt.Sprint(args...)) }
func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) FailNow() {
	r.stopped = true
	runtime.Goexit()
}

func (r *recorder) Fatal(args ...any) {
	r.Error(args...)
	r.FailNow()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	r.FailNow()
}

func (r *recorder) text() string { return strings.Join(r.failures, "\n\n") }

// recorded runs a body that may fail, on each database, and hands out what it said.
func recorded(t *testing.T, check func(t *testing.T, r *recorder), body func(f *sagatest.Fixture[Probe]), regs ...any) {
	t.Helper()
	for _, name := range schematest.Databases {
		t.Run(name, func(t *testing.T) {
			address := schematest.URL(t, name)
			synctest.Test(t, func(t *testing.T) {
				r := &recorder{TB: t}
				done := make(chan struct{})
				go func() {
					defer close(done)
					sagatest.Play(r, address, "probe", body, regs...)
				}()
				<-done
				check(t, r)
			})
		})
	}
}

// requireFails runs a body that must fail with a text that contains part.
func requireFails(t *testing.T, part string, body func(f *sagatest.Fixture[Probe]), regs ...any) {
	t.Helper()
	if len(regs) == 0 {
		regs = probe(nil)
	}
	recorded(t, func(t *testing.T, r *recorder) {
		require.Contains(t, r.text(), part)
	}, body, regs...)
}

func deliver(into *[]string) any {
	return func(_ context.Context, n Note) error {
		*into = append(*into, n.Text)
		return nil
	}
}
