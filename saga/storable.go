package saga

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
)

// storable refuses types that no codec can store or, if they must come back, none can read as they were.
func storable(t reflect.Type, back bool) error {
	return storability{back: back, whole: back, home: t.PkgPath(), seen: map[reflect.Type]bool{}}.check(t)
}

var losses sync.Map // reflect.Type → error or nil

// lossless refuses types of which encoding/json would leave out a part without a word.
func lossless(t reflect.Type) error {
	if known, ok := losses.Load(t); ok {
		err, _ := known.(error)
		return err
	}
	err := storability{whole: true, home: t.PkgPath(), seen: map[reflect.Type]bool{}}.check(t)
	losses.Store(t, err)
	return err
}

type storability struct {
	back  bool   // values must decode
	whole bool   // with all their fields
	home  string // the package of the type in question, whose fields its author can export
	seen  map[reflect.Type]bool
}

func (s storability) check(t reflect.Type) error {
	if s.seen[t] {
		return nil
	}
	s.seen[t] = true
	if m := implemented(t, marshalers); m >= 0 {
		if s.back && implemented(t, unmarshalers) < 0 {
			return fmt.Errorf("a %v encodes itself by %v and does not decode: implement %v", t, marshalers[m], unmarshalers[m])
		}
		return nil
	}
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer, reflect.Uintptr:
		return fmt.Errorf("a %v does not encode", t)
	case reflect.Interface:
		if s.back && t.NumMethod() > 0 && implemented(t, unmarshalers) < 0 {
			return fmt.Errorf("a %v does not decode: nothing stored tells which type it was", t)
		}
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return s.check(t.Elem())
	case reflect.Map:
		return errors.Join(s.checkKey(t.Key()), s.check(t.Elem()))
	case reflect.Struct:
		return s.checkFields(t)
	}
	return nil
}

func (s storability) checkFields(t reflect.Type) error {
	var errs []error
	for i := range t.NumField() {
		f := t.Field(i)
		switch {
		case f.Tag.Get("json") == "-" || f.Name == "_":
			continue
		case !visible(f) && s.whole && t.PkgPath() != s.home && t.Name() != "":
			return fmt.Errorf("a %v has unexported fields, which are not stored: tag the field json:\"-\", or give its type a MarshalJSON and an UnmarshalJSON", t)
		case !visible(f) && s.whole:
			errs = append(errs, fmt.Errorf("field %s is unexported and is not stored: export it, or tag it json:\"-\"", f.Name))
			continue
		case !visible(f):
			continue
		}
		if err := s.check(f.Type); err != nil {
			errs = append(errs, fmt.Errorf("field %s: %w", f.Name, err))
		}
	}
	return errors.Join(errs...)
}

// visible reports whether encoding/json looks at a field: it is exported, or an embedded struct, whose fields may be.
func visible(f reflect.StructField) bool {
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return f.IsExported() || f.Anonymous && t.Kind() == reflect.Struct
}

func (s storability) checkKey(t reflect.Type) error {
	switch t.Kind() {
	case reflect.String, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return nil
	}
	if t.Implements(marshalers[1]) && (!s.back || reflect.PointerTo(t).Implements(unmarshalers[1])) {
		return nil
	}
	return fmt.Errorf("a map key %v does not encode", t)
}

var (
	marshalers   = []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()}
	unmarshalers = []reflect.Type{reflect.TypeFor[json.Unmarshaler](), reflect.TypeFor[encoding.TextUnmarshaler]()}
)

// implemented is which of the interfaces values of t have by themselves or by their address, -1 if none.
func implemented(t reflect.Type, interfaces []reflect.Type) int {
	for i, m := range interfaces {
		if t.Implements(m) || reflect.PointerTo(t).Implements(m) {
			return i
		}
	}
	return -1
}
