package deadline_test

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/deadline"
)

func TestKindsAreReadableInALog(t *testing.T) {
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Warn("left", "kinds", []deadline.Kind{{Type: "transfer-saga", Name: "payment-timeout"}})
	require.Contains(t, log.String(), `kinds="[transfer-saga: payment-timeout]"`)
}
