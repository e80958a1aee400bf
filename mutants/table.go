package main

var (
	model    = selection{"./saga", "^(TestFoundScriptsEndAsTheirModelSays|TestEngineStoresWhatItsModelSays)$"}
	onServer = selection{"./saga", "^(TestFoundScriptsEndAsTheirModelSays|TestEngineStoresWhatItsModelSays)$/^postgres$"}
)

// mutants are all ways in which norn is broken on purpose.
var mutants = []mutant{
	{
		"a deadline is inserted outside of the transaction",
		[]edit{{"saga/flush.go", "		in.engine.deadlines.Put(&b, news)\n", `		if in.event == nil {
			in.engine.deadlines.Put(&b, news)
			news = nil
		}
		err := in.engine.db.Tx(context.WithoutCancel(ctx), func(ctx context.Context, own *schema.Tx) error {
			var apart schema.Batch
			in.engine.deadlines.Put(&apart, news)
			_, err := own.Run(ctx, &apart)
			return err
		})
		if err != nil {
			return outcome{}, err
		}
`}},
		onServer, // SQLite has one writer: it would wait for itself
	},
	{
		"deadlines are inserted in a transaction after the commit",
		[]edit{
			{"saga/flush.go", "		in.engine.deadlines.Put(&b, news)\n", "		out.late = news\n"},
			{"saga/invocation.go", "	handled  bool\n", "	handled  bool\n	late     []deadline.New\n"},
			{"saga/commit.go", "			e.committed(out)\n", `			_ = e.db.Tx(ctx, func(ctx context.Context, tx *schema.Tx) error {
				var apart schema.Batch
				e.deadlines.Put(&apart, out.late)
				_, err := tx.Run(ctx, &apart)
				return err
			})
			e.committed(out)
`},
		},
		model,
	},
	{
		"a claim asks for the key and not for the token",
		[]edit{
			{"deadline/store.go", "AND name = ? AND token = ? AND parked_at IS NULL\n		RETURNING", "AND name = ? AND parked_at IS NULL\n		RETURNING"},
			{"deadline/store.go", "d.Type, d.ID, d.Name, d.Token)", "d.Type, d.ID, d.Name)"},
		},
		model,
	},
	{
		"a lease is renewed by its name only",
		[]edit{
			{"lease/row.go", "SET expires_at = {now+} WHERE name = ? AND holder = ? AND term = ? AND expires_at > {now}`", "SET expires_at = {now+} WHERE name = ?`"},
			{"lease/row.go", "		ttl, r.name, r.holder, term)", "		ttl, r.name)"},
		},
		selection{"./lease", "^TestP34OldTermRenewsNothing$"},
	},
	{
		"a lease is taken though another holds it",
		[]edit{{"lease/row.go", "\n		WHERE l.expires_at <= {now}\n", "\n"}},
		selection{"./lease", "^TestOfTwoThatFindTheLeaseFreeOneHoldsIt$"},
	},
	{
		"a command is removed before it is delivered",
		[]edit{{"outbox/turn.go", "	err := r.attempt(c.life, w)\n	switch {\n", "	r.removed(term, w)\n	err := r.attempt(c.life, w)\n	switch {\n"}},
		model,
	},
	{
		"the last command of a saga goes first",
		[]edit{{"outbox/outcome.go", "AND parked_at IS NULL ORDER BY seq LIMIT 1`", "AND parked_at IS NULL ORDER BY seq DESC LIMIT 1`"}},
		model,
	},
	{
		"the record of an event is not written",
		[]edit{{"saga/flush.go", "	if in.event != nil {\n		in.engine.store.record(", "	if in.event != nil && a.at.IsZero() {\n		in.engine.store.record("}},
		model,
	},
	{
		"an end leaves the deadlines",
		[]edit{{"saga/flush.go", "		in.engine.deadlines.RemoveAll(&b, in.key.Type, in.key.ID)\n", ""}},
		model,
	},
	{
		"an end leaves the associations",
		[]edit{{"saga/store.go", "	b.Add(\"DELETE FROM {association} WHERE saga_type = ? AND saga_id = ? AND NOT exclusive\", key.Type, key.ID)\n", ""}},
		model,
	},
	{
		"a state is written on whatever version is there",
		[]edit{
			{"saga/store.go", "WHERE saga_type = ? AND saga_id = ? AND version = ?\"", "WHERE saga_type = ? AND saga_id = ?\""},
			{"saga/store.go", "c.key.Type, c.key.ID, c.version)...)", "c.key.Type, c.key.ID)...)"},
		},
		selection{"./saga", "^TestWriteOnAnotherVersionIsAConflict$"},
	},
	{
		"a commit without an answer counts as done",
		[]edit{{"saga/commit.go", "		unknown = unknown || errors.Is(err, schema.ErrUnknownOutcome)\n", "		if errors.Is(err, schema.ErrUnknownOutcome) {\n			e.committed(out)\n			return nil\n		}\n"}},
		model,
	},
	{
		"an event starts what ended, without saga.Again",
		[]edit{{"saga/invocation.go", "	case row != nil && !r.start.again:\n", "	case row != nil && !r.start.again && row.Seen:\n"}},
		model,
	},
	{
		"a failure is counted by every node that sees it",
		[]edit{
			{"deadline/sweep.go", "AND token = ? AND attempts = ? AND parked_at IS NULL`", "AND token = ? AND parked_at IS NULL`"},
			{"deadline/sweep.go", "d.Type, d.ID, d.Name, d.Token, d.Attempts)", "d.Type, d.ID, d.Name, d.Token)"},
		},
		model,
	},
	{
		"an event matched before is handled though its association went",
		[]edit{{"saga/invocation.go", "	case row.live() && (in.start || row.Matched):\n", "	case row.live():\n"}},
		model,
	},
	{
		"a poller is woken before the commit, and not after it",
		[]edit{
			{"saga/flush.go", "	var b schema.Batch\n", "	for _, d := range news {\n		in.engine.cfg.Signal.Notify(d.Due)\n	}\n	var b schema.Batch\n"},
			{"saga/commit.go", "	if !out.earliest.IsZero() {\n		e.cfg.Signal.Notify(out.earliest)\n	}\n", ""},
		},
		model,
	},
}
