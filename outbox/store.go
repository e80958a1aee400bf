package outbox

import (
	"database/sql"
	"encoding/json"
	"time"

	"github.com/norn-go/norn/schema"
)

// Store reads and writes the command table.
type Store struct{ db *schema.DB }

// NewStore makes a store on d.
func NewStore(d *schema.DB) *Store { return &Store{d} }

// New is a command about to be stored.
type New struct {
	ID               string // unique among the commands not yet delivered
	SagaType, SagaID string
	Type             string // the stable name of its type
	Payload          string // encoded
	Metadata         map[string]string
	Created          time.Time // due at once from here on
}

// Put adds to b the commands, which are delivered per saga in the order of the slice and of the
// transactions that put them. An id that still waits or is parked fails the batch with a
// [schema.DuplicateError].
func (s *Store) Put(b *schema.Batch, commands []New) {
	if len(commands) == 0 {
		return
	}
	rows := make(schema.Rows, len(commands))
	for i, c := range commands {
		rows[i] = []any{c.ID, c.SagaType, c.SagaID, c.Type, c.Payload, encodeMetadata(c.Metadata), schema.Microseconds(c.Created)}
	}
	b.Add(`INSERT INTO {command} (command_id, saga_type, saga_id, type, payload, metadata, created_at, next_at)
		SELECT id, saga_type, saga_id, type, payload, metadata, created, created
		FROM {rows id text, saga_type text, saga_id text, type text, payload text, metadata text, created time}
		ORDER BY ord`, rows)
}

func encodeMetadata(m map[string]string) sql.NullString {
	if len(m) == 0 {
		return sql.NullString{}
	}
	text, err := json.Marshal(m)
	if err != nil {
		panic(err) // strings always encode
	}
	return sql.NullString{String: string(text), Valid: true}
}
