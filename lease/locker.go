package lease

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/norn-go/norn/schema"
)

var (
	// ErrLost is why the context of work ends whose lease may be another's by now. Look for it with
	// errors.Is in context.Cause.
	ErrLost = errors.New("lease lost")
	// ErrHeld is a lease that another holder has, in this process or another one. The error that wraps it says who and
	// until when, unless that was another's in the same moment.
	ErrHeld = errors.New("lease held by another")
)

// DefaultTTL is the TTL of a [Config] without one.
const DefaultTTL = 2 * time.Minute

// Config says how a lease is kept.
type Config struct {
	// TTL is how long the lease outlives its holder: another process can take it this long after the
	// last renewal. It is renewed every third of it. Zero is [DefaultTTL].
	TTL time.Duration
	// Logger gets one line per state change. Nil is slog.Default.
	Logger *slog.Logger
}

// Locker takes one lease. It is a holder of its own: two Lockers of one name exclude each other also
// within a process. It is safe for concurrent use.
type Locker struct {
	row
	ttl      time.Duration
	log      *slog.Logger // with lease and holder
	plain    *slog.Logger // with the lease alone
	sessions atomic.Int64

	mu   sync.Mutex
	held *term // nil: none
}

// New makes a Locker that holds nothing yet. It touches no table.
func New(db *schema.DB, name string, cfg Config) *Locker {
	l := &Locker{row: row{db: db, name: name, holder: newHolder()}, ttl: cfg.TTL, log: cfg.Logger}
	if l.ttl <= 0 {
		l.ttl = DefaultTTL
	}
	if l.log == nil {
		l.log = slog.Default()
	}
	l.plain = l.log.With("lease", name)
	l.log = l.plain.With("holder", l.holder)
	return l
}

// Name is the lease's name.
func (l *Locker) Name() string { return l.name }

// Holder tells this Locker from all others, also from those of earlier starts of the process. The table shows
// it with the number of the attempt behind.
func (l *Locker) Holder() string { return l.holder }

// TTL is how long the lease outlives its holder.
func (l *Locker) TTL() time.Duration { return l.ttl }

// Term counts the acquisitions of the lease by anybody; zero while this Locker does not hold it.
func (l *Locker) Term() int64 {
	if t := l.current(); t != nil && t.trusted() {
		return t.number
	}
	return 0
}

// Held reports whether the lease may be trusted at this moment. Unlike a context it cannot lag behind
// the clock: look at it once more right before starting what only the holder should start.
func (l *Locker) Held() bool {
	t := l.current()
	return t != nil && t.trusted()
}

func (l *Locker) current() *term {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held
}
