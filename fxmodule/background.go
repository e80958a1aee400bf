package fxmodule

import "context"

// background is a Run method on a goroutine of its own.
type background struct {
	run    func(context.Context) error
	cancel context.CancelFunc
	done   chan error // one: the goroutine ends whether or not anybody waits
}

func (b *background) start() {
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel, b.done = cancel, make(chan error, 1)
	go func() { b.done <- b.run(ctx) }()
}

// stop waits until the goroutine has ended.
func (b *background) stop() error {
	b.cancel()
	return <-b.done
}
