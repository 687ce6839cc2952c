"""The store's SQL, once for both databases. Read tx.py first, then dialect.py.

tx                 the transaction: one mixin per subject (sessions, runs, approvals, memory, files, changes)
dialect            what differs between SQLite and PostgreSQL
tables             the statements of each table; values as rows and back
schema             the tables that both databases have, as they are created
"""
