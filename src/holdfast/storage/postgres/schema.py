"""The tables, as migrations in order: each is a script that runs in one transaction (`database_upgrade`).

The version of a schema is the number of migrations applied to it. A released script is never edited: a change is a new
script at the end, and nodes of the version before must be able to work with it, so that nodes can be replaced one by
one. Text compares by code point (`COLLATE "C"`), as in Python and SQLite.
"""

from collections.abc import Sequence
from typing import Final

from holdfast.storage.sql import schema as shared_schema

_WORD: Final = 'CREATE DOMAIN word AS text COLLATE "C";'
_TYPES: Final = {
    "text": "word",
    "real": "double precision",
    "integer": "bigint",
    "boolean": "boolean",
    "false": "false",
    "bytes": "bytea",
    "words": "tsvector",
    "number": "bigint PRIMARY KEY",
    "without_rowid": "",
    "project_id": "'prj_' || left(replace(gen_random_uuid()::text, '-', ''), 26)",
}

STORE: Final[Sequence[str]] = (
    _WORD
    + (shared_schema.SESSIONS_AND_RUNS + shared_schema.GRANTS).format_map(_TYPES)
    + """
    ALTER TABLE messages ADD COLUMN file_ids text[] NOT NULL;  -- the files that the parts name
    CREATE INDEX messages_with_files ON messages USING gin (file_ids) WHERE file_ids <> '{}';
    CREATE INDEX runs_prunable ON runs (ended_at, id) WHERE NOT pruned AND ended_at IS NOT NULL;

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

    -- changes.n is the writing transaction's number and a count within it: see change_numbers.py.
    CREATE TABLE changes_floor (one boolean PRIMARY KEY DEFAULT true CHECK (one), n bigint NOT NULL DEFAULT 0);
    INSERT INTO changes_floor DEFAULT VALUES;

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
    f"{shared_schema.MEMORY.format_map(_TYPES)} CREATE INDEX facts_words ON facts USING gin (words);",
    """
    -- Moved by whoever writes anything of a session: see store.py.
    CREATE TABLE turnstiles (session_id word PRIMARY KEY, n bigint NOT NULL) WITH (fillfactor = 50);
    """,
    shared_schema.CONFIRMED_FACTS.format_map(_TYPES),
    """
    -- The tags of a session are searched with its title.
    CREATE TEMPORARY TABLE tagged ON COMMIT DROP AS
        SELECT id, owner, '#' || array_to_string(tags, ' #') AS text,
            array_remove(regexp_split_to_array(lower(array_to_string(tags, ' ')), '[^[:alnum:]]+'), '') AS words
        FROM (
            SELECT id, owner, ARRAY(SELECT jsonb_array_elements_text(tags::text::jsonb)) AS tags
            FROM sessions WHERE tags <> '[]'
        ) AS listed;
    UPDATE docs SET text = docs.text || ' ' || tagged.text, words = docs.words || array_to_tsvector(tagged.words)
        FROM tagged WHERE docs.session_id = tagged.id AND docs.message_id = '';
    INSERT INTO docs (owner, session_id, message_id, text, words)
        SELECT owner, id, '', text, array_to_tsvector(words) FROM tagged
        ON CONFLICT (session_id, message_id) DO NOTHING;
    """,
    shared_schema.USAGE.format_map(_TYPES),
    shared_schema.STEERING.format_map(_TYPES),
    shared_schema.SHARES.format_map(_TYPES),
    shared_schema.PUSH.format_map(_TYPES),
    shared_schema.PROJECTS.format_map(_TYPES),
    shared_schema.DRAFTS.format_map(_TYPES),
    shared_schema.PROMPTS.format_map(_TYPES),
    shared_schema.PERSONAS.format_map(_TYPES),
    # What is NULL for a text that a cast would refuse, and with it the whole query.
    """
    CREATE OR REPLACE FUNCTION valid_json(value text) RETURNS json LANGUAGE plpgsql IMMUTABLE AS $$
        BEGIN RETURN value::json; EXCEPTION WHEN OTHERS THEN RETURN NULL; END
    $$;
    CREATE OR REPLACE FUNCTION usage_numbers(value text) RETURNS double precision[] LANGUAGE plpgsql IMMUTABLE AS $$
        DECLARE found double precision[];
        BEGIN
            found := translate(value, '[]', '{}')::double precision[];
            RETURN CASE WHEN 1e15 < ANY (found) OR -1e15 > ANY (found) THEN NULL ELSE found END;
        EXCEPTION WHEN OTHERS THEN RETURN NULL; END
    $$;
    """,
)

_EVENTS: Final = """(
        run word NOT NULL,
        last_seq bigint NOT NULL,
        first_seq bigint NOT NULL,
        frames bytea NOT NULL,
        PRIMARY KEY (run, last_seq)
    );"""
JOURNAL: Final[Sequence[str]] = (
    _WORD
    + f"""
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
    CREATE TABLE log {_EVENTS}

    -- Events of settled runs, a thousand or so to a row: read at once, erased at once.
    CREATE TABLE settled {_EVENTS}
    """,
    "CREATE INDEX heads_pruned ON heads (run) WHERE pruned;",
)
