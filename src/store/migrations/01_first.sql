CREATE TABLE sessions (
    agent   TEXT NOT NULL,
    id      TEXT NOT NULL,
    project TEXT NOT NULL,
    started TEXT,
    ended   TEXT,
    outcome TEXT NOT NULL,
    session TEXT NOT NULL,
    PRIMARY KEY (agent, id)
) STRICT;

CREATE INDEX sessions_by_end ON sessions (ended);

CREATE TABLE nights (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    started TEXT NOT NULL,
    ended   TEXT,
    status  TEXT NOT NULL,
    report  TEXT
) STRICT;

CREATE TABLE events (
    seq   INTEGER PRIMARY KEY AUTOINCREMENT,
    night INTEGER NOT NULL REFERENCES nights (id),
    at    TEXT NOT NULL,
    event TEXT NOT NULL
) STRICT;

CREATE INDEX events_by_night ON events (night, seq);
