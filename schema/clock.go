package schema

import (
	"context"
	"sync/atomic"
	"time"
)

// Clock is a node's framework clock: the process clock, corrected by the database's clock as often
// as [Clock.Measure] is called. Between two measurements it goes on steadily, also when somebody sets the machine's
// clock: else deadlines would fire early for that long. Where the process clock stands for the database's, it is that
// clock. It is safe for concurrent use.
type Clock struct {
	db     *DB
	made   time.Time
	offset atomic.Int64
}

// NewClock makes a clock that agrees with the process until it is measured.
func NewClock(d *DB) *Clock { return &Clock{db: d, made: time.Now()} }

// Now is the corrected time, UTC, in whole microseconds.
func (c *Clock) Now() time.Time {
	return Microseconds(c.uncorrected().Add(time.Duration(c.offset.Load())))
}

func (c *Clock) uncorrected() time.Time {
	if c.db.processClock {
		return time.Now()
	}
	return c.made.Add(time.Since(c.made)) // by the monotonic clock
}

// Measure compares the process clock with the database's, corrects what Now says from here on, and returns
// the correction. One that differs from the last by less than the round trip cannot be told from it and
// changes nothing.
func (c *Clock) Measure(ctx context.Context) (skew time.Duration, err error) {
	before := c.uncorrected()
	begun := time.Now()
	there, err := c.db.Now(ctx)
	if err != nil {
		return 0, err
	}
	return c.correct(before, there, time.Since(begun)), nil
}

func (c *Clock) correct(before, there time.Time, trip time.Duration) (skew time.Duration) {
	last := time.Duration(c.offset.Load())
	skew = there.Sub(before.Add(trip / 2))
	if (skew - last).Abs() <= trip {
		return last
	}
	c.offset.Store(int64(skew))
	return skew
}
