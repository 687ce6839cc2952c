"""What the OpenAI-compatible face costs a token beside the native stream: from the moment at which an event is durable
to the client's socket, a token per event. All that comes before is the same for both.

Each is measured in a process of its own: CPU time is user and system.
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
from holdfast.faces.http.sources import write_frames
from holdfast.faces.http.stream import Write
from holdfast.faces.openai import chunks, frames
from holdfast.faces.openai.answering import Translator, write_translated
from holdfast.faces.openai.chunks import ChatChunks
from holdfast.faces.openai.events import ResponseEvents

Wire = Literal["native", "responses", "chat"]
WIRES: Final[tuple[Wire, ...]] = ("native", "responses", "chat")
TARGET: Final = 3.0
"""Microseconds per token over the native stream."""
_DRAIN: Final = 64


@dataclass(frozen=True, slots=True)
class Result:
    wire: Wire
    cpu_us_per_token: float
    bytes_per_token: float


def handler(wire: Wire, write: Write) -> Callable[[Sequence[ev.Entry]], object]:
    """What a subscription calls with each event that has become durable."""
    if wire == "native":
        return partial(write_frames, write)
    translator: Translator
    if wire == "responses":
        base = frames.dump({"id": "resp_1", "object": "response"})
        translator = ResponseEvents(RunId("run_01m7g6069648tkyybdjjb1e1w7"), base, queued=False, own_tools=False)
    else:
        about = chunks.about("chatcmpl-01m7g6069648tkyybdjjb1e1w7", 1, "some/model", "chat.completion.chunk")
        translator = ChatChunks(about, include_usage=False, own_tools=False)
    return partial(write_translated, write, translator)


def measure(wire: Wire, tokens: int) -> Result:
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
            theirs.recv(1 << 20)  # the client's part
    return Result(wire, used * 1e6 / (tokens - 1), sent / tokens)


def in_process(wire: Wire, tokens: int) -> Result:
    command = [sys.executable, "-m", "bench.openai", wire, str(tokens)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=dict(os.environ))
    return Result(**json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure one wire format; prints JSON.")
    parser.add_argument("wire", choices=WIRES)
    parser.add_argument("tokens", type=int)
    chosen = parser.parse_args()
    print(json.dumps(asdict(measure(chosen.wire, chosen.tokens))))
