package config

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// Validator is what the struct of a [Section], or a struct within it, may implement to check more than kinds.
type Validator interface{ Validate() error }

// Section returns a constructor of the application's settings under key, such as "payment" or "payment.gateway". T is
// a struct. A field is named by its `config` or `mapstructure` tag ("-": not a setting), else by its own name in lower
// kebab-case: MaxRetries is payment.max-retries in the file and PAYMENT_MAX_RETRIES in the environment, whether or not
// the file has it. A nested struct is a map of settings; an embedded one adds its fields to those around. A `default:"…"` tag is
// written as in the environment; without one an absent field is zero, and an absent pointer nil.
//
// Fields are booleans, numbers, text, time.Duration (with a unit), anything that implements
// encoding.TextUnmarshaler, pointers to those, nested structs, slices (in the environment: separated by commas) and
// maps from text (names keep their spelling; not in the environment).
//
// The constructor reports all mistakes at once: a T that cannot be read, unknown keys under key, values of the wrong
// kind, and what the Validate methods of T and of the structs within it return. Nothing is cached: each call reads the
// environment anew.
func Section[T any](key string) func(*Source) (*T, error) {
	return func(s *Source) (*T, error) {
		var settings T
		if err := s.section(strings.ToLower(key), reflect.ValueOf(&settings).Elem()); err != nil {
			return nil, err
		}
		return &settings, nil
	}
}

func (s *Source) section(key string, v reflect.Value) error {
	switch first, _, _ := strings.Cut(key, "."); {
	case v.Kind() != reflect.Struct:
		return fmt.Errorf("config: section %s: got the type %s, want a struct", key, v.Type())
	case key == "" || strings.Contains("."+key+".", ".."):
		return fmt.Errorf("config: section %q: want a key such as payment", key)
	case first == "saga" || first == "database":
		return fmt.Errorf("config: section %s: this part of the settings is norn's own, want another key", key)
	}
	leaves, errs := leavesOf(key, v)
	sh := shape{kinds: make(map[string]string), open: make(map[string]bool)}
	for _, l := range leaves {
		sh.kinds[l.key] = kindOf(l.value.Type())
		sh.open[l.key] = composite(l.value.Type())
	}
	misplaced := make(map[string]bool)
	for _, f := range s.misfits([]string{key}, sh) {
		misplaced[f.key] = true
		errs = append(errs, f.err(s.origin(f.key)))
	}
	for _, l := range leaves {
		errs = append(errs, s.fill(l, misplaced[l.key])...)
	}
	return errors.Join(append(errs, validated(key, v)...)...)
}

// fill stores the default of l, then what is set, unless that is misplaced.
func (s *Source) fill(l leaf, misplaced bool) []error {
	var errs []error
	if l.standard != nil {
		for _, f := range assign(l.key, l.value, *l.standard, true) {
			errs = append(errs, f.err("the default in the struct"))
		}
	}
	raw, parsed := s.lookup(l.key)
	if !parsed && composite(l.value.Type()) {
		raw = s.written.at(l.key)
	}
	if raw == nil || misplaced {
		return errs
	}
	for _, f := range assign(l.key, l.value, raw, parsed) {
		errs = append(errs, f.err(s.origin(l.key)))
	}
	return errs
}

// validated calls the Validate methods of v and of the structs within it.
func validated(key string, v reflect.Value) []error {
	var errs []error
	for _, f := range fieldsOf(v) {
		if f.nested() && !f.embedded {
			errs = append(errs, validated(key+"."+f.name, f.value)...)
		}
	}
	if check, ok := v.Addr().Interface().(Validator); ok {
		if err := check.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("config: %s: %w", key, err))
		}
	}
	return errs
}
