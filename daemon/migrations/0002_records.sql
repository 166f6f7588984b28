-- Sessions as records: what is counted, when they expire, where they wait, who is told, and what stays of them.

ALTER TABLE threads ADD COLUMN task_count INTEGER NOT NULL DEFAULT 0;
UPDATE threads SET task_count = (SELECT count(*) FROM sessions WHERE thread_id = threads.id);
CREATE INDEX threads_by_user ON threads (user) WHERE user IS NOT NULL;
CREATE INDEX threads_by_channel ON threads (channel) WHERE channel IS NOT NULL;
CREATE INDEX threads_by_workspace ON threads (workspace);

ALTER TABLE sessions ADD COLUMN task_count INTEGER NOT NULL DEFAULT 1;
-- events of the session so far: the next one's number within it
ALTER TABLE sessions ADD COLUMN event_count INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN started_at INTEGER;
-- times of the daemon's steady clock, in which nobody's change of the wall clock is seen
ALTER TABLE sessions ADD COLUMN active_since INTEGER;
ALTER TABLE sessions ADD COLUMN active_before INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN idle_since INTEGER;
-- the group it counts in, and what it starts when its turn comes
ALTER TABLE sessions ADD COLUMN group_name TEXT;
ALTER TABLE sessions ADD COLUMN queued_launch TEXT CHECK (queued_launch IS NULL OR json_valid (queued_launch));
-- taken out of metadata, so that sums need not read it
ALTER TABLE sessions ADD COLUMN cost REAL;
ALTER TABLE sessions ADD COLUMN tokens_prompt INTEGER;
ALTER TABLE sessions ADD COLUMN tokens_completion INTEGER;
ALTER TABLE sessions ADD COLUMN tokens_total INTEGER;
UPDATE sessions SET started_at = created_at;
-- with the task, so that a search for text passes over the others without reading them
CREATE INDEX sessions_by_created ON sessions (created_at, task);
CREATE INDEX sessions_by_end ON sessions (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX sessions_by_mode ON sessions (mode, created_at) WHERE mode IS NOT NULL;
CREATE INDEX sessions_by_group ON sessions (group_name, status, created_at) WHERE group_name IS NOT NULL AND status IN ('queued', 'active', 'paused');
-- everything statistics are made of: they read this and not the rows
CREATE INDEX sessions_for_stats ON sessions
    (status, mode, created_at, started_at, ended_at, iterations, cost, tokens_prompt, tokens_completion, tokens_total, thread_id);

-- how much was recorded, known when the runtime is over
ALTER TABLE runtimes ADD COLUMN recorded_bytes INTEGER NOT NULL DEFAULT 0;
-- why its program is being ended, from when that was decided until it is gone
ALTER TABLE runtimes ADD COLUMN ending TEXT;
-- a client had control when the daemon last knew
ALTER TABLE runtimes ADD COLUMN is_controlled INTEGER NOT NULL DEFAULT 0;
CREATE INDEX runtimes_by_terminal ON runtimes (terminal_id);
CREATE INDEX execs_by_runtime ON execs (runtime_id);

-- seq counts over all sessions; n within one, from 1, without a gap
ALTER TABLE events ADD COLUMN n INTEGER NOT NULL DEFAULT 0;
UPDATE events SET n = numbered.n
    FROM (SELECT seq, row_number() OVER (PARTITION BY session_id ORDER BY seq) AS n FROM events) AS numbered
    WHERE events.seq = numbered.seq;
UPDATE sessions SET event_count = (SELECT count(*) FROM events WHERE session_id = sessions.id);

CREATE TABLE groups (
    name        TEXT PRIMARY KEY,
    max_running INTEGER NOT NULL CHECK (max_running >= 0)
) STRICT, WITHOUT ROWID;

CREATE TABLE webhooks (
    id              TEXT PRIMARY KEY,
    url             TEXT NOT NULL,
    secret          TEXT NOT NULL,
    filter          TEXT NOT NULL CHECK (json_valid (filter)),
    created_at      INTEGER NOT NULL,
    disabled_reason TEXT,
    -- deliveries given up because too many were waiting
    dropped         INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- An outbox and its log: a delivery is queued in the transaction of the event it tells.
CREATE TABLE deliveries (
    number          INTEGER PRIMARY KEY AUTOINCREMENT,
    id              TEXT NOT NULL UNIQUE,
    webhook_id      TEXT NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    event           TEXT NOT NULL,
    seq             INTEGER,
    body            TEXT NOT NULL,
    state           TEXT NOT NULL CHECK (state IN ('pending', 'delivered', 'expired')),
    created_at      INTEGER NOT NULL,
    attempts        INTEGER NOT NULL DEFAULT 0,
    -- the daemon's steady clock
    queued_at       INTEGER NOT NULL,
    next_attempt_at INTEGER NOT NULL,
    attempted_at    INTEGER,
    answer          INTEGER,
    error           TEXT
) STRICT;
CREATE INDEX pending_deliveries ON deliveries (webhook_id, number) WHERE state = 'pending';
CREATE INDEX deliveries_by_webhook ON deliveries (webhook_id, number);

-- What stays of a session that was cleaned up.
CREATE TABLE audit (
    session_id       TEXT PRIMARY KEY,
    thread_id        TEXT NOT NULL,
    thread           TEXT NOT NULL,
    workspace        TEXT NOT NULL,
    created_at       INTEGER NOT NULL,
    last_activity_at INTEGER NOT NULL,
    ended_at         INTEGER,
    task_count       INTEGER NOT NULL,
    status           TEXT NOT NULL,
    status_reason    TEXT,
    removed_at       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX audit_by_thread ON audit (thread, created_at);

-- What the daemon itself has to remember: its clock, when it last cleaned up and checked.
CREATE TABLE remembered (
    what  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
