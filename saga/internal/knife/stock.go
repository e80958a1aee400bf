package knife

import (
	"context"
	"database/sql/driver"
	"slices"
	"sync"
)

// Stock opens connections for the pools of many knives. Those that it opened ahead it takes back, rolled back and reset,
// from whoever closed or lost them: on a server that is as good as another connection, and costs far less.
type Stock struct {
	driver     driver.Driver
	dsn, reset string

	mu    sync.Mutex
	kept  []driver.Conn // opened ahead
	ready []driver.Conn // of these, in nobody's use
}

// NewStock makes a stock that keeps nothing until [Stock.Fill]. reset is the statement that makes a session as good as new.
func NewStock(d driver.Driver, dsn, reset string) *Stock {
	return &Stock{driver: d, dsn: dsn, reset: reset}
}

// Fill opens connections until n are ready. What is in use meanwhile stays so.
func (s *Stock) Fill(n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.ready) < n {
		c, err := s.open(context.Background())
		if err != nil {
			return err
		}
		s.kept, s.ready = append(s.kept, c), append(s.ready, c)
	}
	return nil
}

// Close closes the connections that are ready.
func (s *Stock) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.ready {
		_ = c.Close()
	}
	s.kept, s.ready = nil, nil
}

func (s *Stock) take(ctx context.Context) (driver.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.ready); n > 0 {
		c := s.ready[n-1]
		s.ready = s.ready[:n-1]
		return c, nil
	}
	return s.open(ctx)
}

func (s *Stock) open(ctx context.Context) (driver.Conn, error) {
	if d, ok := s.driver.(driver.DriverContext); ok {
		own, err := d.OpenConnector(s.dsn)
		if err != nil {
			return nil, err
		}
		return own.Connect(ctx)
	}
	return s.driver.Open(s.dsn)
}

func (s *Stock) give(c driver.Conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.kept, c)
	if i >= 0 && s.renewed(c) {
		s.ready = append(s.ready, c)
		return nil
	}
	if i >= 0 {
		s.kept = slices.Delete(s.kept, i, i+1)
	}
	return c.Close()
}

func (s *Stock) renewed(c driver.Conn) bool {
	if v, ok := c.(driver.Validator); ok && !v.IsValid() {
		return false
	}
	_, err := c.(driver.ExecerContext).ExecContext(context.Background(), s.reset, nil)
	return err == nil
}
