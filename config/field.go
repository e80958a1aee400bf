package config

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"
)

// field is a field of a section's struct.
type field struct {
	name     string // empty: embedded, or not a setting
	embedded bool
	value    reflect.Value
	standard *string
}

// leaf is a field that holds one setting.
type leaf struct {
	key      string
	value    reflect.Value
	standard *string
}

// fieldsOf returns the settings of a struct; those of embedded structs come as they are, flattened by the caller.
func fieldsOf(v reflect.Value) []field {
	var fields []field
	for i := range v.NumField() {
		t := v.Type().Field(i)
		name, squash := fieldName(t)
		embedded := plainStruct(t.Type) && (squash || t.Anonymous && name == "")
		if name == "-" || !t.IsExported() && !embedded {
			continue
		}
		f := field{name: strings.ToLower(name), embedded: embedded, value: v.Field(i)}
		if f.name == "" {
			f.name = kebab(t.Name)
		}
		if text, ok := t.Tag.Lookup("default"); ok {
			f.standard = &text
		}
		fields = append(fields, f)
	}
	return fields
}

func fieldName(t reflect.StructField) (name string, squash bool) {
	tag, ok := t.Tag.Lookup("config")
	if !ok {
		tag = t.Tag.Get("mapstructure")
	}
	name, options, _ := strings.Cut(tag, ",")
	return name, strings.Contains(","+options+",", ",squash,")
}

// nested reports whether f is a map of settings rather than one setting.
func (f field) nested() bool { return plainStruct(f.value.Type()) }

func plainStruct(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && !reflect.PointerTo(t).Implements(textType)
}

// composite reports whether a setting of type t may be written as a list or a map.
func composite(t reflect.Type) bool {
	return (t.Kind() == reflect.Slice || t.Kind() == reflect.Map) && !reflect.PointerTo(t).Implements(textType)
}

// leavesOf collects the settings beneath key, and the reasons why the type cannot be read.
func leavesOf(key string, v reflect.Value) ([]leaf, []error) {
	var leaves []leaf
	var errs []error
	taken := make(map[string]string)
	var collect func(key string, v reflect.Value)
	collect = func(key string, v reflect.Value) {
		for _, f := range fieldsOf(v) {
			at := key + "." + f.name
			switch {
			case f.embedded:
				collect(key, f.value)
				continue
			case f.nested():
				collect(at, f.value)
				continue
			}
			if other, ok := taken[envName(at)]; ok {
				errs = append(errs, fmt.Errorf("config: %s: has the environment variable %s in common with %s; rename one field", at, envName(at), other))
			}
			taken[envName(at)] = at
			if problem := unreadable(f.value.Type(), nil); problem != nil {
				errs = append(errs, fmt.Errorf("config: %s: no setting can be of the type %s; leave the field out with `config:\"-\"`", at, problem))
				continue
			}
			leaves = append(leaves, leaf{at, f.value, f.standard})
		}
	}
	collect(key, v)
	return leaves, errs
}

// unreadable returns the part of t that no setting can fill, nil if there is none.
func unreadable(t reflect.Type, around []reflect.Type) reflect.Type {
	for _, outer := range around {
		if outer == t {
			return nil
		}
	}
	around = append(around, t)
	if reflect.PointerTo(t).Implements(textType) {
		return nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		if plainStruct(t.Elem()) || composite(t.Elem()) || t.Elem().Kind() == reflect.Pointer {
			return t
		}
		return unreadable(t.Elem(), around)
	case reflect.Slice:
		return unreadable(t.Elem(), around)
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return t
		}
		return unreadable(t.Elem(), around)
	case reflect.Struct:
		for _, f := range fieldsOf(reflect.New(t).Elem()) {
			if problem := unreadable(f.value.Type(), around); problem != nil {
				return problem
			}
		}
		return nil
	case reflect.Array, reflect.Chan, reflect.Func, reflect.Interface, reflect.UnsafePointer, reflect.Complex64, reflect.Complex128, reflect.Uintptr, reflect.Invalid:
		return t
	default:
		return nil
	}
}

// kebab writes a Go name as a key: MaxRetries is max-retries, APIKey is api-key.
func kebab(name string) string {
	runes := []rune(name)
	var b strings.Builder
	for i, r := range runes {
		if unicode.IsUpper(r) && i > 0 {
			wordEnds := !unicode.IsUpper(runes[i-1])
			wordBegins := i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if runes[i-1] != '_' && (wordEnds || wordBegins) {
				b.WriteByte('-')
			}
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
