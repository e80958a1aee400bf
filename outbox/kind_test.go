package outbox_test

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/outbox"
)

func TestKindsAreReadableInALog(t *testing.T) {
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Warn("left", "kinds", []outbox.Kind{{SagaType: "transfer-saga", Type: "bank.Debit"}})
	require.Contains(t, log.String(), `kinds="[transfer-saga: bank.Debit]"`)
}
