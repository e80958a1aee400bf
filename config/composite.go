package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// assign stores raw in v, which may be a list or a map, and reports each part that does not fit with its own key.
func assign(key string, v reflect.Value, raw any, parsed bool) []fault {
	switch {
	case composite(v.Type()) && v.Kind() == reflect.Slice:
		return assignList(key, v, raw, parsed)
	case composite(v.Type()):
		return assignMap(key, v, raw)
	case plainStruct(v.Type()):
		return assignStruct(key, v, raw)
	}
	var mend errKind
	if raw == nil || errors.As(scalar(v, raw, parsed), &mend) {
		return []fault{unfit(key, raw, v.Type(), string(mend))}
	}
	return nil
}

func unfit(key string, raw any, t reflect.Type, hint string) fault {
	return fault{key, fmt.Sprintf("got %s, want %s%s", describe(raw), kindOf(t), hint)}
}

func assignList(key string, v reflect.Value, raw any, parsed bool) []fault {
	var items []any
	switch written := raw.(type) {
	case []any:
		items = written
	case string:
		if !parsed {
			return []fault{unfit(key, raw, v.Type(), "")}
		}
		for item := range strings.SplitSeq(written, ",") {
			items = append(items, strings.TrimSpace(item))
		}
		if strings.TrimSpace(written) == "" {
			items = nil
		}
	default:
		return []fault{unfit(key, raw, v.Type(), "")}
	}
	var faults []fault
	list := reflect.MakeSlice(v.Type(), len(items), len(items))
	for i, item := range items {
		faults = append(faults, assign(fmt.Sprintf("%s[%d]", key, i), list.Index(i), item, parsed)...)
	}
	v.Set(list)
	return faults
}

func assignMap(key string, v reflect.Value, raw any) []fault {
	written, ok := mapping(raw)
	if !ok {
		return []fault{unfit(key, raw, v.Type(), "; it is set in the file only")}
	}
	var faults []fault
	filled := reflect.MakeMapWithSize(v.Type(), len(written))
	for _, name := range slices.Sorted(maps.Keys(written)) {
		value := reflect.New(v.Type().Elem()).Elem()
		faults = append(faults, assign(key+"."+name, value, written[name], false)...)
		filled.SetMapIndex(reflect.ValueOf(name).Convert(v.Type().Key()), value)
	}
	v.Set(filled)
	return faults
}

// assignStruct fills a struct within a list or a map.
func assignStruct(key string, v reflect.Value, raw any) []fault {
	written, ok := mapping(raw)
	if !ok {
		return []fault{unfit(key, raw, v.Type(), "; it is set in the file only")}
	}
	written = maps.Clone(written)
	names, faults := assignFields(key, v, written)
	for _, name := range slices.Sorted(maps.Keys(written)) {
		faults = append(faults, fault{key + "." + name, "is no setting" + suggestion(name, names)})
	}
	if check, ok := v.Addr().Interface().(Validator); ok {
		if err := check.Validate(); err != nil {
			faults = append(faults, fault{key, err.Error()})
		}
	}
	return faults
}

// assignFields takes what the fields of v use out of written, and returns the fields' names.
func assignFields(key string, v reflect.Value, written map[string]any) (names []string, faults []fault) {
	for _, f := range fieldsOf(v) {
		if f.embedded {
			inner, wrong := assignFields(key, f.value, written)
			names, faults = append(names, inner...), append(faults, wrong...)
			continue
		}
		names = append(names, f.name)
		if f.standard != nil {
			faults = append(faults, assign(key+"."+f.name, f.value, *f.standard, true)...)
		}
		for _, name := range slices.Sorted(maps.Keys(written)) {
			if strings.ToLower(name) == f.name {
				faults = append(faults, assign(key+"."+f.name, f.value, written[name], false)...)
				delete(written, name)
				break
			}
		}
	}
	return names, faults
}
