-- Every word of the product that is stored, with the promises that a database can keep by itself.

CREATE TABLE threads (
    id          TEXT PRIMARY KEY,
    name        TEXT NOT NULL UNIQUE,
    workspace   TEXT NOT NULL,
    user        TEXT,
    channel     TEXT,
    created_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
    id               TEXT PRIMARY KEY,
    thread_id        TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    mode             TEXT,
    task             TEXT,
    status           TEXT NOT NULL CHECK (status IN ('queued', 'active', 'paused', 'completed', 'failed', 'timeout')),
    status_reason    TEXT,
    created_at       INTEGER NOT NULL,
    updated_at       INTEGER NOT NULL,
    last_activity_at INTEGER NOT NULL,
    ended_at         INTEGER,
    iterations       INTEGER NOT NULL DEFAULT 0,
    max_iterations   INTEGER NOT NULL DEFAULT 50,
    context          TEXT NOT NULL DEFAULT '{}' CHECK (json_valid (context)),
    result           TEXT,
    error            TEXT,
    metadata         TEXT NOT NULL DEFAULT '{}' CHECK (json_valid (metadata)),
    policy           TEXT NOT NULL DEFAULT '{}' CHECK (json_valid (policy))
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX one_live_session_per_thread ON sessions (thread_id) WHERE status IN ('queued', 'active', 'paused');
CREATE INDEX sessions_by_thread ON sessions (thread_id, created_at);
CREATE INDEX sessions_by_status ON sessions (status, created_at);

CREATE TABLE leases (
    id         TEXT PRIMARY KEY,
    provider   TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE instances (
    id         TEXT PRIMARY KEY,
    lease_id   TEXT NOT NULL REFERENCES leases (id) ON DELETE CASCADE,
    place      TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    gone_at    INTEGER
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX one_instance_per_lease ON instances (lease_id) WHERE gone_at IS NULL;

CREATE TABLE terminals (
    id            TEXT PRIMARY KEY,
    thread_id     TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    kind          TEXT NOT NULL CHECK (kind IN ('terminal', 'bash', 'python', 'node')),
    cwd           TEXT NOT NULL,
    env_delta     TEXT NOT NULL DEFAULT '[]' CHECK (json_valid (env_delta)),
    cols          INTEGER NOT NULL,
    rows          INTEGER NOT NULL,
    state_version INTEGER NOT NULL DEFAULT 0,
    lease_id      TEXT NOT NULL REFERENCES leases (id),
    UNIQUE (thread_id, kind)
) STRICT, WITHOUT ROWID;

CREATE TABLE runtimes (
    id          TEXT PRIMARY KEY,
    terminal_id TEXT NOT NULL REFERENCES terminals (id) ON DELETE CASCADE,
    session_id  TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    launch      TEXT NOT NULL CHECK (json_valid (launch)),
    is_live     INTEGER NOT NULL,
    state       TEXT NOT NULL CHECK (json_valid (state)),
    holder_pid  INTEGER,
    created_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX one_live_runtime_per_terminal ON runtimes (terminal_id) WHERE is_live;
CREATE INDEX runtimes_by_session ON runtimes (session_id, created_at);

CREATE TABLE events (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    at         INTEGER NOT NULL,
    author     TEXT NOT NULL,
    type       TEXT NOT NULL,
    data       TEXT NOT NULL CHECK (json_valid (data))
) STRICT;
CREATE INDEX events_by_session ON events (session_id, seq);

CREATE TABLE execs (
    id          TEXT PRIMARY KEY,
    runtime_id  TEXT NOT NULL REFERENCES runtimes (id) ON DELETE CASCADE,
    session_id  TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    language    TEXT NOT NULL,
    code        TEXT NOT NULL,
    author      TEXT NOT NULL,
    state       TEXT NOT NULL CHECK (json_valid (state)),
    started_at  INTEGER NOT NULL,
    finished_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX execs_by_session ON execs (session_id, started_at);
