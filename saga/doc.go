// Package saga runs long business processes whose state, timers and messages are never out of step.
//
// A saga type is a Go struct and its handlers, put together by [Define]. A handler gets what it declares:
// the event, the saga's buffers for commands and deadlines, services. What it records commits in one SQL
// transaction with the state it leaves, or not at all. An [Engine] correlates events with sagas by their
// associations and runs each saga's messages one at a time.
package saga
