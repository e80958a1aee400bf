package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/norn-go/norn/schema"
)

// session is the goroutine that takes a lease, renews it and gives it back. It alone uses the
// connection that it reserved beforehand, so that neither work nor a full pool delays a renewal.
//
// Hold owns it and waits for its end, with one exception: a driver that hangs in spite of its context. Hold then leaves
// with an error, and the session ends by itself when the driver lets go: run drops what comes late, and abandon, which
// waits for nothing but run's outcome, gives a late term back. A driver that hangs for ever keeps both, and their
// connection, until the process ends; no more than one for each try of Hold.
type session struct {
	*Locker
	row   // under a holder of this session alone
	conn  *schema.Conn
	taken chan outcome  // one: the attempt's outcome, also if nobody waits for it any more
	done  chan struct{} // closed when all is given back
}

type outcome struct {
	term *term
	err  error
}

func newSession(l *Locker) *session {
	return &session{Locker: l, row: l.row.session(l.sessions.Add(1)), taken: make(chan outcome, 1), done: make(chan struct{})}
}

// start begins the session and waits for its outcome, but no longer than an attempt may last, even if a
// dead connection keeps the driver from giving up.
func (s *session) start(ctx context.Context) (*term, error) {
	attempt, cancel := context.WithTimeoutCause(ctx, s.statementTime(), errSlow)
	defer cancel()
	go s.run(attempt)
	late := make(chan struct{})
	defer context.AfterFunc(attempt, func() { time.AfterFunc(patience, func() { close(late) }) })()
	select {
	case o := <-s.taken:
		return s.checked(ctx, o)
	case <-late:
		go s.abandon()
		return nil, fmt.Errorf("lease: take %s: %w", s.name, context.Cause(attempt))
	}
}

var errSlow = errors.New("the database did not answer in time")

// patience is how much longer than a statement's context the driver may take to give it up.
const patience = time.Second

func (s *session) checked(ctx context.Context, o outcome) (*term, error) {
	if o.err == nil && ctx.Err() != nil {
		_ = o.term.end()
		o.err = context.Cause(ctx)
	}
	if o.err != nil {
		s.finish()
		return nil, fmt.Errorf("lease: take %s: %w", s.name, o.err)
	}
	return o.term, nil
}

// abandon gives back what a late outcome took.
func (s *session) abandon() {
	if o := <-s.taken; o.err == nil {
		_ = o.term.end()
	}
}

func (s *session) run(attempt context.Context) {
	defer close(s.done)
	defer s.drop()
	begun := time.Now()
	number, err := s.take(attempt)
	if err != nil {
		s.taken <- outcome{err: err}
		return
	}
	t := newTerm(attempt, s.name, number, s.ttl, begun)
	if !t.trusted() {
		s.taken <- outcome{err: errSlow}
		s.giveBack(t)
		return
	}
	s.taken <- outcome{term: t}
	s.keep(t, begun)
	if errors.Is(context.Cause(t.life), errOver) {
		s.giveBack(t)
	}
}

// take is not interrupted by the end of ctx once its statement runs. If it may have taken the lease without
// telling the term, that is undone.
func (s *session) take(ctx context.Context) (number int64, err error) {
	asked := 0
	err = s.onConn(ctx, func(conn *schema.Conn) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		whole, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), s.statementTime(), errSlow)
		defer cancel()
		number, err = s.row.take(whole, conn, s.ttl, func() { asked++ })
		return err
	})
	if err != nil && asked > 0 && (asked > 1 || !errors.Is(err, ErrHeld)) {
		s.undo(ctx)
	}
	return number, err
}

// undo gives back what this session took unknowingly; without it others would wait for the expiry.
func (s *session) undo(ctx context.Context) {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), s.releaseTime(), errSlow)
	defer cancel()
	if err := s.onConn(ctx, func(conn *schema.Conn) error { return s.row.undo(ctx, conn) }); err != nil {
		s.log.Debug("lease perhaps taken without an answer, and not given back", "err", err)
	}
}

// keep renews until the term is over. After a failed attempt the next follows sooner; none begins when the
// trust ends, for one that succeeds too late would keep others out for nothing.
func (s *session) keep(t *term, last time.Time) {
	next := last.Add(s.ttl / 3)
	for {
		if t.endsBy(next) {
			<-t.life.Done()
			return
		}
		timer := time.NewTimer(time.Until(next))
		select {
		case <-t.life.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		begun := time.Now()
		there, err := s.renew(t)
		switch {
		case err != nil:
			t.fail(err)
			next = time.Now().Add(s.ttl / 30)
		case !there:
			t.lose(errors.New("expired or taken over"))
			return
		default:
			t.extend(begun)
			next = begun.Add(s.ttl / 3)
		}
	}
}

func (s *session) renew(t *term) (there bool, err error) {
	ctx, cancel := context.WithTimeoutCause(t.life, s.statementTime(), errSlow)
	defer cancel()
	err = s.onConn(ctx, func(conn *schema.Conn) error {
		there, err = s.row.renew(ctx, conn, t.number, s.ttl)
		return err
	})
	return there, err
}

func (s *session) giveBack(t *term) {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(t.life), s.releaseTime(), errSlow)
	defer cancel()
	err := s.onConn(ctx, func(conn *schema.Conn) error { return s.row.release(ctx, conn, t.number) })
	if err != nil {
		s.log.Warn("lease not given back: others wait until it expires", "term", t.number, "err", err)
	}
}

// finish waits until the lease is given back.
func (s *session) finish() {
	timer := time.NewTimer(s.releaseTime() + patience)
	defer timer.Stop()
	select {
	case <-s.done:
	case <-timer.C:
	}
}

func (s *session) releaseTime() time.Duration { return min(s.statementTime(), 5*time.Second) }
