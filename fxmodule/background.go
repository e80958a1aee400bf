package fxmodule

import "context"

// background makes a part of a Run method, which gets a goroutine of its own.
func background(name string, share int, run func(context.Context) error) part {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1) // one: the goroutine ends whether or not anybody waits
	return part{
		name:  name,
		share: share,
		start: func(context.Context) error {
			go func() { done <- run(ctx) }()
			return nil
		},
		stop: func() error {
			cancel()
			return <-done
		},
	}
}
