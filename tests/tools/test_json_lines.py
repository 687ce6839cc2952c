"""Lines of JSON from a program, however they arrive."""

import threading
from collections.abc import Iterator

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.tools.json_lines import JsonLineReader, LineLimits, LineSplitter

LIMITS = LineLimits(1_000_000, 100_000, 20_000)


@given(st.lists(st.binary(max_size=20)), st.integers(1, 7))
def test_the_cutting_makes_no_difference(pieces: list[bytes], size: int) -> None:
    """Lines are the same however the output arrives."""
    output = b"\n".join(pieces)
    lines, splitter = list[bytes](), LineSplitter(LIMITS)
    for at in range(0, len(output), size):
        lines += splitter.add(output[at : at + size])
    assert lines == output.split(b"\n")[:-1]
    assert splitter.problem is None


class Output:
    """What a program wrote, in pieces."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces: Iterator[bytes] = iter(pieces)

    async def receive(self, max_bytes: int = 65536) -> bytes:
        piece = next(self._pieces, None)
        if piece is None:
            raise anyio.EndOfStream
        return piece

    async def aclose(self) -> None:
        pass


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("rest", "problem"),
    [
        (b"x" * 1_000_001, "a message of more than 0 MB"),
        (b"[" + b"1," * 60_000, "a message of too many values"),
        (b"[" + b'"",' * 30_000, "a message of too many values"),
        (b"[" + b"1," * 30_000, None),
    ],
    ids=["size", "structure", "strings", "within the limits"],
)
async def test_what_came_before_a_line_that_is_too_large_is_read(rest: bytes, problem: str | None) -> None:
    """L6: empty lines are skipped, and nothing is read after a line over the limits."""
    reader = JsonLineReader(Output(b"1\n\n \n2\n3", b"4\n" + rest, b"\n5\n"), LIMITS)  # type: ignore[arg-type]
    found = []
    while (line := await reader.next(bytes)) is not None:
        found.append(line)
    assert found[:3] == [b"1", b"2", b"34"]
    assert found[3:] == ([] if problem else [rest, b"5"])
    assert reader.problem == problem


@pytest.mark.anyio
async def test_a_long_line_is_parsed_in_a_thread() -> None:
    """L6: the event loop is not held up."""
    reader = JsonLineReader(Output(b"1\n" + b"x" * 100_000 + b"\n"), LIMITS)  # type: ignore[arg-type]
    threads = [await reader.next(lambda _: threading.current_thread()) for _ in range(2)]
    assert [thread is threading.main_thread() for thread in threads] == [True, False]


def is_message(line: bytes) -> bytes | None:
    return line if line == b"{}" else None


@pytest.mark.anyio
async def test_a_program_that_sends_no_messages_is_given_up() -> None:
    """L6: of lines that are no messages, blank ones too, so many in a row are skipped; each message begins anew."""
    noise = b"hello\n\n" * 4_999
    output = Output(noise + b"{}\n", noise, b"{}\n" + noise + b"x\ny\n", b"{}\n")
    reader = JsonLineReader(output, LIMITS)  # type: ignore[arg-type]
    found = 0
    while await reader.next(is_message) is not None:
        found += 1
    assert found == 2
    assert reader.problem == "10,000 lines in a row that are no messages"


@pytest.mark.anyio
async def test_many_short_lines_let_everything_else_run() -> None:
    """L6: lines that have arrived are read with pauses."""
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    reader = JsonLineReader(Output(b"{}\n" * 5_000, b"x\n" * 5_000 + b"{}\n"), LIMITS)  # type: ignore[arg-type]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(count_turns)
        for _ in range(5_001):
            assert await reader.next(is_message) == b"{}"
        tasks.cancel_scope.cancel()
    assert turns > 50
