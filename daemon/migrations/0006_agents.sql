-- What agents and shells tell of themselves, kept so that a later daemon knows it too.

-- the conversation that an agent has in it, and the last that its hooks said
ALTER TABLE runtimes ADD COLUMN agent TEXT CHECK (agent IS NULL OR json_valid (agent));
ALTER TABLE runtimes ADD COLUMN hook TEXT CHECK (hook IS NULL OR json_valid (hook));
-- since when it waited for somebody when people were last told so
ALTER TABLE runtimes ADD COLUMN notified_at INTEGER;

-- Commands of shells that are typed into, from their marks. A mark is a place in the recording, exact to the byte: two in one frame
-- are two. What has been read of the recording ends at commands_mark, in the frame that begins at commands_from.
ALTER TABLE runtimes ADD COLUMN commands_from INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runtimes ADD COLUMN commands_mark INTEGER NOT NULL DEFAULT 0;
-- what ended before anybody counted is not gone through
UPDATE runtimes SET commands_from = -1 WHERE NOT is_live;
CREATE TABLE commands (
    runtime_id   TEXT NOT NULL REFERENCES runtimes (id) ON DELETE CASCADE,
    mark         INTEGER NOT NULL,
    session_id   TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    text         TEXT NOT NULL,
    cwd          TEXT,
    author       TEXT,
    started_at   INTEGER NOT NULL,
    -- ends of the frames that its marks are in, as everywhere; without an end it runs, or was never seen to end
    start_offset INTEGER NOT NULL,
    end_offset   INTEGER,
    took         INTEGER,
    exit_code    INTEGER,
    PRIMARY KEY (runtime_id, mark)
) STRICT, WITHOUT ROWID;
CREATE INDEX commands_by_session ON commands (session_id, started_at);
