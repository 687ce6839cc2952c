"""The native HTTP surface. Routes translate between JSON and `engine.service`, and add nothing.

app.py       everything put together        stream.py     a server-sent event stream, and its client's limits
requests.py  what comes in                  access.py     who may come in (pure)
answers.py   what goes out                  guard.py      the same, as middleware
problems.py  errors as problem JSON         routes/       one module per kind of thing
server.py    uvicorn, and how it stops      routing.py    what these make, and how the app gets it
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
