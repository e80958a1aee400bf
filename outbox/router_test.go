package outbox_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/outbox"
	"github.com/norn-go/norn/retry"
)

func TestRouterReportsAllMistakesTogether(t *testing.T) {
	_, err := outbox.NewRouter(stored,
		func(context.Context, debit) error { return nil },
		func(context.Context, debit) error { return nil },
		func(context.Context, *credit) error { return nil },
		func(context.Context, any) error { return nil },
		func(context.Context, credit) {},
		func(context.Context, ...credit) error { return nil },
		func(context.Context, string) error { return nil },
		(func(context.Context, credit) error)(nil),
		nil,
		42,
	)
	require.EqualError(t, err, `outbox: command handler func(context.Context, outbox_test.debit) error: outbox_test.debit has another handler: a command type has one
outbox: command handler func(context.Context, *outbox_test.credit) error: the command must be a value type, not a pointer or an interface
outbox: command handler func(context.Context, interface {}) error: the command must be a value type, not a pointer or an interface
outbox: command handler func(context.Context, outbox_test.credit): want func(context.Context, C) error
outbox: command handler func(context.Context, ...outbox_test.credit) error: want func(context.Context, C) error
outbox: command handler func(context.Context, string) error: no name for string
outbox: command handler func(context.Context, outbox_test.credit) error: is nil
outbox: command handler: want a func(context.Context, C) error, got nil
outbox: command handler: want a func(context.Context, C) error, got int`)
}

func TestRouterRefusesANameOfTwoTypes(t *testing.T) {
	clash := types{}
	for typ := range stored {
		clash[typ] = []string{"same"}
	}
	_, err := outbox.NewRouter(clash,
		func(context.Context, debit) error { return nil },
		func(context.Context, credit) error { return nil })
	require.ErrorContains(t, err, `the name "same" of outbox_test.credit is a name of outbox_test.debit too`)
}

func TestRouterFindsHandlersByNameAndAlias(t *testing.T) {
	var got []debit
	var deliveries []outbox.Delivery
	r, err := outbox.NewRouter(stored, func(ctx context.Context, c debit) error {
		got, deliveries = append(got, c), append(deliveries, outbox.DeliveryFrom(ctx))
		return errBroken
	})
	require.NoError(t, err)
	require.Equal(t, []string{"debit", "old-debit"}, r.Types())
	for _, name := range r.Types() {
		err := r.Deliver(t.Context(), outbox.Command{ID: "c1", Type: name, Payload: []byte(`{"Amount":7}`), SagaType: "transfer",
			SagaID: "t1", Metadata: map[string]string{"k": "v"}, Attempt: 2})
		require.ErrorIs(t, err, errBroken)
	}
	require.Equal(t, []debit{{7}, {7}}, got)
	require.Equal(t, outbox.Delivery{ID: "c1", SagaType: "transfer", SagaID: "t1", Metadata: map[string]string{"k": "v"}, Attempt: 2}, deliveries[1])
	require.Zero(t, outbox.DeliveryFrom(t.Context()))
}

func TestRouterErrsOnWhatItDoesNotKnow(t *testing.T) {
	r, err := outbox.NewRouter(stored)
	require.NoError(t, err)
	require.Empty(t, r.Types())
	err = r.Deliver(t.Context(), outbox.Command{Type: "debit"})
	require.EqualError(t, err, `outbox: no handler for command type "debit"`)
	require.False(t, retry.IsPermanent(err))
}

func TestRouterMarksWhatDoesNotDecodeAsPermanent(t *testing.T) {
	r, err := outbox.NewRouter(stored, func(context.Context, debit) error { return errors.New("called") })
	require.NoError(t, err)
	err = r.Deliver(t.Context(), outbox.Command{Type: "debit", Payload: []byte(`{"Amount":`)})
	require.ErrorContains(t, err, "outbox: decode debit into outbox_test.debit: ")
	require.True(t, retry.IsPermanent(err))
}
