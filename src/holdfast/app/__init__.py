"""The composition root: the only package that knows which adapters exist.

lifecycle.py     a server process: listen, open, serve, drain       node.py              an engine on a data directory
agents.py        agents and the services around them                storage.py           embedded or shared storage
models.py        language models and their keys                     cluster.py           storage shared by several nodes
tool_admin.py    tools and MCP servers                              migrate_store.py     from a directory to a cluster
memory.py        memory providers                                   deferred_imports.py  imports after the start
late_engine.py   late-bound access to the engine
"""

from holdfast.app.lifecycle import serve, serve_command
from holdfast.app.node import Node, engine_settings, open_node, tune_gc
from holdfast.app.storage import examine, open_keys

__all__ = [
    "Node",
    "engine_settings",
    "examine",
    "open_keys",
    "open_node",
    "serve",
    "serve_command",
    "tune_gc",
]
