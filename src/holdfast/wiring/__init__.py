"""The composition root: the only place that knows which adapters there are.

node.py      storage and engine            tables.py    what `holdfast.toml` says of providers, servers and tools
crew.py      models, tools and agents      serving.py   a server's life: listen, open, answer, drain
memories.py  who remembers                 bridge.py    the engine, for those who are made before it
keeping.py   where things are kept, as the config says
cluster.py   storage that nodes share
seeded.py    directories to measure with
warming.py   what no start waits for
"""

from holdfast.wiring.keeping import keys_of
from holdfast.wiring.node import Node, engine_settings, open_node, tune_gc
from holdfast.wiring.seeded import seed_directory
from holdfast.wiring.serving import examine, serve, serve_own

__all__ = [
    "Node",
    "engine_settings",
    "examine",
    "keys_of",
    "open_node",
    "seed_directory",
    "serve",
    "serve_own",
    "tune_gc",
]
