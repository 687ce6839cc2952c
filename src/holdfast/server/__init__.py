"""The HTTP server: the native API, the OpenAI-compatible API below `openai/`, and the web app's files.

Routes translate between JSON (`schemas/`) and the engine, and contain no logic of their own. `access_rules.py` decides
which requests are allowed; `app.py` puts everything together.
"""
