package sagatest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
)

// Given hands events to the sagas, one after the other. Deadlines that are due at once fire in the next step that lets
// time pass.
func (f *Fixture[S]) Given(events ...any) {
	f.stage.t.Helper()
	for _, event := range events {
		f.stage.given(described(event), func() error { return f.stage.handle(event) })
	}
}

// GivenState stores a live saga, written by the engine as if an event had just started it. It has the association that
// such an event would give it, its start property with the id, and the others named here. A type that several
// properties start has the first of them.
func (f *Fixture[S]) GivenState(id string, state S, also ...Association) {
	f.stage.t.Helper()
	key := saga.Key{Type: f.stage.kit.sagaType, ID: id}
	f.stage.given("state of "+key.String(), func() error { return plant(f.stage, key, state, also) })
}

// planting is the event that stores a given state.
type planting struct{}

func plant[S any](s *stage, key saga.Key, state S, also []Association) error {
	starts := s.kit.definition.Starts()
	if len(starts) == 0 {
		return errors.New("the type has no saga.Start, so there is no saga of it")
	}
	if _, exists := s.seen.sagas[key]; exists {
		return errors.New("the saga exists already")
	}
	d, err := saga.Define[S](key.Type, saga.Start(func(into *S, _ planting, associations saga.Associations) {
		*into = state
		for _, a := range also {
			associations.Add(a.Property, a.Value)
		}
	}, saga.By(starts[0])))
	if err != nil {
		return err
	}
	planter, err := saga.New(s.db, saga.Config{Names: s.kit.names, Now: s.engine.Now, Logger: s.log}, d)
	if err != nil {
		return err
	}
	defer planter.Close()
	return planter.Handle(s.ctx(), planting{}, saga.WithMetadata(saga.Metadata{starts[0]: key.ID}))
}

// GivenDeadline stores a pending deadline of the saga, replacing one of that name, without any of its handlers.
// opts are those of saga.Deadlines: a payload, a public id.
func (s *Scope[S]) GivenDeadline(name string, after time.Duration, opts ...deadline.Option) {
	s.stage.t.Helper()
	key := s.one()
	s.stage.given(fmt.Sprintf("deadline %s of %s", name, key), func() error { return s.stage.arm(key, After(name, after, opts...)) })
}

func (s *stage) arm(key saga.Key, d Deadline) error {
	op := d.operation(s.engine.Now)
	if op.Err != nil {
		return op.Err
	}
	if !s.handles(op.Name) {
		return fmt.Errorf("%s has no saga.OnDeadline for it", key.Type)
	}
	row := deadline.New{Key: deadline.Key{Type: key.Type, ID: key.ID, Name: op.Name}, Token: rand.Text(), PublicID: op.PublicID, Due: op.Due}
	if row.PublicID == "" {
		row.PublicID = deadline.DefaultPublicID(row.Key)
	}
	if op.HasPayload {
		name, text, err := s.engine.Types().Encode(op.Payload)
		if err != nil {
			return err
		}
		row.PayloadType, row.Payload = &name, &text
	}
	var b schema.Batch
	deadline.NewStore(s.db).Put(&b, []deadline.New{row})
	return s.db.Tx(s.ctx(), func(ctx context.Context, tx *schema.Tx) error {
		_, err := tx.Run(ctx, &b)
		return err
	})
}

func (s *stage) handles(name string) bool {
	return slices.Contains(s.kit.definition.Deadlines(), name)
}

// GivenTimePasses lets time pass as [Fixture.WhenTimePasses] does.
func (f *Fixture[S]) GivenTimePasses(d time.Duration) {
	f.stage.t.Helper()
	until := f.stage.after(d)
	f.stage.given(fmt.Sprintf("%v pass", d), func() error {
		f.stage.t.Helper()
		return f.stage.advance(until)
	})
}
