package outbox

import (
	"context"
	"time"
)

// Command is a stored command on its way to a handler or a [Sink].
type Command struct {
	ID               string // the same at each delivery; a retried invocation makes it anew, equal
	Type             string // the name under which the type was stored, perhaps an alias
	Payload          []byte // as encoded when it was sent
	Metadata         map[string]string
	SagaType, SagaID string // who sent it
	Created          time.Time
	Attempt          int // 1 first; shutdowns and uncounted errors are no attempts
}

// Sink takes commands out of the process: to a broker, over HTTP. Deliver returns nil once the
// command is safe there; it is called again with the same command after any error and after a crash
// that came between. It is called in parallel for different sagas, and for one saga in order.
//
// An error counts as an attempt unless it is marked by [retry.Uncounted]; one marked by
// [retry.Permanent] parks the command at once.
type Sink interface {
	Deliver(ctx context.Context, c Command) error
}

// SinkFunc makes a [Sink] of a function.
type SinkFunc func(ctx context.Context, c Command) error

// Deliver calls f.
func (f SinkFunc) Deliver(ctx context.Context, c Command) error { return f(ctx, c) }

// Interceptor wraps the delivery of each command, the first one outermost. It may change the command
// it passes on, or return without calling next: nil then counts as delivered.
type Interceptor func(ctx context.Context, c Command, next func(context.Context, Command) error) error

// Delivery is what a command's handler may want to know beside the command itself.
type Delivery struct {
	ID               string // equal at each delivery of one command: the key to recognise a repetition by
	SagaType, SagaID string // who sent it
	Metadata         map[string]string
	Attempt          int // 1 first
}

type deliveryKey struct{}

// DeliveryFrom returns the delivery that a command handler was called for, with the context it was
// given. With another context it is the zero Delivery.
func DeliveryFrom(ctx context.Context) Delivery {
	d, _ := ctx.Value(deliveryKey{}).(Delivery)
	return d
}

func withDelivery(ctx context.Context, c Command) context.Context {
	return context.WithValue(ctx, deliveryKey{}, Delivery{c.ID, c.SagaType, c.SagaID, c.Metadata, c.Attempt})
}
