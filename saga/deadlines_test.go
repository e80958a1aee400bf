package saga_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

// SEMANTICS 1.5
func TestDueTimesAreCountedFromTheCallAndCutToMicroseconds(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		var called time.Time
		s.begin("1", func(sc Scene) error {
			time.Sleep(time.Hour)
			called = schema.Microseconds(time.Now())
			sc.Schedule("t", time.Minute+999*time.Nanosecond)
			sc.ScheduleAt("u", time.Date(2030, 1, 2, 3, 4, 5, 678_999, time.FixedZone("", 3600)))
			return nil
		})
		got := s.pending("1")
		require.Equal(t, called.Add(time.Minute), got[0].Due.Time)
		require.Equal(t, time.Date(2030, 1, 2, 2, 4, 5, 678_000, time.UTC), got[1].Due.Time)
	})
}

// SEMANTICS 1.5: a framework clock that the application gives.
func TestGivenNowIsTheClockOfDueTimesAndFirings(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		now := time.Date(1999, 12, 31, 23, 59, 0, 1_001, time.UTC)
		s := newStage(t, db, saga.Config{Now: func() time.Time { return now }})
		s.begin("1", func(sc Scene) error { sc.Schedule("t", time.Minute); return nil })
		due := schema.Microseconds(now.Add(time.Minute))
		require.Equal(t, due, s.pending("1")[0].Due.Time)
		fired, _ := s.sweep()
		require.Zero(t, fired)
		now = due
		fired, _ = s.sweep()
		require.Equal(t, 1, fired)
		require.Equal(t, due, s.script.fired[0].At)
	})
}

// SEMANTICS 1.6, P-12
func TestDueTimesNowOrInThePastFireInTheNextSweep(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		for id, act := range map[string]Act{
			"zero":     func(sc Scene) error { sc.Schedule("t", 0); return nil },
			"negative": func(sc Scene) error { sc.Schedule("t", -10*time.Second); return nil },
			"lowest":   func(sc Scene) error { sc.Schedule("t", math.MinInt64); return nil },
			"epoch":    func(sc Scene) error { sc.ScheduleAt("t", time.Unix(0, 0)); return nil },
			"year 1":   func(sc Scene) error { sc.ScheduleAt("t", time.Date(1, 1, 1, 0, 0, 0, 1000, time.UTC)); return nil },
			"almost 0": func(sc Scene) error { sc.ScheduleAt("t", time.Time{}.Add(1)); return nil },
		} {
			s.begin(id, act)
		}
		fired, errs := s.sweep()
		require.Equal(t, 6, fired)
		require.Empty(t, errs)
		require.Zero(t, s.rows("{deadline}"))
	})
}

// SEMANTICS 1.8
func TestPayloadMustBeOfTheDeclaredType(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		for want, opts := range map[string][]deadline.Option{
			"wants a saga_test.Parcel: add deadline.WithPayload":  nil,
			"the payload is a saga_test.Note and parcel":          {deadline.WithPayload(Note{})},
			"the payload is a <nil> and parcel":                   {deadline.WithPayload(nil)},
			"the value is nil":                                    {deadline.WithPayload((*Parcel)(nil))},
			"the payload is a map[string]interface {} and parcel": {deadline.WithPayload(map[string]any{})},
		} {
			err := s.Handle(t.Context(), Begin{ID: "1", Do: func(sc Scene) error { sc.Schedule("parcel", 0, opts...); return nil }})
			require.ErrorContains(t, err, want)
			require.ErrorContains(t, err, `deadline "parcel"`)
		}
		s.empty()
	})
}

type broken struct{ F func() }

// SEMANTICS 1.9, 1.15, P-30
func TestWhatCannotBeStoredFailsTogetherAndLeavesNothing(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{PayloadLimit: 1000})
		err := s.Handle(t.Context(), Begin{ID: "1", Do: func(sc Scene) error {
			sc.Notes = []string{"\xff"}
			sc.Schedule("unknown", time.Minute)
			sc.ScheduleAt("t", time.Time{})
			sc.ScheduleAt("u", time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC))
			sc.Schedule("parcel", 0, deadline.WithPayload(Parcel{Text: string(make([]byte, 1000))}))
			sc.Schedule("v", 0, deadline.WithPayload(math.NaN()))
			sc.Send(broken{})
			sc.Send(nil)
			sc.Send(Note{"\xff"})
			sc.Send(Note{"fine"}, saga.WithMetadata(saga.Metadata{"$forged": "x"}))
			sc.Send(Note{"fine"}, saga.WithMetadata(saga.Metadata{"x": "\xff"}))
			sc.Send(Note{string(make([]byte, 1000))})
			sc.Add("", "x")
			sc.Add("empty", "")
			sc.Add("nul", "\x00")
			sc.Add("bytes", "\xff")
			sc.Add("long", string(make([]byte, 1025)))
			return nil
		}})
		for _, want := range []string{
			"state saga_test.Story: json: a string is not UTF-8",
			`deadline "unknown": story has no saga.OnDeadline for it`,
			`deadline: schedule "t": the zero time is no due time`,
			`deadline: schedule "u": due in the year 10000: want 1 to 9999`,
			"saga_test.Parcel of 6",
			"json: unsupported value: NaN",
			"command 1, saga_test.broken: saga: encode saga_test.broken: field F: a func() does not encode",
			"command 2, <nil>: saga: encode: the value is nil",
			"command 3, saga_test.Note: saga: encode saga_test.Note: json: a string is not UTF-8",
			`command 4, saga_test.Note: metadata "$forged": keys beginning with $ are reserved`,
			`command 5, saga_test.Note: metadata "x" is not UTF-8`,
			"command 6, saga_test.Note: saga_test.Note of 6011 bytes is longer than 1000",
			`association "": property is empty`, `association "empty": the value is empty`, `association "nul": value "\x00" has a NUL`,
			`association "bytes": value "\xff" is not UTF-8`, `association "long": value of 1025 bytes is longer than 1024`,
		} {
			require.ErrorContains(t, err, want)
		}
		s.empty()
	})
}

// SEMANTICS 1.9
func TestDueTimesOutOfRangeFail(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		for _, at := range []time.Time{
			{}, time.Date(0, 12, 31, 23, 59, 59, 0, time.UTC), time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC),
			time.Date(9999, 12, 31, 23, 30, 0, 0, time.FixedZone("", -3600)), time.Unix(math.MaxInt64, 0), time.Unix(math.MinInt64, 0),
		} {
			require.ErrorContains(t, s.Handle(t.Context(), Begin{ID: "1", Do: func(sc Scene) error { sc.ScheduleAt("t", at); return nil }}), `deadline "t"`, at)
		}
		s.empty()
		last := time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
		s.begin("1", func(sc Scene) error { sc.ScheduleAt("t", last); sc.Schedule("u", math.MaxInt64); return nil })
		require.Equal(t, schema.Microseconds(last), s.pending("1")[1].Due.Time)
	})
}

// SEMANTICS 1.9: a clock at the edge of time.
func TestDurationThatOverflowsFails(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{Now: func() time.Time { return time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC) }})
		err := s.Handle(t.Context(), Begin{ID: "1", Do: func(sc Scene) error { sc.Schedule("t", math.MaxInt64); return nil }})
		require.ErrorContains(t, err, `deadline "t"`)
		s.empty()
	})
}

// SEMANTICS 1.11
func TestPublicIDIsStableUnlessGiven(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		given := "an id with 'quotes\" and ✓"
		s.begin("1", func(sc Scene) error {
			sc.Schedule("t", time.Minute)
			sc.Schedule("u", 2*time.Minute, deadline.WithPublicID(given))
			return nil
		})
		require.Equal(t, deadline.DefaultPublicID(deadline.Key{Type: "story", ID: "1", Name: "t"}), s.pending("1")[0].PublicID)
		require.Equal(t, given, s.pending("1")[1].PublicID)
		found, err := s.CancelDeadline(t.Context(), given)
		require.NoError(t, err)
		require.True(t, found)
		found, err = s.CancelDeadline(t.Context(), given)
		require.NoError(t, err)
		require.False(t, found)
	})
}

// SEMANTICS 1.11
func TestPublicIDHeldByAnotherDeadlineFails(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		id := func(name, public string) Act {
			return func(sc Scene) error { sc.Schedule(name, time.Minute, deadline.WithPublicID(public)); return nil }
		}
		s.begin("1", id("t", "x"))
		require.ErrorContains(t, s.Handle(t.Context(), Begin{ID: "2", Do: id("t", "x")}), "a public id is held by another pending deadline")
		require.ErrorContains(t, s.Handle(t.Context(), Next{ID: "1", Do: id("u", "x")}), "a public id is held by another pending deadline")
		err := s.Handle(t.Context(), Begin{ID: "2", Do: func(sc Scene) error {
			return errors.Join(id("t", "y")(sc), id("u", "y")(sc))
		}})
		require.Error(t, err)
		_, err = s.Instance(t.Context(), key("2"))
		require.ErrorIs(t, err, saga.ErrNotFound)
		require.Equal(t, 1, s.count("1"))
		for _, bad := range []string{"\x00", "\xff", string(make([]byte, 1025))} {
			require.ErrorContains(t, s.Handle(t.Context(), Next{ID: "1", Do: id("u", bad)}), "public id")
		}

		s.next("1", id("t", "x")) // its own is no clash
		s.next("1", func(sc Scene) error { sc.Cancel("t"); return id("u", "x")(sc) })
		require.Equal(t, []string{"u"}, s.names("1"))
		s.begin("2", id("t", "y"))
	})
}

// SEMANTICS 2.16, here for deadlines that handlers schedule.
func TestDeadlinesExchangePublicIDsInOneCommit(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		name := func(t, u string) Act {
			return func(sc Scene) error {
				sc.Schedule("t", time.Minute, deadline.WithPublicID(t))
				sc.Schedule("u", 2*time.Minute, deadline.WithPublicID(u))
				return nil
			}
		}
		s.begin("1", name("x", "y"))
		s.next("1", name("y", "x"))
		require.Equal(t, "y", s.pending("1")[0].PublicID)
		require.Equal(t, "x", s.pending("1")[1].PublicID)
	})
}

// SEMANTICS 1.12
func TestClaimedDeadlineIsNotRecalled(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.begin("1", func(sc Scene) error { sc.Schedule("t", 0, deadline.WithPublicID("x")); return nil })
		type answer struct {
			found bool
			err   error
		}
		answers := make(chan answer, 1)
		s.script.on("t", func(sc Scene) error {
			go func() {
				found, err := s.CancelDeadline(t.Context(), "x")
				answers <- answer{found, err}
			}()
			return nil
		})
		_, errs := s.sweep()
		require.Empty(t, errs)
		require.Equal(t, answer{}, <-answers)
		require.Equal(t, 2, s.count("1"))
	})
}

// SEMANTICS 1.13, 4.12
func TestEachAttemptGetsFreshBuffersAndFreshState(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.begin("1", nil)
		attempts := 0
		s.next("1", func(sc Scene) error {
			attempts++
			require.Equal(t, 2, sc.Count)
			sc.Notes = append(sc.Notes, "once")
			sc.Send(Note{"once"})
			sc.Schedule("t", time.Duration(attempts)*time.Minute)
			if attempts < 3 {
				return schema.ErrConflict
			}
			return nil
		})
		require.Equal(t, 3, attempts)
		require.EqualValues(t, 2, s.Stats().Conflicts)
		require.JSONEq(t, `{"Count":2,"Notes":["once"]}`, string(s.instance("1").State))
		require.Equal(t, []string{"once"}, s.notes())
		require.Len(t, s.pending("1"), 1)
	})
}

// SEMANTICS 1.16, P-58
func TestBufferUsedAfterItsHandlerReturnedRecordsNothing(t *testing.T) {
	for what, result := range map[string]error{"success": nil, "failure": errors.New("no")} {
		t.Run(what, func(t *testing.T) {
			schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
				s := newStage(t, db, saga.Config{})
				var leaked Scene
				err := s.Handle(t.Context(), Begin{ID: "1", Do: func(sc Scene) error { leaked = sc; return result }})
				require.ErrorIs(t, err, result)
				done := make(chan struct{})
				go func() {
					defer close(done)
					leaked.Send(Note{"late"})
					leaked.Schedule("t", time.Minute)
					leaked.Cancel("t")
					leaked.Add("tag", "x")
					leaked.Remove("tag", "x")
					leaked.End()
				}()
				<-done
				s.begin("2", nil)
				require.Empty(t, s.notes())
				require.Zero(t, s.rows("{deadline}"))
				require.False(t, s.instance("2").Ended)
				for _, misuse := range []string{"what=command", "what=\"deadline t\"", "what=\"association tag\"", "what=end"} {
					require.Contains(t, s.log.String(), misuse)
				}
				require.Contains(t, s.log.String(), "level=ERROR msg=\"saga: buffer used after its handler returned; nothing is recorded\" saga=story id=1")
			})
		})
	}
}

// SEMANTICS 1.18
func TestCommandIDsFollowFromSagaMessageAndPosition(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		ids := func(s *stage) (ids []string) {
			var rows []struct {
				ID string `db:"command_id"`
			}
			require.NoError(t, db.Select(t.Context(), &rows, "SELECT command_id FROM {command} ORDER BY seq"))
			for _, r := range rows {
				ids = append(ids, r.ID)
			}
			return ids
		}
		s := newStage(t, db, saga.Config{})
		attempt := 0
		send := func(sc Scene) error {
			attempt++
			sc.Send(Note{"a"})
			sc.Send(Note{"a"})
			if attempt == 1 {
				return schema.ErrConflict
			}
			return nil
		}
		require.NoError(t, s.Handle(t.Context(), Begin{ID: "1", Do: send}, saga.WithID("e1")))
		first := ids(s)
		require.Len(t, first, 2)
		require.NotEqual(t, first[0], first[1])
		s.exec("DELETE FROM {command}")
		s.exec("DELETE FROM {instance}")
		s.exec("DELETE FROM {association}")
		s.exec("DELETE FROM {event}")
		require.NoError(t, s.Handle(t.Context(), Begin{ID: "1", Do: send}, saga.WithID("e1")))
		require.Equal(t, first, ids(s))
		require.NoError(t, s.Handle(t.Context(), Begin{ID: "2", Do: send}, saga.WithID("e1")))
		require.NoError(t, s.Handle(t.Context(), Next{ID: "1", Do: send}, saga.WithID("e2")))
		all := map[string]bool{}
		for _, id := range ids(s) {
			all[id] = true
		}
		require.Len(t, all, 6)
	})
}

// SEMANTICS 1.18: the token of a deadline stays through its retries.
func TestRetriedDeadlineSendsTheSameCommandIDs(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.begin("1", func(sc Scene) error { sc.Schedule("t", 0); return nil })
		due := s.due()[0]
		s.script.on("t", func(sc Scene) error { return errors.New("no") })
		require.Error(t, s.Dispatch(t.Context(), due))
		_, err := deadline.NewStore(db).Fail(t.Context(), due, errors.New("no"), s.Now(), false)
		require.NoError(t, err)
		require.Equal(t, due.Token, s.due()[0].Token)
	})
}
