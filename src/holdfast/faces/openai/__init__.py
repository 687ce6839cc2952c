"""The same runs in OpenAI's wire formats: `/v1/models`, `/v1/chat/completions`, `/v1/responses`.

face.py      put into the app             requests.py   what comes in, and what is refused or ignored of it
items.py     input items as parts         said.py       what was said, as messages of a session
frames.py    events and objects as bytes  events.py     a journal as events of a response (pure)
chunks.py    a journal as chat chunks     routes/       one module per kind of call
"""
