package lease

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// heldError is [ErrHeld] with what the table says of the holder.
type heldError struct {
	holder string
	until  time.Time     // by the database's clock
	left   time.Duration // until then, when the table was read
}

func (h *heldError) Error() string {
	return fmt.Sprintf("%v: %s, until %s", ErrHeld, h.holder, h.until.Format(time.RFC3339Nano))
}

func (h *heldError) Unwrap() error { return ErrHeld }

// untilFree shortens a pause so that it ends right after the lease expires: the holder may have crashed. Those who
// wait for the same moment do not ask together.
func untilFree(err error, pause time.Duration) time.Duration {
	held, ok := errors.AsType[*heldError](err)
	if !ok {
		return pause
	}
	return min(pause, held.left+time.Millisecond+rand.N(20*time.Millisecond))
}
