"""Schema migrations of the two databases. Each runs in one transaction and is an SQL script, or a function where SQL is
not enough.

The version of a file (`PRAGMA user_version`) is the number of migrations it has seen. A script that was released is
never edited: a change is a new one at the end.
"""

import sqlite3
from collections.abc import Callable, Sequence
from typing import Final

from holdfast.storage.sql import schema as shared_schema
from holdfast.storage.sqlite import journal_records

Migration = str | Callable[[sqlite3.Connection], None]

_TYPES: Final = {
    "text": "TEXT",
    "real": "REAL",
    "integer": "INTEGER",
    "boolean": "INTEGER",
    "false": "0",
    "bytes": "BLOB",
    "words": "TEXT",
    "number": "INTEGER PRIMARY KEY AUTOINCREMENT",
    "without_rowid": " WITHOUT ROWID",
    "project_id": "'prj_' || lower(hex(randomblob(13)))",
}

STORE: Final = (
    shared_schema.SESSIONS_AND_RUNS.format_map(_TYPES)
    + """
    CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE INDEX runs_prunable ON runs (ended_at, id) WHERE pruned = 0 AND ended_at IS NOT NULL;

    -- Which files a message names: derived from its parts. A file that no row names is an orphan.
    CREATE TABLE message_files (
        file_id TEXT NOT NULL,
        message_id TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
        owner TEXT NOT NULL,
        PRIMARY KEY (file_id, message_id)
    ) WITHOUT ROWID;
    CREATE INDEX files_of_message ON message_files (message_id);

    -- What can be searched: a title (message_id NULL) or the words of a message. Larger n: newer.
    CREATE TABLE docs (
        n INTEGER PRIMARY KEY AUTOINCREMENT,
        owner TEXT NOT NULL,
        session_id TEXT NOT NULL,
        message_id TEXT,
        text TEXT NOT NULL
    );
    CREATE INDEX docs_of_session ON docs (session_id, message_id);
    CREATE VIRTUAL TABLE words USING fts5 (
        text, content = 'docs', content_rowid = 'n', columnsize = 0, prefix = '2 3 4',
        tokenize = 'unicode61 remove_diacritics 2'
    );
    CREATE TRIGGER docs_added AFTER INSERT ON docs BEGIN
        INSERT INTO words (rowid, text) VALUES (new.n, new.text);
    END;
    CREATE TRIGGER docs_dropped AFTER DELETE ON docs BEGIN
        INSERT INTO words (words, rowid, text) VALUES ('delete', old.n, old.text);
    END;
    CREATE TRIGGER docs_changed AFTER UPDATE OF text ON docs BEGIN
        INSERT INTO words (words, rowid, text) VALUES ('delete', old.n, old.text);
        INSERT INTO words (rowid, text) VALUES (new.n, new.text);
    END;
    """,
    shared_schema.GRANTS.format_map(_TYPES),
    shared_schema.MEMORY.format_map(_TYPES)
    + """
    CREATE VIRTUAL TABLE fact_words USING fts5 (
        words, content = 'facts', content_rowid = 'n', columnsize = 0, prefix = '2 3 4',
        tokenize = 'unicode61 remove_diacritics 2'
    );
    CREATE TRIGGER facts_added AFTER INSERT ON facts BEGIN
        INSERT INTO fact_words (rowid, words) VALUES (new.n, new.words);
    END;
    CREATE TRIGGER facts_dropped AFTER DELETE ON facts BEGIN
        INSERT INTO fact_words (fact_words, rowid, words) VALUES ('delete', old.n, old.words);
    END;
    """,
    shared_schema.CONFIRMED_FACTS.format_map(_TYPES),
    """
    -- The tags of a session are searched with its title.
    CREATE TEMPORARY TABLE tagged AS
        SELECT id, owner, (SELECT group_concat('#' || value, ' ') FROM json_each(tags)) AS text
        FROM sessions WHERE tags <> '[]';
    UPDATE docs SET text = text || ' ' || (SELECT tagged.text FROM tagged WHERE id = docs.session_id)
        WHERE message_id IS NULL AND session_id IN (SELECT id FROM tagged);
    INSERT INTO docs (owner, session_id, message_id, text)
        SELECT owner, id, NULL, text FROM tagged
        WHERE id NOT IN (SELECT session_id FROM docs WHERE message_id IS NULL);
    DROP TABLE tagged;
    """,
    shared_schema.USAGE.format_map(_TYPES),
    shared_schema.STEERING.format_map(_TYPES),
    shared_schema.SHARES.format_map(_TYPES),
    shared_schema.PUSH.format_map(_TYPES),
    shared_schema.PROJECTS.format_map(_TYPES),
    shared_schema.DRAFTS.format_map(_TYPES),
    shared_schema.PROMPTS.format_map(_TYPES),
    shared_schema.PERSONAS.format_map(_TYPES),
)

JOURNAL: Final[Sequence[Migration]] = (
    """
    -- Events of all runs in the order of their commits. There is no index: the rows of a hundred runs in one commit
    -- touch two pages and not a hundred. Where a run's rows are is known in memory (see journal_index.py).
    CREATE TABLE log (
        n INTEGER PRIMARY KEY,
        run INTEGER NOT NULL,               -- runs.alias
        seq INTEGER NOT NULL,
        crc INTEGER NOT NULL,               -- of the frame
        seals INTEGER NOT NULL,             -- this is the terminal event
        frame BLOB
    );

    -- `last_seq` and `sealed` are kept here once the events have left the log (`archived`, `pruned`).
    CREATE TABLE runs (
        alias INTEGER PRIMARY KEY,
        run TEXT NOT NULL UNIQUE,
        epoch INTEGER NOT NULL,
        last_seq INTEGER NOT NULL DEFAULT 0,
        sealed INTEGER NOT NULL DEFAULT 0,
        archived INTEGER NOT NULL DEFAULT 0,
        pruned INTEGER NOT NULL DEFAULT 0
    );

    -- The events of settled runs, many to a row (see journal_segments.py).
    CREATE TABLE segments (
        run INTEGER NOT NULL,               -- runs.alias
        first_seq INTEGER NOT NULL,
        last_seq INTEGER NOT NULL,
        crc INTEGER NOT NULL,
        frames BLOB NOT NULL,
        PRIMARY KEY (run, first_seq)
    );
    """,
    # A row per commit instead of one per event.
    journal_records.from_rows_per_event,
    "CREATE INDEX marks ON runs (alias) WHERE pruned = 1",
)
