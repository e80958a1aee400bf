package saga

import "slices"

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
