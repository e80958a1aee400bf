package saga_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
)

// beginning is when a model's time begins.
var beginning = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// view is all that is stored, as sorted lines, to compare the engine's tables with the model.
type view []string

func (v *view) add(format string, args ...any) { *v = append(*v, fmt.Sprintf(format, args...)) }

func (v view) sorted() view {
	slices.Sort(v)
	return v
}

// of are the lines of one saga.
func (v view) of(id string) (lines view) {
	for _, line := range v {
		if _, rest, _ := strings.Cut(line, " "); strings.HasPrefix(rest, id) {
			lines = append(lines, line)
		}
	}
	return lines
}

// view is what the tables must hold.
func (m *model) view() view {
	var v view
	for id, s := range m.sagas {
		v.add("saga %s: ended %t, version %d, count %d", id, s.ended, s.version, s.count)
		v.add("association %s: id=%s, ended %t", id, id, s.ended)
		for tag := range s.tags {
			v.add("association %s: tag=%s, ended false", id, tag)
		}
		for event := range s.seen {
			v.add("event %s: %s", id, event)
		}
		for name, d := range s.deadlines {
			v.add("deadline %s/%s: due %v, next %v, attempts %d, parked %t, payload %s", id, name, d.due, d.next, d.attempts, d.parked, d.payload)
		}
		for i, c := range s.waiting {
			v.add("command %s.%d: %s, attempts %d, parked %t", id, i, c.text, c.attempts, c.parked)
		}
		if len(s.delivered) > 0 {
			v.add("delivered %s: %s", id, strings.Join(s.delivered, " "))
		}
	}
	return v.sorted()
}

// look reads what the tables hold, and what the sink got.
func look(ctx context.Context, db *schema.DB, got *deliveries) (view, error) {
	var v view
	for _, read := range []func(context.Context, *schema.DB, *view) error{lookAtSagas, lookAtAssociations, lookAtDeadlines, lookAtCommands} {
		if err := read(ctx, db, &v); err != nil {
			return nil, fmt.Errorf("look: %w", err)
		}
	}
	delivered, err := got.delivered()
	for id, texts := range delivered {
		v.add("delivered %s: %s", id, strings.Join(texts, " "))
	}
	return v.sorted(), err
}

func lookAtSagas(ctx context.Context, db *schema.DB, v *view) error {
	var rows []struct {
		ID      string `db:"saga_id"`
		State   string
		Version int
		Status  string
	}
	err := db.Select(ctx, &rows, "SELECT saga_id, state, version, status FROM {instance}")
	for _, r := range rows {
		var state Story
		if err := (saga.JSON{}).Unmarshal([]byte(r.State), &state); err != nil {
			return err
		}
		v.add("saga %s: ended %t, version %d, count %d", r.ID, r.Status == "ended", r.Version, state.Count)
	}
	return err
}

func lookAtAssociations(ctx context.Context, db *schema.DB, v *view) error {
	var rows []struct {
		ID       string `db:"saga_id"`
		Property string
		Value    string
		Ended    bool
	}
	err := db.Select(ctx, &rows, "SELECT saga_id, property, value, ended FROM {association}")
	for _, r := range rows {
		v.add("association %s: %s=%s, ended %t", r.ID, r.Property, r.Value, r.Ended)
	}
	if err != nil {
		return err
	}
	var events []struct {
		ID    string `db:"saga_id"`
		Event string `db:"event_id"`
	}
	err = db.Select(ctx, &events, "SELECT saga_id, event_id FROM {event}")
	for _, e := range events {
		v.add("event %s: %s", e.ID, e.Event)
	}
	return err
}

func lookAtDeadlines(ctx context.Context, db *schema.DB, v *view) error {
	var rows []struct {
		ID       string `db:"saga_id"`
		Name     string
		Due      schema.Time `db:"due_at"`
		Next     schema.Time `db:"next_at"`
		Attempts int
		Parked   schema.Time `db:"parked_at"`
		Payload  string
	}
	err := db.Select(ctx, &rows, "SELECT saga_id, name, due_at, next_at, attempts, parked_at, payload FROM {deadline}")
	for _, r := range rows {
		var payload Parcel
		if err := (saga.JSON{}).Unmarshal([]byte(r.Payload), &payload); err != nil {
			return err
		}
		v.add("deadline %s/%s: due %v, next %v, attempts %d, parked %t, payload %s", r.ID, r.Name,
			r.Due.Sub(beginning), r.Next.Sub(beginning), r.Attempts, !r.Parked.IsZero(), payload.Text)
	}
	return err
}

func lookAtCommands(ctx context.Context, db *schema.DB, v *view) error {
	var rows []struct {
		ID       string `db:"saga_id"`
		Payload  string
		Attempts int
		Parked   schema.Time `db:"parked_at"`
	}
	err := db.Select(ctx, &rows, "SELECT saga_id, payload, attempts, parked_at FROM {command} ORDER BY seq")
	place := map[string]int{}
	for _, r := range rows {
		var n Note
		if err := (saga.JSON{}).Unmarshal([]byte(r.Payload), &n); err != nil {
			return err
		}
		v.add("command %s.%d: %s, attempts %d, parked %t", r.ID, place[r.ID], n.Text, r.Attempts, !r.Parked.IsZero())
		place[r.ID]++
	}
	return err
}

// differ lists what is missing and what is too much.
func differ(want, got view) string {
	var b strings.Builder
	for _, line := range want {
		if !slices.Contains(got, line) {
			fmt.Fprintf(&b, "  want %s\n", line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			fmt.Fprintf(&b, "  got  %s\n", line)
		}
	}
	return b.String()
}
