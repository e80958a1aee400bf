package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/viper"
)

// Source is the merged settings of one file, the environment and the defaults. The file is read once, by [Load]; the
// environment is read anew by every method. A Source may be used from several goroutines.
type Source struct {
	name      string // of the file
	written   document
	overrides map[string]string

	mu    sync.Mutex
	texts *viper.Viper // overrides and environment: values to be parsed
	file  *viper.Viper // values of a kind already
	bound map[string]bool
}

// Option changes what Load merges.
type Option func(*Source)

// Override sets key to a value written as in an environment variable; it beats the environment and the file. It is how a
// command-line flag becomes a setting. An empty value counts as unset; the last of several for a key wins.
func Override(key, value string) Option {
	return func(s *Source) { s.overrides[strings.ToLower(key)] = value }
}

// flat is a key delimiter that no key contains: viper then looks every key up as a whole, and no key hides others.
const flat = "\x00"

// Load reads the YAML file of that name; an empty name means that there is none. It reports a file that is missing,
// unreadable, no YAML, or of more than one document, with the line where there is one. Whether the settings are right is told
// by [Source.Norn] and [Section].
func Load(file string, opts ...Option) (*Source, error) {
	s := &Source{
		name:      file,
		overrides: make(map[string]string),
		texts:     viper.NewWithOptions(viper.KeyDelimiter(flat)),
		file:      viper.NewWithOptions(viper.KeyDelimiter(flat)),
		bound:     make(map[string]bool),
	}
	if file != "" {
		written, err := read(file)
		if err != nil {
			return nil, err
		}
		s.written = written
	}
	for _, opt := range opts {
		opt(s)
	}
	for key, value := range s.overrides {
		if value != "" {
			s.texts.Set(key, value)
		}
	}
	if err := s.file.MergeConfigMap(s.written.values()); err != nil {
		return nil, fmt.Errorf("config: %s: %w", file, err)
	}
	for _, key := range Keys() {
		s.bind(key.Name)
	}
	return s, nil
}

// Norn reads norn's own settings. It reports all mistakes at once: values of the wrong kind or out of their limits, and
// unknown keys under "saga." and "database.". With an error the Config is zero.
func (s *Source) Norn() (Config, error) {
	c, unread := Default(), make(map[string]bool)
	list := settings()
	kinds := make(map[string]string)
	for _, k := range list {
		kinds[k.Name] = k.Kind
	}
	var errs []error
	for _, f := range s.misfits([]string{"saga", "database"}, shape{kinds: kinds}) {
		unread[f.key] = true
		errs = append(errs, f.err(s.origin(f.key)))
	}
	for _, k := range list {
		raw, parsed := s.lookup(k.Name)
		if raw == nil || unread[k.Name] {
			continue
		}
		var mend errKind
		if errors.As(scalar(k.field(&c), raw, parsed), &mend) {
			unread[k.Name] = true
			errs = append(errs, k.refuse(raw, string(mend)).err(s.origin(k.Name)))
		}
	}
	for _, f := range c.faults(unread) {
		errs = append(errs, f.err(s.origin(f.key)))
	}
	if len(errs) > 0 {
		return Config{}, errors.Join(errs...)
	}
	return c, nil
}

// String returns the setting of any key as text, and whether there is one. The environment variable of the key beats
// the file, and the file beats norn's default. A list, a map or an empty environment variable is no setting.
func (s *Source) String(key string) (string, bool) {
	raw, _ := s.lookup(strings.ToLower(key))
	switch v := raw.(type) {
	case string:
		return v, true
	case time.Time:
		return v.Format(time.RFC3339Nano), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	case nil:
		for _, k := range settings() {
			if strings.EqualFold(k.Name, key) {
				text := k.show(Default())
				return text, text != ""
			}
		}
		return "", false
	}
	if kind := reflect.TypeOf(raw).Kind(); kind == reflect.Slice || kind == reflect.Map {
		return "", false
	}
	return fmt.Sprint(raw), true
}

// Warnings names the environment variables that begin with SAGA_ and belong to no key, each with the nearest one, in
// alphabetical order. They change nothing; a program logs them at start, because such a variable is most likely misspelt.
func (s *Source) Warnings() []string {
	known := make(map[string]string)
	for _, key := range Keys() {
		known[key.Env] = key.Name
	}
	var warnings []string
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		if _, ok := known[name]; ok || value == "" || !strings.HasPrefix(name, "SAGA_") {
			continue
		}
		warnings = append(warnings, fmt.Sprintf("environment variable %s belongs to no setting%s",
			name, suggestion(name, slices.Collect(maps.Keys(known)))))
	}
	slices.Sort(warnings)
	return warnings
}

// lookup returns the value of a lower-case key, nil if it has none, and whether it is text to be parsed.
func (s *Source) lookup(key string) (raw any, parsed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bind(key)
	if text := s.texts.Get(key); text != nil {
		return text, true
	}
	return s.file.Get(key), false
}

func (s *Source) bind(key string) {
	if s.bound[key] {
		return
	}
	s.bound[key] = true
	// The only error of BindEnv is for a call without a key.
	_ = s.texts.BindEnv(key, envName(key))
}

// origin says where the value of a key comes from.
func (s *Source) origin(key string) string {
	if s.overrides[key] != "" {
		return "given by the program"
	}
	if os.Getenv(envName(key)) != "" {
		return envName(key)
	}
	if s.written.has(key) {
		return s.name
	}
	return ""
}
