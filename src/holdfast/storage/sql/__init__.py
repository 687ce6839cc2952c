"""The store's SQL, once for both databases. Read tx.py first, then dialect.py.

tx                 the transaction: one mixin per subject (sessions, runs, approvals, memory, files, changes)
dialect            what differs between SQLite and PostgreSQL
row_codec, table   values as rows and back; the statements of a table
schema             the tables that both databases have
"""
