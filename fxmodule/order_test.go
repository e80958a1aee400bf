package fxmodule_test

import (
	"time"

	"github.com/norn-go/norn/saga"
)

// The saga of these tests: an order that is paid in time or not.

type (
	Ordered struct {
		Order string `json:"order"`
	}
	Paid struct {
		Order string `json:"order"`
	}
	Ship   struct{ Order string }
	Remind struct{ Order string }
)

type Order struct{ ID string }

const unpaid = "unpaid"

func (o *Order) OnOrdered(e Ordered, deadlines saga.Deadlines) {
	o.ID = e.Order
	deadlines.Schedule(unpaid, 30*time.Minute)
}

func (o *Order) OnPaid(_ Paid, commands saga.Commands) { commands.Send(Ship{o.ID}) }

func (o *Order) OnUnpaid(commands saga.Commands) { commands.Send(Remind{o.ID}) }
