package fxmodule

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.uber.org/fx"
)

// started tells, once the context of a start has ended, whether the start had succeeded before. fx does not say: it
// calls no stop hook when a start runs out of time (uber-go/fx issue 1035), and the context of a start that went
// well ends too. But a second start is refused by a lifecycle that is in use, which names its state, and changes
// nothing. A lifecycle that cannot be asked counts as started.
func started(lifecycle fx.Lifecycle) bool {
	asked, ok := lifecycle.(interface {
		Start(context.Context) error
		Stop(context.Context) error
	})
	if !ok {
		return true
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for range 10 {
		err := asked.Start(ended)
		if errors.Is(err, context.Canceled) { // it was stopped already, so it was begun again: undo that
			_ = asked.Stop(ended)
			return false
		}
		if err == nil || !inTransit(err) {
			return true
		}
		time.Sleep(100 * time.Millisecond)
	}
	return false
}

// inTransit tells whether the lifecycle is neither started nor stopped.
func inTransit(err error) bool {
	for _, state := range []string{"starting", "incompleteStart", "stopping"} {
		if strings.HasSuffix(err.Error(), "state: "+state) {
			return true
		}
	}
	return false
}
