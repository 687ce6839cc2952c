"""The command line. `app.build` registers the commands; each group of commands is a module.

Commands use the HTTP API. If no server is running, `connect.py` serves it in this process while the command runs.
"""
