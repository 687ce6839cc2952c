"""Real processes, killed with -9 at named moments and at random ones, restarted, and compared with what was shown.

server.py    the process that is killed: the real engine on SQLite, spoken to in lines of JSON
points.py    the named moments, put around the ports: nothing in `src` knows of them
scripts.py   what the agent says, computed from the question, so that both sides know it
client.py    the other end of the pipe, and the ledger of what came through it
check.py     the ledger against what a restarted server has
random_restarts.py  one directory through many lives, with random work and random deaths
"""
