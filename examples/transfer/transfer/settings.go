package transfer

import (
	"fmt"
	"time"
)

// Settings are the section "transfer" of the configuration (TRANSFER_TIMEOUT in the environment).
type Settings struct {
	// Timeout is how long a transfer waits for each of its two confirmations.
	Timeout time.Duration `default:"2s"`
}

// Validate refuses a timeout that would compensate every transfer at once.
func (s *Settings) Validate() error {
	if s.Timeout <= 0 {
		return fmt.Errorf("timeout must be more than 0, got %v", s.Timeout)
	}
	return nil
}
