-- Notices that the person has taken note of, by name.
CREATE TABLE seen_notices (
    notice TEXT PRIMARY KEY,
    at     TEXT NOT NULL
) STRICT;
