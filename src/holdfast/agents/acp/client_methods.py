"""The methods that a program may call on its client: text files inside the working directory, and commands. The limits
of files and commands are here.

Files are opened by the jail of the file tools, which follows no links. Commands run as the shell tool's do: under the
subreaper, in the sandbox, and with its environment instead of the program's, in which keys may be. No approval is asked
for them, because the program could start them itself as well. Calls that a program itself asks about:
`agents.permissions`.
"""

from codecs import getincrementaldecoder
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio
from acp.exceptions import RequestError
from anyio import to_thread
from anyio.abc import Process, TaskGroup

from holdfast.ports.tool import ToolError
from holdfast.tools.shell_sandbox import CommandRules
from holdfast.tools.supervised_process import open_supervised_process
from holdfast.tools.workspace.jail import Jail, split_path

MAX_FILE: Final = 10 * 1024 * 1024
_MAX_TERMINALS: Final = 16
_MAX_OUTPUT: Final = 1024 * 1024  # Bytes of a command's output that are kept
_MAX_SHOWN: Final = 200_000  # Characters of a command's output that are reported

ClientMethod = Callable[[Mapping[str, Any]], Awaitable[Any]]


class ClientMethods:
    """`on_output` is called with a terminal's id and what its command printed."""

    def __init__(
        self, cwd: Path, commands: CommandRules, on_output: Callable[[str, str], None] = lambda *_: None
    ) -> None:
        self._on_output = on_output
        self._cwd = cwd
        self._commands = commands
        self._jail = Jail(cwd)
        self._tasks: TaskGroup | None = None
        self._terminals: dict[str, _Terminal] = {}
        self._started = 0
        self._methods: Mapping[str, ClientMethod] = {
            "fs/read_text_file": self._read_file,
            "fs/write_text_file": self._write_file,
            "terminal/create": self._create_terminal,
            "terminal/output": self._terminal_output,
            "terminal/wait_for_exit": self._wait_for_exit,
            "terminal/kill": self._kill_terminal,
            "terminal/release": self._release_terminal,
        }

    def get(self, method: str) -> ClientMethod | None:
        return self._methods.get(method)

    def start(self, tasks: TaskGroup) -> None:
        self._tasks = tasks

    def close(self) -> None:
        for terminal in self._terminals.values():
            terminal.kill()

    # ---- files ----

    async def _read_file(self, params: Mapping[str, Any]) -> Any:
        names, line, limit = self._names(params), params.get("line"), params.get("limit")
        first = max(1, line) - 1 if isinstance(line, int) else 0
        count = limit if isinstance(limit, int) and limit >= 0 else None
        return {"content": await _refuse_with_reason(self._read, names, first, count)}

    def _read(self, names: tuple[str, ...], first: int, count: int | None) -> str:
        """All of the file, or `count` lines of it after the first `first` ones."""
        with self._jail.open_for_reading(names) as file:
            data = file.read(MAX_FILE + 1)
        if len(data) > MAX_FILE:
            raise ToolError(f"{'/'.join(names)!r} is larger than {MAX_FILE // 2**20} MB.")
        begin = _skip_lines(data, 0, first)
        end = len(data) if count is None else _skip_lines(data, begin, count)
        return data[begin:end].decode("utf-8", "replace")

    async def _write_file(self, params: Mapping[str, Any]) -> Any:
        content = params.get("content")
        if not isinstance(content, str):
            raise RequestError.invalid_params({"details": "content must be a string"})
        data = content.encode("utf-8", "replace")
        await _refuse_with_reason(self._jail.write, self._names(params), data)
        return {}

    def _names(self, params: Mapping[str, Any]) -> tuple[str, ...]:
        """The names of an absolute path below the working directory."""
        path = params.get("path")
        if not isinstance(path, str):
            raise RequestError.invalid_params({"details": "path must be a string"})
        inside = path.removeprefix(f"{self._cwd}/") if path.startswith(f"{self._cwd}/") else path
        try:
            return split_path(inside)
        except ToolError as error:
            raise RequestError.invalid_params({"details": str(error)}) from None

    # ---- commands ----

    async def _create_terminal(self, params: Mapping[str, Any]) -> Any:
        command, args, wanted = params.get("command"), params.get("args") or [], params.get("cwd")
        if not (_is_text(command) and command and isinstance(args, list) and all(map(_is_text, args))):
            raise RequestError.invalid_params({"details": "command must be a string, and args a list of strings"})
        extra = _read_variables(params.get("env") or [])
        if len(self._terminals) >= _MAX_TERMINALS or self._tasks is None:
            raise RequestError.invalid_request({"details": f"more than {_MAX_TERMINALS} terminals are open"})
        cwd = self._cwd.joinpath(*self._names({"path": wanted})) if wanted and wanted != str(self._cwd) else self._cwd
        limit = params.get("outputByteLimit")
        kept = min(limit, _MAX_OUTPUT) if isinstance(limit, int) and limit >= 0 else _MAX_OUTPUT
        self._started += 1
        name = f"term_{self._started}"
        # before it starts, so that the limit holds
        terminal = self._terminals[name] = _Terminal(kept, partial(self._on_output, name))
        words = [command, *args] if args else ["/bin/sh", "-c", command]
        try:
            sandbox, inherited = self._commands.sandbox, self._commands.environment
            wrapped, environment = await sandbox.wrap(words, self._cwd, inherited, cwd=cwd, variables=extra)
            await self._tasks.start(terminal.run, wrapped, cwd, environment)
        except BaseException as error:
            self._terminals.pop(name, None)
            if isinstance(error, ToolError):  # a sandbox is required, and there is none
                raise RequestError.invalid_request({"details": str(error)}) from None
            if isinstance(error, OSError | ValueError):  # no such directory, arguments that are too long or no Unicode
                raise RequestError.invalid_params({"details": f"the command cannot start: {error}"}) from None
            raise
        return {"terminalId": name}

    def _terminal(self, params: Mapping[str, Any]) -> "_Terminal":
        found = self._terminals.get(str(params.get("terminalId")))
        if found is None:
            raise RequestError.invalid_params({"details": "there is no such terminal"})
        return found

    async def _terminal_output(self, params: Mapping[str, Any]) -> Any:
        terminal = self._terminal(params)
        shown = {"output": terminal.text, "truncated": terminal.truncated}
        return shown | ({"exitStatus": terminal.status} if terminal.exited.is_set() else {})

    async def _wait_for_exit(self, params: Mapping[str, Any]) -> Any:
        terminal = self._terminal(params)
        await terminal.exited.wait()
        return terminal.status

    async def _kill_terminal(self, params: Mapping[str, Any]) -> Any:
        self._terminal(params).kill()
        return {}

    async def _release_terminal(self, params: Mapping[str, Any]) -> Any:
        self._terminal(params).kill()
        del self._terminals[str(params.get("terminalId"))]
        return {}


class _Terminal:
    """One command and the end of its output."""

    def __init__(self, max_output: int, on_output: Callable[[str], None]) -> None:
        self._on_output = on_output
        self._shown = 0  # Characters that `on_output` was called with
        self._max_output = max_output
        self._output = bytearray()  # cheap to shorten at its beginning
        self._killed = anyio.Event()
        self.truncated = False
        self.exited = anyio.Event()
        self.status: dict[str, Any] = {}

    @property
    def text(self) -> str:
        return self._output.decode("utf-8", "replace")

    def kill(self) -> None:
        self._killed.set()

    async def run(
        self,
        words: list[str],
        cwd: Path,
        environment: Mapping[str, str],
        *,
        task_status: Any = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        code: int | None = None
        try:
            async with open_supervised_process(words, cwd, environment) as child:
                task_status.started()
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._read, child.process, tasks.cancel_scope)
                    await self._killed.wait()
                    tasks.cancel_scope.cancel()
            code = child.process.returncode
        finally:
            self.status = (
                {"exitCode": code} if code is not None and code < 128 else {"signal": f"SIG{(code or 137) - 128}"}
            )
            self.exited.set()

    async def _read(self, process: Process, scope: anyio.CancelScope) -> None:
        assert process.stdout is not None
        decoder = getincrementaldecoder("utf-8")("replace")
        async for chunk in process.stdout:
            text = decoder.decode(chunk)[: _MAX_SHOWN - self._shown]
            if text:
                self._shown += len(text)
                self._on_output(text)
            self._output += chunk
            if len(self._output) > self._max_output:
                self.truncated = True
                del self._output[: len(self._output) - self._max_output]
        await process.wait()
        scope.cancel()


def _is_text(value: Any) -> bool:
    """A string that can be passed to a command."""
    return isinstance(value, str) and "\0" not in value


def _read_variables(env: Any) -> Mapping[str, str]:
    items = env if isinstance(env, list) and all(isinstance(item, dict) for item in env) else [{}]
    pairs = [(item.get("name"), item.get("value")) for item in items]
    if not all(_is_text(name) and _is_text(value) and name and "=" not in name for name, value in pairs):
        raise RequestError.invalid_params({"details": "env must be a list of objects with the texts name and value"})
    return dict(pairs)


def _skip_lines(data: bytes, at: int, count: int) -> int:
    """The position after so many lines. Step by step, because splitting a large file would let no other thread run."""
    for _ in range(min(count, len(data))):
        end = data.find(b"\n", at)
        if end < 0:
            return len(data)
        at = end + 1
    return at


async def _refuse_with_reason(work: Callable[..., Any], *args: Any) -> Any:
    try:
        return await to_thread.run_sync(work, *args)
    except ToolError as error:
        raise RequestError.invalid_params({"details": str(error)}) from None
    except OSError as error:
        raise RequestError.internal_error({"details": error.strerror or "the file cannot be opened"}) from None
