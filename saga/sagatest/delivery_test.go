package sagatest_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/saga/sagatest"
)

func TestCommandsAreDeliveredByTheRelayInOrder(t *testing.T) {
	var delivered []string
	var again error
	handler := func(_ context.Context, n Note) error {
		delivered = append(delivered, n.Text)
		return again
	}
	both(t, nil, func(f *sagatest.Fixture[Probe]) {
		delivered, again = nil, nil
		f.Given(Begin{ID: "1", do: func(h Hands) error { h.Send(Note{"a"}); h.Send(Note{"b"}); return nil }})
		f.WhenCommandsDelivered()
		f.ExpectNoCommands() // none was sent
		require.Equal(f.T(), []string{"a", "b"}, delivered)

		again = errors.New("the bank is closed")
		f.When(Move{ID: "1", do: func(h Hands) error { h.Send(Note{"d"}); return nil }})
		f.WhenCommandsDelivered()
		f.ExpectError("the bank is closed")
		f.ExpectCommands(Note{"d"})
		again = nil
		f.WhenCommandsDelivered()
		require.Equal(f.T(), []string{"a", "b", "d"}, delivered) // not yet: it backs off
		f.WhenTimePasses(5 * time.Second)
		f.WhenCommandsDelivered()
		f.ExpectNoCommands()
		require.Equal(f.T(), []string{"a", "b", "d", "d"}, delivered)
	}, sagatest.CommandHandler(handler))
}

func TestCommandSentAndDeliveredInOneStepCounts(t *testing.T) {
	var f *sagatest.Fixture[Probe]
	answer := func(ctx context.Context, n Note) error {
		if n.Text == "answered" {
			return nil
		}
		return f.Engine().Handle(ctx, Move{ID: "1", do: func(h Hands) error { h.Send(Note{"answered"}); return nil }})
	}
	both(t, nil, func(fixture *sagatest.Fixture[Probe]) {
		f = fixture
		f.Given(Begin{ID: "1", do: func(h Hands) error { h.Send(Note{"a"}); return nil }})
		f.WhenCommandsDelivered()
		f.ExpectCommands(Note{"answered"})
	}, sagatest.CommandHandler(answer))
}

func TestCommandHandlerThatDoesNotReturnFailsTheAct(t *testing.T) {
	for part, leave := range map[string]func(){
		"command sagatest_test.Note of probe/1: panic: out of paper":             func() { panic("out of paper") },
		"command sagatest_test.Note of probe/1: the handler ended its goroutine": runtime.Goexit,
	} {
		requireFails(t, part, func(f *sagatest.Fixture[Probe]) {
			f.Given(Begin{ID: "1", do: func(h Hands) error { h.Send(Note{"a"}); return nil }})
			f.WhenCommandsDelivered()
		}, probe(nil, sagatest.CommandHandler(func(context.Context, Note) error { leave(); return nil }))...)
	}
}

func TestDeliveryWithoutAnyHandlerStopsTheTest(t *testing.T) {
	requireFails(t, "register a sagatest.CommandHandler", func(f *sagatest.Fixture[Probe]) { f.WhenCommandsDelivered() })
}
