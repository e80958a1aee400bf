package sagatest

import (
	"time"

	"github.com/norn-go/norn/deadline"
)

// spins bounds the sweeps at one time: deadlines that arm themselves for at once would never let time go on.
const spins = 100

// after is the time d from now.
func (s *stage) after(d time.Duration) time.Time {
	s.t.Helper()
	t := s.now().Add(d)
	s.forward(t)
	return t
}

// forward ends the test if t is in the past.
func (s *stage) forward(t time.Time) {
	s.t.Helper()
	if now := s.now(); t.Before(now) {
		s.t.Fatalf("sagatest: time cannot advance to %s: it is %s", stamp(t), stamp(now))
	}
}

func (s *stage) advance(until time.Time) error {
	s.t.Helper()
	store := deadline.NewStore(s.db)
	sweeps, last := 0, time.Time{}
	for {
		next, pending, err := store.Next(s.ctx(), s.engine.Kinds(), nil)
		if err != nil {
			return err
		}
		if !pending || next.After(until) {
			break
		}
		s.pass(next)
		if now := s.now(); !now.Equal(last) {
			sweeps, last = 0, now
		}
		if sweeps++; sweeps > spins {
			s.t.Fatalf("sagatest: %d sweeps at %s leave something due: does a deadline arm itself for at once?\n%s", spins, stamp(last), s.history)
		}
		if err := s.leading(s.poller.Sweep); err != nil {
			return err
		}
		s.settle()
	}
	s.pass(until)
	return nil
}
