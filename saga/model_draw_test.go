package saga_test

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"
)

// drawScript draws a script; its parts shrink on their own.
func drawScript(t *rapid.T) []step {
	var steps []step
	parts := rapid.Map(rapid.SliceOfN(rapid.Custom(drawStep), 0, 12), func(steps []step) part { return steps })
	for i := range 4 {
		steps = slices.Concat(steps, parts.Draw(t, fmt.Sprintf("part %d", i)))
	}
	return named(steps)
}

// part is a part of a script; it is printed as a whole, by its failure.
type part []step

// GoString keeps a drawn part out of the log.
func (p part) GoString() string { return fmt.Sprintf("%d steps", len(p)) }

// named gives each event its id, and each redelivery the event of before.
func named(steps []step) []step {
	var past []happening
	name := func(h happening) happening {
		h.Event = fmt.Sprintf("e%d", len(past)+1)
		past = append(past, h)
		return h
	}
	var out []step
	for _, s := range steps {
		switch v := s.(type) {
		case handles:
			v.Event = name(v.Event)
			s = v
		case redelivers:
			if len(past) == 0 {
				continue
			}
			s = handles{v.Node, past[v.Which%len(past)], v.Fault}
		case together:
			v.A, v.B = name(v.A), name(v.B)
			s = v
		case overtaken:
			if v.Event != nil {
				event := name(*v.Event)
				v.Event = &event
			}
			v.By = name(v.By)
			s = v
		}
		out = append(out, s)
	}
	return out
}

// redelivers stands for an event of before, until it is named.
type redelivers struct {
	Node  string
	Which int
	Fault fault
	step
}

func drawStep(t *rapid.T) step {
	kinds := []string{
		"handle", "handle", "handle", "handle", "handle", "handle", "tick", "tick", "tick", "sweep", "sweep", "flush", "flush",
		"redeliver", "redeliver", "break", "together", "overtaken", "overtaken", "overtaken", "rivals", "outpaced", "operate", "restart",
	}
	switch rapid.SampledFrom(kinds).Draw(t, "step") {
	case "tick":
		return ticks{time.Duration(rapid.SampledFrom([]int{10, 60, 5, 1, -3}).Draw(t, "seconds")) * time.Second}
	case "sweep":
		return sweeps{drawNode(t), drawFault(t)}
	case "flush":
		return delivers{drawNode(t), drawFault(t)}
	case "redeliver":
		return redelivers{Node: drawNode(t), Which: rapid.IntRange(0, 5).Draw(t, "which"), Fault: drawFault(t)}
	case "break":
		what := rapid.SampledFrom([]string{"t", "u", "v", "parcel", "sink 1", "sink 2"}).Draw(t, "what")
		return breaks{what, rapid.Bool().Draw(t, "broken")}
	case "together":
		return together{drawHappening(t, false, 0), drawHappening(t, false, 0)}
	case "overtaken":
		return drawOvertaken(t)
	case "rivals":
		return rivals{}
	case "outpaced":
		return outpaced{rapid.IntRange(1, 3).Draw(t, "at")}
	case "operate":
		verb := rapid.SampledFrom([]string{"Retry", "CancelDeadline", "FireNow"}).Draw(t, "verb")
		return operates{drawNode(t), verb, drawSaga(t), rapid.SampledFrom(deadlineNames).Draw(t, "name")}
	case "restart":
		return restarts{drawNode(t)}
	}
	return handles{drawNode(t), drawHappening(t, true, 0), drawFault(t)}
}

// drawOvertaken draws what a sweep or an event meets between its look at the tables and its transaction.
func drawOvertaken(t *rapid.T) step {
	s := overtaken{At: rapid.IntRange(1, 3).Draw(t, "at")}
	if rapid.Bool().Draw(t, "event") {
		event := drawHappening(t, true, 0)
		s.Event = &event
		s.By = drawHappening(t, false, 0)
		return s
	}
	s.By = happening{Kind: "Next", Saga: drawSaga(t)}
	verbs := []verb{schedules, schedules, schedules, cancels, sends, ends}
	s.By.Moves = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) move { return drawMove(t, verbs, time.Second) }), 1, 4).Draw(t, "moves")
	return s
}

func drawNode(t *rapid.T) string { return rapid.SampledFrom([]string{"a", "b"}).Draw(t, "node") }
func drawSaga(t *rapid.T) string { return rapid.SampledFrom([]string{"1", "1", "2"}).Draw(t, "saga") }

func drawFault(t *rapid.T) fault {
	if rapid.IntRange(0, 2).Draw(t, "faulty") < 2 {
		return fault{}
	}
	return fault{rapid.IntRange(1, 12).Draw(t, "at"), rapid.Bool().Draw(t, "after"), rapid.Bool().Draw(t, "die")}
}

// drawHappening draws an event; one that is not tagged is of one saga alone.
func drawHappening(t *rapid.T, tagged bool, soonest time.Duration) happening {
	kind := rapid.SampledFrom([]string{"Begin", "Next", "Next", "Again"}).Draw(t, "event")
	h := happening{Kind: kind, Saga: drawSaga(t)}
	if kind == "Next" && tagged {
		h.Tags = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"x", "y"}), 0, 2, rapid.ID).Draw(t, "tags")
		if len(h.Tags) > 0 && rapid.Bool().Draw(t, "tags only") {
			h.Saga = ""
		}
	}
	h.Moves = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) move { return drawMove(t, allVerbs, soonest) }), 0, 4).Draw(t, "moves")
	return h
}

var allVerbs = []verb{schedules, schedules, schedules, schedules, schedules, schedules, sends, sends, cancels, adds, removes, ends, refuses, panics}

func drawMove(t *rapid.T, verbs []verb, soonest time.Duration) move {
	m := move{Verb: rapid.SampledFrom(verbs).Draw(t, "verb")}
	switch m.Verb {
	case schedules:
		after := time.Duration(rapid.SampledFrom([]int{1, 5, 0, 10, 60, -5}).Draw(t, "after")) * time.Second
		m.After = max(after, soonest)
		m.Name = rapid.SampledFrom(deadlineNames).Draw(t, "name")
	case cancels:
		m.Name = rapid.SampledFrom(deadlineNames).Draw(t, "name")
	case adds, removes:
		m.Name = rapid.SampledFrom([]string{"x", "y"}).Draw(t, "tag")
	}
	return m
}
