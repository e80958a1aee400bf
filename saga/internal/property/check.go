package property

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Check refuses a path that leads to values of t which can be no association, such as a float. A
// path that leads nowhere is no mistake here: the value may stand in the metadata.
func Check(t reflect.Type, path string) error {
	for _, segment := range strings.Split(path, "/") {
		if segment == "" {
			return fmt.Errorf("property %q: an empty name", path)
		}
	}
	if err := check(t, strings.Split(path, "/")); err != nil {
		return fmt.Errorf("property %q: %w", path, err)
	}
	return nil
}

func check(t reflect.Type, path []string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if len(path) == 0 {
		return checkValue(t)
	}
	switch t.Kind() {
	case reflect.Struct:
		if index := field(t, path[0]); index != nil {
			return check(t.FieldByIndex(index).Type, path[1:])
		}
	case reflect.Map:
		return check(t.Elem(), path[1:])
	case reflect.Slice, reflect.Array:
		return check(t.Elem(), path)
	}
	return nil
}

func checkValue(t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Implements(textMarshaler) || reflect.PointerTo(t).Implements(textMarshaler) {
		return nil
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map:
		return checkValue(t.Elem())
	case reflect.String, reflect.Bool, reflect.Interface,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return nil
	}
	return fmt.Errorf("a %v is no association value: want a string, an integer, a bool or an encoding.TextMarshaler", t)
}

func sortByText(keys []reflect.Value) {
	slices.SortFunc(keys, func(a, b reflect.Value) int {
		return strings.Compare(fmt.Sprint(a.Interface()), fmt.Sprint(b.Interface()))
	})
}
