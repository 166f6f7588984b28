-- A database of the foundation (schema 1), as its daemon left it after kill -9 with one session running.
-- Made by that version; never change it.
PRAGMA foreign_keys = OFF;
BEGIN TRANSACTION;
CREATE TABLE events (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    at         INTEGER NOT NULL,
    author     TEXT NOT NULL,
    type       TEXT NOT NULL,
    data       TEXT NOT NULL CHECK (json_valid (data))
) STRICT;
INSERT INTO "events" VALUES(1,'01a1e427-0789-74cc-8bfe-4704ae86c370',1794829125513544,'api','start','{"command":["sh","-c","echo one; exit 0"],"task":"build the api","workspace":"/"}');
INSERT INTO "events" VALUES(2,'01a1e427-0789-74cc-8bfe-4704ae86c370',1794829125527870,'daemon','exit','{"status":{"code":0}}');
INSERT INTO "events" VALUES(3,'01a1e427-0789-74cc-8bfe-4704ae86c370',1794829125527918,'daemon','complete','{}');
INSERT INTO "events" VALUES(4,'01a1e427-07a9-7011-99fc-2b5b00bce4d1',1794829125545528,'api','start','{"command":["sh","-c","echo two; exit 3"],"task":"again","workspace":"/"}');
INSERT INTO "events" VALUES(5,'01a1e427-07a9-7011-99fc-2b5b00bce4d1',1794829125548534,'daemon','exit','{"status":{"code":3}}');
INSERT INTO "events" VALUES(6,'01a1e427-07a9-7011-99fc-2b5b00bce4d1',1794829125548573,'daemon','error','{"reason":"exit code 3"}');
INSERT INTO "events" VALUES(7,'01a1e427-07bd-74ee-afdf-245f49282621',1794829125565443,'api','start','{"command":["sleep","1000"],"task":null,"workspace":"/"}');
INSERT INTO "events" VALUES(8,'01a1e427-07bd-74ee-afdf-245f49282621',1794829125580421,'daemon','exit','{"status":{"signal":1}}');
INSERT INTO "events" VALUES(9,'01a1e427-07bd-74ee-afdf-245f49282621',1794829125580469,'api','error','{"reason":"killed"}');
INSERT INTO "events" VALUES(10,'01a1e427-07d0-7244-bda9-cb777c2d6ba2',1794829125585083,'api','start','{"command":["sleep","1000"],"task":null,"workspace":"/"}');
INSERT INTO "events" VALUES(11,'01a1e427-07d0-7244-bda9-cb777c2d6ba2',1794829125606370,'api','renamed','{"from":"busy","to":"größe"}');
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
CREATE TABLE instances (
    id         TEXT PRIMARY KEY,
    lease_id   TEXT NOT NULL REFERENCES leases (id) ON DELETE CASCADE,
    place      TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    gone_at    INTEGER
) STRICT, WITHOUT ROWID;
INSERT INTO "instances" VALUES('01a1e427-077c-7116-985b-dbe6e5826189','01a1e427-077c-7116-985b-dbe5b32d229a','00000000-0000-4000-8000-000000000001',1794829125500291,NULL);
CREATE TABLE leases (
    id         TEXT PRIMARY KEY,
    provider   TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "leases" VALUES('01a1e427-077c-7116-985b-dbe5b32d229a','local',1794829125500291);
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
INSERT INTO "runtimes" VALUES('01a1e427-0785-7718-afe9-0d9cf7aaf389','01a1e427-0789-74cc-8bfe-47054639bce7','01a1e427-0789-74cc-8bfe-4704ae86c370','{"argv":["sh","-c","echo one; exit 0"],"cwd":"/","env_delta":[["PORT","80"]],"size":{"cols":80,"rows":24}}',0,'{"state":"exited","status":{"code":0},"at":"2026-11-16T11:38:45.527696574Z"}',8075,1794829125513337);
INSERT INTO "runtimes" VALUES('01a1e427-07a6-73c5-b414-002493931152','01a1e427-0789-74cc-8bfe-47054639bce7','01a1e427-07a9-7011-99fc-2b5b00bce4d1','{"argv":["sh","-c","echo two; exit 3"],"cwd":"/","env_delta":[],"size":{"cols":80,"rows":24}}',0,'{"state":"exited","status":{"code":3},"at":"2026-11-16T11:38:45.54833032Z"}',8080,1794829125545308);
INSERT INTO "runtimes" VALUES('01a1e427-07b6-74b3-9b47-dc1120d8cbe2','01a1e427-07bd-74ee-afdf-2460a2ea84ee','01a1e427-07bd-74ee-afdf-245f49282621','{"argv":["sleep","1000"],"cwd":"/","env_delta":[],"size":{"cols":80,"rows":24}}',0,'{"state":"exited","status":{"signal":1},"at":"2026-11-16T11:38:45.580214979Z"}',8085,1794829125565183);
INSERT INTO "runtimes" VALUES('01a1e427-07d0-7244-bda9-cb75a825cd73','01a1e427-07d0-7244-bda9-cb78d1456a38','01a1e427-07d0-7244-bda9-cb777c2d6ba2','{"argv":["sleep","1000"],"cwd":"/","env_delta":[],"size":{"cols":80,"rows":24}}',1,'{"state":"running","pid":4000001}',4000000,1794829125584820);
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
INSERT INTO "sessions" VALUES('01a1e427-0789-74cc-8bfe-4704ae86c370','01a1e427-0789-74cc-8bfe-4703e71cd8f5','developer','build the api','completed','exit code 0',1794829125513337,1794829125527729,1794829125527696,1794829125527729,0,50,'{}',NULL,NULL,'{}','{}');
INSERT INTO "sessions" VALUES('01a1e427-07a9-7011-99fc-2b5b00bce4d1','01a1e427-0789-74cc-8bfe-4703e71cd8f5','developer','again','failed','exit code 3',1794829125545308,1794829125548409,1794829125548330,1794829125548409,0,50,'{}',NULL,'the program ended with exit code 3','{}','{}');
INSERT INTO "sessions" VALUES('01a1e427-07bd-74ee-afdf-245f49282621','01a1e427-07bd-74ee-afdf-245ec3fd5cb7',NULL,NULL,'failed','killed',1794829125565183,1794829125580284,1794829125580214,1794829125580284,0,50,'{}',NULL,'ended on request','{}','{}');
INSERT INTO "sessions" VALUES('01a1e427-07d0-7244-bda9-cb777c2d6ba2','01a1e427-07d0-7244-bda9-cb760a785f84',NULL,NULL,'active',NULL,1794829125584820,1794829125584820,1794829125584820,NULL,0,50,'{}',NULL,NULL,'{}','{}');
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
INSERT INTO "terminals" VALUES('01a1e427-0789-74cc-8bfe-47054639bce7','01a1e427-0789-74cc-8bfe-4703e71cd8f5','terminal','/','[]',80,24,1,'01a1e427-077c-7116-985b-dbe5b32d229a');
INSERT INTO "terminals" VALUES('01a1e427-07bd-74ee-afdf-2460a2ea84ee','01a1e427-07bd-74ee-afdf-245ec3fd5cb7','terminal','/','[]',80,24,0,'01a1e427-077c-7116-985b-dbe5b32d229a');
INSERT INTO "terminals" VALUES('01a1e427-07d0-7244-bda9-cb78d1456a38','01a1e427-07d0-7244-bda9-cb760a785f84','terminal','/','[]',80,24,0,'01a1e427-077c-7116-985b-dbe5b32d229a');
CREATE TABLE threads (
    id          TEXT PRIMARY KEY,
    name        TEXT NOT NULL UNIQUE,
    workspace   TEXT NOT NULL,
    user        TEXT,
    channel     TEXT,
    created_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "threads" VALUES('01a1e427-0789-74cc-8bfe-4703e71cd8f5','api','/','ann','c1',1794829125513337);
INSERT INTO "threads" VALUES('01a1e427-07bd-74ee-afdf-245ec3fd5cb7','killed','/',NULL,NULL,1794829125565183);
INSERT INTO "threads" VALUES('01a1e427-07d0-7244-bda9-cb760a785f84','größe','/',NULL,NULL,1794829125584820);
CREATE UNIQUE INDEX one_live_session_per_thread ON sessions (thread_id) WHERE status IN ('queued', 'active', 'paused');
CREATE INDEX sessions_by_thread ON sessions (thread_id, created_at);
CREATE INDEX sessions_by_status ON sessions (status, created_at);
CREATE UNIQUE INDEX one_instance_per_lease ON instances (lease_id) WHERE gone_at IS NULL;
CREATE UNIQUE INDEX one_live_runtime_per_terminal ON runtimes (terminal_id) WHERE is_live;
CREATE INDEX runtimes_by_session ON runtimes (session_id, created_at);
CREATE INDEX events_by_session ON events (session_id, seq);
CREATE INDEX execs_by_session ON execs (session_id, started_at);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('events',11);
COMMIT;
PRAGMA user_version = 1;
