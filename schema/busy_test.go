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
