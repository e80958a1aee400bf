package outbox

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/norn-go/norn/retry"
	"github.com/norn-go/norn/schema"
)

// row is a row of the command table.
type row struct {
	Seq       int64
	CommandID string `db:"command_id"`
	saga
	Type      string `db:"type"`
	Payload   string
	Metadata  *string
	CreatedAt schema.Time `db:"created_at"`
	Attempts  int
	NextAt    schema.Time `db:"next_at"`
	LastError *string     `db:"last_error"`
	ParkedAt  schema.Time `db:"parked_at"`
}

const rowColumns = `seq, command_id, saga_type, saga_id, type, payload, metadata, created_at, attempts, next_at, last_error, parked_at`

// command is what r holds, without metadata and with an error marked permanent if those are broken.
func (r row) command() (Command, error) {
	c := Command{
		ID: r.CommandID, Type: r.Type, Payload: []byte(r.Payload), SagaType: r.saga.Type, SagaID: r.saga.ID,
		Created: r.CreatedAt.Time, Attempt: r.Attempts + 1,
	}
	if r.Metadata == nil {
		return c, nil
	}
	if err := json.Unmarshal([]byte(*r.Metadata), &c.Metadata); err != nil {
		c.Metadata = nil
		return c, retry.Permanent(fmt.Errorf("outbox: metadata of command %s: %w", c.ID, err))
	}
	return c, nil
}

// waiting is a command that was read to be delivered.
type waiting struct {
	Command
	seq      int64
	attempts int
	nextAt   time.Time
	broken   error // what keeps it from being delivered at all
}
