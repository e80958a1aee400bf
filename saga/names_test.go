package saga_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

// Bad input: names are data, whatever stands in them.
func TestNamesOfAnyTextWork(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		for _, name := range []string{"'", "\"", "\\", "{instance}", "{", "?", "$1", "%s", "ÄÖÜ ß", "名前", "𝄞", "�", "; DROP TABLE saga_instance; --", "NULL", "[1]", "a/b", " "} {
			d, err := saga.Define[Story](name,
				saga.Start((*Story).OnBegin, saga.By("id")), saga.On((*Story).OnNext, saga.By("id"), saga.By("tag")),
				saga.OnDeadline(name, (*Story).OnParcel))
			require.NoError(t, err)
			s := newStage(t, db, saga.Config{Names: []saga.Naming{saga.Named[Parcel](name + "."), saga.Named[Note](name)}}, d)
			var got Parcel
			s.script.on(name, func(sc Scene) error { got = sc.Parcel; return errors.Join() })
			require.NoError(t, s.Handle(t.Context(), Begin{ID: name, Do: func(sc Scene) error {
				sc.Schedule(name, time.Minute, deadline.WithPayload(Parcel{Text: name}), deadline.WithPublicID(name))
				sc.Send(Note{name}, saga.WithMetadata(saga.Metadata{"of " + name: name}))
				sc.Add("tag", name)
				sc.Add(name, name)
				return nil
			}}, saga.WithID(name)))
			require.NoError(t, s.Handle(t.Context(), Begin{ID: name}, saga.WithID(name)))
			require.NoError(t, s.Handle(t.Context(), Next{Tag: []string{name}, Do: func(sc Scene) error { sc.Remove(name, name); return nil }}))
			time.Sleep(time.Minute)
			fired, errs := s.sweep()
			require.Equal(t, 1, fired, name)
			require.Empty(t, errs)
			require.Equal(t, Parcel{Text: name}, got)
			require.Equal(t, name, s.script.fired[0].Name)
			found, err := s.Instance(t.Context(), saga.Key{Type: name, ID: name})
			require.NoError(t, err)
			require.EqualValues(t, 3, found.Version)
			require.Equal(t, name, s.notes()[len(s.notes())-1])
		}
	})
}

// Error policy: a due deadline whose handler fails for good.
func TestPermanentErrorParksADeadlineAtOnce(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.begin("1", func(sc Scene) error { sc.Schedule("t", 0); return nil })
		s.script.on("t", func(sc Scene) error { sc.Send(Note{}); return saga.Permanent(errors.New("for good")) })
		require.NoError(t, s.poller(pollerConfig, time.Minute).Sweep(t.Context()))
		require.Len(t, s.script.names(), 1)
		parked := s.parked(saga.Query{})
		require.Len(t, parked, 1)
		require.Contains(t, parked[0].LastError, "for good")
		require.Empty(t, s.notes())
	})
}

// Error policy: a conflict costs a due deadline no attempt, however long it lasts.
func TestConflictCostsADeadlineNoAttempt(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.begin("1", func(sc Scene) error { sc.Schedule("t", 0); return nil })
		s.script.on("t", func(Scene) error { return schema.ErrConflict })
		require.NoError(t, s.poller(pollerConfig, time.Minute).Sweep(t.Context()))
		require.Len(t, s.script.names(), 12)
		require.Zero(t, s.pending("1")[0].Attempts)
		s.script.on("t", func(Scene) error { panic("no") })
		require.NoError(t, s.poller(pollerConfig, time.Minute).Sweep(t.Context()))
		require.Equal(t, 1, s.pending("1")[0].Attempts)
		require.Contains(t, *s.pending("1")[0].LastError, "panic in t saga_test.(*Story).OnTimer: no")
		require.Contains(t, *s.pending("1")[0].LastError, "names_test.go")
	})
}
