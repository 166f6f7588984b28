-- Files that change in the workspaces of active sessions.

-- whether its workspace is watched, if that was asked for: 'auto', 'on', 'off'
ALTER TABLE sessions ADD COLUMN watch TEXT;
-- up to when changes of its files are known here: what changed later, while no daemon was there, is found by the times of files
ALTER TABLE sessions ADD COLUMN watched_until INTEGER;

CREATE TABLE changed_files (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    -- from the workspace on
    path       TEXT NOT NULL,
    change     TEXT NOT NULL,
    -- when it was last seen to appear; NULL: it was there before the session
    created_at INTEGER,
    changed_at INTEGER NOT NULL,
    -- in how many events it was
    times      INTEGER NOT NULL,
    PRIMARY KEY (session_id, path)
) STRICT, WITHOUT ROWID;
CREATE INDEX changed_files_by_time ON changed_files (session_id, changed_at);
