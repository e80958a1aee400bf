package fxmodule

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"

	"go.uber.org/fx"

	"github.com/norn-go/norn/config"
)

// ConfigFile names the YAML file of the settings; an empty path means that there is none. Without this option it is the
// file that the environment variable NORN_CONFIG names, else norn.yaml in the working directory if there is one, else
// none. Two ConfigFiles in an application stop the start.
func ConfigFile(path string) fx.Option {
	return fx.Supply(fx.Annotated{Group: "norn.files", Target: configFile(path)})
}

// Override sets a key to a value written as in an environment variable. It beats the environment and the file: for
// command-line flags. An empty value changes nothing; of several for a key the one made last counts.
func Override(key, value string) fx.Option {
	return fx.Supply(fx.Annotated{Group: "norn.overrides", Target: override{order.Add(1), key, value}})
}

type configFile string

type override struct {
	order      int64
	key, value string
}

// settings are the settings as far as they could be read, and all that is wrong with them.
type settings struct {
	source *config.Source // nil: the file could not be read
	from   string         // the file, or why there is none
	config config.Config
	err    error
}

type settingsIn struct {
	fx.In
	Files     []configFile `group:"norn.files"`
	Overrides []override   `group:"norn.overrides"`
}

func load(in settingsIn) *settings {
	file, err := fileOf(in.Files)
	if err != nil {
		return &settings{err: err}
	}
	s := &settings{from: "settings file " + file}
	switch {
	case file == "" && len(in.Files) > 0:
		s.from = "no settings file: ConfigFile is empty"
	case file == "":
		s.from = "no settings file: there is no " + defaultFile + " in the working directory"
	}
	slices.SortFunc(in.Overrides, func(a, b override) int { return cmp.Compare(a.order, b.order) })
	var opts []config.Option
	for _, o := range in.Overrides {
		if o.value != "" {
			opts = append(opts, config.Override(o.key, o.value))
		}
	}
	if s.source, s.err = config.Load(file, opts...); s.err == nil {
		s.config, s.err = s.source.Norn()
	}
	return s
}

const (
	fileEnv     = "NORN_CONFIG"
	defaultFile = "norn.yaml"
)

func fileOf(given []configFile) (string, error) {
	if len(given) > 1 {
		slices.Sort(given)
		return "", fmt.Errorf("fxmodule: ConfigFile is given %d times: %q: want one file", len(given), given)
	}
	if len(given) == 1 {
		return string(given[0]), nil
	}
	return DefaultConfigFile()
}

// DefaultConfigFile is the file that an application without a [ConfigFile] reads; empty: there is none. It is an error if
// the environment names one that is missing.
func DefaultConfigFile() (string, error) {
	if file := os.Getenv(fileEnv); file != "" {
		if _, err := os.Stat(file); err != nil {
			return "", fmt.Errorf("fxmodule: the settings file that %s names: %w", fileEnv, err)
		}
		return file, nil
	}
	switch _, err := os.Stat(defaultFile); {
	case errors.Is(err, os.ErrNotExist):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("fxmodule: %w", err)
	}
	return defaultFile, nil
}

func provideSource(s *settings) (*config.Source, error) {
	if s.source == nil {
		return nil, s.err
	}
	return s.source, nil
}

func provideConfig(s *settings) (config.Config, error) { return s.config, s.err }
