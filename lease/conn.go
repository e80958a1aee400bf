package lease

import (
	"context"
	"errors"

	"github.com/norn-go/norn/schema"
)

// onConn runs a statement on the session's own connection, and again on another one if that was broken:
// after an outage the pool is full of broken ones. The statements may run twice: they name holder and
// term, or take only what is free.
func (s *session) onConn(ctx context.Context, statement func(conn *schema.Conn) error) error {
	for tries := 2 + s.db.Stats().Idle; ; tries-- {
		reached, err := s.onThisConn(ctx, statement)
		if !reached || tries == 1 || !errors.Is(err, schema.ErrUnavailable) || ctx.Err() != nil {
			return err
		}
	}
}

func (s *session) onThisConn(ctx context.Context, statement func(conn *schema.Conn) error) (reached bool, err error) {
	if s.conn == nil {
		if s.conn, err = s.db.Reserve(ctx); err != nil {
			return false, err
		}
	}
	if err = statement(s.conn); errors.Is(err, schema.ErrUnavailable) {
		s.drop()
	}
	return true, err
}

func (s *session) drop() {
	if s.conn != nil {
		_ = s.conn.Close() // a broken one is gone already
		s.conn = nil
	}
}
