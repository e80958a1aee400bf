package schema

import (
	"fmt"
	"time"
)

// Time scans a stored time from either database: whole microseconds, UTC. NULL scans as the zero
// time, and the zero time is stored as NULL.
type Time struct{ time.Time }

// Scan implements sql.Scanner.
func (t *Time) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		t.Time = time.Time{}
	case int64:
		t.Time = time.UnixMicro(v).UTC()
	case time.Time:
		t.Time = v.UTC()
	default:
		return fmt.Errorf("schema: a stored time is a %T", src)
	}
	return nil
}

// Microseconds is t in UTC, cut to what a table can hold.
func Microseconds(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
