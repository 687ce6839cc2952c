"""A scripted agent program, built with the protocol package's agent side: `python -m tests.acp.scripted_program HOME`.

A prompt's text ends in `@@` and a JSON list of actions, which it plays. Sessions and the prompts that it was given are
kept in files of HOME, so that it can be killed and started again. HOME/mode changes how it behaves, HOME/next has the
actions for the next prompt instead of its own."""

import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from acp import (
    RequestError,
    run_agent,
    text_block,
    update_agent_message,
    update_agent_message_text,
    update_agent_thought,
    update_user_message,
)
from acp.schema import (
    AgentCapabilities,
    ElicitationFormSessionMode,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PromptResponse,
    RequestPermissionRequest,
    ResumeSessionResponse,
    SessionCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionNotification,
    SessionResumeCapabilities,
    SetSessionConfigOptionResponse,
    Usage,
)


class ScriptedProgram:
    def __init__(self, home: Path) -> None:
        self._home = home
        self._client: Any = None
        self._cancelled = asyncio.Event()
        mode = home / "mode"
        self._mode = mode.read_text() if mode.exists() else ""
        self._chosen: dict[str, Any] = {}
        self._usage: Usage | None = None  # Of the turn so far
        self._announcing: asyncio.Future[None] | None = None

    def on_connect(self, conn: Any) -> None:
        self._client = conn

    # ---- sessions ----

    async def initialize(self, protocol_version: int, **said: Any) -> InitializeResponse:
        capabilities = said.get("client_capabilities")
        self._note("client.jsonl", capabilities and capabilities.model_dump(by_alias=True, exclude_none=True))
        if self._mode == "silent":
            await asyncio.sleep(3600)
        if self._mode == "version":
            protocol_version = 7
        return InitializeResponse(
            protocol_version=protocol_version,
            agent_capabilities=self._capabilities(),
            agent_info=Implementation(name="scripted", title="Scripted", version="1.2.3"),
        )

    def _capabilities(self) -> AgentCapabilities:
        if not self._mode.startswith("resumes"):
            return AgentCapabilities(load_session=self._mode != "no-load")
        lists = None if self._mode == "resumes-unlisted" else SessionListCapabilities()
        session = SessionCapabilities(resume=SessionResumeCapabilities(), list=lists)
        return AgentCapabilities(load_session=False, session_capabilities=session)

    async def list_sessions(self, cwd: str | None = None, cursor: str | None = None, **_: Any) -> ListSessionsResponse:
        """One session per page."""
        self._note("listed.jsonl", [cwd, cursor])
        if self._mode == "resumes-list-fails":
            raise RequestError(-32603, "the list is broken")
        if self._mode == "resumes-endless-list":
            return ListSessionsResponse(sessions=[], next_cursor="more")
        found = sorted(file.name for file in self._home.glob("session-*"))
        at = int(cursor or 0)
        more = str(at + 1) if at + 1 < len(found) else None
        page = [SessionInfo(session_id=name, cwd=str(cwd)) for name in found[at : at + 1]]
        return ListSessionsResponse(sessions=page, next_cursor=more)

    async def resume_session(self, cwd: str, session_id: str, **_: Any) -> ResumeSessionResponse:
        """Replays too, as some programs do, and never says that a session is unknown."""
        self._note("resumed.jsonl", session_id)
        file = self._home / session_id
        if file.exists():
            await self._replay(session_id)
        else:
            file.write_text("")
        return ResumeSessionResponse()

    async def new_session(self, cwd: str, **_: Any) -> NewSessionResponse:
        if self._mode == "login":
            raise RequestError(-32000, "Authentication required")
        number = len(list(self._home.glob("session-*"))) + len(list(self._home.glob("lost"))) + 1
        session_id = f"session-{number}"
        (self._home / session_id).write_text("")
        self._note("cwd.jsonl", cwd)
        offered = json.loads((self._home / "offers").read_text()) if (self._home / "offers").exists() else {}
        asyncio.get_running_loop().call_soon(lambda: self._announce_commands(session_id))
        return NewSessionResponse.model_validate({"sessionId": session_id, **offered})

    def _announce_commands(self, session_id: str) -> None:
        if (self._home / "commands").exists():
            commands = json.loads((self._home / "commands").read_text())
            update = {"sessionUpdate": "available_commands_update", "availableCommands": commands}
            parsed = SessionNotification.model_validate({"sessionId": session_id, "update": update})
            self._announcing = asyncio.ensure_future(self._client.session_update(session_id, parsed.update))

    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> None:
        self._note("chosen.jsonl", ["mode", mode_id])
        if (self._home / "refuse").exists():
            (self._home / "refuse").unlink()
            raise RequestError(-32603, "busy, try later")

    async def set_config_option(self, session_id: str, config_id: str, value: Any, **_: Any) -> Any:
        self._note("chosen.jsonl", [config_id, value])
        self._chosen[config_id] = value
        offered = json.loads((self._home / "offers").read_text())
        for option in offered["configOptions"]:
            option["currentValue"] = self._chosen.get(option["id"], option["currentValue"])
        return SetSessionConfigOptionResponse.model_validate(offered)

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> LoadSessionResponse:
        file = self._home / session_id
        if self._mode == "endless-replay":
            while True:
                await self._client.session_update(session_id, update_agent_message_text("again and again "))
                await asyncio.sleep(0)
        if file.exists() and self._mode != "forgets":
            await self._replay(session_id)
        return LoadSessionResponse()

    async def _replay(self, session_id: str) -> None:
        for line in (self._home / session_id).read_text().splitlines():
            role, text = json.loads(line)
            update = update_user_message if role == "user" else update_agent_message
            await self._client.session_update(session_id, update(text_block(text)))

    def _remember(self, session_id: str, role: str, text: str) -> None:
        with (self._home / session_id).open("a") as file:
            file.write(json.dumps([role, text]) + "\n")

    # ---- turns ----

    async def cancel(self, session_id: str, **_: Any) -> None:
        self._note("cancelled.jsonl", session_id)
        if self._mode != "deaf":
            self._cancelled.set()

    def _note(self, name: str, value: Any) -> None:
        with (self._home / name).open("a") as file:
            file.write(json.dumps(value) + "\n")

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> PromptResponse:
        text = "\n".join(block.text for block in prompt if getattr(block, "type", "") == "text")
        self._note("prompts.jsonl", {"session": session_id, "text": text, "pid": os.getpid()})
        if not (self._home / session_id).exists():
            return PromptResponse(stop_reason="refusal")
        self._remember(session_id, "user", text)
        self._cancelled.clear()
        told = text.rpartition("@@")[2].partition("\n</")[0] if "interrupted" not in text else ""
        if (self._home / "next").exists():
            told = (self._home / "next").read_text().rpartition("@@")[2]
            (self._home / "next").unlink()
        actions = json.loads(told) if told.startswith("[") else [{"say": "Continued."}]
        playing = asyncio.ensure_future(self._play(session_id, actions))
        stopping = asyncio.ensure_future(self._cancelled.wait())
        await asyncio.wait([playing, stopping], return_when=asyncio.FIRST_COMPLETED)
        if not playing.done():
            playing.cancel()
            await self._client.session_update(session_id, update_agent_message_text("[late]"))
            return PromptResponse(stop_reason="cancelled", usage=self._usage)
        stopping.cancel()
        return playing.result()

    async def _play(self, session_id: str, actions: list[dict[str, Any]]) -> PromptResponse:
        reason: Any = "end_turn"
        self._usage = Usage(total_tokens=0, input_tokens=0, output_tokens=0)
        for action in actions:
            match action:
                case {"say": text}:
                    await self._client.session_update(
                        session_id, update_agent_message_text(text * action.get("times", 1))
                    )
                    self._remember(session_id, "agent", text)
                case {"think": text}:
                    await self._client.session_update(session_id, update_agent_thought(text_block(text)))
                case {"update": update}:
                    notification = {"sessionId": session_id, "update": update}
                    parsed = SessionNotification.model_validate(notification)
                    await self._client.session_update(session_id, parsed.update)
                case {"ask": call, "options": options}:
                    asked = {"sessionId": session_id, "toolCall": call, "options": options}
                    request = RequestPermissionRequest.model_validate(asked)
                    answer = await self._client.request_permission(session_id, request.tool_call, request.options)
                    outcome = answer.outcome.model_dump(by_alias=True, exclude_none=True)
                    self._note("answers.jsonl", outcome)
                    if not action.get("quiet"):
                        await self._client.session_update(session_id, update_agent_message_text(json.dumps(outcome)))
                    if "effect" in action and outcome.get("optionId") == "allow_once":
                        self._note("effects.jsonl", action["effect"])
                case {"form": schema, "message": message}:
                    fields = {"sessionId": session_id, "requestedSchema": schema, **action.get("about", {})}
                    mode = ElicitationFormSessionMode.model_validate(fields)
                    try:
                        entered = await self._client.create_elicitation(message, mode)
                        self._note("answers.jsonl", entered.model_dump(by_alias=True, exclude_none=True))
                    except RequestError as error:
                        self._note("answers.jsonl", {"error": str(error.data)})
                case {"effect": effect}:
                    self._note("effects.jsonl", effect)
                case {"raw": text}:
                    sys.stdout.buffer.write(text.encode())
                    sys.stdout.buffer.flush()
                case {"flood": size}:
                    sys.stdout.buffer.write(b"x" * size)
                    sys.stdout.buffer.flush()
                case {"call": method, "params": params}:
                    result = await self._call(session_id, method, params)
                    self._note("results.jsonl", result)
                case {"die": number}:
                    sys.stderr.write("the scripted program breaks down\n")
                    sys.stderr.flush()
                    os.kill(os.getpid(), getattr(signal, number))
                    await asyncio.sleep(3600)
                case {"touch": name}:
                    (self._home / name).touch()
                case {"wait": name}:
                    await asyncio.to_thread(_wait_for, self._home / name)
                case {"stop": stop}:
                    reason = stop
                case {"usage": None}:
                    self._usage = None
                case {"usage": tokens}:
                    self._usage = Usage(total_tokens=sum(tokens), input_tokens=tokens[0], output_tokens=tokens[1])
                case {"hang": _}:
                    await asyncio.sleep(3600)
                case _:
                    raise AssertionError(action)
        return PromptResponse(stop_reason=reason, usage=self._usage)

    async def _call(self, session_id: str, method: str, params: dict[str, Any]) -> Any:
        """A client method, by its name in the package."""
        try:
            result = await getattr(self._client, method)(session_id=session_id, **params)
        except RequestError as error:
            return {"error": str(error.data)}
        return None if result is None else result.model_dump(by_alias=True, exclude_none=True)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


def _wait_for(file: Path) -> None:
    while not file.exists():
        time.sleep(0.01)


def main(arguments: list[str]) -> int:
    home = Path(arguments[0])
    if (home / "mode").exists() and (home / "mode").read_text() == "dies-at-start":
        sys.stderr.write("no configuration found\n")
        return 3
    asyncio.run(run_agent(ScriptedProgram(home), use_unstable_protocol=True))  # type: ignore[arg-type]
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
