package saga

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"unicode/utf8"
)

// Naming is the stable name of a stored type, for [Define] or [Config].Names.
type Naming struct {
	t       reflect.Type
	name    string
	aliases []string
}

// Named gives T the name under which its values are stored, instead of package.Type, and the names it
// had before: rows under an alias are read as T. For a saga's state type the name must be the saga
// type's, and the aliases are names that the saga type had.
func Named[T any](name string, aliases ...string) Naming {
	return Naming{reflect.TypeFor[T](), name, aliases}
}

func (n Naming) apply(d *Definition) { d.namings = append(d.namings, n) }

// Types knows the stored types by name and encodes their values. It is safe for concurrent use.
type Types struct {
	codec  Codec
	mu     sync.Mutex
	byType map[reflect.Type][]string
	byName map[string]reflect.Type
}

// NewTypes makes a registry; every name that two types claim is reported.
func NewTypes(codec Codec, namings ...Naming) (*Types, error) {
	t := &Types{codec: codec, byType: map[reflect.Type][]string{}, byName: map[string]reflect.Type{}}
	var errs []error
	for _, n := range namings {
		errs = append(errs, t.register(n.t, append([]string{n.name}, n.aliases...)))
	}
	return t, errors.Join(errs...)
}

func (t *Types) register(typ reflect.Type, names []string) error {
	if old, ok := t.byType[typ]; ok && !slices.Equal(old, names) {
		return fmt.Errorf("saga: type %v is named %q and %q", typ, old, names)
	}
	for _, name := range names {
		if err := checkName("type name", name); err != nil {
			return fmt.Errorf("saga: type %v: %w", typ, err)
		}
		if other, ok := t.byName[name]; ok && other != typ {
			return fmt.Errorf("saga: types %s and %s are both named %q: give one another name with saga.Named", full(other), full(typ), name)
		}
	}
	t.byType[typ] = names
	for _, name := range names {
		t.byName[name] = typ
	}
	return nil
}

func full(t reflect.Type) string {
	if t.Name() == "" {
		return t.String()
	}
	return t.PkgPath() + "." + t.Name()
}

// Names returns the names of a type, the one it is stored under first. An unnamed type is named
// package.Type; if another type has that name already it is an error.
func (t *Types) Names(typ reflect.Type) ([]string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if names, ok := t.byType[typ]; ok {
		return names, nil
	}
	names := []string{typ.String()}
	return names, t.register(typ, names)
}

// Encode turns a value into the name of its type and its stored text. A pointer counts as its value.
func (t *Types) Encode(v any) (name, text string, err error) {
	value := reflect.ValueOf(v)
	for value.Kind() == reflect.Pointer && !value.IsNil() {
		value = value.Elem()
	}
	if !value.IsValid() || value.Kind() == reflect.Pointer {
		return "", "", errors.New("saga: encode: the value is nil")
	}
	names, err := t.Names(value.Type())
	if err != nil {
		return "", "", err
	}
	text, err = t.encodeState(value.Interface())
	if err != nil {
		return "", "", fmt.Errorf("saga: encode %s: %w", names[0], err)
	}
	return names[0], text, nil
}

func (t *Types) encodeState(v any) (string, error) {
	data, err := t.codec.Marshal(v)
	if err != nil {
		return "", err
	}
	if !utf8.Valid(data) || slices.Contains(data, 0) {
		return "", errors.New("the codec's result is not UTF-8 text without NUL")
	}
	return string(data), nil
}

// Decode reads a stored text into the value that into points to.
func (t *Types) Decode(data []byte, into any) error { return t.codec.Unmarshal(data, into) }
