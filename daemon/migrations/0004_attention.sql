-- What a person has seen, and how much happened when.

-- when somebody last looked: what ended after that is news; what ended before anybody could say so is not
ALTER TABLE sessions ADD COLUMN seen_at INTEGER;
UPDATE sessions SET seen_at = ended_at WHERE ended_at IS NOT NULL;

-- events by session and quarter of an hour: a part of every time zone's hours. Counted when somebody asks, up to the event that
-- `remembered` names, so that telling one costs nothing more
CREATE TABLE activity (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    quarter    INTEGER NOT NULL,
    events     INTEGER NOT NULL,
    PRIMARY KEY (session_id, quarter)
) STRICT, WITHOUT ROWID;
