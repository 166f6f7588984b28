-- Pausing: what is frozen or hibernated, and what comes back after a restart of the machine.

-- since when everything of it is to stand still: decided here, done by its holder
ALTER TABLE runtimes ADD COLUMN frozen_since INTEGER;
-- what is typed meanwhile is kept
ALTER TABLE runtimes ADD COLUMN queues_input INTEGER NOT NULL DEFAULT 0;
-- the runtime whose place this one takes: it was hibernated or lost
ALTER TABLE runtimes ADD COLUMN continues TEXT;

-- of a session that was lost: 'due' until it has been started again, 'asked' until a person says so, else why it could not be
ALTER TABLE sessions ADD COLUMN restore TEXT;
CREATE INDEX sessions_to_restore ON sessions (restore) WHERE restore IS NOT NULL;
