"""The command line. `app.build` puts the commands together; each group of them is a module.

A command talks to a server by HTTP, whether there is one or not: where none runs, the same app is started in this
process for as long as the command takes, on a socket that nobody else can reach (`reach.py`).
"""
