"""The process that computes the local model's answers: `python -m holdfast.models.local_model_worker '{…}'`.

It reads lines of JSON on stdin: `{"id": 1, "ask": {…}}` and `{"cancel": 1}`; and writes them on stdout: first
`{"ready": true}` or `{"failed": "…"}`, then `{"id": 1, "chunk": {…}}` for each chunk and `{"id": 1, "done": true}`. It
exits when stdin ends, also in mid-answer, so a killed parent leaves nothing running.

It is a process of its own because a failed assertion in native code ends the process it happens in.
"""

import json
import os
import queue
import secrets
import shutil
import sys
import tempfile
import threading
from typing import Any, BinaryIO

from holdfast.models.local_model_runtime import load_failure

BATCH = 32
"""Tokens of the prompt between two checks for a cancellation. The next batch may have started by then, so a cancel
takes at most two batches; larger batches are not faster."""


def main() -> None:
    settings = json.loads(sys.argv[1])
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # the library's own output must not get between our lines
    try:
        server = _load(settings)
    except ModuleNotFoundError:
        _emit(out, {"failed": "its runtime is not installed; `pip install 'holdfast[local]'`"})
        return
    except ImportError as error:
        _emit(out, {"failed": f"its runtime cannot be loaded: {load_failure(str(error))}"})
        return
    except Exception as error:  # noqa: BLE001  a process boundary: the parent reports it
        _emit(out, {"failed": str(error) or "the weights could not be loaded"})
        return
    _emit(out, {"ready": True})
    questions: queue.Queue[dict[str, Any]] = queue.Queue(maxsize=16)
    cancelled: set[int] = set()
    threading.Thread(target=_listen, args=(questions, cancelled), daemon=True).start()
    while True:
        try:
            request = questions.get(timeout=settings["idle"])
        except queue.Empty:
            os._exit(0)  # frees the memory; the next question starts another process
        _answer(server, request, cancelled, out)


def _load(settings: dict[str, Any]) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = settings["path"]
    params.n_ctx = settings["context"]
    params.n_batch = params.n_ubatch = BATCH
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings["threads"]
    params.cache_ram_mib = 0
    params.warmup = False
    params.verbosity = -1
    # It always opens an HTTP listener: nobody gets its key, and a Unix socket is removed right after.
    params.api_keys = [secrets.token_urlsafe(32)]
    if os.name != "posix":
        return xllamacpp.Server(params)
    private = tempfile.mkdtemp()
    try:
        params.hostnames = [os.path.join(private, "s.sock")]
        return xllamacpp.Server(params)
    finally:
        shutil.rmtree(private, ignore_errors=True)


def _listen(questions: "queue.Queue[dict[str, Any]]", cancelled: set[int]) -> None:
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "cancel" in message:
            cancelled.add(message["cancel"])
        else:
            questions.put(message)
    os._exit(0)


def _answer(server: Any, request: dict[str, Any], cancelled: set[int], out: BinaryIO) -> None:
    number = request["id"]

    def take(chunk: Any) -> bool:
        if number in cancelled:
            return True
        _emit(out, {"id": number, "chunk": chunk})
        return number in cancelled

    if number not in cancelled:
        try:
            server.handle_chat_completions(request["ask"], take)
        except Exception as error:  # noqa: BLE001  one bad question must not unload the model
            _emit(out, {"id": number, "chunk": {"error": {"message": str(error), "code": 400}}})
    _emit(out, {"id": number, "done": True})
    cancelled.discard(number)


def _emit(out: BinaryIO, message: dict[str, Any]) -> None:
    line = json.dumps(message).encode() + b"\n"
    while line:
        line = line[out.write(line) :]


if __name__ == "__main__":
    main()
