package sagatest

import (
	"time"

	"github.com/norn-go/norn/deadline"
)

// Deadline is an expected deadline: its name, due time and payload, and its public id if one is given.
type Deadline struct{ record func(*deadline.Buffer) }

// After is a deadline due a duration from the time of the expectation, as saga.Deadlines.Schedule would arm it.
func After(name string, d time.Duration, opts ...deadline.Option) Deadline {
	return Deadline{func(b *deadline.Buffer) { b.Schedule(name, d, opts...) }}
}

// At is a deadline due at a time, as saga.Deadlines.ScheduleAt would arm it.
func At(name string, due time.Time, opts ...deadline.Option) Deadline {
	return Deadline{func(b *deadline.Buffer) { b.ScheduleAt(name, due, opts...) }}
}

func (d Deadline) operation(now func() time.Time) deadline.Operation {
	b := deadline.NewBuffer(now, nil)
	d.record(b)
	return b.Seal()[0]
}
