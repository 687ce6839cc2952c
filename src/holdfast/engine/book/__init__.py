"""The transactions: synchronous functions over `ports.Tx`, each one atomic step. Nothing else writes to the store.

accept    a turn comes in
turns     a run is executed
endings   a run ends, whatever ended it
edits     what people do to sessions
remembering  what memory providers are told, and the facts of the built-in one
rows      finding and writing, each kind in one place
"""
