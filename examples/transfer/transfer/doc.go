// Package transfer is a saga that moves money from one account to another: wholly or not at all, and to
// an end in any case.
//
//	requested ──► DebitAccount ──► debit confirmed ──► CreditAccount ──► credit confirmed ──► completed
//	                  │                                    │
//	           payment-timeout                       credit-timeout
//	                  ▼                                    ▼
//	             ReverseDebit                  ReverseCredit, ReverseDebit           ──► compensated
//
// A confirmation that does not come says nothing about whether the bank did its work, so a timeout takes
// back everything that was asked for. That is safe because a reversal undoes exactly what was booked for its
// transfer, which may be nothing, and because a saga's commands are delivered in the order they were sent.
// A confirmation that comes after the timeout meets an ended saga and changes nothing.
package transfer
