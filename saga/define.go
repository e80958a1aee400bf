package saga

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Definition is a saga type: its name, its state type and its handlers. It is immutable once [Define]
// returned it.
type Definition struct {
	name      string
	aliases   []string
	state     reflect.Type
	events    map[reflect.Type]*route
	order     []*route
	deadlines map[string]*handler
	namings   []Naming
	errs      []error
}

// route is what a saga type does with one event type.
type route struct {
	def       *Definition
	event     reflect.Type
	start, on *handler
}

// Option is a part of a saga type's definition: [Start], [On], [OnFunc], [OnDeadline] or [Named].
type Option interface{ apply(*Definition) }

type optionFunc func(*Definition)

func (f optionFunc) apply(d *Definition) { f(d) }

// Define puts a saga type together. All mistakes are reported at once, each with the handler it is in and the mend.
func Define[S any](name string, opts ...Option) (*Definition, error) {
	d := &Definition{name: name, state: reflect.TypeFor[S](), events: map[reflect.Type]*route{}, deadlines: map[string]*handler{}}
	if err := checkName("saga type", name); err != nil {
		d.fail("%w", err)
	}
	if d.state.Kind() != reflect.Struct {
		d.fail("the state type %v is not a struct", d.state)
	} else if err := storable(d.state, true); err != nil {
		d.fail("the state type %v cannot be stored: %w", d.state, err)
	}
	for _, opt := range opts {
		opt.apply(d)
	}
	d.takeAliases()
	if len(d.events) == 0 && len(d.errs) == 0 {
		d.fail("no event handler: add saga.Start(…)")
	}
	if len(d.errs) > 0 {
		return nil, errors.Join(d.errs...)
	}
	return d, nil
}

// MustDefine is [Define] for package variables: it panics on a mistake.
func MustDefine[S any](name string, opts ...Option) *Definition {
	d, err := Define[S](name, opts...)
	if err != nil {
		panic(err)
	}
	return d
}

// Name is the saga type's name.
func (d *Definition) Name() string { return d.name }

// Deadlines are the names of the deadlines that the type handles, sorted.
func (d *Definition) Deadlines() []string { return slices.Sorted(maps.Keys(d.deadlines)) }

// Services are the types that handlers inject and that the application must provide, each once.
func (d *Definition) Services() []reflect.Type {
	var types []reflect.Type
	for h := range d.handlers() {
		for _, t := range h.services {
			if !slices.Contains(types, t) {
				types = append(types, t)
			}
		}
	}
	return types
}

// Names are the type's name and those it had before ([Named] with aliases).
func (d *Definition) Names() []string { return append([]string{d.name}, d.aliases...) }

func (d *Definition) fail(format string, args ...any) {
	d.errs = append(d.errs, fmt.Errorf("saga: %s: %w", shown(d.name), fmt.Errorf(format, args...)))
}

// shown is a name as it stands in errors: quoted and cut if it is none.
func shown(name string) string {
	if checkName("", name) == nil {
		return name
	}
	return fmt.Sprintf("%.40q", name)
}

// takeAliases moves a naming of the state type, which names the saga type, out of the others.
func (d *Definition) takeAliases() {
	var others []Naming
	for _, n := range d.namings {
		if n.t != d.state {
			others = append(others, n)
			continue
		}
		if n.name != d.name {
			d.fail("the state type is named %q: want the saga type's name", n.name)
		}
		d.aliases = append(d.aliases, n.aliases...)
	}
	for _, alias := range d.aliases {
		if err := checkName("alias", alias); err != nil {
			d.fail("%w", err)
		}
	}
	d.namings = others
}

// checkName refuses names that are no names: SEMANTICS 1.1.
func checkName(what, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%s is empty", what)
	case len(name) > 255:
		return fmt.Errorf("%s of %d bytes is longer than 255", what, len(name))
	case !utf8.ValidString(name):
		return fmt.Errorf("%s %q is not UTF-8", what, name)
	case strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("%s %q has control characters", what, name)
	}
	return nil
}

// handlers are all handlers of the type, in a stable order.
func (d *Definition) handlers() iter.Seq[*handler] {
	return func(yield func(*handler) bool) {
		for _, r := range d.order {
			for _, h := range []*handler{r.start, r.on} {
				if h != nil && !yield(h) {
					return
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(d.deadlines)) {
			if !yield(d.deadlines[name]) {
				return
			}
		}
	}
}
