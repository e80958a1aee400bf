package saga_test

import (
	"fmt"
	"strings"
)

// happening is an event of the model: Begin, Again or Next, with its id and what its handler does.
type happening struct {
	Kind  string
	Saga  string
	Tags  []string
	Event string
	Moves moves
}

func (h happening) String() string {
	fields := []string{}
	if h.Saga != "" {
		fields = append(fields, fmt.Sprintf("ID: %q", h.Saga))
	}
	if len(h.Tags) > 0 {
		fields = append(fields, fmt.Sprintf("Tag: %q", h.Tags))
	}
	return fmt.Sprintf("%s{%s}, %q, func() { %s }", h.Kind, strings.Join(fields, ", "), h.Event, h.Moves)
}

// event is what the engine gets.
func (h happening) event() any {
	do := h.Moves.act(h.Event)
	switch h.Kind {
	case "Begin":
		return Begin{ID: h.Saga, Do: do}
	case "Again":
		return Again{ID: h.Saga, Do: do}
	}
	return Next{ID: h.Saga, Tag: h.Tags, Do: do}
}
