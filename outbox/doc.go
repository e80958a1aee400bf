// Package outbox delivers the commands that sagas sent. A command is stored in the transaction that
// saves the saga, so it exists exactly when the state that wanted it does; a [Relay] delivers it after
// the commit, at least once, and removes it only after its handler returned nil.
//
// Within a saga commands are delivered one at a time in the order they were sent. One that fails is
// tried again with growing pauses and holds back the later ones of its saga until it is delivered or
// parked; sagas never hold back each other. A command that was delivered when the process died, but
// not yet removed, is delivered again: handlers tell it by its id, which [DeliveryFrom] gives them.
//
// Commands go to the handlers of a [Router], by type, and all others to a [Sink] if there is one. A
// command that neither takes is left for another node.
package outbox
