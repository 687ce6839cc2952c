"""What the tables look like: migrations in order, each a literal script that runs in one transaction.

The version of a schema is the number of migrations it has seen. A script that was released is never edited: a change
is a new script at the end, and one that a node of the version before can live with, or nodes could not be replaced one
by one. Texts compare by code point (`COLLATE "C"`), as Python and SQLite do.
"""

from collections.abc import Sequence
from typing import Final, LiteralString

import psycopg

from holdfast.core.errors import SchemaTooNew
from holdfast.storage.postgres import errors
from holdfast.storage.postgres.link import Place, TimedConnection

STORE: Final[Sequence[LiteralString]] = (
    """
    CREATE DOMAIN word AS text COLLATE "C";

    CREATE TABLE sessions (
        id word PRIMARY KEY,
        owner word NOT NULL,
        created_at double precision NOT NULL,
        updated_at double precision NOT NULL,
        title word NOT NULL,
        titled_by word NOT NULL,
        agent word NOT NULL,
        model word,
        system word,
        settings word NOT NULL,             -- JSON
        previous_session_id word,
        pinned boolean NOT NULL,
        archived boolean NOT NULL,
        tags word NOT NULL,                 -- JSON
        project word,
        head word,
        redo word NOT NULL,                 -- JSON
        version bigint NOT NULL,
        deleted_at double precision
    );
    CREATE INDEX sessions_listed ON sessions (owner, archived, updated_at, id) WHERE deleted_at IS NULL;
    CREATE INDEX sessions_of_project ON sessions (owner, archived, project, updated_at, id)
        WHERE deleted_at IS NULL AND project IS NOT NULL;
    CREATE INDEX sessions_deleted ON sessions (deleted_at, id) WHERE deleted_at IS NOT NULL;

    CREATE TABLE messages (
        id word PRIMARY KEY,
        owner word NOT NULL,
        session_id word NOT NULL,
        role word NOT NULL,
        parent_id word,
        created_at double precision NOT NULL,
        run_id word,
        status word NOT NULL,
        reason word,
        error word,                         -- JSON
        recovery word,
        model word,
        usage word,                         -- JSON
        key word,
        in_tree boolean NOT NULL,
        last_seq bigint NOT NULL,
        parts word NOT NULL,                -- JSON
        file_ids text[] NOT NULL            -- the files that the parts name
    );
    CREATE INDEX messages_of_session ON messages (session_id, in_tree, parent_id, created_at, id);
    CREATE INDEX messages_with_files ON messages USING gin (file_ids) WHERE file_ids <> '{}';

    CREATE TABLE runs (
        id word PRIMARY KEY,
        owner word NOT NULL,
        session_id word NOT NULL,
        message_id word NOT NULL,
        user_message_id word NOT NULL,
        agent word NOT NULL,
        model word,
        settings word NOT NULL,             -- JSON
        lifetime word NOT NULL,
        created_at double precision NOT NULL,
        rank bigint NOT NULL,
        in_tree boolean NOT NULL,
        status word NOT NULL,
        epoch bigint NOT NULL,
        lease_holder word,
        lease_until double precision,
        connection_holder word,
        connection_until double precision,
        key word,
        fingerprint word NOT NULL,
        continues word,
        resumes bigint NOT NULL,
        intent word,                        -- JSON
        recovery_state word,
        recovery_since double precision,
        recovery_attempts bigint,
        reason word,
        finish_reason word,
        error word,                         -- JSON
        usage word,                         -- JSON
        started_at double precision,
        ended_at double precision,
        last_seq bigint NOT NULL,
        pruned boolean NOT NULL
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
    CREATE INDEX runs_prunable ON runs (ended_at, id) WHERE NOT pruned AND ended_at IS NOT NULL;

    CREATE TABLE approvals (
        id word PRIMARY KEY,
        owner word NOT NULL,
        run_id word NOT NULL,
        session_id word NOT NULL,
        call_id word NOT NULL,
        name word NOT NULL,
        args word NOT NULL,                 -- JSON
        reason word NOT NULL,
        created_at double precision NOT NULL,
        decision word,
        decided_at double precision,
        note word
    );
    CREATE INDEX approvals_of_run ON approvals (run_id, created_at, id);
    CREATE INDEX approvals_of_session ON approvals (session_id);
    CREATE INDEX approvals_open ON approvals (created_at, id) WHERE decision IS NULL;

    CREATE TABLE compactions (
        session_id word NOT NULL,
        owner word NOT NULL,
        message_id word NOT NULL,
        summary word NOT NULL,
        created_at double precision NOT NULL,
        PRIMARY KEY (session_id, message_id)
    );

    CREATE TABLE files (
        id word PRIMARY KEY,
        owner word NOT NULL,
        sha256 word NOT NULL,
        name word NOT NULL,
        media_type word NOT NULL,
        size bigint NOT NULL,
        created_at double precision NOT NULL
    );
    CREATE INDEX files_by_digest ON files (sha256);
    CREATE INDEX files_by_age ON files (created_at, id);

    -- What files hold, for every node to serve. No owner: the same content may be many owners' files.
    CREATE TABLE contents (
        sha256 word PRIMARY KEY,
        size bigint NOT NULL,
        saved_at timestamptz NOT NULL DEFAULT now()
    );
    CREATE TABLE chunks (
        sha256 word NOT NULL REFERENCES contents (sha256) ON DELETE CASCADE,
        n bigint NOT NULL,
        data bytea NOT NULL,
        PRIMARY KEY (sha256, n)
    );
    ALTER TABLE chunks ALTER COLUMN data SET STORAGE EXTERNAL;

    -- Journals to erase. The rows that they belonged to are gone, their owners with them.
    CREATE TABLE purges (run_id word PRIMARY KEY);

    -- n is the writing transaction's number and a count within it: see changes.py.
    CREATE TABLE changes (
        n bigint PRIMARY KEY,
        kind word NOT NULL,
        owner word NOT NULL,
        session_id word NOT NULL,
        run_id word,
        approval_id word,
        status word
    );
    CREATE TABLE changes_floor (one boolean PRIMARY KEY DEFAULT true CHECK (one), n bigint NOT NULL DEFAULT 0);
    INSERT INTO changes_floor DEFAULT VALUES;

    CREATE TABLE grants (
        owner word NOT NULL,
        session_id word NOT NULL,
        tool word NOT NULL,
        scope word NOT NULL,
        created_at double precision NOT NULL,
        PRIMARY KEY (owner, session_id, tool, scope)
    );
    CREATE INDEX grants_of_session ON grants (session_id);

    CREATE TABLE settings (
        owner word NOT NULL,
        name word NOT NULL,
        value word NOT NULL,                -- JSON
        PRIMARY KEY (owner, name)
    );

    -- What can be searched: a title (message_id '') or the words of a message. Larger n: newer.
    CREATE TABLE docs (
        n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        owner word NOT NULL,
        session_id word NOT NULL,
        message_id word NOT NULL,
        text word NOT NULL,
        words tsvector NOT NULL,
        UNIQUE (session_id, message_id)
    );
    CREATE INDEX docs_by_age ON docs (owner, n);
    CREATE INDEX docs_words ON docs USING gin (words);

    -- The keyring and the generation: what belongs to the whole cluster.
    CREATE TABLE meta (key word PRIMARY KEY, value word NOT NULL);
    """,
    """
    -- Which completed turns of a session a memory provider has not been told of yet.
    CREATE TABLE ledgers (
        session_id word PRIMARY KEY,
        owner word NOT NULL,
        due_at double precision,            -- infinity: only another boundary wakes it
        state word NOT NULL                 -- JSON: the rest
    );
    CREATE INDEX ledgers_due ON ledgers (due_at, session_id) WHERE due_at IS NOT NULL;

    CREATE TABLE dirty_turns (
        session_id word NOT NULL,
        n bigint NOT NULL,
        owner word NOT NULL,
        run_id word NOT NULL,
        user_message_id word NOT NULL,
        message_id word NOT NULL,
        said_at double precision NOT NULL,
        handle word,
        words word,                         -- JSON; NULL: the messages have them
        PRIMARY KEY (session_id, n)
    );

    -- What the built-in memory knows. Every write of a fact gives it a new n, made as in changes.
    CREATE TABLE facts (
        n bigint PRIMARY KEY,
        id word NOT NULL UNIQUE,
        owner word NOT NULL,
        key word NOT NULL,
        text word NOT NULL,
        session_id word NOT NULL,
        message_id word NOT NULL,
        said_at double precision NOT NULL,
        created_at double precision NOT NULL,
        updated_at double precision NOT NULL,
        pinned boolean NOT NULL,
        vector bytea NOT NULL,
        words tsvector NOT NULL,
        UNIQUE (owner, key)
    );
    CREATE INDEX facts_of_owner ON facts (owner, n);
    CREATE INDEX facts_of_session ON facts (session_id);
    CREATE INDEX facts_words ON facts USING gin (words);
    """,
    """
    -- Moved by whoever writes anything of a session: see store.py.
    CREATE TABLE turnstiles (session_id word PRIMARY KEY, n bigint NOT NULL) WITH (fillfactor = 50);
    """,
)

JOURNAL: Final[Sequence[LiteralString]] = (
    """
    CREATE DOMAIN word AS text COLLATE "C";

    -- Where each journal stands. `base` is the last seq before the newest append: what that append had to follow.
    CREATE TABLE heads (
        run word PRIMARY KEY,
        epoch bigint NOT NULL,
        base bigint NOT NULL DEFAULT 0,
        last_seq bigint NOT NULL DEFAULT 0,
        sealed boolean NOT NULL DEFAULT false,
        pruned boolean NOT NULL DEFAULT false
    ) WITH (fillfactor = 70);

    -- Events of open runs, a row per append. Short-lived: settled runs move to `settled`.
    CREATE TABLE log (
        run word NOT NULL,
        last_seq bigint NOT NULL,
        first_seq bigint NOT NULL,
        frames bytea NOT NULL,
        PRIMARY KEY (run, last_seq)
    );

    -- Events of settled runs, a thousand or so to a row: read at once, erased at once.
    CREATE TABLE settled (
        run word NOT NULL,
        last_seq bigint NOT NULL,
        first_seq bigint NOT NULL,
        frames bytea NOT NULL,
        PRIMARY KEY (run, last_seq)
    );
    """,
)


def prepare(place: Place, migrations: Sequence[LiteralString]) -> None:
    """See to it that the schema is of the newest version. Nodes that start together wait for one another."""
    with place.connect() as db:
        try:
            # Two nodes may upgrade at once: the second finds it done. A lock of the session, let go with it.
            db.execute("SET lock_timeout = '60s'; SET statement_timeout = '60s'")
            db.answer_within = 600.0
            db.execute("SELECT pg_advisory_lock(hashtext(%s))", (f"{place.schema} migrations",))
            db.execute(f"CREATE SCHEMA IF NOT EXISTS {place.schema}".encode())
            db.execute("CREATE TABLE IF NOT EXISTS version (one boolean PRIMARY KEY DEFAULT true, n bigint NOT NULL)")
            _migrate(db, place, migrations)
        except psycopg.Error as error:
            raise errors.from_postgres(error) from error


def _migrate(db: TimedConnection, place: Place, migrations: Sequence[LiteralString]) -> None:
    row = db.execute("SELECT n FROM version").fetchone()
    version = 0 if row is None else int(row[0])
    if version > len(migrations):
        raise SchemaTooNew(
            f"The schema {place.schema} was written by a newer Holdfast (its version is {version}, this one knows "
            f"{len(migrations)}). Install that version again."
        )
    for number, script in enumerate(migrations[version:], version + 1):
        db.execute(
            f"BEGIN; {script}; INSERT INTO version (n) VALUES ({number}) "
            f"ON CONFLICT (one) DO UPDATE SET n = {number}; COMMIT".encode()
        )
