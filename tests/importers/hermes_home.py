"""Builds a home of Hermes Agent 0.19.0: `state.db` with its real tables, and the files of Hermes WebUI."""

import json
import sqlite3
from pathlib import Path
from typing import Any

SCHEMA = """
CREATE TABLE schema_version (version INTEGER NOT NULL);
INSERT INTO schema_version VALUES (22);
CREATE TABLE sessions (
    id TEXT PRIMARY KEY, source TEXT NOT NULL, user_id TEXT, display_name TEXT, model TEXT, model_config TEXT,
    system_prompt TEXT, parent_session_id TEXT, started_at REAL NOT NULL, ended_at REAL, end_reason TEXT,
    message_count INTEGER DEFAULT 0, cwd TEXT, title TEXT, profile_name TEXT, rewind_count INTEGER NOT NULL DEFAULT 0,
    archived INTEGER NOT NULL DEFAULT 0, FOREIGN KEY (parent_session_id) REFERENCES sessions(id)
);
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES sessions(id), role TEXT NOT NULL,
    content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, effect_disposition TEXT, timestamp REAL NOT NULL,
    token_count INTEGER, finish_reason TEXT, reasoning TEXT, reasoning_content TEXT, reasoning_details TEXT,
    codex_reasoning_items TEXT, codex_message_items TEXT, platform_message_id TEXT, observed INTEGER DEFAULT 0,
    active INTEGER NOT NULL DEFAULT 1, compacted INTEGER NOT NULL DEFAULT 0, api_content TEXT
);
CREATE INDEX idx_messages_session ON messages(session_id, timestamp);
CREATE INDEX idx_messages_session_active ON messages(session_id, active, timestamp);
"""
SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted into the summary below:\n{}"


class HermesHome:
    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(exist_ok=True)
        self.database = sqlite3.connect(path / "state.db")
        self.database.execute("PRAGMA journal_mode = WAL")
        self.database.executescript(SCHEMA)
        self._clock = 1.7e9

    def session(self, sid: str = "20260101_000000_aaaaaa", **fields: Any) -> str:
        self._clock += 1
        row = {"id": sid, "source": "cli", "started_at": self._clock, "model": "m", **fields}
        self._insert("sessions", row)
        return sid

    def add(self, sid: str, role: str, content: Any = "", **fields: Any) -> None:
        self._clock += 1
        if isinstance(content, list):
            content = "\0json:" + json.dumps(content)
        if "tool_calls" in fields:
            fields["tool_calls"] = json.dumps(fields["tool_calls"])
        row = {"session_id": sid, "role": role, "content": content, "timestamp": self._clock, **fields}
        self._insert("messages", row)

    def say(self, sid: str, *texts: str, **fields: Any) -> None:
        """A conversation of plain turns, beginning with the person's."""
        for n, text in enumerate(texts):
            self.add(sid, "assistant" if n % 2 else "user", text, **fields)

    def _insert(self, table: str, row: dict[str, Any]) -> None:
        marks = ", ".join("?" * len(row))
        self.database.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", list(row.values()))
        self.database.commit()

    def close(self) -> None:
        self.database.close()


def call(call_id: str, name: str = "terminal", **args: Any) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}


def write_webui(root: Path, *sessions: dict[str, Any], **files: Any) -> Path:
    """A state directory of Hermes WebUI. `files` are further JSON documents by name."""
    folder = root / "sessions"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "_index.json").write_text("[]")
    for session in sessions:
        (folder / f"{session['session_id']}.json").write_text(json.dumps(session))
    for name, value in files.items():
        (root / f"{name}.json").write_text(json.dumps(value))
    return root


def write_journal(root: Path, sid: str, stream: str, *events: tuple[str, dict[str, Any]], tail: str = "") -> None:
    """A run journal, whose last line can be cut off."""
    path = root / "sessions" / "_run_journal" / sid / f"{stream}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"event": kind, "seq": n, "payload": data}) for n, (kind, data) in enumerate(events, 1)]
    path.write_text("".join(f"{line}\n" for line in lines) + tail)
