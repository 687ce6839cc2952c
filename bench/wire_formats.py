"""Measures what the OpenAI-compatible wire formats add to the native stream, per token.

From the committed event to the client's socket, with one token per event; everything before is the same. Each format
is measured in a process of its own, by user and system CPU time.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Final, Literal

from holdfast.core import events as ev
from holdfast.core.ids import RunId
from holdfast.server.event_sources import write_frames
from holdfast.server.event_stream import Write
from holdfast.server.openai.chat_chunks import ChatChunks
from holdfast.server.openai.json_bytes import dump
from holdfast.server.openai.response_events import ResponseEvents
from holdfast.server.openai.translator import Translator

Wire = Literal["native", "responses", "chat"]
WIRES: Final[tuple[Wire, ...]] = ("native", "responses", "chat")
TARGET: Final = 3.0
"""Highest acceptable addition to the native stream, in microseconds per token."""
_DRAIN: Final = 64


@dataclass(frozen=True, slots=True)
class WireFormatResult:
    wire: Wire
    cpu_us_per_token: float
    bytes_per_token: float


def handler(wire: Wire, write: Write) -> Callable[[Sequence[ev.Entry]], object]:
    """The callback that a subscription calls with committed events."""
    if wire == "native":
        return partial(write_frames, write)
    translator: Translator
    if wire == "responses":
        constant = dump({"id": "resp_1", "object": "response"})
        translator = ResponseEvents(RunId("run_01m7g6069648tkyybdjjb1e1w7"), constant, queued=False, server_tools=False)
    else:
        fields = {"object": "chat.completion.chunk", "created": 1, "model": "some/model"}
        constant = dump({"id": "chatcmpl-01m7g6069648tkyybdjjb1e1w7", **fields})
        translator = ChatChunks(constant, include_usage=False, server_tools=False)
    return partial(_write_translated, write, translator)


def _write_translated(write: Write, translator: Translator, entries: Sequence[ev.Entry]) -> bool:
    frames = translator.feed(entries)
    return not frames or write(b"".join(frames))


def measure(wire: Wire, tokens: int) -> WireFormatResult:
    entries = [[ev.text_entry(n + 2, f"t{n} ")] for n in range(tokens)]
    ours, theirs = socket.socketpair()
    sent = 0

    def write(body: bytes) -> bool:
        nonlocal sent
        sent += ours.send(b"%x\r\n%b\r\n" % (len(body), body))
        return True

    with ours, theirs:
        take = handler(wire, write)
        take(entries[0])
        used = 0.0
        for at in range(1, tokens, _DRAIN):
            start = time.process_time()
            for entry in entries[at : at + _DRAIN]:
                take(entry)
            used += time.process_time() - start
            theirs.recv(1 << 20)  # what a client would read
    return WireFormatResult(wire, used * 1e6 / (tokens - 1), sent / tokens)


def in_process(wire: Wire, tokens: int) -> WireFormatResult:
    command = [sys.executable, "-m", "bench.wire_formats", wire, str(tokens)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=dict(os.environ))
    return WireFormatResult(**json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure one wire format; prints JSON.")
    parser.add_argument("wire", choices=WIRES)
    parser.add_argument("tokens", type=int)
    chosen = parser.parse_args()
    print(json.dumps(asdict(measure(chosen.wire, chosen.tokens))))
