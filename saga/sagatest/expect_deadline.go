package sagatest

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/norn-go/norn/deadline"
)

// ExpectOnlyDeadlines expects that exactly these deadlines are pending, earlier ones included; none given: none at all.
// Names, due times and payloads are compared, public ids only of those that are given one, tokens never. Parked
// deadlines count.
func (s *Scope[S]) ExpectOnlyDeadlines(deadlines ...Deadline) {
	s.stage.t.Helper()
	s.stage.expect()
	s.only("the pending deadlines are not those expected", deadlines, s.pending())
}

// ExpectOnlyNewDeadlines expects that of the pending deadlines exactly these were scheduled by the act, anew or for the
// first time. They are compared as in [Scope.ExpectOnlyDeadlines].
func (s *Scope[S]) ExpectOnlyNewDeadlines(deadlines ...Deadline) {
	s.stage.t.Helper()
	s.stage.expect()
	old := func(d deadline.Pending) bool { return s.stage.act.base.deadlines[d.Key].Token == d.Token }
	s.only("the new deadlines are not those expected", deadlines, slices.DeleteFunc(s.pending(), old))
}

// ExpectDeadline expects that this deadline is pending, whatever else is. It is compared as in [Scope.ExpectOnlyDeadlines].
func (s *Scope[S]) ExpectDeadline(d Deadline) {
	s.stage.t.Helper()
	s.contains("a deadline is not pending", d, func(want, got time.Time) bool { return want.Equal(got) })
}

// ExpectDeadlineNotBefore is [Scope.ExpectDeadline] for a deadline that may be due later too.
func (s *Scope[S]) ExpectDeadlineNotBefore(d Deadline) {
	s.stage.t.Helper()
	s.contains("a deadline is not pending, or due too early", d, func(want, got time.Time) bool { return !got.Before(want) })
}

// ExpectCancelled expects that the act removed exactly the deadlines of these names before they fired: by cancelling
// them, or by ending their saga.
func (s *Scope[S]) ExpectCancelled(names ...string) {
	s.stage.t.Helper()
	s.stage.expect()
	var got []string
	for _, key := range s.stage.act.cancelled {
		if s.holds(owner(key)) {
			got = append(got, key.Name)
		}
	}
	s.stage.compare("the cancelled deadlines are not those expected", slices.Sorted(slices.Values(names)), slices.Sorted(slices.Values(got)))
}

// pending are the scope's deadlines in due order.
func (s *Scope[S]) pending() []deadline.Pending {
	var pending []deadline.Pending
	for _, key := range sortedDeadlines(s.stage.seen.deadlines) {
		if s.holds(owner(key)) {
			pending = append(pending, s.stage.seen.deadlines[key])
		}
	}
	slices.SortStableFunc(pending, func(a, b deadline.Pending) int { return a.Due.Compare(b.Due.Time) })
	return pending
}

// only fails unless each wanted deadline is one of those found, and all of them are wanted.
func (s *Scope[S]) only(what string, deadlines []Deadline, found []deadline.Pending) {
	s.stage.t.Helper()
	var lines []string
	var missing []wanted
	for _, w := range s.stage.wanted(deadlines) {
		i := slices.IndexFunc(found, func(d deadline.Pending) bool { return w.is(d) && w.due.Equal(d.Due.Time) })
		if i < 0 {
			missing = append(missing, w)
			continue
		}
		lines = append(lines, "  both      "+w.text())
		found = slices.Delete(found, i, i+1)
	}
	if len(missing)+len(found) == 0 {
		return
	}
	for _, w := range missing {
		got := nothing
		if i := slices.IndexFunc(found, func(d deadline.Pending) bool { return d.Name == w.name }); i >= 0 {
			got = w.beside(found[i])
			found = slices.Delete(found, i, i+1)
		}
		lines = append(lines, beside(w.text(), got)...)
	}
	for _, d := range found {
		lines = append(lines, beside(nothing, pendingText(d))...)
	}
	s.stage.fail(what, lines...)
}

func (s *Scope[S]) contains(what string, d Deadline, due func(want, got time.Time) bool) {
	s.stage.t.Helper()
	s.stage.expect()
	w := s.stage.wanted([]Deadline{d})[0]
	var got []string
	for _, p := range s.pending() {
		if w.is(p) && due(w.due, p.Due.Time) {
			return
		}
		got = append(got, w.beside(p))
	}
	s.stage.fail(what, beside(w.text(), cmp.Or(strings.Join(got, "\n"), nothing))...)
}

// wanted is an expected deadline as it would be stored.
type wanted struct {
	name, publicID       string
	due                  time.Time
	payloadType, payload *string
}

func (s *stage) wanted(deadlines []Deadline) []wanted {
	s.t.Helper()
	out := make([]wanted, len(deadlines))
	for i, d := range deadlines {
		op := d.operation(s.engine.Now)
		if op.Err != nil {
			s.t.Fatalf("sagatest: an expected deadline cannot be: %v", op.Err)
		}
		out[i] = wanted{name: op.Name, publicID: op.PublicID, due: op.Due}
		if !op.HasPayload {
			continue
		}
		name, text, err := s.engine.Types().Encode(op.Payload)
		if err != nil {
			s.t.Fatalf("sagatest: the payload of an expected deadline cannot be stored: %v", err)
		}
		out[i].payloadType, out[i].payload = &name, &text
	}
	slices.SortStableFunc(out, func(a, b wanted) int { return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.name, b.name)) })
	return out
}

// is compares all but the due time.
func (w wanted) is(d deadline.Pending) bool {
	return w.name == d.Name && (w.publicID == "" || w.publicID == d.PublicID) && same(w.payloadType, d.PayloadType) && same(w.payload, d.Payload)
}

func same(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

func (w wanted) text() string {
	text := deadlineText(w.name, w.due, w.payloadType, w.payload)
	if w.publicID != "" {
		text += " as " + w.publicID
	}
	return text
}

// beside is a pending deadline as it stands beside w.
func (w wanted) beside(d deadline.Pending) string {
	text := pendingText(d)
	if w.publicID != "" {
		text += " as " + d.PublicID
	}
	return text
}
