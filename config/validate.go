package config

import (
	"errors"
	"fmt"
	"strings"
)

// Validate reports every value that norn cannot work with, each with its key, in one joined error.
func (c Config) Validate() error {
	var errs []error
	for _, f := range c.faults(nil) {
		errs = append(errs, f.err(""))
	}
	return errors.Join(errs...)
}

// fault is one mistake, and the key to mend.
type fault struct{ key, text string }

func (f fault) err(from string) error {
	if from != "" {
		from = " (" + from + ")"
	}
	return fmt.Errorf("config: %s%s: %s", f.key, from, f.text)
}

// faults checks everything but the keys in unread, whose values could not be read.
func (c Config) faults(unread map[string]bool) []fault {
	var faults []fault
	bad := make(map[string]bool)
	for _, s := range settings() {
		if unread[s.Name] || s.holds(c) {
			bad[s.Name] = unread[s.Name]
			continue
		}
		bad[s.Name] = true
		faults = append(faults, s.refuse(s.field(&c).Interface(), ""))
	}
	for _, r := range rules {
		if text := r.broken(c); text != "" && !bad[r.key] && !bad[r.other] {
			faults = append(faults, fault{r.key, text})
		}
	}
	if !bad["saga.schema.table-prefix"] {
		faults = append(faults, c.Schema.faults(bad)...)
	}
	return faults
}

// refuse says what was found at s and what is wanted instead.
func (s setting) refuse(got any, hint string) fault {
	if s.secret {
		return fault{s.Name, "must begin with sqlite:// or postgres:// and be a URL, special characters of a password escaped " +
			"(the value is not shown, it may hold a password)"}
	}
	return fault{s.Name, fmt.Sprintf("got %s, want %s%s", describe(got), s.Kind, hint)}
}

// rule relates two keys.
type rule struct {
	key, other string
	broken     func(Config) string
}

var rules = []rule{
	{"saga.deadline.lease-ttl", "saga.deadline.polling.interval", func(c Config) string {
		if c.Deadline.LeaseTTL > c.Deadline.Polling.Interval {
			return ""
		}
		return fmt.Sprintf("got %s, want more than the %s of saga.deadline.polling.interval",
			format(c.Deadline.LeaseTTL), format(c.Deadline.Polling.Interval))
	}},
	backoffs("saga.deadline.retry", func(c Config) Retry { return c.Deadline.Retry }),
	backoffs("saga.outbox.retry", func(c Config) Retry { return c.Outbox.Retry }),
}

func backoffs(prefix string, of func(Config) Retry) rule {
	return rule{prefix + ".max-backoff", prefix + ".initial-backoff", func(c Config) string {
		r := of(c)
		if r.InitialBackoff <= r.MaxBackoff {
			return ""
		}
		return fmt.Sprintf("got %s, want at least the %s of %s.initial-backoff",
			format(r.MaxBackoff), format(r.InitialBackoff), prefix)
	}}
}

func (s Schema) faults(bad map[string]bool) []fault {
	var faults []fault
	names, owners := s.Names(), make(map[string]string)
	for _, t := range tables {
		name := *t.field(&names)
		if bad[t.key()] {
			continue
		}
		if *t.field(&s.Tables) == "" && len(name) > longestTable {
			faults = append(faults, fault{"saga.schema.table-prefix", fmt.Sprintf(
				"got %q, want a shorter one: %s is longer than %d bytes", s.TablePrefix, name, longestTable)})
		}
		if owner, taken := owners[strings.ToLower(name)]; taken {
			faults = append(faults, fault{t.key(), fmt.Sprintf(
				"got %q, want another name than that of %s, also ignoring case", name, owner)})
		}
		owners[strings.ToLower(name)] = t.key()
	}
	return faults
}
