// Package property reads the values at a path of a message, as text.
package property

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// Values returns the texts at a slash-separated path of v: each segment is a map key, a JSON name or,
// without a JSON tag, the Go field name ignoring case (SEMANTICS 3.9). Slices and maps count element by
// element, on the way and at the end; missing and empty values are left out (3.11, 3.12).
func Values(v any, path string) ([]string, error) {
	var out []string
	err := walk(reflect.ValueOf(v), strings.Split(path, "/"), &out)
	if err != nil {
		return nil, fmt.Errorf("property %q: %w", path, err)
	}
	return out, nil
}

func walk(v reflect.Value, path []string, out *[]string) error {
	v = value(v)
	if !v.IsValid() {
		return nil
	}
	if len(path) == 0 {
		return collect(v, out)
	}
	switch v.Kind() {
	case reflect.Struct:
		if index := field(v.Type(), path[0]); index != nil {
			if inner, err := v.FieldByIndexErr(index); err == nil {
				return walk(inner, path[1:], out)
			}
		}
	case reflect.Map:
		if v.Type().Key().Kind() == reflect.String {
			return walk(v.MapIndex(reflect.ValueOf(path[0]).Convert(v.Type().Key())), path[1:], out)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if err := walk(v.Index(i), path, out); err != nil {
				return err
			}
		}
	}
	return nil
}

func collect(v reflect.Value, out *[]string) error {
	v = value(v)
	if !v.IsValid() {
		return nil
	}
	text, single, err := text(v)
	if err != nil {
		return err
	}
	if single {
		if text != "" {
			*out = append(*out, text)
		}
		return nil
	}
	switch v.Kind() {
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if err := collect(v.Index(i), out); err != nil {
				return err
			}
		}
		return nil
	case reflect.Map:
		for _, key := range sortedKeys(v) {
			if err := collect(v.MapIndex(key), out); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("a %v is no association value: want a string, an integer, a bool or an encoding.TextMarshaler", v.Type())
}

// text is the value as text, if it is a single one.
func text(v reflect.Value) (text string, single bool, err error) {
	if m, ok := marshaler(v); ok {
		b, err := m.MarshalText()
		return string(b), true, err
	}
	switch v.Kind() {
	case reflect.String:
		return v.String(), true, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10), true, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return strconv.FormatUint(v.Uint(), 10), true, nil
	case reflect.Bool:
		return strconv.FormatBool(v.Bool()), true, nil
	}
	return "", false, nil
}

func marshaler(v reflect.Value) (encoding.TextMarshaler, bool) {
	if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		return m, true
	}
	if !reflect.PointerTo(v.Type()).Implements(textMarshaler) {
		return nil, false
	}
	p := reflect.New(v.Type())
	p.Elem().Set(v)
	return p.Interface().(encoding.TextMarshaler), true
}

var textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()

// value looks through pointers and interfaces; an invalid result is a nil on the way.
func value(v reflect.Value) reflect.Value {
	for v.IsValid() && (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) {
		v = v.Elem()
	}
	return v
}

type fieldKey struct {
	t       reflect.Type
	segment string
}

var fields sync.Map // fieldKey → []int; segments are those of definitions, so there are few

// field is the index of the field that a segment means, nil if there is none.
func field(t reflect.Type, segment string) []int {
	key := fieldKey{t, segment}
	if index, ok := fields.Load(key); ok {
		return index.([]int)
	}
	index := findField(t, segment)
	fields.Store(key, index)
	return index
}

func findField(t reflect.Type, segment string) []int {
	var byName []int
	for _, f := range reflect.VisibleFields(t) {
		if !f.IsExported() {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "" && strings.EqualFold(f.Name, segment):
			byName = f.Index
		case name != "" && name != "-" && name == segment:
			return f.Index
		}
	}
	return byName
}

func sortedKeys(v reflect.Value) []reflect.Value {
	keys := v.MapKeys()
	sortByText(keys)
	return keys
}
