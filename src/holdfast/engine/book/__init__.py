"""The transactions: synchronous functions over `ports.Tx`, each one atomic step. The only code that writes to the
store.

turns   accept, claim, park, decide, settle: the life of a run
edits   undo, retry, fork, clear, delete …: what people do to sessions
"""
