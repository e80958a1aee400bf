package lease_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/lease"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

func TestP34OldTermRenewsNothing(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		work, stop := holding(t, locker(db))
		usurper := takeOver(t, db)
		select {
		case <-work.Done():
		case <-time.After(ttl):
		}
		cause, kept := context.Cause(work), row(t, db)
		ended := stop() // before anything can fail: a lease that is held goes on being renewed
		require.ErrorContains(t, cause, "expired or taken over")
		require.Equal(t, usurper, kept)
		require.ErrorIs(t, ended, lease.ErrLost)
		require.Equal(t, usurper, row(t, db))
	})
}

// severable opens a pool on address whose connections the function returned ends from outside.
func severable(t *testing.T, address string) (db *schema.DB, sever func()) {
	t.Helper()
	admin := schematest.Open(t, address, schema.WithProcessClock())
	name := strings.ToLower(rand.Text())
	db = schematest.Open(t, address+"&application_name="+name, schema.WithProcessClock())
	return db, func() {
		var ended int
		err := admin.DB.Get(&ended, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = $1", name)
		require.NoError(t, err)
		require.NotZero(t, ended)
	}
}

func TestP35EndedConnectionMakesNoSecondLeader(t *testing.T) {
	address := schematest.URL(t, "postgres")
	synctest.Test(t, func(t *testing.T) {
		db, sever := severable(t, address)
		l := locker(db)
		work, stop := holding(t, l)
		for range 6 {
			sever()
			require.ErrorIs(t, locker(db).Hold(t.Context(), func(context.Context) error { return errors.New("a second leader") }), lease.ErrHeld)
			time.Sleep(ttl / 2)
		}
		require.NoError(t, work.Err())
		require.EqualValues(t, 1, l.Term())
		require.NoError(t, stop())
	})
}

func TestP37LeaseIsJudgedByTheDatabasesClockAlone(t *testing.T) {
	address := schematest.URL(t, "postgres")
	synctest.Test(t, func(t *testing.T) { // the process believes that it is the year 2000
		db := schematest.Open(t, address)
		work, stop := holding(t, locker(db))
		there, err := db.Now(t.Context())
		require.NoError(t, err)
		require.Greater(t, time.Until(there), 10*time.Minute)
		require.True(t, row(t, db).Expires.After(there))
		require.ErrorIs(t, locker(db).Hold(t.Context(), nothing), lease.ErrHeld)
		time.Sleep(5 * ttl)
		require.NoError(t, work.Err())
		require.NoError(t, stop())
		require.NoError(t, locker(db).Hold(t.Context(), nothing))
	})
}

func TestP40StaleResignationLeavesTheNewTerm(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		_, stopFirst := holding(t, locker(db))
		mend := breakTable(t, db)
		time.Sleep(ttl + time.Second)
		mend()
		second := locker(db)
		work, stopSecond := holding(t, second)
		before := row(t, db)
		require.ErrorIs(t, stopFirst(), lease.ErrLost)
		require.Equal(t, before, row(t, db))
		require.NoError(t, work.Err())
		require.EqualValues(t, 2, second.Term())
		require.NoError(t, stopSecond())
	})
}

func TestP40DeposedHolderThatDoesNotKnowItYetReleasesNothing(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		_, stop := holding(t, locker(db))
		usurper := takeOver(t, db)
		require.NoError(t, stop())
		require.Equal(t, usurper, row(t, db))
	})
}

func TestP40RenewalDelayedToTheLastMomentKeepsTheLease(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		work, stop := holding(t, locker(db))
		mend := breakTable(t, db)
		time.Sleep(ttl - ttl/10 - ttl/20)
		mend()
		time.Sleep(ttl)
		require.NoError(t, work.Err())
		require.NoError(t, stop())
	})
}

func TestP41LeaderThatCannotStartGivesTheLeaseBack(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		half := errors.New("half started")
		require.ErrorIs(t, locker(db).Hold(t.Context(), func(context.Context) error { return half }), half)
		require.NoError(t, locker(db).Hold(t.Context(), nothing))
	})
}

func TestP42BusyLeaderWithAnExhaustedPoolIsRenewed(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		work, stop := holding(t, locker(db))
		var taken []*schema.Conn
		for range db.Stats().MaxOpenConnections - 1 {
			conn, err := db.Reserve(t.Context())
			require.NoError(t, err)
			taken = append(taken, conn)
		}
		time.Sleep(2 * ttl)
		require.NoError(t, work.Err())
		for _, conn := range taken {
			require.NoError(t, conn.Close())
		}
		require.NoError(t, stop())
	})
}

func TestP44LeaseIsRenewedUntilTheWorkIsBack(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- locker(db).Hold(ctx, func(ctx context.Context) error {
				<-ctx.Done()
				time.Sleep(5 * ttl)
				return nil
			})
		}()
		synctest.Wait()
		cancel()
		for range 9 {
			time.Sleep(ttl / 2)
			require.ErrorIs(t, locker(db).Hold(t.Context(), nothing), lease.ErrHeld)
		}
		require.NoError(t, <-ended)
		require.NoError(t, locker(db).Hold(t.Context(), nothing))
	})
}

func TestP46NodesRejoinAfterEveryStallAndNeverLeadTogether(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		lockers := []*lease.Locker{locker(db), locker(db), locker(db)}
		leaders := func() (n int) {
			for _, l := range lockers {
				if l.Held() {
					n++
				}
			}
			return n
		}
		for _, l := range lockers {
			defer running(t, l)()
		}
		for range 3 {
			mend := breakTable(t, db)
			for range 60 {
				time.Sleep(time.Second)
				require.LessOrEqual(t, leaders(), 1)
			}
			require.Zero(t, leaders())
			mend()
			time.Sleep(interval)
			synctest.Wait()
			require.Equal(t, 1, leaders())
		}
	})
}

func TestP47CrashedHolderIsSucceededAfterTheTTLAndNotBefore(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		_, err := db.Exec(t.Context(), "INSERT INTO {deadline_lock} (name, holder, term, expires_at) VALUES ('sweep', 'crashed', 7, {now+})", ttl)
		require.NoError(t, err)
		l := locker(db)
		defer running(t, l)()
		time.Sleep(ttl - time.Millisecond)
		synctest.Wait()
		require.False(t, l.Held())
		time.Sleep(interval)
		synctest.Wait()
		require.EqualValues(t, 8, l.Term())
	})
}

func TestP49HolderBehindAnotherWriterStepsDownBeforeExpiry(t *testing.T) {
	address := schematest.URL(t, "sqlite")
	synctest.Test(t, func(t *testing.T) {
		db := schematest.Open(t, address)
		work, stop := holding(t, locker(db))
		expires := row(t, db).Expires.Time
		release, written := make(chan struct{}), make(chan error, 1)
		go func() {
			written <- db.Tx(t.Context(), func(context.Context, *schema.Tx) error { <-release; return nil })
		}()
		<-work.Done()
		require.ErrorIs(t, context.Cause(work), lease.ErrLost)
		require.True(t, time.Now().Before(expires))
		close(release)
		require.NoError(t, <-written)
		require.ErrorIs(t, stop(), lease.ErrLost)
	})
}

func TestP49HolderBehindALockedRowStepsDown(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		short := lease.New(db, "sweep", lease.Config{TTL: 300 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
		work, stop := holding(t, short)
		release, written := make(chan struct{}), make(chan error, 1)
		go func() {
			written <- db.Tx(t.Context(), func(ctx context.Context, tx *schema.Tx) error {
				var name string
				err := tx.Get(ctx, &name, "SELECT name FROM {deadline_lock} {lock}")
				<-release
				return err
			})
		}()
		<-work.Done()
		require.ErrorIs(t, context.Cause(work), lease.ErrLost)
		close(release)
		require.NoError(t, <-written)
		require.ErrorIs(t, stop(), lease.ErrLost)
	})
}

func TestP49LightWriterLoadKeepsTheLease(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		work, stop := holding(t, locker(db))
		var writers sync.WaitGroup
		for range 3 {
			writers.Go(func() {
				for range 50 {
					_ = db.Tx(t.Context(), func(context.Context, *schema.Tx) error { time.Sleep(time.Second); return nil })
				}
			})
		}
		writers.Wait()
		require.NoError(t, work.Err())
		require.NoError(t, stop())
	})
}

func TestP54OutageIsOneLineAtEachEnd(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		var log lines
		l := lease.New(db, "sweep", lease.Config{TTL: ttl, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		defer running(t, l)()
		synctest.Wait()
		log.take()
		mend := breakTable(t, db)
		time.Sleep(10 * time.Minute)
		lost := log.take()
		require.Len(t, lost, 1)
		require.Contains(t, lost[0], `level=WARN msg="lease trouble"`)
		mend()
		time.Sleep(time.Minute)
		require.Len(t, log.take(), 2) // the lease taken, the trouble over
		time.Sleep(time.Hour)
		require.Empty(t, log.take())
	})
}

func TestP54WorkThatAlwaysFailsIsOneLine(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		var log lines
		l := lease.New(db, "sweep", lease.Config{TTL: ttl, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		calls := 0
		require.NoError(t, l.Run(ctx, interval, func(context.Context) error { calls++; return errors.New("no") }))
		require.Len(t, log.take(), 1)
		require.LessOrEqual(t, calls, 500)
	})
}

func TestP64EveryLoopBeatsAgainAfterARestartOfTheDatabase(t *testing.T) {
	address := schematest.URL(t, "postgres")
	synctest.Test(t, func(t *testing.T) {
		db, sever := severable(t, address)
		l := locker(db)
		defer running(t, l)()
		synctest.Wait()
		for range 3 {
			before := row(t, db).Expires.Time
			sever()
			time.Sleep(2 * ttl)
			synctest.Wait()
			require.True(t, l.Held())
			require.True(t, row(t, db).Expires.After(before))
		}
	})
}

func TestP64PoolFullOfBrokenConnectionsCostsNoLease(t *testing.T) {
	address := schematest.URL(t, "postgres")
	synctest.Test(t, func(t *testing.T) {
		db, sever := severable(t, address)
		l := locker(db)
		defer running(t, l)()
		synctest.Wait()
		var idle []*schema.Conn
		for range db.Stats().MaxOpenConnections - 1 {
			conn, err := db.Reserve(t.Context())
			require.NoError(t, err)
			idle = append(idle, conn)
		}
		for _, conn := range idle {
			require.NoError(t, conn.Close())
		}
		sever()
		time.Sleep(2 * ttl)
		require.EqualValues(t, 1, l.Term())
	})
}

func TestP73NowIsTheMomentAndNotTheStartOfTheTransaction(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		require.NoError(t, db.Tx(t.Context(), func(ctx context.Context, tx *schema.Tx) error {
			var times [2]schema.Time
			for i := range times {
				require.NoError(t, tx.Get(ctx, &times[i], "SELECT {now}"))
			}
			require.True(t, times[1].After(times[0].Time))
			return nil
		}))
	})
}

// lines collects what is logged.
type lines struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buffer.Write(p)
}

// take returns the lines since the last call.
func (l *lines) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.buffer.Reset()
	text := strings.TrimSpace(l.buffer.String())
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}
