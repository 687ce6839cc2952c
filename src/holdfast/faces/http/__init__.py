"""The native HTTP surface. Routes translate between JSON and `engine.service`, and add nothing.

app.py       everything put together        stream.py     a server-sent event stream, and its client's limits
wire.py      what comes in and goes out     access.py     who may come in (pure)
problems.py  errors as problem JSON         guard.py      the same, as middleware
server.py    uvicorn, and how it stops      routes/       one module per kind of thing
"""

from pydantic import BaseModel, ConfigDict

# FastAPI describes OpenAPI in forty models, and pydantic makes checks of each when it is defined: a tenth of a start,
# for what only `/openapi.json` needs. Models inherit their settings, so while FastAPI is imported those of the base say
# "later".
BaseModel.model_config = ConfigDict(defer_build=True)
try:
    import fastapi  # noqa: F401
finally:
    BaseModel.model_config = ConfigDict()
