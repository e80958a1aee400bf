package saga_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

func explode(Scene) error { panic("boom") }

func TestPanicOfAnEventsHandlerIsOneLineAndItsStackIsLogged(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		err := s.Handle(t.Context(), Begin{ID: "1", Do: explode})
		require.EqualError(t, err, "saga: handle saga_test.Begin: story/1: panic in saga_test.(*Story).OnBegin: boom")
		require.Equal(t, 1, strings.Count(s.log.String(), "saga: an invocation panicked"))
		require.Contains(t, s.log.String(), "saga_test.explode")
	})
}

func TestPanicOfADeadlinesHandlerKeepsItsStack(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.begin("1", func(sc Scene) error { sc.Schedule("t", 0); return nil })
		s.script.on("t", explode)
		_, errs := s.sweep()
		require.Len(t, errs, 1)
		require.Contains(t, errs[0].Error(), "saga: story/1/t: panic in t saga_test.(*Story).OnTimer: boom\n")
		require.Contains(t, errs[0].Error(), "saga_test.explode")
	})
}
