"""Creates and upgrades a schema, and refuses one that a newer version has upgraded. The tables and migrations:
`storage.postgres.schema`."""

from collections.abc import Sequence

from holdfast.core.errors import SchemaTooNewError
from holdfast.storage.postgres.connection import PostgresConfig, TimedConnection, translated


def create_or_upgrade(config: PostgresConfig, migrations: Sequence[str]) -> None:
    """Create the schema, or upgrade it to the newest version. Nodes that start together wait for one another."""
    with translated(), config.connect() as db:
        # Two nodes may upgrade at once: the second finds it done. The lock is released with the session.
        db.execute("SET lock_timeout = '60s'; SET statement_timeout = '60s'")
        db.answer_within = 600.0
        db.execute("SELECT pg_advisory_lock(hashtext(%s))", (f"{config.schema} migrations",))
        db.execute(f"CREATE SCHEMA IF NOT EXISTS {config.schema}".encode())
        db.execute("CREATE TABLE IF NOT EXISTS version (one boolean PRIMARY KEY DEFAULT true, n bigint NOT NULL)")
        _migrate(db, config, migrations)


def _migrate(db: TimedConnection, config: PostgresConfig, migrations: Sequence[str]) -> None:
    row = db.execute("SELECT n FROM version").fetchone()
    version = 0 if row is None else int(row[0])
    if version > len(migrations):
        raise SchemaTooNewError(
            f"The schema {config.schema} was written by a newer Holdfast: it has version {version}, and this one "
            f"supports {len(migrations)}. Install the newer version."
        )
    for number, script in enumerate(migrations[version:], version + 1):
        db.execute(
            f"BEGIN; {script}; INSERT INTO version (n) VALUES ({number}) "
            f"ON CONFLICT (one) DO UPDATE SET n = {number}; COMMIT".encode()
        )
