package input

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
)

// Write writes orders as lines that [Read] reads.
func Write(to io.Writer, orders []Order) error {
	buffered := bufio.NewWriter(to)
	for _, o := range orders {
		line, err := json.Marshal(struct {
			TransferID      string `json:"transferId"`
			SourceAccountID string `json:"sourceAccountId"`
			TargetAccountID string `json:"targetAccountId"`
			Amount          string `json:"amount"`
			Debit           string `json:"debit"`
			Credit          string `json:"credit"`
		}{o.TransferID, o.SourceAccountID, o.TargetAccountID, o.Amount.StringFixed(2), o.Debit.String(), o.Credit.String()})
		if err != nil {
			return fmt.Errorf("input: write %s: %w", o.TransferID, err)
		}
		// What cannot be written is reported by Flush.
		_, _ = buffered.Write(append(line, '\n'))
	}
	if err := buffered.Flush(); err != nil {
		return fmt.Errorf("input: write: %w", err)
	}
	return nil
}
