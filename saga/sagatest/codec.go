package sagatest

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/norn-go/norn/saga"
)

// Codec checks that a codec of one's own keeps what norn stores with it. t goes on after a failure, so that all
// violations show at once. Run it under the race detector.
//
//   - What is stored comes back equal: integers of any size, also beyond 64 bits; floats to the last bit; decimals;
//     bytes; times; strings with NUL and with every rune there is, as values and as keys of maps; a json.Number in a
//     field of type any as a json.Number of the same digits; pointers, slices and maps in each other.
//   - The text is UTF-8 without NUL.
//   - What cannot be kept is an error of Marshal and no panic, such as a channel. Strings that are not UTF-8, NaN and
//     infinities may be kept or refused, but are never changed into something else.
//   - A text that is not a whole value is an error of Unmarshal: none, half of one, or two.
//   - Marshal does not write again into a text that it gave away, and Unmarshal keeps no part of the text that it was given,
//     nor changes it.
//   - All that is true also when many goroutines use the codec at once.
func Codec(t testing.TB, codec saga.Codec) {
	t.Helper()
	c := &codecCheck{t, codec}
	for name, value := range faithful() {
		c.keeps(name, value)
	}
	for name, value := range questionable() {
		c.keepsOrRefuses(name, value)
	}
	for name, value := range map[string]any{"a channel": make(chan int), "a function in a field": struct{ F func() }{func() {}}} {
		if text, err := c.marshal(value); err == nil {
			t.Errorf("sagatest: codec: %s is no error of Marshal: it gave %q", name, text)
		}
	}
	c.refusesParts()
	c.sharesNothing()
	c.worksInParallel()
}

type codecCheck struct {
	t     testing.TB
	codec saga.Codec
}

func (c *codecCheck) marshal(v any) (text []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			c.t.Errorf("sagatest: codec: Marshal of a %T panics: %v", v, r)
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return c.codec.Marshal(v)
}

func (c *codecCheck) unmarshal(text []byte, into any) (err error) {
	defer func() {
		if r := recover(); r != nil {
			c.t.Errorf("sagatest: codec: Unmarshal of %s panics: %v", excerpt(text), r)
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return c.codec.Unmarshal(text, into)
}

// keeps checks a value that every codec must keep.
func (c *codecCheck) keeps(name string, want stored) bool {
	c.t.Helper()
	text, err := c.marshal(want)
	if err != nil {
		c.t.Errorf("sagatest: codec: %s: Marshal: %v", name, err)
		return false
	}
	return c.compare(name, text, want)
}

// keepsOrRefuses checks a value that a codec may refuse.
func (c *codecCheck) keepsOrRefuses(name string, want stored) {
	c.t.Helper()
	if text, err := c.marshal(want); err == nil {
		c.compare(name, text, want)
	}
}

func (c *codecCheck) compare(name string, text []byte, want stored) bool {
	c.t.Helper()
	switch {
	case !utf8.Valid(text):
		c.t.Errorf("sagatest: codec: %s: the text is not UTF-8: %s", name, excerpt(text))
	case bytes.IndexByte(text, 0) >= 0:
		c.t.Errorf("sagatest: codec: %s: the text contains NUL: %s", name, excerpt(text))
	}
	var got stored
	if err := c.unmarshal(text, &got); err != nil {
		c.t.Errorf("sagatest: codec: %s: Unmarshal of %s: %v", name, excerpt(text), err)
		return false
	}
	field := loss(got, want)
	if field != "" {
		c.t.Errorf("sagatest: codec: %s does not come back as it went: %s, stored as %s", name, field, excerpt(text))
	}
	return field == ""
}

func (c *codecCheck) refusesParts() {
	c.t.Helper()
	text, err := c.marshal(stored{Text: "whole", Int: 7, List: []string{"a", "b"}})
	if err != nil {
		return // reported above
	}
	for name, part := range map[string][]byte{
		"no text at all": {}, "half of a text": text[:len(text)/2], "two texts in one": append(bytes.Clone(text), text...),
	} {
		var got stored
		if err := c.unmarshal(part, &got); err == nil {
			c.t.Errorf("sagatest: codec: %s is no error of Unmarshal: %s", name, excerpt(part))
		}
	}
}

func (c *codecCheck) sharesNothing() {
	c.t.Helper()
	want := stored{Text: "first", Any: "first", Bytes: []byte("first"), List: []string{"first"}}
	text, err := c.marshal(want)
	if err != nil {
		return // reported above
	}
	before := bytes.Clone(text)
	if _, err := c.marshal(stored{Text: "other", Any: "other", Bytes: []byte("other"), List: []string{"other"}}); err == nil && !bytes.Equal(before, text) {
		c.t.Errorf("sagatest: codec: Marshal writes into the text that it gave before: %s", excerpt(text))
	}
	var got stored
	given := bytes.Clone(before)
	if err := c.unmarshal(given, &got); err != nil {
		return // reported above
	}
	if !bytes.Equal(given, before) {
		c.t.Errorf("sagatest: codec: Unmarshal changes the text that it is given: %s, was %s", excerpt(given), excerpt(before))
	}
	for i := range given {
		given[i] = '#'
	}
	if field := loss(got, want); field != "" {
		c.t.Errorf("sagatest: codec: Unmarshal keeps a part of the text that it was given: changed afterwards, %s", field)
	}
}

func (c *codecCheck) worksInParallel() {
	c.t.Helper()
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for j := range 50 {
				want := fmt.Sprint(i, "-", j, strings.Repeat("x", i*j))
				if !c.keeps("a value beside others", stored{Text: want, Map: map[string]any{want: want}}) {
					return
				}
			}
		})
	}
	group.Wait()
}

// excerpt is text short enough for a failure.
func excerpt(text []byte) string {
	const most = 120
	if len(text) > most {
		return fmt.Sprintf("%q…", text[:most])
	}
	return fmt.Sprintf("%q", text)
}
