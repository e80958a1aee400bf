package config_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/config"
)

// What docs/configuration.md shows stands here, word for word.

type Settings struct {
	Timeout    time.Duration `default:"30m"`
	MaxRetries int           `default:"3"`
	Gateway    struct {
		URL string
	}
}

func (s *Settings) Validate() error {
	if s.Gateway.URL == "" {
		return errors.New("gateway.url is missing")
	}
	return nil
}

// Provide is a constructor of *Settings, for fx.Provide.
var Provide = config.Section[Settings]("payment")

func TestSectionOfThePageIsReadAndValidated(t *testing.T) {
	_, err := Provide(load(t, "payment: {timeout: 5m}"))
	require.ErrorContains(t, err, "gateway.url is missing")
	settings, err := Provide(load(t, "payment: {timeout: 5m, gateway: {url: 'https://pay.example'}}"))
	require.NoError(t, err)
	require.Equal(t, 5*time.Minute, settings.Timeout)
	require.Equal(t, 3, settings.MaxRetries)
}
