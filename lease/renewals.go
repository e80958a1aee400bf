package lease

import "sync"

// renewals calls OnRenewed apart from the heartbeat; renewals that come while it is busy are one.
type renewals struct {
	notify func()
	wait   func()
}

func (s *session) watchRenewals(t *term) renewals {
	if s.onRenewed == nil {
		return renewals{notify: func() {}, wait: func() {}}
	}
	c := make(chan struct{}, 1) // one: the next call stands for all renewals until then
	var running sync.WaitGroup
	running.Go(func() {
		for t.life.Err() == nil {
			select {
			case <-t.life.Done():
			case <-c:
				s.onRenewed(t.life)
			}
		}
	})
	return renewals{wait: running.Wait, notify: func() {
		select {
		case c <- struct{}{}:
		default:
		}
	}}
}
