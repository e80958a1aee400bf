package sagatest

import (
	"time"

	"github.com/norn-go/norn/deadline"
)

// spins bounds the sweeps at one time: deadlines that arm themselves for at once would never let time go on.
const spins = 100

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
