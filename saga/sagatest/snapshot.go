package sagatest

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/saga/internal/knife"
	"github.com/norn-go/norn/schema"
)

// snapshot is what is stored at one time.
type snapshot struct {
	sagas        map[saga.Key]saga.Instance
	deadlines    map[deadline.Key]deadline.Pending
	commands     map[string]command // those not yet delivered, by id
	associations map[saga.Key][]Association
}

// Association is a pair by which events find a saga.
type Association struct{ Property, Value string }

// command is a stored command.
type command struct {
	Seq       int64
	ID        string `db:"command_id"`
	SagaType  string `db:"saga_type"`
	SagaID    string `db:"saga_id"`
	Type      string
	Payload   string
	Metadata  *string
	Attempts  int
	LastError *string     `db:"last_error"`
	CreatedAt schema.Time `db:"created_at"`
	ParkedAt  schema.Time `db:"parked_at"`
}

func (c command) key() saga.Key { return saga.Key{Type: c.SagaType, ID: c.SagaID} }

func (c command) metadata() saga.Metadata {
	var m saga.Metadata
	if c.Metadata != nil {
		_ = json.Unmarshal([]byte(*c.Metadata), &m) // an object of strings, as the outbox writes it
	}
	return m
}

// inOrder sorts commands of one step: by saga, for sagas run in parallel, and within a saga as they were sent.
func inOrder(a, b command) int {
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt.Time), compareKeys(a.key(), b.key()), cmp.Compare(a.Seq, b.Seq))
}

func compareKeys(a, b saga.Key) int {
	return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.ID, b.ID))
}

// look reads the store; a store that cannot be read ends the test.
func (s *stage) look() snapshot {
	s.t.Helper()
	shot, err := s.read(knife.Spared(context.WithoutCancel(s.ctx())))
	if err != nil {
		s.t.Fatalf("sagatest: read the store: %v", err)
	}
	return shot
}

func (s *stage) read(ctx context.Context) (snapshot, error) {
	shot := snapshot{map[saga.Key]saga.Instance{}, map[deadline.Key]deadline.Pending{}, map[string]command{}, map[saga.Key][]Association{}}
	for i, err := range s.engine.Instances(ctx, saga.Query{}) {
		if err != nil {
			return shot, err
		}
		shot.sagas[i.Key] = i
	}
	var deadlines []deadline.Pending
	err := s.db.Select(ctx, &deadlines, `SELECT saga_type, saga_id, name, public_id, token, due_at, next_at, payload_type, payload,
		attempts, last_error, parked_at FROM {deadline}`)
	if err != nil {
		return shot, err
	}
	for _, d := range deadlines {
		shot.deadlines[d.Key] = d
	}
	var commands []command
	err = s.db.Select(ctx, &commands, `SELECT seq, command_id, saga_type, saga_id, type, payload, metadata, attempts, last_error,
		created_at, parked_at FROM {command}`)
	if err != nil {
		return shot, err
	}
	for _, c := range commands {
		shot.commands[c.ID] = c
	}
	return shot, s.readAssociations(ctx, shot)
}

func (s *stage) readAssociations(ctx context.Context, shot snapshot) error {
	var rows []struct {
		Type     string `db:"saga_type"`
		ID       string `db:"saga_id"`
		Property string
		Value    string
	}
	err := s.db.Select(ctx, &rows, `SELECT saga_type, saga_id, property, value FROM {association} WHERE NOT ended
		ORDER BY saga_type, saga_id, property, value`)
	for _, r := range rows {
		key := saga.Key{Type: r.Type, ID: r.ID}
		shot.associations[key] = append(shot.associations[key], Association{r.Property, r.Value})
	}
	return err
}

// keys are those of the sagas of a type, sorted.
func (shot snapshot) keys(sagaType string) []saga.Key {
	var keys []saga.Key
	for key := range shot.sagas {
		if key.Type == sagaType {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, compareKeys)
	return keys
}

// waiting are the commands that are neither delivered nor parked, in order.
func (shot snapshot) waiting() []command {
	var waiting []command
	for _, c := range shot.commands {
		if c.ParkedAt.IsZero() {
			waiting = append(waiting, c)
		}
	}
	slices.SortFunc(waiting, inOrder)
	return waiting
}
