package saga

import (
	"reflect"
	"slices"
)

// State is the type S of the sagas' states.
func (d *Definition) State() reflect.Type { return d.state }

// Starts are the properties that name a new saga of the type, each once: the first [By] of every [Start],
// whose value becomes the saga's id.
func (d *Definition) Starts() []string {
	var properties []string
	for _, r := range d.order {
		if r.start != nil && !slices.Contains(properties, r.start.by[0]) {
			properties = append(properties, r.start.by[0])
		}
	}
	return properties
}
