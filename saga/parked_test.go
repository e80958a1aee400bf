package saga_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

func (s *stage) parked(q saga.Query) (all []saga.Parked) {
	s.t.Helper()
	for p, err := range s.Parked(s.t.Context(), q) {
		require.NoError(s.t, err)
		all = append(all, p)
	}
	return all
}

// SEMANTICS 1.35, 4.13, P-63
func TestParkedWorkIsKeptUntilAnOperatorRetriesOrDiscardsIt(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.begin("1", func(sc Scene) error {
			sc.Schedule("parcel", 0, deadline.WithPayload(Parcel{Text: "x"}))
			sc.Schedule("u", 0)
			sc.Send(Note{"parked"})
			return nil
		})
		broken := errors.New("broken \x00\xff")
		for _, d := range s.due() {
			found, err := deadline.NewStore(db).Fail(t.Context(), d, broken, s.Now(), true)
			require.NoError(t, err)
			require.True(t, found)
		}
		s.exec("UPDATE {command} SET parked_at = next_at, attempts = 50, last_error = 'no sink'")
		time.Sleep(240 * time.Hour)
		all := s.parked(saga.Query{})
		require.Len(t, all, 3)
		require.Equal(t, saga.ParkedDeadline, all[0].Kind)
		require.Equal(t, key("1"), all[0].Saga)
		require.Equal(t, "parcel", all[0].Name)
		require.JSONEq(t, `{"Text":"x","Amount":0}`, string(all[0].Payload))
		require.Equal(t, "broken ␀�", all[0].LastError)
		require.Equal(t, 1, all[0].Attempts)
		require.Equal(t, saga.ParkedCommand, all[2].Kind)
		require.Equal(t, "no sink", all[2].LastError)
		require.Equal(t, 50, all[2].Attempts)
		require.Len(t, s.parked(saga.Query{Type: "story", ID: "1"}), 3)
		require.Empty(t, s.parked(saga.Query{Type: "story", ID: "2"}))
		fired, _ := s.sweep()
		require.Zero(t, fired)

		for _, p := range []saga.Parked{all[0], all[2]} {
			require.NoError(t, s.Retry(t.Context(), p))
			require.ErrorIs(t, s.Retry(t.Context(), p), saga.ErrNotParked)
			require.ErrorIs(t, s.Discard(t.Context(), p, "late"), saga.ErrNotParked)
		}
		require.Len(t, s.signal.C(), 1)
		require.Len(t, s.outbox.C(), 1)
		fired, errs := s.sweep()
		require.Equal(t, 1, fired)
		require.Empty(t, errs)
		require.Equal(t, 1, s.script.fired[0].Attempt)

		require.NoError(t, s.Discard(t.Context(), all[1], "useless"))
		require.ErrorIs(t, s.Discard(t.Context(), all[1], "useless"), saga.ErrNotParked)
		require.Contains(t, s.log.String(), "reason=useless")
		require.Empty(t, s.parked(saga.Query{}))
		require.Empty(t, s.pending("1"))
		require.Error(t, s.Retry(t.Context(), saga.Parked{}))
	})
}

// P-63: an operator's view that is out of date touches nothing newer.
func TestRetryOfAReplacedDeadlineIsRefused(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.begin("1", func(sc Scene) error { sc.Schedule("t", 0); return nil })
		_, err := deadline.NewStore(db).Fail(t.Context(), s.due()[0], errors.New("no"), s.Now(), true)
		require.NoError(t, err)
		old := s.parked(saga.Query{})[0]
		s.next("1", func(sc Scene) error { sc.Schedule("t", time.Hour); return nil })
		s.exec("UPDATE {deadline} SET parked_at = next_at")
		require.ErrorIs(t, s.Retry(t.Context(), old), saga.ErrNotParked)
		require.ErrorIs(t, s.Discard(t.Context(), old, ""), saga.ErrNotParked)
		require.Len(t, s.parked(saga.Query{}), 1)
	})
}

// SEMANTICS 1.35
func TestFireNowMakesADeadlineDue(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.begin("1", func(sc Scene) error { sc.Schedule("t", time.Hour); return nil })
		s.signal.Take()
		due, id := s.pending("1")[0].Due.Time, s.pending("1")[0].PublicID
		found, err := s.FireNow(t.Context(), id)
		require.NoError(t, err)
		require.True(t, found)
		earliest, ok := s.signal.Take()
		require.True(t, ok)
		require.Equal(t, s.Now(), earliest)
		fired, errs := s.sweep()
		require.Equal(t, 1, fired)
		require.Empty(t, errs)
		require.Equal(t, due, s.script.fired[0].Due)
		for _, none := range []string{id, "", "unknown", "\x00", "\xff"} {
			found, err = s.FireNow(t.Context(), none)
			require.NoError(t, err)
			require.False(t, found)
			found, err = s.CancelDeadline(t.Context(), none)
			require.NoError(t, err)
			require.False(t, found)
		}
	})
}

func TestInstancesArePagedInOrderByStatus(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{}, story(t, "story"), story(t, "a \"tale\""))
		err := db.Tx(t.Context(), func(ctx context.Context, tx *schema.Tx) error {
			rows := make(schema.Rows, 1203)
			for i := range rows {
				rows[i] = []any{fmt.Sprintf("%04d", i), []string{"open", "ended"}[i%2]}
			}
			_, err := tx.Exec(ctx, `INSERT INTO {instance} (saga_type, saga_id, state, version, status, started_at, updated_at)
				SELECT 'story', id, '1', 1, status, {now}, {now} FROM {rows id text, status text} WHERE true`, rows)
			return err
		})
		require.NoError(t, err)
		require.NoError(t, s.Handle(t.Context(), Begin{ID: "x"}))
		for q, want := range map[saga.Query]int{
			{}: 1205, {Type: "story"}: 1204, {Type: "a \"tale\""}: 1, {Status: saga.Live}: 604, {Type: "story", Status: saga.Ended}: 601,
			{ID: "x"}: 2, {ID: "0001", Status: saga.Live}: 0, {Type: "nobody"}: 0, {ID: "\x00"}: 0, {Type: "\xff"}: 0,
		} {
			n, last := 0, saga.Key{}
			for got, err := range s.Instances(t.Context(), q) {
				require.NoError(t, err)
				require.Less(t, last.String(), got.String())
				n, last = n+1, got.Key
			}
			require.Equal(t, want, n, q)
		}
		for _, err := range s.Instances(t.Context(), saga.Query{}) {
			require.NoError(t, err)
			break
		}
		for _, none := range []saga.Key{{}, {Type: "story", ID: "none"}, {Type: "story", ID: "\x00"}, {Type: "\xff", ID: "x"}} {
			_, err := s.Instance(t.Context(), none)
			require.ErrorIs(t, err, saga.ErrNotFound)
			pending, err := s.Engine.Deadlines(t.Context(), none)
			require.NoError(t, err)
			require.Empty(t, pending)
		}
	})
}

// SEMANTICS, configuration: saga.event.retention and saga.instance.retention
func TestRetentionForgetsEventIDsAndTombstones(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{EventRetention: time.Hour, InstanceRetention: 2 * time.Hour})
		defer s.housekeep()()
		require.NoError(t, s.Handle(t.Context(), Begin{ID: "ended", Do: end}, saga.WithID("e1")))
		require.NoError(t, s.Handle(t.Context(), Begin{ID: "sent", Do: func(sc Scene) error { sc.Send(Note{}); return end(sc) }}))
		require.NoError(t, s.Handle(t.Context(), Begin{ID: "live"}, saga.WithID("e1")))
		time.Sleep(58 * time.Minute)
		require.Equal(t, 3, s.rows("{event}"))
		require.NoError(t, s.Handle(t.Context(), Begin{ID: "live"}, saga.WithID("e1")))
		require.Equal(t, 1, s.count("live"))
		time.Sleep(4 * time.Minute)
		require.Zero(t, s.rows("{event}"))
		require.Equal(t, 3, s.rows("{instance}"))
		time.Sleep(time.Hour)
		require.Equal(t, 2, s.rows("{instance}")) // the command of "sent" waits still
		require.Equal(t, 2, s.rows("{association}"))
		s.exec("DELETE FROM {command}")
		time.Sleep(2 * time.Minute)
		require.Equal(t, 1, s.rows("{instance}"))
		s.begin("ended", nil) // its id and its start key are free
		require.Equal(t, 1, s.count("ended"))
	})
}

func TestTombstonesStayForeverByDefault(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{MeasureEvery: 24 * time.Hour})
		s.begin("1", end)
		s.exec("UPDATE {instance} SET ended_at = ended_at")
		defer s.housekeep()()
		time.Sleep(2 * time.Hour)
		require.Equal(t, 1, s.rows("{instance}"))
		require.Equal(t, 1, s.rows("{event}"))
	})
}

func TestBacklogOfEventIDsIsForgottenInBatches(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		rows := make(schema.Rows, 1700)
		for i := range rows {
			rows[i] = []any{fmt.Sprint(i)}
		}
		s.exec("INSERT INTO {event} (saga_type, saga_id, event_id, handled_at) SELECT 'story', '1', id, {now} FROM {rows id text} WHERE true", rows)
		time.Sleep(169 * time.Hour)
		s.begin("1", nil)
		stop := s.housekeep()
		time.Sleep(time.Second)
		stop()
		require.Equal(t, 1, s.rows("{event}"))
	})
}
