package poller

import (
	"sync"
	"time"

	"github.com/norn-go/norn/deadline"
)

// Stats counts what a poller did since it was made, in this process.
type Stats struct {
	Leading     bool          // the lease is held now
	Sweeps      int64         // passes that reached their end
	LastSweep   time.Time     // framework clock at the end of the last; zero: none yet
	Reads       int64         // batches read
	Selected    int64         // rows read
	InFlight    int           // selected and unfinished
	Fired       int64         // dispatched without an error
	Failed      int64         // counted failures, parked ones included
	Parked      int64         // given up
	Left        int64         // dispatched, and left as they were without counting
	Dropped     int64         // selected, and not started for want of the lease
	Lateness    time.Duration // how long after its due time the last one started, first attempts only
	MaxLateness time.Duration
	Foreign     []deadline.Kind // due here, known only to other builds, at the last look
}

// Stats is a snapshot; its numbers were not all true at the same moment.
func (p *Poller) Stats() Stats {
	s := p.stats.snapshot()
	s.Leading = p.locker.Held()
	s.InFlight, _ = p.flight.size()
	s.Foreign = p.foreign.known()
	return s
}

type statistics struct {
	mu    sync.Mutex
	count Stats
}

func (s *statistics) snapshot() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

func (s *statistics) update(change func(c *Stats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.count)
}

func (s *statistics) swept(now time.Time) {
	s.update(func(c *Stats) { c.Sweeps++; c.LastSweep = now })
}

func (s *statistics) read(rows int) {
	s.update(func(c *Stats) { c.Reads++; c.Selected += int64(rows) })
}

func (s *statistics) started(d deadline.Due, now time.Time) {
	if d.Attempts > 0 {
		return
	}
	s.update(func(c *Stats) {
		c.Lateness = now.Sub(d.At.Time)
		c.MaxLateness = max(c.MaxLateness, c.Lateness)
	})
}

func (s *statistics) failed(parked bool) {
	s.update(func(c *Stats) {
		c.Failed++
		if parked {
			c.Parked++
		}
	})
}

func (s *statistics) fired()   { s.update(func(c *Stats) { c.Fired++ }) }
func (s *statistics) left()    { s.update(func(c *Stats) { c.Left++ }) }
func (s *statistics) dropped() { s.update(func(c *Stats) { c.Dropped++ }) }
