package outbox

// Signal carries "there are new commands" from commits to the relay of the same process. It may be
// notified by many and belongs to one relay.
type Signal struct{ c chan struct{} }

// NewSignal makes a signal with nothing pending.
func NewSignal() *Signal { return &Signal{make(chan struct{}, 1)} } // one: a wake-up waiting says it all

// Notify tells that commands were committed. It never blocks; many calls may wake the relay once.
func (s *Signal) Notify() {
	select {
	case s.c <- struct{}{}:
	default:
	}
}

// C receives after a Notify.
func (s *Signal) C() <-chan struct{} { return s.c }
