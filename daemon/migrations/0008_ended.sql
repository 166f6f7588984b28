-- Status 'ended': what a person, a script or a reset ended is neither a success nor a failure.

-- SQLite cannot alter a CHECK; a new table would copy every row and fail on a damaged one. Changing the text of the constraint
-- touches no row: it only allows one more word (https://www.sqlite.org/lang_altertable.html, section 7).
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace (sql, '''failed'', ''timeout'')', '''failed'', ''timeout'', ''ended'')')
    WHERE type = 'table' AND name = 'sessions';
PRAGMA writable_schema = RESET;

-- told before as a failure with these reasons
UPDATE sessions SET status = 'ended', error = CASE WHEN error = 'ended on request' THEN NULL ELSE error END
    WHERE status = 'failed' AND status_reason IN ('killed', 'reset', 'cancelled');
UPDATE audit SET status = 'ended' WHERE status = 'failed' AND status_reason IN ('killed', 'reset', 'cancelled');

-- (this also changes the schema's number, so that other connections read it again)
-- what it asked before this was answered or dismissed; the recording has the question, not the answer
ALTER TABLE sessions ADD COLUMN answered_at INTEGER;
