package deadline

import (
	"fmt"
	"time"

	"github.com/norn-go/norn/schema"
)

// Key is whose deadline it is: at most one is pending for each.
type Key struct {
	Type string `db:"saga_type"`
	ID   string `db:"saga_id"`
	Name string `db:"name"`
}

// String is the key as it stands in logs and errors.
func (k Key) String() string { return fmt.Sprintf("%s/%s/%s", k.Type, k.ID, k.Name) }

// Kind is what a build must know to fire a deadline.
type Kind struct{ Type, Name string }

// String is the kind as it stands in logs.
func (k Kind) String() string { return k.Type + ": " + k.Name }

// Due is a deadline that a sweep found. Whether it is still pending, only [Store.Claim] tells.
type Due struct {
	Key
	Token    string
	At       schema.Time `db:"due_at"`
	NextAt   schema.Time `db:"next_at"` // the due time at first, later that of the next attempt
	Attempts int         // failures so far
}

// New is a deadline about to be stored.
type New struct {
	Key
	Token       string // new for each, so that a claim tells this one from all before it
	PublicID    string
	Due         time.Time
	PayloadType *string
	Payload     *string
}

// Claimed is a deadline that was removed to be fired.
type Claimed struct {
	Due
	PublicID    string  `db:"public_id"`
	PayloadType *string `db:"payload_type"`
	Payload     *string
}

// Pending is a stored deadline as it is read, parked ones included.
type Pending struct {
	Key
	PublicID    string      `db:"public_id"`
	Token       string      // changes whenever the deadline is scheduled anew
	Due         schema.Time `db:"due_at"`
	NextAt      schema.Time `db:"next_at"` // when it is tried next
	PayloadType *string     `db:"payload_type"`
	Payload     *string     // encoded
	Attempts    int         // failures so far
	LastError   *string     `db:"last_error"`
	ParkedAt    schema.Time `db:"parked_at"` // zero: not parked
}

// DefaultPublicID is a deadline's public id unless one is given: a stable function of its key.
func DefaultPublicID(k Key) string { return schema.StableID(k.Type, k.ID, k.Name) }
