package transfer

import "github.com/shopspring/decimal"

// DebitAccount takes the amount from the source account.
type DebitAccount struct {
	TransferID string          `json:"transferId"`
	AccountID  string          `json:"accountId"`
	Amount     decimal.Decimal `json:"amount"`
}

// CreditAccount adds the amount to the target account.
type CreditAccount struct {
	TransferID string          `json:"transferId"`
	AccountID  string          `json:"accountId"`
	Amount     decimal.Decimal `json:"amount"`
}

// ReverseDebit undoes what was debited for the transfer, be it nothing, and forbids a debit that comes later.
type ReverseDebit struct {
	TransferID string          `json:"transferId"`
	AccountID  string          `json:"accountId"`
	Amount     decimal.Decimal `json:"amount"`
}

// ReverseCredit undoes what was credited for the transfer, be it nothing, and forbids a credit that comes later.
type ReverseCredit struct {
	TransferID string          `json:"transferId"`
	AccountID  string          `json:"accountId"`
	Amount     decimal.Decimal `json:"amount"`
}
