package saga_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/schema/schematest"
)

// Scripts that the model was, or would be, surprised by.
var foundScripts = map[string][]step{
	"a deadline rescheduled between its selection and its claim does not fire": {
		handles{Node: "a", Event: happening{"Begin", "1", nil, "e1", moves{{schedules, "t", 10 * time.Second}}}},
		ticks{10 * time.Second},
		overtaken{At: 1, By: happening{"Next", "1", nil, "e2", moves{{schedules, "t", 60 * time.Second}}}},
	},
	"a process killed before any of its statements leaves all or nothing": everywhere(fault{Die: true}),
	"a process killed after any of its statements leaves all or nothing":  everywhere(fault{Die: true, After: true}),
	"a connection cut before any of its statements leaves all or nothing": everywhere(fault{}),
	"a connection cut after any of its statements leaves all or nothing":  everywhere(fault{After: true}),
	"an event that lost its association between the match and the lock is not handled": {
		handles{Node: "a", Event: happening{"Begin", "1", nil, "e1", moves{{adds, "x", 0}}}},
		overtaken{
			Event: &happening{"Next", "", []string{"x"}, "e2", moves{{sends, "", 0}}}, At: 1,
			By: happening{"Next", "1", nil, "e3", moves{{removes, "x", 0}, {sends, "", 0}}},
		},
	},
	"of two sweeps that meet one failure one counts it": {
		handles{Node: "a", Event: happening{"Begin", "1", nil, "e1", moves{{schedules, "t", 10 * time.Second}}}},
		breaks{"t", true},
		ticks{10 * time.Second},
		outpaced{1},
	},
	"a deadline that repeats itself fires once in two sweeps": {
		handles{Node: "a", Event: happening{"Begin", "1", nil, "e1", moves{{schedules, "u", 10 * time.Second}}}},
		ticks{10 * time.Second},
		outpaced{1},
	},
	"an end takes what is pending and what it is found by": {
		handles{Node: "a", Event: happening{"Begin", "1", nil, "e1", moves{{schedules, "t", 10 * time.Second}, {adds, "x", 0}}}},
		handles{Node: "a", Event: happening{"Next", "1", nil, "e2", moves{{ends, "", 0}}}},
		handles{Node: "a", Event: happening{"Begin", "1", nil, "e3", moves{{sends, "", 0}}}},
		handles{Node: "a", Event: happening{"Again", "1", nil, "e4", moves{{sends, "", 0}}}},
	},
	"a command that fails is not lost": {
		handles{Node: "a", Event: happening{"Begin", "1", nil, "e1", moves{{sends, "", 0}, {sends, "", 0}}}},
		breaks{"sink 1", true},
		delivers{Node: "a"},
		breaks{"sink 1", false},
		ticks{10 * time.Second},
		delivers{Node: "b"},
	},
	"two sweeps at once wait for each other's lock of the file": {
		rivals{},
	},
}

// everywhere lets events, sweeps and deliveries meet the fault at each of their statements.
func everywhere(f fault) (steps []step) {
	steps = append(steps, handles{Node: "a", Event: happening{"Begin", "1", nil, "e0", nil}})
	for f.At = 1; f.At <= 12; f.At++ {
		event := happening{"Next", "1", nil, fmt.Sprintf("e%d", f.At), moves{{schedules, "u", 5 * time.Second}, {schedules, "t", 10 * time.Second}, {sends, "", 0}}}
		steps = append(steps, handles{"a", event, f}, ticks{10 * time.Second}, sweeps{"a", f}, delivers{"a", f})
	}
	return steps
}

func TestFoundScriptsEndAsTheirModelSays(t *testing.T) {
	for _, database := range schematest.Databases {
		at := newPlace(t, database)
		for name, script := range foundScripts {
			t.Run(database+"/"+name, func(t *testing.T) { require.NoError(t, inBubble(t, at, script)) })
		}
	}
}
