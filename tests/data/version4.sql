-- A database of version 4, as its daemon left it after kill -9: two sessions that ended, a paused task, and a program with an interpreter that ran.
-- Made by that version; never change it.
PRAGMA foreign_keys = OFF;
BEGIN TRANSACTION;
CREATE TABLE activity (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    quarter    INTEGER NOT NULL,
    events     INTEGER NOT NULL,
    PRIMARY KEY (session_id, quarter)
) STRICT, WITHOUT ROWID;
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
CREATE TABLE events (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    at         INTEGER NOT NULL,
    author     TEXT NOT NULL,
    type       TEXT NOT NULL,
    data       TEXT NOT NULL CHECK (json_valid (data))
, n INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO "events" VALUES(1,'01a1eb80-40ea-7656-b6bd-f286bbae3381',1794952413419622,'api','start','{"command":["sh","-c","echo hello; exit 0"],"workspace":"/srv/project","task":null}',1);
INSERT INTO "events" VALUES(2,'01a1eb80-40ea-7656-b6bd-f286bbae3381',1794952413424546,'daemon','exit','{"status":{"code":0}}',2);
INSERT INTO "events" VALUES(3,'01a1eb80-40ea-7656-b6bd-f286bbae3381',1794952413424830,'daemon','complete','{}',3);
INSERT INTO "events" VALUES(4,'01a1eb80-40f7-7702-93c5-3c3a69c9c788',1794952413432158,'api','start','{"command":["sh","-c","exit 3"],"workspace":"/srv/project","task":null}',1);
INSERT INTO "events" VALUES(5,'01a1eb80-40f7-7702-93c5-3c3a69c9c788',1794952413452391,'daemon','exit','{"status":{"code":3}}',2);
INSERT INTO "events" VALUES(6,'01a1eb80-40f7-7702-93c5-3c3a69c9c788',1794952413452490,'daemon','error','{"reason":"exit code 3"}',3);
INSERT INTO "events" VALUES(7,'01a1eb80-4112-7436-8182-4682b288168d',1794952413458793,'api','start','{"workspace":"/srv/project","task":"Mend the login"}',1);
INSERT INTO "events" VALUES(8,'01a1eb80-4112-7436-8182-4682b288168d',1794952413467151,'api','iteration','{"iteration":1,"max_iterations":50}',2);
INSERT INTO "events" VALUES(9,'01a1eb80-4112-7436-8182-4682b288168d',1794952413475928,'api','context','{"set":{"next":"tests"}}',3);
INSERT INTO "events" VALUES(10,'01a1eb80-4112-7436-8182-4682b288168d',1794952413481646,'api','pause','{"reason":"waits"}',4);
INSERT INTO "events" VALUES(11,'01a1eb80-4131-701c-9fd0-05350288a9f6',1794952413489478,'api','start','{"command":["cat"],"workspace":"/srv/project","task":null}',1);
INSERT INTO "events" VALUES(12,'01a1eb80-4131-701c-9fd0-05350288a9f6',1794952413523895,'api','exec_started','{"exec":"01a1eb80-413d-7424-98cd-c5e2580a8164","language":"bash","verb":"exec","code":"cd /; x=1; echo hi"}',2);
INSERT INTO "events" VALUES(13,'01a1eb80-4131-701c-9fd0-05350288a9f6',1794952413526461,'api','exec_finished','{"exec":"01a1eb80-413d-7424-98cd-c5e2580a8164","language":"bash","exitCode":0,"durationMs":1.55}',3);
INSERT INTO "events" VALUES(14,'01a1eb80-4131-701c-9fd0-05350288a9f6',1794952414553823,'daemon','lost','{"language":"bash","state":{"state":"lost","reason":"holder_died","at":"2026-11-17T21:53:34.553596618Z"},"reason":null}',4);
INSERT INTO "events" VALUES(15,'01a1eb80-4131-701c-9fd0-05350288a9f6',1794952414555171,'daemon','lost','{"reason":"holder_died"}',5);
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
INSERT INTO "execs" VALUES('01a1eb80-413d-7424-98cd-c5e2580a8164','01a1eb80-4131-701c-9fd0-05350288a9f6','01a1eb80-413e-730c-97cc-2e9ee402ebf0','bash','exec','cd /; x=1; echo hi',NULL,'api',NULL,'finished',1794952413523802,1794952413524760,1550,0,135,270,3,0,'{"cwd":"/"}');
CREATE TABLE groups (
    name        TEXT PRIMARY KEY,
    max_running INTEGER NOT NULL CHECK (max_running >= 0)
) STRICT, WITHOUT ROWID;
CREATE TABLE instances (
    id         TEXT PRIMARY KEY,
    lease_id   TEXT NOT NULL REFERENCES leases (id) ON DELETE CASCADE,
    place      TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    gone_at    INTEGER
) STRICT, WITHOUT ROWID;
INSERT INTO "instances" VALUES('01a1eb80-40e7-716c-bb08-f5ea6d87bfd4','01a1eb80-40e7-716c-bb08-f5e951cf9002','00000000-0000-4000-8000-000000000001',1794952413415136,NULL);
CREATE TABLE leases (
    id         TEXT PRIMARY KEY,
    provider   TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "leases" VALUES('01a1eb80-40e7-716c-bb08-f5e951cf9002','local',1794952413415136);
CREATE TABLE remembered (
    what  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "remembered" VALUES('cleanup','1794952413421123');
INSERT INTO "remembered" VALUES('clock','["00000000-0000-4000-8000-000000000001",1794944924842839]');
CREATE TABLE runtimes (
    id          TEXT PRIMARY KEY,
    terminal_id TEXT NOT NULL REFERENCES terminals (id) ON DELETE CASCADE,
    session_id  TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    launch      TEXT NOT NULL CHECK (json_valid (launch)),
    is_live     INTEGER NOT NULL,
    state       TEXT NOT NULL CHECK (json_valid (state)),
    holder_pid  INTEGER,
    created_at  INTEGER NOT NULL
, recorded_bytes INTEGER NOT NULL DEFAULT 0, ending TEXT, is_controlled INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID;
INSERT INTO "runtimes" VALUES('01a1eb80-40e9-70ef-bccc-7bb19102a871','01a1eb80-40eb-7550-9ff6-c0116dfdb791','01a1eb80-40ea-7656-b6bd-f286bbae3381','{"argv":["sh","-c","echo hello; exit 0"],"cwd":"/srv/project","env_delta":[],"size":{"cols":80,"rows":24}}',0,'{"state":"exited","status":{"code":0},"at":"2026-11-17T21:53:33.424426758Z"}',8124,1794952413419569,181,NULL,0);
INSERT INTO "runtimes" VALUES('01a1eb80-40f6-71bb-897c-4dff8c0d494a','01a1eb80-40f8-73ae-9f9d-28659537c192','01a1eb80-40f7-7702-93c5-3c3a69c9c788','{"argv":["sh","-c","exit 3"],"cwd":"/srv/project","env_delta":[],"size":{"cols":80,"rows":24}}',0,'{"state":"exited","status":{"code":3},"at":"2026-11-17T21:53:33.452267991Z"}',8131,1794952413432132,157,NULL,0);
INSERT INTO "runtimes" VALUES('01a1eb80-4130-769d-8a0b-341fc1e96fe1','01a1eb80-4131-701c-9fd0-05381ec9681e','01a1eb80-4131-701c-9fd0-05350288a9f6','{"argv":["cat"],"cwd":"/srv/project","env_delta":[],"size":{"cols":80,"rows":24}}',0,'{"state":"lost","reason":"holder_died","at":"2026-11-17T21:53:34.554928797Z"}',8143,1794952413489457,135,NULL,0);
INSERT INTO "runtimes" VALUES('01a1eb80-413e-730c-97cc-2e9ee402ebf0','01a1eb80-4140-7646-b403-98ce48b55660','01a1eb80-4131-701c-9fd0-05350288a9f6','{"argv":["/usr/bin/bash","--norc","--noprofile","/srv/sessions/state/drivers/driver-bbc646a7.bash","/srv/sessions/run/01a1eb80413e730c97cc2e9ee402ebf0.env"],"cwd":"/srv/project","env_delta":[],"size":{"cols":80,"rows":24}}',0,'{"state":"lost","reason":"holder_died","at":"2026-11-17T21:53:34.553596618Z"}',8148,1794952413504126,270,NULL,0);
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
, task_count INTEGER NOT NULL DEFAULT 1, event_count INTEGER NOT NULL DEFAULT 0, started_at INTEGER, active_since INTEGER, active_before INTEGER NOT NULL DEFAULT 0, idle_since INTEGER, group_name TEXT, queued_launch TEXT CHECK (queued_launch IS NULL OR json_valid (queued_launch)), cost REAL, tokens_prompt INTEGER, tokens_completion INTEGER, tokens_total INTEGER, seen_at INTEGER) STRICT, WITHOUT ROWID;
INSERT INTO "sessions" VALUES('01a1eb80-40ea-7656-b6bd-f286bbae3381','01a1eb80-40ea-7656-b6bd-f2887472d8f8',NULL,NULL,'completed','exit code 0',1794952413419018,1794952413424682,1794952413424426,1794952413424682,0,50,'{}',NULL,NULL,'{}','{}',1,3,1794952413419018,NULL,5664,1794952413419645,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "sessions" VALUES('01a1eb80-40f7-7702-93c5-3c3a69c9c788','01a1eb80-40f7-7702-93c5-3c3cef3c893d',NULL,NULL,'failed','exit code 3',1794952413431947,1794952413452445,1794952413452267,1794952413452445,0,50,'{}',NULL,'the program ended with exit code 3','{}','{}',1,3,1794952413431947,NULL,20497,1794952413432144,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "sessions" VALUES('01a1eb80-4112-7436-8182-4682b288168d','01a1eb80-4112-7436-8182-4684b6915017','developer','Mend the login','paused','waits',1794952413458572,1794952413481565,1794952413481646,NULL,1,50,'{"next":"tests"}',NULL,NULL,'{}','{"idle_timeout":"1h","max_duration":"1d"}',1,4,1794952413458572,NULL,22990,1794952413481631,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "sessions" VALUES('01a1eb80-4131-701c-9fd0-05350288a9f6','01a1eb80-4131-701c-9fd0-053714243011',NULL,NULL,'failed','lost',1794952413489310,1794952414555105,1794952413526461,1794952414555105,0,50,'{}',NULL,'lost: its holder was killed','{}','{}',1,5,1794952413489310,NULL,1065794,1794952413526447,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE terminals (
    id            TEXT PRIMARY KEY,
    thread_id     TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    kind          TEXT NOT NULL CHECK (kind IN ('terminal', 'bash', 'python', 'node')),
    cwd           TEXT NOT NULL,
    env_delta     TEXT NOT NULL DEFAULT '[]' CHECK (json_valid (env_delta)),
    cols          INTEGER NOT NULL,
    rows          INTEGER NOT NULL,
    state_version INTEGER NOT NULL DEFAULT 0,
    lease_id      TEXT NOT NULL REFERENCES leases (id), env_removed TEXT NOT NULL DEFAULT '[]' CHECK (json_valid (env_removed)), imports TEXT NOT NULL DEFAULT '[]' CHECK (json_valid (imports)), names TEXT NOT NULL DEFAULT '[]' CHECK (json_valid (names)),
    UNIQUE (thread_id, kind)
) STRICT, WITHOUT ROWID;
INSERT INTO "terminals" VALUES('01a1eb80-40eb-7550-9ff6-c0116dfdb791','01a1eb80-40ea-7656-b6bd-f2887472d8f8','terminal','/srv/project','[]',80,24,0,'01a1eb80-40e7-716c-bb08-f5e951cf9002','[]','[]','[]');
INSERT INTO "terminals" VALUES('01a1eb80-40f8-73ae-9f9d-28659537c192','01a1eb80-40f7-7702-93c5-3c3cef3c893d','terminal','/srv/project','[]',80,24,0,'01a1eb80-40e7-716c-bb08-f5e951cf9002','[]','[]','[]');
INSERT INTO "terminals" VALUES('01a1eb80-4112-7436-8182-4685ca68bd8c','01a1eb80-4112-7436-8182-4684b6915017','terminal','/srv/project','[]',80,24,0,'01a1eb80-40e7-716c-bb08-f5e951cf9002','[]','[]','[]');
INSERT INTO "terminals" VALUES('01a1eb80-4131-701c-9fd0-05381ec9681e','01a1eb80-4131-701c-9fd0-053714243011','terminal','/srv/project','[]',80,24,0,'01a1eb80-40e7-716c-bb08-f5e951cf9002','[]','[]','[]');
INSERT INTO "terminals" VALUES('01a1eb80-4140-7646-b403-98ce48b55660','01a1eb80-4131-701c-9fd0-053714243011','bash','/','[]',80,24,1,'01a1eb80-40e7-716c-bb08-f5e951cf9002','[]','[]','[]');
CREATE TABLE threads (
    id          TEXT PRIMARY KEY,
    name        TEXT NOT NULL UNIQUE,
    workspace   TEXT NOT NULL,
    user        TEXT,
    channel     TEXT,
    created_at  INTEGER NOT NULL
, task_count INTEGER NOT NULL DEFAULT 0, is_place INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID;
INSERT INTO "threads" VALUES('01a1eb80-40ea-7656-b6bd-f2887472d8f8','done','/srv/project',NULL,NULL,1794952413418839,1,0);
INSERT INTO "threads" VALUES('01a1eb80-40f7-7702-93c5-3c3cef3c893d','broken','/srv/project',NULL,NULL,1794952413431899,1,0);
INSERT INTO "threads" VALUES('01a1eb80-4112-7436-8182-4684b6915017','task','/srv/project',NULL,NULL,1794952413458541,1,0);
INSERT INTO "threads" VALUES('01a1eb80-4131-701c-9fd0-053714243011','live','/srv/project',NULL,NULL,1794952413489281,1,0);
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
CREATE UNIQUE INDEX one_live_session_per_thread ON sessions (thread_id) WHERE status IN ('queued', 'active', 'paused');
CREATE INDEX sessions_by_thread ON sessions (thread_id, created_at);
CREATE INDEX sessions_by_status ON sessions (status, created_at);
CREATE UNIQUE INDEX one_instance_per_lease ON instances (lease_id) WHERE gone_at IS NULL;
CREATE UNIQUE INDEX one_live_runtime_per_terminal ON runtimes (terminal_id) WHERE is_live;
CREATE INDEX runtimes_by_session ON runtimes (session_id, created_at);
CREATE INDEX events_by_session ON events (session_id, seq);
CREATE INDEX threads_by_user ON threads (user) WHERE user IS NOT NULL;
CREATE INDEX threads_by_channel ON threads (channel) WHERE channel IS NOT NULL;
CREATE INDEX threads_by_workspace ON threads (workspace);
CREATE INDEX sessions_by_created ON sessions (created_at, task);
CREATE INDEX sessions_by_end ON sessions (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX sessions_by_mode ON sessions (mode, created_at) WHERE mode IS NOT NULL;
CREATE INDEX sessions_by_group ON sessions (group_name, status, created_at) WHERE group_name IS NOT NULL AND status IN ('queued', 'active', 'paused');
CREATE INDEX sessions_for_stats ON sessions
    (status, mode, created_at, started_at, ended_at, iterations, cost, tokens_prompt, tokens_completion, tokens_total, thread_id);
CREATE INDEX runtimes_by_terminal ON runtimes (terminal_id);
CREATE INDEX pending_deliveries ON deliveries (webhook_id, number) WHERE state = 'pending';
CREATE INDEX deliveries_by_webhook ON deliveries (webhook_id, number);
CREATE INDEX audit_by_thread ON audit (thread, created_at);
CREATE UNIQUE INDEX one_place_per_workspace ON threads (workspace) WHERE is_place;
CREATE INDEX execs_by_session ON execs (session_id, asked_at);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('events',15);
COMMIT;
PRAGMA user_version = 4;
