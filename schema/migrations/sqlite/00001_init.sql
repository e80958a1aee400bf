-- +goose Up
CREATE TABLE {instance} (
    saga_type    text NOT NULL,
    saga_id      text NOT NULL,
    state        text NOT NULL,
    revision     integer NOT NULL DEFAULT 0,
    version      integer NOT NULL,
    status       text NOT NULL CHECK (status IN ('open', 'ended')),
    plan         text,
    parent_type  text,
    parent_id    text,
    period_start integer,
    period_end   integer,
    started_at   integer NOT NULL,
    updated_at   integer NOT NULL,
    ended_at     integer,
    PRIMARY KEY (saga_type, saga_id)
);
CREATE INDEX {instance:status} ON {instance} (saga_type, status, saga_id);
CREATE INDEX {instance:ended} ON {instance} (ended_at) WHERE status = 'ended';

CREATE TABLE {association} (
    saga_type text NOT NULL,
    property  text NOT NULL,
    value     text NOT NULL,
    saga_id   text NOT NULL,
    exclusive integer NOT NULL DEFAULT 0,
    ended     integer NOT NULL DEFAULT 0,
    PRIMARY KEY (saga_type, property, value, saga_id)
);
CREATE UNIQUE INDEX {association:start} ON {association} (saga_type, property, value) WHERE exclusive;
CREATE INDEX {association:saga} ON {association} (saga_type, saga_id);

CREATE TABLE {deadline} (
    saga_type    text NOT NULL,
    saga_id      text NOT NULL,
    name         text NOT NULL,
    token        text NOT NULL,
    public_id    text NOT NULL,
    mode         text NOT NULL DEFAULT 'handler' CHECK (mode IN ('handler', 'command')),
    keep_on_end  integer NOT NULL DEFAULT 0,
    due_at       integer NOT NULL,
    payload_type text,
    payload      text,
    metadata     text,
    attempts     integer NOT NULL DEFAULT 0,
    next_at      integer NOT NULL,
    last_error   text,
    parked_at    integer,
    PRIMARY KEY (saga_type, saga_id, name),
    CONSTRAINT {deadline:public_id} UNIQUE (public_id)
);
CREATE INDEX {deadline:next} ON {deadline} (next_at, saga_type, saga_id, name) WHERE parked_at IS NULL;
CREATE INDEX {deadline:parked} ON {deadline} (saga_type, saga_id, name) WHERE parked_at IS NOT NULL;

CREATE TABLE {deadline_lock} (
    name       text PRIMARY KEY,
    holder     text NOT NULL,
    term       integer NOT NULL,
    expires_at integer NOT NULL
);

CREATE TABLE {command} (
    seq        integer PRIMARY KEY AUTOINCREMENT,
    command_id text NOT NULL,
    saga_type  text NOT NULL,
    saga_id    text NOT NULL,
    type       text NOT NULL,
    payload    text NOT NULL,
    metadata   text,
    created_at integer NOT NULL,
    attempts   integer NOT NULL DEFAULT 0,
    next_at    integer NOT NULL,
    last_error text,
    parked_at  integer,
    CONSTRAINT {command:command_id} UNIQUE (command_id)
);
CREATE INDEX {command:next} ON {command} (next_at, seq) WHERE parked_at IS NULL;
CREATE INDEX {command:saga} ON {command} (saga_type, saga_id, seq) WHERE parked_at IS NULL;
CREATE INDEX {command:parked} ON {command} (seq) WHERE parked_at IS NOT NULL;

CREATE TABLE {event} (
    saga_type  text NOT NULL,
    saga_id    text NOT NULL,
    event_id   text NOT NULL,
    handled_at integer NOT NULL,
    CONSTRAINT {event:event_id} PRIMARY KEY (saga_type, saga_id, event_id)
);
CREATE INDEX {event:handled} ON {event} (handled_at);

CREATE TABLE {history} (
    saga_type    text NOT NULL,
    saga_id      text NOT NULL,
    version      integer NOT NULL,
    at           integer NOT NULL,
    message_kind text NOT NULL,
    message_id   text NOT NULL,
    message      text,
    state        text,
    plan         text,
    effects      text,
    PRIMARY KEY (saga_type, saga_id, version)
);

-- +goose Down
DROP TABLE {history};
DROP TABLE {event};
DROP TABLE {command};
DROP TABLE {deadline_lock};
DROP TABLE {deadline};
DROP TABLE {association};
DROP TABLE {instance};
