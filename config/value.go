package config

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// durationType and textType are the types that are not read by their kind.
var (
	durationType = reflect.TypeFor[time.Duration]()
	textType     = reflect.TypeFor[encoding.TextUnmarshaler]()
)

const longestShown = 60

// kindOf names the values a type accepts.
func kindOf(t reflect.Type) string {
	switch {
	case t == durationType:
		return "duration with a unit"
	case reflect.PointerTo(t).Implements(textType):
		return "text of a " + t.String()
	}
	switch t.Kind() {
	case reflect.Pointer:
		return kindOf(t.Elem())
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "whole number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "whole number, not negative"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Slice:
		return "list"
	case reflect.Map, reflect.Struct:
		return "map"
	default:
		return "text"
	}
}

// describe shows a value that was found, shortened.
func describe(got any) string {
	switch v := got.(type) {
	case nil:
		return "nothing"
	case string:
		if len(v) > longestShown {
			return fmt.Sprintf("%q…", strings.ToValidUTF8(v[:longestShown], ""))
		}
		return strconv.Quote(v)
	case []any:
		return "a list"
	case map[string]any, map[any]any:
		return "a map"
	case time.Duration:
		return format(v)
	case time.Time:
		return "the date " + v.Format(time.RFC3339)
	default:
		return fmt.Sprint(v)
	}
}

// errKind means that a value is of another kind than the setting; its text, if any, is a hint how to mend it.
type errKind string

func (e errKind) Error() string { return string(e) }

const (
	errUnit   errKind = ": it needs a unit, for example 30s"
	errQuotes errKind = ": put it in quotes"
	errQuoted errKind = ": remove the quotes"
	errRange  errKind = ": it is out of range"
	errNone   errKind = ""
)

// scalar stores raw in v, a settable value that is no list, map or plain struct. Text from the environment is parsed;
// what comes from a file must be of the right kind already.
func scalar(v reflect.Value, raw any, parsed bool) error {
	switch {
	case v.Kind() == reflect.Pointer:
		target := reflect.New(v.Type().Elem())
		if err := scalar(target.Elem(), raw, parsed); err != nil {
			return err
		}
		v.Set(target)
		return nil
	case v.Type() == durationType:
		return duration(v, raw)
	case v.Addr().Type().Implements(textType):
		return text(v, raw)
	case parsed:
		return parse(v, raw.(string))
	}
	return typed(v, raw)
}

func duration(v reflect.Value, raw any) error {
	written, ok := raw.(string)
	if !ok {
		if reflect.ValueOf(raw).CanInt() || reflect.ValueOf(raw).CanUint() || reflect.ValueOf(raw).CanFloat() {
			return errUnit
		}
		return errNone
	}
	if _, err := strconv.ParseFloat(written, 64); err == nil {
		return errUnit
	}
	d, err := time.ParseDuration(written)
	if err != nil {
		return errKind(": write for example 30s, 5m or 168h")
	}
	v.SetInt(int64(d))
	return nil
}

func text(v reflect.Value, raw any) error {
	if date, ok := raw.(time.Time); ok && v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(date))
		return nil
	}
	written, ok := raw.(string)
	if !ok {
		return errQuotes
	}
	if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(written)); err != nil {
		return errKind(": " + err.Error())
	}
	return nil
}

func parse(v reflect.Value, written string) error {
	switch {
	case v.Kind() == reflect.String:
		v.SetString(written)
	case v.Kind() == reflect.Bool:
		if written != "true" && written != "false" {
			return errNone
		}
		v.SetBool(written == "true")
	case v.CanInt():
		n, err := strconv.ParseInt(written, 10, v.Type().Bits())
		return number(err, func() { v.SetInt(n) })
	case v.CanUint():
		n, err := strconv.ParseUint(written, 10, v.Type().Bits())
		return number(err, func() { v.SetUint(n) })
	case v.CanFloat():
		f, err := strconv.ParseFloat(written, v.Type().Bits())
		if err == nil && (math.IsNaN(f) || math.IsInf(f, 0)) {
			return errRange
		}
		return number(err, func() { v.SetFloat(f) })
	}
	return nil
}

func number(err error, store func()) error {
	switch {
	case errors.Is(err, strconv.ErrRange):
		return errRange
	case err != nil:
		return errNone
	}
	store()
	return nil
}

func typed(v reflect.Value, raw any) error {
	got := reflect.ValueOf(raw)
	switch {
	case v.Kind() == reflect.String && got.Kind() == reflect.String:
		v.SetString(got.String())
	case v.Kind() == reflect.Bool && got.Kind() == reflect.Bool:
		v.SetBool(got.Bool())
	case v.CanInt() && got.CanInt() && !v.OverflowInt(got.Int()):
		v.SetInt(got.Int())
	case v.CanUint() && got.CanUint() && !v.OverflowUint(got.Uint()):
		v.SetUint(got.Uint())
	case v.CanUint() && got.CanInt() && got.Int() >= 0 && !v.OverflowUint(uint64(got.Int())):
		v.SetUint(uint64(got.Int()))
	case v.CanFloat() && got.CanFloat():
		return float(v, got.Float())
	case v.CanFloat() && got.CanInt():
		return float(v, float64(got.Int()))
	default:
		return mismatch(v, got)
	}
	return nil
}

func float(v reflect.Value, f float64) error {
	if math.IsNaN(f) || math.IsInf(f, 0) || v.OverflowFloat(f) {
		return errRange
	}
	v.SetFloat(f)
	return nil
}

func mismatch(v, got reflect.Value) error {
	number := got.CanInt() || got.CanUint() || got.CanFloat()
	switch {
	case v.Kind() == reflect.String && (number || got.Kind() == reflect.Bool || got.Type() == reflect.TypeFor[time.Time]()):
		return errQuotes
	case (v.CanInt() || v.CanUint()) && (got.CanInt() || got.CanUint()):
		return errRange
	case v.Kind() != reflect.String && got.Kind() == reflect.String:
		probe := reflect.New(v.Type()).Elem()
		if parse(probe, got.String()) == nil {
			return errQuoted
		}
	}
	return errNone
}
