package saga_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

func TestP51BothDatabasesEndWithEqualRows(t *testing.T) {
	ends := map[string]string{}
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		for i, id := range []string{"1", "Ä", "a'\"\\", "z"} {
			s.begin(id, func(sc Scene) error {
				sc.Schedule("t", time.Duration(i)*time.Minute)
				sc.Schedule("parcel", time.Hour, deadline.WithPayload(Parcel{id, int64(i)}))
				sc.Add("tag", "x")
				sc.Send(Note{id}, saga.WithMetadata(saga.Metadata{"k": id}))
				return nil
			})
		}
		require.NoError(t, s.Handle(t.Context(), Next{Tag: []string{"x"}, Do: func(sc Scene) error { sc.Remove("tag", "x"); return nil }}, saga.WithID("e")))
		time.Sleep(90 * time.Second)
		s.script.on("t", func(sc Scene) error { sc.Schedule("u", time.Minute); sc.Cancel("parcel"); return nil })
		s.sweep()
		s.next("z", end)
		require.Error(t, s.Handle(t.Context(), Next{ID: "1", Do: func(Scene) error { return errors.New("no") }}))
		ends[db.Dialect()] = dump(t, db)
	})
	require.Equal(t, ends["sqlite"], ends["postgres"])
	require.Contains(t, ends["sqlite"], "Ä")
}

// dump is what the tables hold, without what is random.
func dump(t *testing.T, db *schema.DB) string {
	t.Helper()
	var out strings.Builder
	for _, query := range []string{
		"SELECT saga_type, saga_id, state, version, status, started_at, updated_at, ended_at FROM {instance} ORDER BY saga_type, saga_id",
		"SELECT saga_type, property, value, saga_id, CASE WHEN exclusive THEN 1 ELSE 0 END FROM {association} ORDER BY saga_type, property, value, saga_id",
		"SELECT saga_type, saga_id, name, public_id, mode, due_at, next_at, payload_type, payload, attempts, last_error, parked_at FROM {deadline} ORDER BY saga_type, saga_id, name",
		"SELECT saga_type, saga_id, type, payload, metadata, created_at, attempts FROM {command} ORDER BY saga_type, saga_id, seq",
		"SELECT saga_type, saga_id, count(*), min(handled_at), max(handled_at) FROM {event} GROUP BY saga_type, saga_id ORDER BY saga_type, saga_id",
	} {
		for token, table := range map[string]string{"{instance}": "saga_instance", "{association}": "saga_association", "{deadline}": "saga_deadline", "{command}": "saga_command", "{event}": "saga_event"} {
			query = strings.ReplaceAll(query, token, table)
		}
		dumpRows(t, db, query, &out)
	}
	return out.String()
}

func dumpRows(t *testing.T, db *schema.DB, query string, out *strings.Builder) {
	t.Helper()
	rows, err := db.Queryx(query)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		values, err := rows.SliceScan()
		require.NoError(t, err)
		for i, v := range values {
			switch v := v.(type) {
			case []byte:
				values[i] = string(v)
			case time.Time:
				values[i] = v.UnixMicro()
			}
		}
		fmt.Fprintf(out, "%v\n", values)
	}
	require.NoError(t, rows.Err())
}

func TestP56ManyWorkersOnFewSagasNeitherDeadlockNorLose(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		engines := []*stage{newStage(t, db, saga.Config{Workers: 32}), newStage(t, db, saga.Config{Workers: 32})}
		for i := range 8 {
			engines[0].begin(fmt.Sprint(i), func(sc Scene) error { sc.Add("tag", "all"); return nil })
		}
		var wg sync.WaitGroup
		errs := make(chan error, 64)
		for i := range 64 {
			wg.Go(func() {
				event := Next{ID: fmt.Sprint(i % 8), Do: func(sc Scene) error { sc.Send(Note{}); sc.Schedule("t", time.Hour); return nil }}
				if i%16 == 0 {
					event.Tag = []string{"all"}
				}
				errs <- engines[i%2].Handle(context.Background(), event)
			})
		}
		wg.Wait()
		for range 64 {
			require.NoError(t, <-errs)
		}
		total := 0
		for i := range 8 {
			total += engines[0].count(fmt.Sprint(i))
		}
		require.Equal(t, 8+60+4*8, total)
		require.Equal(t, 60+4*8, engines[0].rows("{command}"))
		require.Equal(t, 8, engines[0].rows("{deadline}"))
	})
}

// Callers' transactions that touch several sagas lock them in one order.
func TestP56CallersTransactionsOnSeveralSagasDoNotDeadlock(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		for i := range 4 {
			s.begin(fmt.Sprint(i), func(sc Scene) error { sc.Add("tag", "all"); return nil })
		}
		turns := make(chan struct{}, 8) // as many transactions at once as the database has writers
		if db.Dialect() == "sqlite" {
			turns = make(chan struct{}, 1)
		}
		var wg sync.WaitGroup
		errs := make(chan error, 8)
		for range 8 {
			wg.Go(func() {
				turns <- struct{}{}
				defer func() { <-turns }()
				tx, err := db.BeginTx(context.Background(), nil)
				if err == nil {
					err = errors.Join(s.HandleTx(context.Background(), tx, Next{Tag: []string{"all"}}), tx.Commit())
				}
				errs <- err
			})
		}
		wg.Wait()
		for range 8 {
			require.NoError(t, <-errs)
		}
		for i := range 4 {
			require.Equal(t, 9, s.count(fmt.Sprint(i)))
		}
	})
}

func TestP58BufferIsSealedAfterTheHandlerAndMayBeUsedInParallelBefore(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		var late saga.Commands
		s.begin("1", func(sc Scene) error {
			late = sc.Commands
			var wg sync.WaitGroup
			for i := range 20 {
				wg.Go(func() {
					sc.Send(Note{"x"})
					sc.Schedule("t", time.Duration(i)*time.Minute)
					sc.Add("tag", fmt.Sprint(i))
				})
			}
			wg.Wait()
			return nil
		})
		late.Send(Note{"late"})
		s.next("1", nil)
		require.Len(t, s.notes(), 20)
		require.Len(t, s.pending("1"), 1)
		require.Equal(t, 21, s.rows("{association}"))
		require.Contains(t, s.log.String(), "buffer used after its handler returned")
	})
}

func TestP60NullsAndBrokenRowsBreakNoList(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		for _, id := range []string{"1", "2", "3"} {
			s.begin(id, func(sc Scene) error { sc.Schedule("t", 0); sc.Send(Note{id}); return nil })
		}
		s.exec("UPDATE {deadline} SET payload_type = NULL, payload = NULL, metadata = NULL, last_error = NULL, parked_at = next_at")
		s.exec("UPDATE {command} SET metadata = NULL, last_error = NULL, parked_at = next_at")
		s.exec("UPDATE {command} SET metadata = 'broken', payload = 'broken' WHERE saga_id = '2'")
		s.exec("UPDATE {instance} SET state = 'broken', plan = NULL, parent_type = NULL, period_start = NULL, ended_at = NULL WHERE saga_id = '2'")
		parked := s.parked(saga.Query{})
		require.Len(t, parked, 6)
		require.Nil(t, parked[0].Payload)
		require.Empty(t, parked[0].LastError)
		require.Equal(t, "broken", string(parked[4].Payload))
		n := 0
		for got, err := range s.Instances(t.Context(), saga.Query{}) {
			require.NoError(t, err)
			require.NotEmpty(t, got.State)
			n++
		}
		require.Equal(t, 3, n)
		require.ErrorContains(t, s.Handle(t.Context(), Next{ID: "2"}), "story/2: state: ")
		s.next("1", nil)
		require.Len(t, s.pending("1"), 1)
	})
}

func TestP61EndAndItsCommandsAreOneTransaction(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{InstanceRetention: time.Hour})
		s.begin("1", nil)
		last := Next{ID: "1", Do: func(sc Scene) error { sc.Send(Note{"refund"}); return end(sc) }}
		s.exec("ALTER TABLE {command} RENAME TO away")
		require.Error(t, s.Handle(t.Context(), last, saga.WithID("e")))
		s.exec("ALTER TABLE away RENAME TO {command}")
		require.False(t, s.instance("1").Ended)
		require.NoError(t, s.Handle(t.Context(), last, saga.WithID("e")))
		require.NoError(t, s.Handle(t.Context(), last, saga.WithID("e"))) // delivery failed: the event comes again
		require.True(t, s.instance("1").Ended)
		require.Equal(t, []string{"refund"}, s.notes())
		defer s.housekeep()()
		time.Sleep(3 * time.Hour)
		require.Equal(t, []string{"refund"}, s.notes()) // and outlives everything
		require.True(t, s.instance("1").Ended)
	})
}

func TestP63RetryWhileRunningStartsNothingTwice(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.begin("1", func(sc Scene) error { sc.Schedule("t", 0); return nil })
		due := s.due()[0]
		_, err := deadline.NewStore(db).Fail(t.Context(), due, errors.New("no"), s.Now(), true)
		require.NoError(t, err)
		parked := s.parked(saga.Query{})[0]
		require.NoError(t, s.Retry(t.Context(), parked))
		s.script.on("t", func(sc Scene) error {
			require.ErrorIs(t, s.Retry(sc, parked), saga.ErrNested)
			require.ErrorIs(t, s.Discard(sc, parked, ""), saga.ErrNested)
			_, err := s.FireNow(sc, parked.ID)
			require.ErrorIs(t, err, saga.ErrNested)
			_, err = s.CancelDeadline(sc, parked.ID)
			require.ErrorIs(t, err, saga.ErrNested)
			return nil
		})
		require.NoError(t, s.Dispatch(t.Context(), due))
		require.NoError(t, s.Dispatch(t.Context(), due)) // the one that was in flight
		require.ErrorIs(t, s.Retry(t.Context(), parked), saga.ErrNotParked)
		require.Equal(t, []string{"t"}, s.script.names())
	})
}

func TestP66EndOnOneNodeAndEventOnAnotherInsertNothing(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		a, b := newStage(t, db, saga.Config{}), newStage(t, db, saga.Config{})
		for i := range 10 {
			id := fmt.Sprint(i)
			a.begin(id, nil)
			b.next(id, nil)
			a.next(id, end)
			b.next(id, func(Scene) error { return errors.New("called") })
			b.begin(id, func(Scene) error { return errors.New("called") })
			require.True(t, b.instance(id).Ended)
			require.EqualValues(t, 3, b.instance(id).Version)
		}
		a.begin("gone", nil)
		a.exec("DELETE FROM {instance} WHERE saga_id = 'gone'")
		b.next("gone", nil)
		_, err := b.Instance(t.Context(), key("gone"))
		require.ErrorIs(t, err, saga.ErrNotFound)
	})
}

func TestP67NothingOfAFailedStartHandlesEvents(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		require.Error(t, s.Handle(t.Context(), Begin{ID: "1", Do: func(sc Scene) error { sc.Add("tag", "x"); return errors.New("no") }}))
		s.next("1", func(Scene) error { return errors.New("called") })
		require.NoError(t, s.Handle(t.Context(), Next{Tag: []string{"x"}, Do: func(Scene) error { return errors.New("called") }}))
		require.EqualValues(t, 2, s.Stats().Ignored)
		s.begin("1", nil)
		require.Equal(t, 1, s.count("1"))
	})
}

func TestP68TablesRefuseDuplicates(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.begin("1", func(sc Scene) error { sc.Schedule("t", 0); sc.Send(Note{}); return nil })
		for _, query := range []string{
			"INSERT INTO {instance} (saga_type, saga_id, state, version, status, started_at, updated_at) SELECT saga_type, saga_id, state, version, status, started_at, updated_at FROM {instance}",
			"INSERT INTO {association} (saga_type, property, value, saga_id, exclusive) SELECT saga_type, property, value, '2', exclusive FROM {association}",
			"INSERT INTO {event} (saga_type, saga_id, event_id, handled_at) SELECT saga_type, saga_id, event_id, handled_at FROM {event}",
			"INSERT INTO {deadline} (saga_type, saga_id, name, token, public_id, due_at, next_at) SELECT saga_type, saga_id, name, token, 'other', due_at, next_at FROM {deadline}",
			"INSERT INTO {deadline} (saga_type, saga_id, name, token, public_id, due_at, next_at) SELECT saga_type, saga_id, 'u', token, public_id, due_at, next_at FROM {deadline}",
			"INSERT INTO {command} (command_id, saga_type, saga_id, type, payload, created_at, next_at) SELECT command_id, saga_type, saga_id, type, payload, created_at, next_at FROM {command}",
		} {
			_, err := db.Exec(t.Context(), query)
			require.ErrorAs(t, err, new(*schema.DuplicateError), query)
		}
	})
}

func TestP79ContextCancelledInAHandlerStoresNothing(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.begin("1", nil)
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("shutting down")
		err := s.Handle(ctx, Next{ID: "1", Do: func(sc Scene) error { sc.Send(Note{}); cancel(cause); return nil }}, saga.WithID("e"))
		require.ErrorIs(t, err, cause)
		require.ErrorIs(t, s.Handle(ctx, Next{ID: "1"}), cause)
		require.Empty(t, s.notes())
		require.NoError(t, s.Handle(t.Context(), Next{ID: "1"}, saga.WithID("e")))
		require.Equal(t, 2, s.count("1"))
	})
}

func TestP80ConcurrentIncrementsAreAllThere(t *testing.T) {
	for _, name := range schematest.Databases {
		t.Run(name, func(t *testing.T) {
			address := schematest.URL(t, name)
			var stages []*stage
			for range 2 { // two pools, as of two processes
				stages = append(stages, newStage(t, schematest.Open(t, address), saga.Config{}))
			}
			stages[0].begin("1", nil)
			var wg sync.WaitGroup
			errs := make(chan error, 8)
			for i := range 8 {
				wg.Go(func() {
					var err error
					for range 25 {
						err = errors.Join(err, stages[i%2].Handle(context.Background(), Next{ID: "1"}))
					}
					errs <- err
				})
			}
			wg.Wait()
			for range 8 {
				require.NoError(t, <-errs)
			}
			require.Equal(t, 201, stages[0].count("1"))
		})
	}
}

func TestP81DatabaseInMemoryIsRefused(t *testing.T) {
	_, err := schema.Open(t.Context(), "sqlite://:memory:")
	require.ErrorContains(t, err, "name a file")
}

func TestP81HandlerThatWritesBesideItsTransactionGetsAnError(t *testing.T) {
	address := schematest.URL(t, "sqlite")
	db := schematest.Open(t, address)
	s := newStage(t, db, saga.Config{})
	_, err := db.DB.Exec("CREATE TABLE account (id text)")
	require.NoError(t, err)
	require.ErrorContains(t, s.Handle(t.Context(), Begin{ID: "1", Do: func(sc Scene) error {
		_, err := db.DB.ExecContext(sc, "INSERT INTO account VALUES ('a')") // the pool in place of saga.Tx
		return err
	}}), "locked")
	require.ErrorContains(t, s.Handle(t.Context(), Begin{ID: "1", Do: func(sc Scene) error {
		_, err := db.Exec(sc, "INSERT INTO account VALUES ('a')")
		return err
	}}), "would wait for it")
	require.Zero(t, s.rows("account"))
	s.empty()
}

func TestP86RenamedTypesFindTheirRows(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		old := newStage(t, db, saga.Config{Names: []saga.Naming{saga.Named[Parcel]("old-parcel")}}, story(t, "old-story"))
		old.begin("1", func(sc Scene) error { sc.Schedule("parcel", 0, deadline.WithPayload(Parcel{Text: "x"})); return nil })
		old.Close()

		unaware := newStage(t, db, saga.Config{})
		fired, _ := unaware.sweep()
		require.Zero(t, fired) // 1.34: left for another node

		s := newStage(t, db, saga.Config{Names: []saga.Naming{saga.Named[Parcel]("new-parcel", "old-parcel")}},
			story(t, "story", saga.Named[Story]("story", "old-story")))
		var got Parcel
		s.script.on("parcel", func(sc Scene) error { got = sc.Parcel; sc.Schedule("t", time.Minute); return nil })
		fired, errs := s.sweep()
		require.Equal(t, 1, fired)
		require.Empty(t, errs)
		require.Equal(t, Parcel{Text: "x"}, got)
		s.begin("1", nil) // the old saga, not a second one
		s.next("1", nil)
		require.Equal(t, 1, s.rows("{instance}"))
		found, err := s.Instance(t.Context(), saga.Key{Type: "old-story", ID: "1"})
		require.NoError(t, err)
		require.EqualValues(t, 4, found.Version)
		time.Sleep(time.Minute)
		fired, errs = s.sweep()
		require.Equal(t, 1, fired)
		require.Empty(t, errs)
		require.NoError(t, s.Handle(t.Context(), Next{ID: "1", Do: end}))
		s.begin("1", nil)
		require.Equal(t, 1, s.rows("{instance}"))
	})
}
