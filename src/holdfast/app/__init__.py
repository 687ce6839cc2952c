"""The composition root: the only package that knows which adapters exist.

lifecycle.py     a server process: listen, open, serve, drain       engine_proxy.py     late-bound access to the engine
agents.py        agents and the services around them                storage.py           a node and its storage
models.py        language models and their keys                     cluster.py           storage shared by several nodes
tool_admin.py    tools and MCP servers                              migrate_store.py     from a directory to a cluster
memory.py        memory providers                                   deferred_imports.py  imports after the start
tracing.py       whether and where runs are traced                  added_providers.py   model servers added on a page
agent_programs.py, gateway_agents.py    agents that are other programs
stored_entries.py, stored_secrets.py    what was added on the settings page
open_telemetry.py                       where spans of runs are exported to
session_workspaces.py                   the directories that agents work in, to be shown
workspace_editor.py                     … and changed by people
run_changes.py                          what runs changed in them, shown and undone
bounded_threads.py                      calls to file systems that may never answer
"""

from holdfast.app.storage import Node, engine_settings, examine, open_keys, tune_gc
from holdfast.app.storage import open_embedded_node as open_node

__all__ = [
    "Node",
    "engine_settings",
    "examine",
    "open_keys",
    "open_node",
    "tune_gc",
]
