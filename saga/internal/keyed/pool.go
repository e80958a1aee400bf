// Package keyed runs jobs one at a time per key and in parallel across keys.
package keyed

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// ErrClosed is a job given to a pool that was closed.
var ErrClosed = errors.New("keyed: pool is closed")

// errAbandoned is a job whose goroutine ended without returning, by runtime.Goexit.
var errAbandoned = errors.New("keyed: the job ended its goroutine")

// Pool runs jobs of one key in the order they came, each on a worker goroutine. A key has a worker
// while it has jobs; at most size jobs run at once.
type Pool[K comparable] struct {
	slots  chan struct{} // one for each job that may run at once
	mu     sync.Mutex
	queues map[K][]*job
	closed bool
	wg     sync.WaitGroup
}

type job struct {
	run   func() error
	state atomic.Int32
	done  chan struct{}
	err   error
}

const (
	queued int32 = iota
	running
	dropped
)

// New makes a pool in which at most size jobs run at once.
func New[K comparable](size int) *Pool[K] {
	return &Pool[K]{slots: make(chan struct{}, size), queues: map[K][]*job{}}
}

// Do runs fn after all jobs that were given for key before, and returns its error. If ctx ends first
// fn is never called and Do returns the cause; once fn runs, Do waits for it.
func (p *Pool[K]) Do(ctx context.Context, key K, fn func() error) error {
	j := &job{run: fn, done: make(chan struct{})}
	if !p.enqueue(key, j) {
		return ErrClosed
	}
	select {
	case <-j.done:
		return j.err
	case <-ctx.Done():
		if j.state.CompareAndSwap(queued, dropped) {
			return context.Cause(ctx)
		}
		<-j.done
		return j.err
	}
}

func (p *Pool[K]) enqueue(key K, j *job) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	queue, active := p.queues[key]
	p.queues[key] = append(queue, j)
	if !active {
		p.wg.Add(1)
		go p.work(key)
	}
	return true
}

// work runs the jobs of one key until there are none.
func (p *Pool[K]) work(key K) {
	finished := false
	defer func() {
		if !finished { // a job ended this goroutine: the next one goes on
			go p.work(key)
			return
		}
		p.wg.Done()
	}()
	for j := p.next(key); j != nil; j = p.next(key) {
		p.run(j)
	}
	finished = true
}

func (p *Pool[K]) run(j *job) {
	p.slots <- struct{}{}
	defer func() { <-p.slots }()
	if !j.state.CompareAndSwap(queued, running) {
		return
	}
	defer close(j.done)
	j.err = errAbandoned
	j.err = j.run()
}

func (p *Pool[K]) next(key K) *job {
	p.mu.Lock()
	defer p.mu.Unlock()
	queue := p.queues[key]
	if len(queue) == 0 {
		delete(p.queues, key)
		return nil
	}
	p.queues[key] = queue[1:]
	return queue[0]
}

// Close takes no more jobs and waits for those it has.
func (p *Pool[K]) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.wg.Wait()
}
