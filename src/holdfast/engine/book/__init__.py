"""The transactions: synchronous functions over `ports.Tx`, each one atomic step. Nothing else writes to the store.

accept    a turn comes in
turns     a run is executed
endings   a run ends, whatever ended it
edits     what people do to sessions
rows      finding and writing, each kind in one place
"""
