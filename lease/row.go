package lease

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/norn-go/norn/schema"
)

// row is one holder's view of the lease's row. All statements are judged by the database's clock.
type row struct {
	db           *schema.DB
	name, holder string
}

// newHolder is unique per call; host and process are for people who read the table.
func newHolder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s-%d-%s", host, os.Getpid(), rand.Text()[:12])
}

// session is the view of one attempt to hold: its holder is that attempt's alone.
func (r row) session(number int64) row {
	r.holder = fmt.Sprintf("%s-%d", r.holder, number)
	return r
}

// take makes the row this holder's under a new term, if it is absent or expired; else it is ErrHeld. It looks before it
// writes: most who ask find the lease held.
func (r row) take(ctx context.Context, on *schema.Conn, ttl time.Duration, asks func()) (term int64, err error) {
	if err := r.look(ctx, on); err != nil {
		return 0, err
	}
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	asks()
	err = on.Get(ctx, &term, `INSERT INTO {deadline_lock} AS l (name, holder, term, expires_at) VALUES (?, ?, 1, {now+})
		ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, term = l.term + 1, expires_at = excluded.expires_at
		WHERE l.expires_at <= {now}
		RETURNING term`, r.name, r.holder, ttl)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, ErrHeld
	}
	return term, err
}

// look is a *heldError while another holder has the lease.
func (r row) look(ctx context.Context, on *schema.Conn) error {
	var found struct {
		Holder  string
		Expires schema.Time `db:"expires_at"`
		Now     schema.Time
	}
	err := on.Read(ctx, &found, `SELECT holder, expires_at, {now} AS now FROM {deadline_lock} WHERE name = ? AND expires_at > {now}`, r.name)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return err
	}
	return &heldError{found.Holder, found.Expires.Time, found.Expires.Sub(found.Now.Time)}
}

// renew moves the expiry of a term that has not expired, and reports whether it was still there. A term that
// has expired or was given back stays so, whatever statement comes late.
func (r row) renew(ctx context.Context, on *schema.Conn, term int64, ttl time.Duration) (bool, error) {
	n, err := on.Exec(ctx, `UPDATE {deadline_lock} SET expires_at = {now+} WHERE name = ? AND holder = ? AND term = ? AND expires_at > {now}`,
		ttl, r.name, r.holder, term)
	return n > 0, err
}

// release lets the term expire now. The row stays, so that no term ever comes twice.
func (r row) release(ctx context.Context, on *schema.Conn, term int64) error {
	_, err := on.Exec(ctx, `UPDATE {deadline_lock} SET expires_at = {now} WHERE name = ? AND holder = ? AND term = ? AND expires_at > {now}`,
		r.name, r.holder, term)
	return err
}

// undo is release for a session that may have taken the lease without learning its term.
func (r row) undo(ctx context.Context, on *schema.Conn) error {
	_, err := on.Exec(ctx, `UPDATE {deadline_lock} SET expires_at = {now} WHERE name = ? AND holder = ? AND expires_at > {now}`, r.name, r.holder)
	return err
}
