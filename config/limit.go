package config

import (
	"fmt"
	"math"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// limit says which values of a kind are accepted.
type limit[T any] struct {
	says  string
	holds func(T) bool
}

var (
	either      = limit[bool]{"", func(bool) bool { return true }}
	positive    = limit[time.Duration]{"more than 0s", func(d time.Duration) bool { return d > 0 }}
	notNegative = limit[time.Duration]{"at least 0s", func(d time.Duration) bool { return d >= 0 }}
	span        = limit[time.Duration]{"at least 1ms", func(d time.Duration) bool { return d >= time.Millisecond }}
	poolSize    = limit[int]{"0 or at least 4", func(n int) bool { return n == 0 || n >= 4 && n <= math.MaxInt32 }}
	fraction    = limit[float64]{"at least 0 and below 1", func(f float64) bool { return f >= 0 && f < 1 }}

	leaseName = limit[string]{"at most 200 bytes of UTF-8 without control characters", func(name string) bool {
		return len(name) <= 200 && utf8.ValidString(name) && strings.IndexFunc(name, unicode.IsControl) < 0
	}}

	databaseURL = limit[string]{"sqlite://FILE or postgres://USER@HOST/NAME", func(address string) bool {
		scheme, rest, ok := strings.Cut(address, "://")
		switch {
		case address == "":
			return true
		case !ok || rest == "":
			return false
		case scheme == "sqlite":
			return true
		}
		_, err := url.Parse(address)
		return err == nil && (scheme == "postgres" || scheme == "postgresql")
	}}
)

func between(least, most int) limit[int] {
	says := fmt.Sprintf("at least %d", least)
	if most != math.MaxInt32 {
		says = fmt.Sprintf("from %d to %d", least, most)
	}
	return limit[int]{says, func(n int) bool { return n >= least && n <= most }}
}

func oneOf(values ...string) limit[string] {
	return limit[string]{strings.Join(values, " or "), func(got string) bool {
		for _, value := range values {
			if got == value {
				return true
			}
		}
		return false
	}}
}

// redacted is a database URL without the values that may be secrets. An "@" behind the host may be a part of a password
// that was not escaped: nothing of such a URL is shown. The rules are those of schema.Redacted, which is out of reach here.
func redacted(address string) string {
	if address == "" {
		return ""
	}
	scheme, rest, ok := strings.Cut(address, "://")
	base, query, asked := strings.Cut(address, "?")
	if scheme != "sqlite" {
		u, err := url.Parse(base)
		end := strings.IndexAny(rest, "/?#")
		if !ok || err != nil || end >= 0 && strings.Contains(rest[end:], "@") {
			return "(not shown)"
		}
		base = u.Redacted()
	}
	if !asked {
		return base
	}
	parts := strings.Split(query, "&")
	for i, part := range parts {
		name, _, _ := strings.Cut(part, "=")
		if secretParameter(name) {
			parts[i] = name + "=xxxxx"
		}
	}
	return base + "?" + strings.Join(parts, "&")
}

func secretParameter(name string) bool {
	plain, err := url.QueryUnescape(strings.ToLower(name))
	if err != nil {
		return true
	}
	for _, word := range []string{"pass", "secret", "key", "token"} {
		if strings.Contains(plain, word) {
			return true
		}
	}
	return false
}
