package transfer

import "github.com/shopspring/decimal"

// TransferRequested starts a transfer.
type TransferRequested struct { //nolint:revive // events are told apart by their names alone
	TransferID      string          `json:"transferId"`
	SourceAccountID string          `json:"sourceAccountId"`
	TargetAccountID string          `json:"targetAccountId"`
	Amount          decimal.Decimal `json:"amount"`
}

// DebitConfirmed says that the source account's bank took the money.
type DebitConfirmed struct {
	TransferID string `json:"transferId"`
}

// CreditConfirmed says that the target account's bank added the money.
type CreditConfirmed struct {
	TransferID string `json:"transferId"`
}
