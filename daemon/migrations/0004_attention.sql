-- What a person has seen, and how much happened when.

-- when somebody last looked: what ended after that is news; what ended before anybody could say so is not
ALTER TABLE sessions ADD COLUMN seen_at INTEGER;
UPDATE sessions SET seen_at = ended_at WHERE ended_at IS NOT NULL;
