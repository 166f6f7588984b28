-- Calls to interpreters, and what a terminal remembers of one. The table of before was never written to.

-- the runtimes of a folder belong to a thread of their own
ALTER TABLE threads ADD COLUMN is_place INTEGER NOT NULL DEFAULT 0;
CREATE UNIQUE INDEX one_place_per_workspace ON threads (workspace) WHERE is_place;

-- variables that were there at the start and are not any more; what the code has imported and defined, as last seen
ALTER TABLE terminals ADD COLUMN env_removed TEXT NOT NULL DEFAULT '[]' CHECK (json_valid (env_removed));
ALTER TABLE terminals ADD COLUMN imports TEXT NOT NULL DEFAULT '[]' CHECK (json_valid (imports));
ALTER TABLE terminals ADD COLUMN names TEXT NOT NULL DEFAULT '[]' CHECK (json_valid (names));

DROP TABLE execs;
CREATE TABLE execs (
    id           TEXT PRIMARY KEY,
    session_id   TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    -- of the same thread; it goes with its sessions
    runtime_id   TEXT NOT NULL,
    language     TEXT NOT NULL,
    verb         TEXT NOT NULL,
    code         TEXT NOT NULL,
    stdin        TEXT,
    author       TEXT NOT NULL,
    timeout_ms   INTEGER,
    -- open: waits or runs, which its runtime knows
    stage        TEXT NOT NULL CHECK (stage IN ('open', 'finished', 'lost', 'cancelled')),
    asked_at     INTEGER NOT NULL,
    started_at   INTEGER,
    took         INTEGER,
    exit_code    INTEGER,
    -- where it is in its runtime's recording, and how much it printed
    start_offset INTEGER,
    end_offset   INTEGER,
    stdout_bytes INTEGER NOT NULL DEFAULT 0,
    stderr_bytes INTEGER NOT NULL DEFAULT 0,
    outcome      TEXT CHECK (outcome IS NULL OR json_valid (outcome))
) STRICT, WITHOUT ROWID;
-- one index: calls are many, and each page that a call touches is a part of its time
CREATE INDEX execs_by_session ON execs (session_id, asked_at);
