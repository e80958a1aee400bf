package saga_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

func (s *Story) OnNamed(Named) {}

// Named has its id under another name.
type Named struct {
	BookingID string `json:"bookingId"`
}

func TestWhatIsMostLikelyAMistakeIsWarnedOfOnce(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		misspelt, err := saga.Define[Story]("booking",
			saga.Start((*Story).OnNamed, saga.By("bokingId")),
			saga.On((*Story).OnNext, saga.By("id"), saga.By("tenant")))
		require.NoError(t, err)
		endless, err := saga.Define[Story]("endless", saga.On((*Story).OnNext, saga.By("id")))
		require.NoError(t, err)
		s := newStage(t, db, saga.Config{}, misspelt, endless, story(t, "story"))

		doubt := `saga_test.Named has no "bokingId", only metadata could have it; did you mean "bookingId"?`
		log := strings.ReplaceAll(s.log.String(), `\"`, `"`)
		require.Equal(t, 1, strings.Count(log, "start saga_test.(*Story).OnNamed: "+doubt))
		require.Equal(t, 1, strings.Count(log, `on saga_test.(*Story).OnNext: saga_test.Next has no "tenant", only metadata could have it`))
		require.Equal(t, 1, strings.Count(log, "saga=endless warning=\"no saga.Start: a saga of this type can never begin\""))
		require.Equal(t, 3, strings.Count(log, "level=WARN"))

		err = s.Handle(t.Context(), Named{BookingID: "b1"})
		require.ErrorContains(t, err, "none of bokingId has a value: "+doubt)
		require.NoError(t, s.Handle(t.Context(), Named{}, saga.WithMetadata(saga.Metadata{"bokingId": "b1"})))
	})
}

func TestWhatWouldBeStoredInPartFailsTheInvocation(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		mend := `Inner: field deep is unexported and is not stored: export it, or tag it json:"-"`
		err := s.Handle(t.Context(), Begin{ID: "1", Do: func(sc Scene) error {
			sc.Send(&secret{})
			sc.Schedule("t", 0, deadline.WithPayload(secret{}))
			return nil
		}})
		require.ErrorContains(t, err, "command 1, *saga_test.secret: saga: encode saga_test.secret: field hidden is unexported and is not stored")
		require.ErrorContains(t, err, `deadline "t": saga: encode saga_test.secret: field hidden`)
		require.ErrorContains(t, err, mend)
		s.empty()
	})
}
