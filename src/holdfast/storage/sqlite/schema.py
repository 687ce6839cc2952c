"""What the two databases look like: migrations in order, each in one transaction: a literal script, or a function where
SQL cannot say it.

The version of a file (`PRAGMA user_version`) is the number of migrations it has seen. A script that was released is
never edited: a change is a new one at the end.
"""

import sqlite3
from collections.abc import Callable, Sequence
from typing import Final

from holdfast.storage.sqlite import records

Migration = str | Callable[[sqlite3.Connection], None]

STORE: Final = (
    """
    CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

    CREATE TABLE sessions (
        id TEXT PRIMARY KEY NOT NULL,
        owner TEXT NOT NULL,
        created_at REAL NOT NULL,
        updated_at REAL NOT NULL,
        title TEXT NOT NULL,
        titled_by TEXT NOT NULL,
        agent TEXT NOT NULL,
        model TEXT,
        system TEXT,
        settings TEXT NOT NULL,             -- JSON
        previous_session_id TEXT,
        pinned INTEGER NOT NULL,
        archived INTEGER NOT NULL,
        tags TEXT NOT NULL,                 -- JSON
        project TEXT,
        head TEXT,
        redo TEXT NOT NULL,                 -- JSON
        version INTEGER NOT NULL,
        deleted_at REAL
    );
    CREATE INDEX sessions_listed ON sessions (owner, archived, updated_at, id) WHERE deleted_at IS NULL;
    CREATE INDEX sessions_of_project ON sessions (owner, archived, project, updated_at, id)
        WHERE deleted_at IS NULL AND project IS NOT NULL;
    CREATE INDEX sessions_deleted ON sessions (deleted_at, id) WHERE deleted_at IS NOT NULL;

    CREATE TABLE messages (
        id TEXT PRIMARY KEY NOT NULL,
        owner TEXT NOT NULL,
        session_id TEXT NOT NULL,
        role TEXT NOT NULL,
        parent_id TEXT,
        created_at REAL NOT NULL,
        run_id TEXT,
        status TEXT NOT NULL,
        reason TEXT,
        error TEXT,                         -- JSON
        recovery TEXT,
        model TEXT,
        usage TEXT,                         -- JSON
        key TEXT,
        in_tree INTEGER NOT NULL,
        last_seq INTEGER NOT NULL,
        parts TEXT NOT NULL                 -- JSON; last, because it is long
    );
    CREATE INDEX messages_of_session ON messages (session_id, in_tree, parent_id, created_at, id);

    CREATE TABLE runs (
        id TEXT PRIMARY KEY NOT NULL,
        owner TEXT NOT NULL,
        session_id TEXT NOT NULL,
        message_id TEXT NOT NULL,
        user_message_id TEXT NOT NULL,
        agent TEXT NOT NULL,
        model TEXT,
        settings TEXT NOT NULL,             -- JSON
        lifetime TEXT NOT NULL,
        created_at REAL NOT NULL,
        rank INTEGER NOT NULL,
        in_tree INTEGER NOT NULL,
        status TEXT NOT NULL,
        epoch INTEGER NOT NULL,
        lease_holder TEXT,
        lease_until REAL,
        connection_holder TEXT,
        connection_until REAL,
        key TEXT,
        fingerprint TEXT NOT NULL,
        continues TEXT,
        resumes INTEGER NOT NULL,
        intent TEXT,                        -- JSON
        recovery_state TEXT,
        recovery_since REAL,
        recovery_attempts INTEGER,
        reason TEXT,
        finish_reason TEXT,
        error TEXT,                         -- JSON
        usage TEXT,                         -- JSON
        started_at REAL,
        ended_at REAL,
        last_seq INTEGER NOT NULL,
        pruned INTEGER NOT NULL
    );
    CREATE UNIQUE INDEX runs_by_key ON runs (owner, session_id, key) WHERE key IS NOT NULL;
    CREATE INDEX runs_of_owner ON runs (owner, created_at, id);
    CREATE INDEX runs_by_status ON runs (owner, status, created_at, id);
    CREATE INDEX runs_of_session ON runs (session_id, created_at, id);
    CREATE INDEX runs_open ON runs (id) WHERE status IN ('queued', 'running', 'waiting');
    CREATE INDEX runs_open_of_session ON runs (session_id, rank, id)
        WHERE status IN ('queued', 'running', 'waiting');
    CREATE INDEX runs_claimable ON runs (rank, id) WHERE status = 'queued' AND intent IS NULL;
    CREATE INDEX runs_pending ON runs (recovery_since, id) WHERE recovery_state = 'pending';
    CREATE INDEX runs_prunable ON runs (ended_at, id) WHERE pruned = 0 AND ended_at IS NOT NULL;

    CREATE TABLE approvals (
        id TEXT PRIMARY KEY NOT NULL,
        owner TEXT NOT NULL,
        run_id TEXT NOT NULL,
        session_id TEXT NOT NULL,
        call_id TEXT NOT NULL,
        name TEXT NOT NULL,
        args TEXT NOT NULL,                 -- JSON
        reason TEXT NOT NULL,
        created_at REAL NOT NULL,
        decision TEXT,
        decided_at REAL
    );
    CREATE INDEX approvals_of_run ON approvals (run_id, created_at, id);
    CREATE INDEX approvals_of_session ON approvals (session_id);

    CREATE TABLE compactions (
        session_id TEXT NOT NULL,
        owner TEXT NOT NULL,
        message_id TEXT NOT NULL,
        summary TEXT NOT NULL,
        created_at REAL NOT NULL,
        PRIMARY KEY (session_id, message_id)
    );

    CREATE TABLE files (
        id TEXT PRIMARY KEY NOT NULL,
        owner TEXT NOT NULL,
        sha256 TEXT NOT NULL,
        name TEXT NOT NULL,
        media_type TEXT NOT NULL,
        size INTEGER NOT NULL,
        created_at REAL NOT NULL
    );
    CREATE INDEX files_by_digest ON files (sha256);
    CREATE INDEX files_by_age ON files (created_at, id);

    -- Which files a message names: derived from its parts. A file that no row names is an orphan.
    CREATE TABLE message_files (
        file_id TEXT NOT NULL,
        message_id TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
        owner TEXT NOT NULL,
        PRIMARY KEY (file_id, message_id)
    ) WITHOUT ROWID;
    CREATE INDEX files_of_message ON message_files (message_id);

    -- Journals to erase. The rows that they belonged to are gone, their owners with them.
    CREATE TABLE purges (run_id TEXT PRIMARY KEY NOT NULL) WITHOUT ROWID;

    CREATE TABLE changes (
        n INTEGER PRIMARY KEY AUTOINCREMENT,
        kind TEXT NOT NULL,
        owner TEXT NOT NULL,
        session_id TEXT NOT NULL,
        run_id TEXT,
        approval_id TEXT,
        status TEXT
    );

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
    """
    ALTER TABLE approvals ADD COLUMN note TEXT;
    CREATE INDEX approvals_open ON approvals (created_at, id) WHERE decision IS NULL;

    -- Tools that a person allowed, in one session or ('') in all.
    CREATE TABLE grants (
        owner TEXT NOT NULL,
        session_id TEXT NOT NULL,
        tool TEXT NOT NULL,
        scope TEXT NOT NULL,
        created_at REAL NOT NULL,
        PRIMARY KEY (owner, session_id, tool, scope)
    ) WITHOUT ROWID;
    CREATE INDEX grants_of_session ON grants (session_id);

    CREATE TABLE settings (
        owner TEXT NOT NULL,
        name TEXT NOT NULL,
        value TEXT NOT NULL,                -- JSON
        PRIMARY KEY (owner, name)
    ) WITHOUT ROWID;
    """,
    """
    -- Which completed turns of a session a memory provider has not been told of yet.
    CREATE TABLE ledgers (
        session_id TEXT PRIMARY KEY NOT NULL,
        owner TEXT NOT NULL,
        due_at REAL,                        -- 9e999 (infinity): only another boundary wakes it
        state TEXT NOT NULL                 -- JSON: the rest
    ) WITHOUT ROWID;
    CREATE INDEX ledgers_due ON ledgers (due_at, session_id) WHERE due_at IS NOT NULL;

    CREATE TABLE dirty_turns (
        session_id TEXT NOT NULL,
        n INTEGER NOT NULL,
        owner TEXT NOT NULL,
        run_id TEXT NOT NULL,
        user_message_id TEXT NOT NULL,
        message_id TEXT NOT NULL,
        said_at REAL NOT NULL,
        handle TEXT,
        words TEXT,                         -- JSON; NULL: the messages have them
        PRIMARY KEY (session_id, n)
    ) WITHOUT ROWID;

    -- What the built-in memory knows. Every write of a fact takes it to the end: larger n, newer.
    CREATE TABLE facts (
        n INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        owner TEXT NOT NULL,
        key TEXT NOT NULL,
        text TEXT NOT NULL,
        session_id TEXT NOT NULL,
        message_id TEXT NOT NULL,
        said_at REAL NOT NULL,
        created_at REAL NOT NULL,
        updated_at REAL NOT NULL,
        pinned INTEGER NOT NULL,
        vector BLOB NOT NULL,
        words TEXT NOT NULL,                -- the text as it is indexed
        UNIQUE (owner, key)
    );
    CREATE INDEX facts_of_owner ON facts (owner, n);
    CREATE INDEX facts_of_session ON facts (session_id);
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
)

JOURNAL: Final[Sequence[Migration]] = (
    """
    -- Events of all runs in the order of their commits. There is no index: the rows of a hundred runs in one commit
    -- touch two pages and not a hundred. Where a run's rows are is known in memory (see logged.py).
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

    -- The events of settled runs, many to a row (see segments.py).
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
    records.from_rows_per_event,
)
