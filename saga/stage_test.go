package saga_test

import (
	"bytes"
	"context"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/lease"
	"github.com/norn-go/norn/outbox"
	"github.com/norn-go/norn/poller"
	"github.com/norn-go/norn/retry"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
)

// Story is a saga whose handlers do what the test says: events bring what to do along, deadlines look it
// up in the script.
type Story struct {
	Count int
	Notes []string
}

// Scene is what a handler of a Story got.
type Scene struct {
	*Story
	context.Context
	saga.Commands
	saga.Deadlines
	saga.Lifecycle
	saga.Associations
	Metadata saga.Metadata
	Firing   saga.Firing
	Tx       saga.Tx
	Parcel   Parcel
}

// Act is what a handler does.
type Act func(Scene) error

type (
	// Begin starts a Story, or moves the one that it meets.
	Begin struct {
		ID string `json:"id"`
		Do Act    `json:"-"`
	}
	// Again starts a Story, also after its end.
	Again struct {
		ID string `json:"id"`
		Do Act    `json:"-"`
	}
	// Next moves a Story.
	Next struct {
		ID  string   `json:"id"`
		Tag []string `json:"tag"`
		Do  Act      `json:"-"`
	}
	// Parcel is the payload of the deadline "parcel".
	Parcel struct {
		Text   string
		Amount int64
	}
	// Note is a command.
	Note struct{ Text string }
)

func (s *Story) play(do Act, scene Scene) error {
	s.Count++
	scene.Story = s
	if do == nil {
		return nil
	}
	return do(scene)
}

func (s *Story) OnBegin(ctx context.Context, e Begin, c saga.Commands, d saga.Deadlines, l saga.Lifecycle, a saga.Associations, m saga.Metadata, tx saga.Tx) error {
	return s.play(e.Do, Scene{Context: ctx, Commands: c, Deadlines: d, Lifecycle: l, Associations: a, Metadata: m, Tx: tx})
}

func (s *Story) OnAgain(ctx context.Context, e Again, c saga.Commands, d saga.Deadlines, l saga.Lifecycle, a saga.Associations) error {
	return s.play(e.Do, Scene{Context: ctx, Commands: c, Deadlines: d, Lifecycle: l, Associations: a})
}

func (s *Story) OnNext(tx saga.Tx, m saga.Metadata, a saga.Associations, l saga.Lifecycle, d saga.Deadlines, c saga.Commands, e Next, ctx context.Context) error {
	return s.play(e.Do, Scene{Context: ctx, Commands: c, Deadlines: d, Lifecycle: l, Associations: a, Metadata: m, Tx: tx})
}

func (s *Story) OnTimer(ctx context.Context, f saga.Firing, p *script, c saga.Commands, d saga.Deadlines, l saga.Lifecycle, a saga.Associations, tx saga.Tx) error {
	return s.play(p.take(f), Scene{Context: ctx, Commands: c, Deadlines: d, Lifecycle: l, Associations: a, Firing: f, Tx: tx})
}

func (s *Story) OnParcel(ctx context.Context, parcel Parcel, f saga.Firing, p *script, c saga.Commands, d saga.Deadlines, l saga.Lifecycle) error {
	return s.play(p.take(f), Scene{Context: ctx, Commands: c, Deadlines: d, Lifecycle: l, Firing: f, Parcel: parcel})
}

// script says what deadline handlers do, and remembers which fired.
type script struct {
	mu    sync.Mutex
	acts  map[string]Act
	fired []saga.Firing
}

func (p *script) take(f saga.Firing) Act {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fired = append(p.fired, f)
	return p.acts[f.Name]
}

// on sets what the deadline does from now on.
func (p *script) on(name string, do Act) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.acts[name] = do
}

// names are those of the deadlines that fired, in order.
func (p *script) names() (names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.fired {
		names = append(names, f.Name)
	}
	return names
}

func story(t *testing.T, name string, opts ...saga.Option) *saga.Definition {
	t.Helper()
	d, err := saga.Define[Story](name, append([]saga.Option{
		saga.Start((*Story).OnBegin, saga.By("id")),
		saga.On((*Story).OnBegin, saga.By("id")),
		saga.Start((*Story).OnAgain, saga.By("id"), saga.Again()),
		saga.On((*Story).OnNext, saga.By("id"), saga.By("tag")),
		saga.OnDeadline("t", (*Story).OnTimer),
		saga.OnDeadline("u", (*Story).OnTimer),
		saga.OnDeadline("v", (*Story).OnTimer, saga.Ends()),
		saga.OnDeadline("parcel", (*Story).OnParcel),
	}, opts...)...)
	require.NoError(t, err)
	return d
}

// stage is an engine of the saga type "story" on one database.
type stage struct {
	t  *testing.T
	db *schema.DB
	*saga.Engine
	script *script
	log    *lines
	signal *deadline.Signal
	outbox *outbox.Signal
}

func newStage(t *testing.T, db *schema.DB, cfg saga.Config, defs ...*saga.Definition) *stage {
	t.Helper()
	s := &stage{t: t, db: db, script: &script{acts: map[string]Act{}}, log: &lines{}, signal: deadline.NewSignal(), outbox: outbox.NewSignal()}
	cfg.Service = saga.Services(s.script)
	cfg.Logger = slog.New(slog.NewTextHandler(s.log, nil))
	cfg.Signal, cfg.Outbox = s.signal, s.outbox
	if len(defs) == 0 {
		defs = append(defs, story(t, "story"))
	}
	s.Engine = newEngine(t, db, cfg, defs...)
	return s
}

// lines is a log that a test can read.
type lines struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buffer.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buffer.String()
}

func key(id string) saga.Key { return saga.Key{Type: "story", ID: id} }

// begin starts a saga, which must succeed.
func (s *stage) begin(id string, do Act) {
	s.t.Helper()
	require.NoError(s.t, s.Handle(context.Background(), Begin{ID: id, Do: do}))
}

// next moves a saga, which must succeed.
func (s *stage) next(id string, do Act) {
	s.t.Helper()
	require.NoError(s.t, s.Handle(context.Background(), Next{ID: id, Do: do}))
}

func (s *stage) instance(id string) saga.Instance {
	s.t.Helper()
	got, err := s.Instance(context.Background(), key(id))
	require.NoError(s.t, err)
	return got
}

// count is how many handlers ran on the saga's stored state.
func (s *stage) count(id string) int {
	s.t.Helper()
	var state Story
	require.NoError(s.t, saga.JSON{}.Unmarshal(s.instance(id).State, &state))
	return state.Count
}

func (s *stage) pending(id string) []deadline.Pending {
	s.t.Helper()
	got, err := s.Engine.Deadlines(context.Background(), key(id))
	require.NoError(s.t, err)
	return got
}

func (s *stage) names(id string) []string {
	s.t.Helper()
	names := []string{}
	for _, d := range s.pending(id) {
		names = append(names, d.Name)
	}
	slices.Sort(names)
	return names
}

// sweep fires what is due and returns how many rows that were, and the errors.
func (s *stage) sweep() (int, []error) {
	s.t.Helper()
	return sweep(s.t, s.db, s.Engine)
}

func (s *stage) due() []deadline.Due {
	s.t.Helper()
	due, err := deadline.NewStore(s.db).Find(context.Background(), deadline.Sweep{Kinds: s.Kinds(), Cutoff: s.Now(), Limit: 1000})
	require.NoError(s.t, err)
	return due
}

func (s *stage) rows(table string) (n int) {
	s.t.Helper()
	require.NoError(s.t, s.db.Get(context.Background(), &n, "SELECT count(*) FROM "+table))
	return n
}

// empty requires that nothing at all is stored.
func (s *stage) empty() {
	s.t.Helper()
	for _, table := range []string{"{instance}", "{association}", "{deadline}", "{command}", "{event}"} {
		require.Zero(s.t, s.rows(table), table)
	}
}

func (s *stage) exec(query string, args ...any) {
	s.t.Helper()
	_, err := s.db.Exec(context.Background(), query, args...)
	require.NoError(s.t, err)
}

// notes are the texts of the stored Note commands, in their order.
func (s *stage) notes() []string {
	s.t.Helper()
	var rows []struct{ Payload string }
	require.NoError(s.t, s.db.Select(context.Background(), &rows, "SELECT payload FROM {command} ORDER BY seq"))
	texts := []string{}
	for _, r := range rows {
		var n Note
		require.NoError(s.t, saga.JSON{}.Unmarshal([]byte(r.Payload), &n))
		texts = append(texts, n.Text)
	}
	return texts
}

// poller makes a poller that dispatches to the stage's engine.
func (s *stage) poller(cfg poller.Config, ttl time.Duration) *poller.Poller {
	s.t.Helper()
	cfg.Now, cfg.Signal, cfg.Logger = s.Now, s.signal, slog.New(slog.NewTextHandler(s.log, nil))
	if cfg.Retry == (retry.Policy{}) {
		cfg.Retry = retry.Policy{MaxAttempts: 3, Initial: time.Second, Max: time.Minute}
	}
	locker := lease.New(s.db, "test", lease.Config{TTL: ttl, Logger: cfg.Logger})
	p, err := poller.New(deadline.NewStore(s.db), locker, s.Engine, cfg)
	require.NoError(s.t, err)
	return p
}

// run starts the poller until stop, which waits for it.
func (s *stage) run(p *poller.Poller) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	return func() {
		cancel()
		require.NoError(s.t, <-done)
	}
}

// goexit ends the goroutine, as a failed requirement in a handler would.
func goexit() { runtime.Goexit() }

// housekeep runs the engine's housekeeping until stop, which waits for it.
func (s *stage) housekeep() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	return func() {
		cancel()
		require.NoError(s.t, <-done)
	}
}
