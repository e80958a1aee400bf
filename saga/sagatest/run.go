package sagatest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/norn-go/norn/lease"
	"github.com/norn-go/norn/outbox"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/saga/internal/knife"
	"github.com/norn-go/norn/schema"
)

// run is one run of a scenario in [Crash].
type run struct {
	kit    *kit
	ground *ground
	knife  *knife.Knife
	mode   mode
	at     int       // the statement that meets the fault; 0: none does
	of     int       // statements of the undisturbed run
	want   []outcome // of the undisturbed run; nil: this is it
	past   []outcome
	failed bool

	now time.Time // the framework clock
	die context.CancelCauseFunc

	statement string // that met the fault
	step      string // in which it did

	event     bool            // the step that runs hands one over
	hit       bool            // the fault came in the step that runs
	fired     map[string]bool // tokens, told by a process that died
	delivered []outbox.Command
	arrived   []outbox.Command // each id once
	fromEvent map[string]bool  // whether an event's step stored a command, by its id
}

func newRun(k *kit, g *ground, m mode, at int, undisturbed *run) *run {
	r := &run{kit: k, ground: g, mode: m, at: at, now: k.start.UTC(), fired: map[string]bool{}, fromEvent: map[string]bool{}}
	cut := knife.ErrCut
	if g.database == SQLite { // loses no connections: that an error inside a handler means one, the engine must be told
		cut = fmt.Errorf("%w: %w", schema.ErrUnavailable, cut)
	}
	r.knife = knife.New(cut, func() { r.die(errDied) })
	m.fault.At = at
	r.knife.Arm(m.fault)
	if undisturbed != nil {
		r.want, r.of = append([]outcome{}, undisturbed.past...), undisturbed.knife.Count()
	}
	return r
}

var errDied = errors.New("sagatest: the process died")

// disturbed tells whether this run only has to do as another one did.
func (r *run) disturbed() bool { return r != nil && r.want != nil }

// playRun plays scenario on a stage of r. The caller is in a bubble.
func playRun[S any](t testing.TB, r *run, scenario func(f *Fixture[S])) {
	t.Helper()
	time.Sleep(time.Until(r.kit.start))
	ended := false
	defer func() {
		if !ended && !t.Failed() {
			t.Error("sagatest: the scenario was left before its end: a test that skips does so before Crash")
		}
		if t.Failed() && !r.failed && r.disturbed() {
			t.Errorf("sagatest: that was in a run that %s", r.fault())
		}
		r.failed = r.failed || t.Failed()
	}()
	s := newStage(t, r.kit, "", r)
	scenario(&Fixture[S]{Scope[S]{stage: s}})
	ended = true
	s.endAct()
	if len(r.past) < len(r.want) {
		r.fails(s, "has fewer steps than the undisturbed one", "  next      "+r.want[len(r.past)].step)
	}
}

// open makes a pool of a new process.
func (r *run) open(ctx context.Context, opts ...schema.Option) (*schema.DB, error) {
	r.knife.Watch(false)
	r.knife.Revive()
	pool := sqlx.NewDb(knife.Open(r.ground.stock, r.knife), r.ground.name)
	pool.SetMaxOpenConns(8)
	pool.SetMaxIdleConns(8)
	db, err := schema.Wrap(pool, append(opts, schema.WithoutPrepare())...)
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	return db, db.PingContext(ctx)
}

// attempt runs a step, and runs it again if the fault came in it: after a restart if the process died.
func (r *run) attempt(s *stage, step string, do func() error) error {
	s.t.Helper()
	r.event, r.hit = false, false
	err := r.watched(do)
	if _, r.hit = r.knife.Met(); !r.hit || r.statement != "" {
		r.hit = false
		return err
	}
	r.statement, _ = r.knife.Met()
	r.step = step
	s.history.goes("the process " + r.fault())
	switch {
	case r.mode.fault.Die:
		r.keep(s)
		s.history.goes("another process begins, and the step again")
		if err := s.restart(); err != nil {
			return err
		}
	case r.event && !lost(err):
		return err
	default:
		r.keep(s)
	}
	return r.watched(do)
}

func (r *run) watched(do func() error) error {
	r.knife.Watch(true)
	defer r.knife.Watch(false)
	return do()
}

// keep takes what the witness knows before it is gone, but for the errors, which the step that is done again may not have.
func (r *run) keep(s *stage) {
	fired, delivered, _ := s.witness.take()
	maps.Copy(r.fired, fired)
	r.delivered = append(r.delivered, delivered...)
	s.handlerErrs = nil
}

// lost tells the errors after which one does a thing again.
func lost(err error) bool {
	return schema.Retryable(err) || errors.Is(err, saga.ErrUnknownOutcome) || errors.Is(err, knife.ErrCut)
}

// taken completes what a witness tells by what it could not tell any more.
func (r *run) taken(before, after snapshot, fired map[string]bool, delivered []outbox.Command) (map[string]bool, []outbox.Command) {
	maps.Copy(r.fired, fired)
	delivered = append(r.delivered, delivered...)
	r.delivered = nil
	for _, d := range delivered {
		if !slices.ContainsFunc(r.arrived, func(a outbox.Command) bool { return a.ID == d.ID }) {
			r.arrived = append(r.arrived, d)
		}
	}
	for key, d := range before.deadlines {
		if r.hit && !r.event && after.deadlines[key].Token != d.Token && !d.NextAt.After(r.now) {
			r.fired[d.Token] = true
		}
	}
	return r.fired, delivered
}

// pass lets time pass until t. The framework clock is never ahead of the process clock.
func (r *run) pass(t time.Time) {
	if t.After(r.now) {
		r.now = t
	}
	time.Sleep(time.Until(t))
}

// message gives an event an id by its place, which is the same in every run.
func (r *run) message(opts []saga.MessageOption) []saga.MessageOption {
	r.event = true
	return append([]saga.MessageOption{saga.WithID(fmt.Sprintf("event-%d", len(r.past)+1))}, opts...)
}

// stepEnds compares what a step came to with the undisturbed run.
func (r *run) stepEnds(s *stage, step string, errs []error) {
	s.t.Helper()
	r.compare(s, r.outcome(step, s.seen, errs))
}

func (r *run) observes(s *stage, what string, value any) {
	s.t.Helper()
	r.compare(s, outcome{"observe " + what, map[string]string{what: observation(value)}})
}

func (r *run) compare(s *stage, got outcome) {
	s.t.Helper()
	place := len(r.past)
	r.past = append(r.past, got)
	switch {
	case r.want == nil:
		return
	case place == len(r.want):
		r.fails(s, "has more steps than the undisturbed one", "  next      "+got.step)
	case got.step != r.want[place].step:
		r.fails(s, "has other steps than the undisturbed one", beside(r.want[place].step, got.step)...)
	}
	if lines := differences(r.want[place], got); len(lines) > 0 {
		what := "differs from the undisturbed one after " + got.step
		if r.step == got.step {
			what = "differs from the undisturbed one after that step"
		}
		r.fails(s, what, lines...)
	}
}

// fails ends the run, and the test.
func (r *run) fails(s *stage, what string, lines ...string) {
	s.t.Helper()
	r.failed = true
	if r.statement == "" {
		s.t.Fatalf("sagatest: a run %s, and nothing had gone wrong in it: the scenario is not the same each time\n%s\n%s",
			what, strings.Join(lines, "\n"), s.history)
	}
	s.t.Fatalf("sagatest: a run that %s\n  statement %s\n  of step   %s\n%s:\n%s\n%s",
		r.fault(), squeezed(r.statement), r.step, what, strings.Join(lines, "\n"), s.history)
}

// fault says what the run met.
func (r *run) fault() string {
	if r.at == 0 {
		return "was as undisturbed as the first"
	}
	return fmt.Sprintf("%s statement %d of %d", r.mode.text, r.at, r.of)
}

// squeezed is SQL in one line.
func squeezed(statement string) string { return strings.Join(strings.Fields(statement), " ") }

// leading runs work that needs a lease, and waits for the one of a process that died.
func (s *stage) leading(work func(ctx context.Context) error) error {
	err := work(s.ctx())
	if s.run != nil && errors.Is(err, lease.ErrHeld) {
		time.Sleep(2 * lease.DefaultTTL)
		err = work(s.ctx())
	}
	return err
}
