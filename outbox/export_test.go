package outbox

// Reads is how often r asked the table what is due.
func (r *Relay) Reads() int64 { return r.reads.Load() }
