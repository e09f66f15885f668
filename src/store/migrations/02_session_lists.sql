-- Sessions as lists show them, apart from their texts, so that a list reads no text; by file as
-- well, because two files may tell sessions of one id.
CREATE TABLE logged_sessions (
    key          INTEGER PRIMARY KEY,
    agent        TEXT NOT NULL,
    id           TEXT NOT NULL,
    -- The first of its log files.
    file         TEXT NOT NULL,
    project      TEXT,
    -- Folders entered later, one a line.
    folders      TEXT NOT NULL,
    -- When something happened in it last, in microseconds since 1970.
    active       INTEGER,
    outcome      TEXT NOT NULL,
    -- The beginning of what was asked first.
    first_prompt TEXT NOT NULL,
    UNIQUE (agent, id, file)
) STRICT;

CREATE INDEX logged_sessions_by_file ON logged_sessions (agent, file);

CREATE TABLE session_texts (
    key     INTEGER PRIMARY KEY REFERENCES logged_sessions (key) ON DELETE CASCADE,
    session TEXT NOT NULL
) STRICT;

INSERT INTO logged_sessions (agent, id, file, project, folders, active, outcome, first_prompt)
SELECT agent, id,
       COALESCE(json_extract(session, '$.files[0]'), ''),
       NULLIF(project, ''),
       '',
       CAST(strftime('%s', ended) AS INTEGER) * 1000000,
       outcome,
       substr(COALESCE(json_extract(session, '$.turns[0].prompts[0].text'), ''), 1, 200)
FROM sessions;

INSERT INTO session_texts (key, session)
SELECT logged_sessions.key, sessions.session
FROM sessions JOIN logged_sessions USING (agent, id);

DROP TABLE sessions;

-- What is remembered of the log files of the last harvest, so that unchanged ones are not opened.
CREATE TABLE log_files (
    agent TEXT NOT NULL,
    path  TEXT NOT NULL,
    stamp TEXT NOT NULL,
    PRIMARY KEY (agent, path)
) STRICT, WITHOUT ROWID;

-- What the sessions of an agent were read with. Under other settings they are read again.
CREATE TABLE harvests (
    agent       TEXT PRIMARY KEY,
    fingerprint TEXT NOT NULL
) STRICT, WITHOUT ROWID;
