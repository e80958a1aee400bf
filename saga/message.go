package saga

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"
)

// Key names one saga.
type Key struct{ Type, ID string }

// String is the key as it stands in logs and errors.
func (k Key) String() string { return k.Type + "/" + k.ID }

// Metadata is what travels beside a message's payload. Keys beginning with "$" are reserved: they are
// dropped from what comes in.
type Metadata map[string]string

// Message is an event on its way to sagas. A redelivery has the ID of the first delivery: a saga that has
// seen it does not handle it again.
type Message struct {
	ID       string
	Payload  any
	Metadata Metadata
	Time     time.Time // when the event happened, if the caller said so
}

// MessageOption is an optional part of a [Message].
type MessageOption interface{ applyMessage(*Message) }

// CommandOption is an optional part of a command.
type CommandOption interface{ applyCommand(*sentCommand) }

type messageOption func(*Message)

func (o messageOption) applyMessage(m *Message) { o(m) }

// WithID names the event, so that a redelivery is known as one. Without it a new id is made.
func WithID(id string) MessageOption { return messageOption(func(m *Message) { m.ID = id }) }

// WithTime says when the event happened.
func WithTime(t time.Time) MessageOption { return messageOption(func(m *Message) { m.Time = t }) }

// MetadataOption is metadata for an event or a command.
type MetadataOption struct{ metadata Metadata }

// WithMetadata adds metadata to an event or a command; the map is copied.
func WithMetadata(m Metadata) MetadataOption { return MetadataOption{maps.Clone(m)} }

func (o MetadataOption) applyMessage(m *Message)     { m.Metadata = merged(m.Metadata, o.metadata) }
func (o MetadataOption) applyCommand(c *sentCommand) { c.metadata = merged(c.metadata, o.metadata) }

func merged(into, from Metadata) Metadata {
	if into == nil {
		into = Metadata{}
	}
	maps.Copy(into, from)
	return into
}

// Interceptor stands around the handling of every event, once for all the sagas it reaches. It may
// change the message, refuse it by returning an error, or add to the context that handlers get.
// Deadlines are no messages and pass none.
type Interceptor func(ctx context.Context, m Message, next func(context.Context, Message) error) error

func (e *Engine) intercept(ctx context.Context, m Message, handle func(context.Context, Message) error) error {
	next := handle
	for i := len(e.cfg.Interceptors) - 1; i >= 0; i-- {
		interceptor, inner := e.cfg.Interceptors[i], next
		next = func(ctx context.Context, m Message) error { return interceptor(ctx, m, inner) }
	}
	return next(ctx, m)
}

// message makes a checked Message of what a caller gave.
func (e *Engine) message(event any, opts []MessageOption) (Message, error) {
	m := Message{Payload: event}
	for _, opt := range opts {
		opt.applyMessage(&m)
	}
	return e.checked(m)
}

func (e *Engine) checked(m Message) (Message, error) {
	payload := reflect.ValueOf(m.Payload)
	for payload.Kind() == reflect.Pointer && !payload.IsNil() {
		payload = payload.Elem()
	}
	if !payload.IsValid() || payload.Kind() == reflect.Pointer {
		return m, fmt.Errorf("saga: handle: the event is nil")
	}
	m.Payload = payload.Interface()
	if m.ID == "" {
		m.ID = rand.Text()
	}
	if err := e.checkValue("event id", m.ID); err != nil {
		return m, fmt.Errorf("saga: handle %T: %w", m.Payload, err)
	}
	m.Metadata = maps.Clone(m.Metadata)
	maps.DeleteFunc(m.Metadata, func(key, _ string) bool { return strings.HasPrefix(key, "$") })
	return m, nil
}

// checkValue refuses ids and association values that cannot be stored or looked up (SEMANTICS 3.12).
func (e *Engine) checkValue(what, value string) error {
	switch {
	case len(value) > e.cfg.ValueLimit:
		return fmt.Errorf("%s of %d bytes is longer than %d", what, len(value), e.cfg.ValueLimit)
	case !utf8.ValidString(value):
		return fmt.Errorf("%s %q is not UTF-8", what, value)
	case strings.ContainsRune(value, 0):
		return fmt.Errorf("%s %q has a NUL", what, value)
	}
	return nil
}
