//go:build cgo

package schema

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mattn/go-sqlite3"
	"github.com/stretchr/testify/require"
)

func TestWaitingForALockedFileEndsThoughTheDriverWaitsToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for busy, most := range map[time.Duration]int{0: 5000, 100 * time.Millisecond: 50, 5 * time.Second: 1, time.Minute: 1} {
			tries := 0
			err := patiently(t.Context(), func() error {
				tries++
				time.Sleep(busy)
				return sqlite3.Error{Code: sqlite3.ErrBusy}
			})
			require.ErrorIs(t, sqlite{}.classify(err), ErrConflict)
			require.LessOrEqual(t, tries, most, busy)
		}
	})
}

func TestWaitingForALockedFileEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		time.AfterFunc(time.Second, func() { cancel(enough) })
		err := patiently(ctx, func() error { return sqlite3.Error{Code: sqlite3.ErrBusy} })
		require.ErrorIs(t, err, enough)
	})
}

// told is an error that tells SQLite's result code by a method, as drivers other than mattn/go-sqlite3 do.
type told int

func (told) Error() string { return "constraint failed: UNIQUE constraint failed: SAGA_EVENT.event_id" }
func (e told) Code() int   { return int(e) }

func TestResultCodesAreKnownHoweverADriverTellsThem(t *testing.T) {
	for _, err := range []error{sqlite3.Error{Code: sqlite3.ErrBusy}, sqlite3.Error{Code: sqlite3.ErrLocked}, told(5), told(517), told(6)} {
		require.ErrorIs(t, sqlite{}.classify(err), ErrConflict, "%#v", err)
	}
	for _, err := range []error{sqlite3.Error{ExtendedCode: sqlite3.ErrConstraintUnique}, sqlite3.Error{ExtendedCode: sqlite3.ErrConstraintPrimaryKey}, told(2067), told(1555)} {
		var dup *DuplicateError
		require.ErrorAs(t, sqlite{}.classify(err), &dup, "%#v", err)
	}
	for _, err := range []error{sqlite3.Error{Code: sqlite3.ErrConstraint}, told(19), told(1), errors.New("busy")} {
		require.Equal(t, err, sqlite{}.classify(err))
	}
}
