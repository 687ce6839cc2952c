"""The tables that both databases have, as templates: each database fills in its types.

They are part of released scripts: a change is a new migration of each database, never an edit here.
"""

from typing import Final

SESSIONS_AND_RUNS: Final = """
    CREATE TABLE sessions (
        id {text} PRIMARY KEY NOT NULL,
        owner {text} NOT NULL,
        created_at {real} NOT NULL,
        updated_at {real} NOT NULL,
        title {text} NOT NULL,
        titled_by {text} NOT NULL,
        agent {text} NOT NULL,
        model {text},
        system {text},
        settings {text} NOT NULL,             -- JSON
        previous_session_id {text},
        pinned {boolean} NOT NULL,
        archived {boolean} NOT NULL,
        tags {text} NOT NULL,                 -- JSON
        project {text},
        head {text},
        redo {text} NOT NULL,                 -- JSON
        version {integer} NOT NULL,
        deleted_at {real}
    );
    CREATE INDEX sessions_listed ON sessions (owner, archived, updated_at, id) WHERE deleted_at IS NULL;
    CREATE INDEX sessions_of_project ON sessions (owner, archived, project, updated_at, id)
        WHERE deleted_at IS NULL AND project IS NOT NULL;
    CREATE INDEX sessions_deleted ON sessions (deleted_at, id) WHERE deleted_at IS NOT NULL;

    CREATE TABLE messages (
        id {text} PRIMARY KEY NOT NULL,
        owner {text} NOT NULL,
        session_id {text} NOT NULL,
        role {text} NOT NULL,
        parent_id {text},
        created_at {real} NOT NULL,
        run_id {text},
        status {text} NOT NULL,
        reason {text},
        error {text},                         -- JSON
        recovery {text},
        model {text},
        usage {text},                         -- JSON
        key {text},
        in_tree {boolean} NOT NULL,
        last_seq {integer} NOT NULL,
        parts {text} NOT NULL                 -- JSON; last, because it is long
    );
    CREATE INDEX messages_of_session ON messages (session_id, in_tree, parent_id, created_at, id);

    CREATE TABLE runs (
        id {text} PRIMARY KEY NOT NULL,
        owner {text} NOT NULL,
        session_id {text} NOT NULL,
        message_id {text} NOT NULL,
        user_message_id {text} NOT NULL,
        agent {text} NOT NULL,
        model {text},
        settings {text} NOT NULL,             -- JSON
        lifetime {text} NOT NULL,
        created_at {real} NOT NULL,
        rank {integer} NOT NULL,
        in_tree {boolean} NOT NULL,
        status {text} NOT NULL,
        epoch {integer} NOT NULL,
        lease_holder {text},
        lease_until {real},
        connection_holder {text},
        connection_until {real},
        key {text},
        fingerprint {text} NOT NULL,
        continues {text},
        resumes {integer} NOT NULL,
        intent {text},                        -- JSON
        recovery_state {text},
        recovery_since {real},
        recovery_attempts {integer},
        reason {text},
        finish_reason {text},
        error {text},                         -- JSON
        usage {text},                         -- JSON
        started_at {real},
        ended_at {real},
        last_seq {integer} NOT NULL,
        pruned {boolean} NOT NULL
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

    CREATE TABLE approvals (
        id {text} PRIMARY KEY NOT NULL,
        owner {text} NOT NULL,
        run_id {text} NOT NULL,
        session_id {text} NOT NULL,
        call_id {text} NOT NULL,
        name {text} NOT NULL,
        args {text} NOT NULL,                 -- JSON
        reason {text} NOT NULL,
        created_at {real} NOT NULL,
        decision {text},
        decided_at {real}
    );
    CREATE INDEX approvals_of_run ON approvals (run_id, created_at, id);
    CREATE INDEX approvals_of_session ON approvals (session_id);

    CREATE TABLE compactions (
        session_id {text} NOT NULL,
        owner {text} NOT NULL,
        message_id {text} NOT NULL,
        summary {text} NOT NULL,
        created_at {real} NOT NULL,
        PRIMARY KEY (session_id, message_id)
    );

    CREATE TABLE files (
        id {text} PRIMARY KEY NOT NULL,
        owner {text} NOT NULL,
        sha256 {text} NOT NULL,
        name {text} NOT NULL,
        media_type {text} NOT NULL,
        size {integer} NOT NULL,
        created_at {real} NOT NULL
    );
    CREATE INDEX files_by_digest ON files (sha256);
    CREATE INDEX files_by_age ON files (created_at, id);

    -- Journals to erase. The rows that they belonged to are gone, their owners with them.
    CREATE TABLE purges (run_id {text} PRIMARY KEY NOT NULL){without_rowid};

    CREATE TABLE changes (
        n {number},
        kind {text} NOT NULL,
        owner {text} NOT NULL,
        session_id {text} NOT NULL,
        run_id {text},
        approval_id {text},
        status {text}
    );
"""

GRANTS: Final = """
    ALTER TABLE approvals ADD COLUMN note {text};
    CREATE INDEX approvals_open ON approvals (created_at, id) WHERE decision IS NULL;

    -- Tools that a person allowed, in one session or ('') in all.
    CREATE TABLE grants (
        owner {text} NOT NULL,
        session_id {text} NOT NULL,
        tool {text} NOT NULL,
        scope {text} NOT NULL,
        created_at {real} NOT NULL,
        PRIMARY KEY (owner, session_id, tool, scope)
    ){without_rowid};
    CREATE INDEX grants_of_session ON grants (session_id);

    CREATE TABLE settings (
        owner {text} NOT NULL,
        name {text} NOT NULL,
        value {text} NOT NULL,                -- JSON
        PRIMARY KEY (owner, name)
    ){without_rowid};
"""

MEMORY: Final = """
    -- Which completed turns of a session a memory provider has not been told of yet.
    CREATE TABLE ledgers (
        session_id {text} PRIMARY KEY NOT NULL,
        owner {text} NOT NULL,
        due_at {real},                        -- infinity: only another boundary wakes it
        state {text} NOT NULL                 -- JSON: the rest
    ){without_rowid};
    CREATE INDEX ledgers_due ON ledgers (due_at, session_id) WHERE due_at IS NOT NULL;

    CREATE TABLE dirty_turns (
        session_id {text} NOT NULL,
        n {integer} NOT NULL,
        owner {text} NOT NULL,
        run_id {text} NOT NULL,
        user_message_id {text} NOT NULL,
        message_id {text} NOT NULL,
        said_at {real} NOT NULL,
        handle {text},
        words {text},                         -- JSON; NULL: the messages have them
        PRIMARY KEY (session_id, n)
    ){without_rowid};

    -- What the built-in memory knows. Every write of a fact takes it to the end: larger n, newer.
    CREATE TABLE facts (
        n {number},
        id {text} NOT NULL UNIQUE,
        owner {text} NOT NULL,
        key {text} NOT NULL,
        text {text} NOT NULL,
        session_id {text} NOT NULL,
        message_id {text} NOT NULL,
        said_at {real} NOT NULL,
        created_at {real} NOT NULL,
        updated_at {real} NOT NULL,
        pinned {boolean} NOT NULL,
        vector {bytes} NOT NULL,
        words {words} NOT NULL,             -- the text as it is indexed
        UNIQUE (owner, key)
    );
    CREATE INDEX facts_of_owner ON facts (owner, n);
    CREATE INDEX facts_of_session ON facts (session_id);
"""

CONFIRMED_FACTS: Final = "ALTER TABLE facts ADD COLUMN confirmed {boolean} NOT NULL DEFAULT {false};"

USAGE: Final = """
    -- All that sums of usage read: behind `settings`, which may be long, the row's columns are slow to reach.
    CREATE INDEX runs_used ON runs (owner, ended_at, usage, model, agent, started_at, session_id)
        WHERE usage IS NOT NULL;

    -- What runs used whose rows are erased: a deleted chat was paid for all the same. Runs that ended in the same
    -- quarter of an hour are added up, so a client that stores nothing does not add a row with each request.
    CREATE TABLE erased_usage (
        ended_at {real} NOT NULL,           -- when the quarter began
        owner {text} NOT NULL,
        model {text} NOT NULL,              -- or `agent:` and the agent
        project {text} NOT NULL,            -- '': none
        billed {boolean} NOT NULL,          -- whether the providers reported a cost
        runs {integer} NOT NULL,
        input_tokens {integer} NOT NULL,
        output_tokens {integer} NOT NULL,
        cost {real},
        cached_tokens {integer} NOT NULL,
        reasoning_tokens {integer} NOT NULL,
        seconds {real} NOT NULL,
        PRIMARY KEY (ended_at, owner, model, project, billed)
    ){without_rowid};
"""

STEERING: Final = """
    -- The open run that the text of a queued one is to be added to.
    ALTER TABLE runs ADD COLUMN steers {text};

    -- Idempotency keys of requests that were canceled before they came.
    CREATE TABLE cancelled_keys (
        session_id {text} NOT NULL,
        key {text} NOT NULL,
        created_at {real} NOT NULL,
        PRIMARY KEY (session_id, key)
    ){without_rowid};
"""

SHARES: Final = """
    -- Links to snapshots of chats. A snapshot is the content of a file; the token in the link is not stored.
    CREATE TABLE shares (
        id {text} PRIMARY KEY NOT NULL,
        owner {text} NOT NULL,
        session_id {text} NOT NULL,
        token_digest {text} NOT NULL UNIQUE,
        kind {text} NOT NULL,
        title {text} NOT NULL,
        with_reasoning {boolean} NOT NULL,
        with_tools {boolean} NOT NULL,
        with_files {boolean} NOT NULL,
        file_id {text} NOT NULL,
        size {integer} NOT NULL,
        created_at {real} NOT NULL,
        expires_at {real},
        last_opened_at {real}
    );
    CREATE INDEX shares_of_owner ON shares (owner, created_at, id);
    CREATE INDEX shares_of_session ON shares (session_id);
    CREATE INDEX shares_of_file ON shares (file_id);
    CREATE INDEX shares_expiring ON shares (expires_at, id) WHERE expires_at IS NOT NULL;
"""

PUSH: Final = """
    -- Browsers that are sent notifications, and which.
    CREATE TABLE push_subscriptions (
        id {text} PRIMARY KEY NOT NULL,
        owner {text} NOT NULL,
        endpoint {text} NOT NULL UNIQUE,
        p256dh {text} NOT NULL,
        auth {text} NOT NULL,
        device {text} NOT NULL,
        credential {text},
        done {boolean} NOT NULL,
        failed {boolean} NOT NULL,
        approval {boolean} NOT NULL,
        shows_title {boolean} NOT NULL,
        created_at {real} NOT NULL,
        succeeded_at {real},
        failed_at {real},
        failure {text}
    );

    -- The outbox: what they are still to be sent.
    CREATE TABLE pushes (
        subscription_id {text} NOT NULL,
        tag {text} NOT NULL,                  -- the run, or the question
        owner {text} NOT NULL,
        kind {text} NOT NULL,
        session_id {text} NOT NULL,
        run_id {text} NOT NULL,
        created_at {real} NOT NULL,
        due_at {real} NOT NULL,
        attempts {integer} NOT NULL,
        PRIMARY KEY (subscription_id, tag)
    ){without_rowid};
    CREATE INDEX pushes_due ON pushes (due_at);
    CREATE INDEX pushes_of_session ON pushes (session_id);
"""

PROJECTS: Final = """
    -- What the chats of a project have in common. Sessions name their project.
    CREATE TABLE projects (
        id {text} PRIMARY KEY NOT NULL,
        owner {text} NOT NULL,
        name {text} NOT NULL,
        created_at {real} NOT NULL,
        updated_at {real} NOT NULL,
        color {text},
        instructions {text},
        agent {text},
        model {text},
        settings {text} NOT NULL,           -- JSON
        memory {text},
        archived {boolean} NOT NULL,
        version {integer} NOT NULL,
        former_name {text},                 -- sessions that still have it are being moved
        removal {text},                     -- it is being deleted
        UNIQUE (owner, name)
    );
    CREATE INDEX projects_renamed ON projects (owner, former_name) WHERE former_name IS NOT NULL;
    CREATE INDEX projects_unfinished ON projects (id) WHERE former_name IS NOT NULL OR removal IS NOT NULL;

    -- A file that is here is no orphan: the reference keeps a node of the version before from deleting it.
    CREATE TABLE project_files (
        project_id {text} NOT NULL,
        file_id {text} NOT NULL REFERENCES files (id),
        added_at {real} NOT NULL,
        PRIMARY KEY (project_id, file_id)
    ){without_rowid};
    CREATE INDEX projects_of_file ON project_files (file_id);

    -- By the index of sessions that have a project: no other session is read.
    INSERT INTO projects (id, owner, name, created_at, updated_at, settings, archived, version)
        SELECT {project_id}, owner, project, min(updated_at), max(updated_at), 'null', {false}, 1
        FROM sessions WHERE deleted_at IS NULL AND project IS NOT NULL AND project <> ''
        GROUP BY owner, project;
"""

DRAFTS: Final = """
    -- Unsent text of chats. The row stays when the text is sent, so that its version never starts over.
    CREATE TABLE drafts (
        owner {text} NOT NULL,
        session_id {text} NOT NULL,         -- or `new`: of the chat that is begun next
        text {text} NOT NULL,
        version {integer} NOT NULL,
        updated_at {real} NOT NULL,
        PRIMARY KEY (owner, session_id)
    ){without_rowid};
    CREATE INDEX drafts_of_session ON drafts (session_id);
"""

PROMPTS: Final = """
    -- The prompt library.
    CREATE TABLE prompts (
        id {text} PRIMARY KEY NOT NULL,
        owner {text} NOT NULL,
        name {text} NOT NULL,
        description {text} NOT NULL,
        text {text} NOT NULL,
        created_at {real} NOT NULL,
        updated_at {real} NOT NULL,
        version {integer} NOT NULL,
        UNIQUE (owner, name)
    );
"""

PERSONAS: Final = """
    -- A picture that is here is no orphan, as with projects.
    CREATE TABLE personas (
        id {text} PRIMARY KEY NOT NULL,
        owner {text} NOT NULL,
        name {text} NOT NULL,
        created_at {real} NOT NULL,
        updated_at {real} NOT NULL,
        emoji {text},
        picture {text} REFERENCES files (id),
        model {text},
        instructions {text},
        use_tools {boolean},
        version {integer} NOT NULL
    );
    CREATE INDEX personas_of_owner ON personas (owner, name, id);
    CREATE INDEX personas_of_file ON personas (picture) WHERE picture IS NOT NULL;

    -- Who answered, as it was then.
    ALTER TABLE messages ADD COLUMN persona {text};  -- JSON
"""
