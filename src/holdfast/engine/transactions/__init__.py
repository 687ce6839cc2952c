"""The store's transactions: synchronous functions over `ports.Tx`, each one atomic step. Nothing else writes rows.

accept           a turn is submitted, retried, edited or continued, or starts a session or a branch
run_queue        runs are claimed, and their leases renewed and released
takeover         runs whose node is gone are taken over or requeued
cancel_requests  a run is asked to end, though its user did not stop it
approvals        a run asks a person, waits and is answered
run_endings      a run ends, whatever ended it: `settle`; output that could not be read is looked for again
session_edits    undo, rename, clear, delete …
forks            copies of a path as new sessions
imports          exported sessions are added
memory           the memory ledger, and the facts of the built-in memory
row_access       finding and writing single rows
"""
