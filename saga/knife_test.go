package saga_test

import (
	"context"
	"database/sql/driver"
	"fmt"
	"io"
	"time"
)

// fault is what goes wrong at a node's statement: the one with this number, Begin and Commit counted too.
type fault struct {
	At    int  // 1 first; 0: nothing goes wrong
	After bool // the statement was run, and its answer is lost
	Die   bool // not only the connection is cut: the process ends
}

func (f fault) String() string {
	if f.At == 0 {
		return ""
	}
	what, when := "its connection cut", "before"
	if f.Die {
		what = "killed"
	}
	if f.After {
		when = "after"
	}
	return fmt.Sprintf(" // %s %s statement %d", what, when, f.At)
}

// errCut is how a driver reports that its connection broke.
var errCut = fmt.Errorf("the knife: %w", io.ErrUnexpectedEOF)

// knife cuts connections of one node's pool, or lets something else happen between two of its statements.
type knife struct {
	turn    chan struct{} // one: a statement, or what happens between two, begins
	count   int
	open    int // transactions
	fault   fault
	fired   bool
	dead    bool
	at      int
	begun   int
	each    func() // happens before every statement
	between func() // happens before transaction at, if no other is open, else before the next one
}

func newKnife() *knife { return &knife{turn: make(chan struct{}, 1)} }

// arm sets what goes wrong from the next statement on.
func (k *knife) arm(f fault) {
	k.turn <- struct{}{}
	k.count, k.fault, k.fired = 0, f, false
	<-k.turn
}

// overtake lets something happen before a transaction, 1 first.
func (k *knife) overtake(at int, between func()) {
	k.turn <- struct{}{}
	k.begun, k.at, k.between = 0, at, between
	<-k.turn
}

// watch lets something happen before every statement from now on; nil: nothing.
func (k *knife) watch(each func()) {
	k.turn <- struct{}{}
	k.each = each
	<-k.turn
}

// disarm tells whether the fault, or what was to happen between, came about.
func (k *knife) disarm() (fired bool) {
	k.turn <- struct{}{}
	defer func() { <-k.turn }()
	fired = k.fired
	k.fault, k.fired, k.between = fault{}, false, nil
	return fired
}

// cut says what the next statement meets; opens is 1 for a Begin.
func (k *knife) cut(opens int) (before, after bool) {
	k.turn <- struct{}{}
	defer func() { <-k.turn }()
	k.count++
	if k.each != nil {
		k.each()
	}
	k.begun += opens
	if k.between != nil && opens > 0 && k.open == 0 && k.begun >= k.at {
		happen := k.between
		k.between, k.fired = nil, true
		happen()
	}
	if k.dead {
		return true, false
	}
	k.open += opens
	if k.fault.At != k.count {
		return false, false
	}
	k.fired = true
	k.dead = k.fault.Die
	if !k.fault.After {
		k.open -= opens
	}
	return !k.fault.After, k.fault.After
}

func (k *knife) closed() {
	k.turn <- struct{}{}
	k.open--
	<-k.turn
}

// connector makes connections that a knife can cut.
type connector struct {
	driver.Connector
	*knife
}

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	c.turn <- struct{}{}
	dead := c.dead
	<-c.turn
	if dead {
		return nil, errCut
	}
	raw, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &cuttable{Conn: raw, knife: c.knife}, nil
}

// cuttable is a driver's connection that a knife can cut.
type cuttable struct {
	driver.Conn
	*knife
	broken bool
}

// under runs a statement under the knife.
func under[T any](c *cuttable, opens int, statement func() (T, error), discard func(T)) (result T, err error) {
	if c.broken {
		return result, errCut
	}
	before, after := c.cut(opens)
	if !before {
		result, err = statement()
	}
	if opens > 0 && !before && (err != nil || after) {
		c.closed()
	}
	if !before && !after {
		return result, err
	}
	if after && err == nil && discard != nil {
		discard(result)
	}
	c.broken = true
	_ = c.Conn.Close()
	var none T
	return none, errCut
}

func (c *cuttable) Close() error {
	if c.broken {
		return nil
	}
	return c.Conn.Close()
}

func (c *cuttable) IsValid() bool {
	v, ok := c.Conn.(driver.Validator)
	return !c.broken && (!ok || v.IsValid())
}

func (c *cuttable) ResetSession(ctx context.Context) error {
	if r, ok := c.Conn.(driver.SessionResetter); ok && !c.broken {
		return r.ResetSession(ctx)
	}
	return nil
}

func (c *cuttable) CheckNamedValue(v *driver.NamedValue) error {
	if own, ok := c.Conn.(driver.NamedValueChecker); ok {
		return own.CheckNamedValue(v)
	}
	if _, ok := v.Value.(time.Time); ok {
		return nil
	}
	return driver.ErrSkip
}

func (c *cuttable) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return under(c, 0, func() (driver.Rows, error) {
		return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
	}, func(rows driver.Rows) { _ = rows.Close() })
}

func (c *cuttable) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return under(c, 0, func() (driver.Result, error) {
		return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
	}, nil)
}

func (c *cuttable) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := under(c, 1, func() (driver.Tx, error) { return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts) }, nil)
	if err != nil {
		return nil, err
	}
	return cuttableTx{tx, c}, nil
}

// cuttableTx is a transaction on a cuttable connection.
type cuttableTx struct {
	driver.Tx
	conn *cuttable
}

func (t cuttableTx) Commit() error {
	defer t.conn.closed()
	_, err := under(t.conn, 0, func() (struct{}, error) { return struct{}{}, t.Tx.Commit() }, nil)
	return err
}

func (t cuttableTx) Rollback() error {
	defer t.conn.closed()
	_, err := under(t.conn, 0, func() (struct{}, error) { return struct{}{}, t.Tx.Rollback() }, nil)
	return err
}
