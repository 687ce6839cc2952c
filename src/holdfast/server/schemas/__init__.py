"""The JSON that clients send and receive: one pydantic model per request and response, by subject.

The same model validates or serializes, and describes itself in `/openapi.json`, from which `web/generate_types.py`
makes the web app's types.
"""
