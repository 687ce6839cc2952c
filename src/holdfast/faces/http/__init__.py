"""The native HTTP surface. Routes translate between JSON and `engine.service`, and add nothing.

app.py       everything put together        stream.py     a server-sent event stream, and its client's limits
wire.py      what comes in and goes out     access.py     who may come in (pure)
problems.py  errors as problem JSON         guard.py      the same, as middleware
server.py    uvicorn, and how it stops      routes/       one module per kind of thing
"""
