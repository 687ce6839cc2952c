"""`holdfast sessions share`, `shares` and `unshare`: links to read-only snapshots of conversations."""

from typing import Annotated, Any, Literal

import typer

from holdfast.cli.context import AsJson, CliContext, ConfigFile, DataDir, Limit, SessionArgument
from holdfast.cli.terminal import format_age
from holdfast.core.size_text import size_text
from holdfast.server_file import SERVER_FILE, read_server_file


def add(sessions: typer.Typer, context: CliContext) -> None:
    _add_share(sessions, context)

    @sessions.command("shares", epilog="Example: holdfast sessions shares")
    def list_shares(
        limit: Limit = 50, as_json: AsJson = False, data_dir: DataDir = None, config: ConfigFile = None
    ) -> None:
        """List shared links, newest first. Their addresses are not stored."""
        found = context.list_api(context.config(data_dir, config), "shares", {}, limit)
        context.terminal.items(
            found, as_json, ("share", "age", "kind", "expires", "last opened", "title"), _row, "No shared links."
        )

    @sessions.command("unshare", epilog="Example: holdfast sessions unshare share_01h…")
    def unshare(
        share: Annotated[str, typer.Argument(metavar="SHARE", help="Share ID, from `holdfast sessions shares`.")],
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Revoke a shared link. It stops working at once."""
        context.call_api(context.config(data_dir, config), "DELETE", "shares", share)
        context.terminal.note("Revoked.")


def _add_share(sessions: typer.Typer, context: CliContext) -> None:
    @sessions.command("share")
    def share(
        session: SessionArgument,
        recording: Annotated[
            bool, typer.Option("--recording", help="Share how each answer came about instead of the text.")
        ] = False,
        run: Annotated[str | None, typer.Option(metavar="RUN", help="Share the recording of this run only.")] = None,
        reasoning: Annotated[bool, typer.Option("--reasoning", help="Include reasoning.")] = False,
        tools: Annotated[bool, typer.Option("--tools", help="Include tool calls and plans.")] = False,
        files: Annotated[bool, typer.Option("--files", help="Include images and other files.")] = False,
        expires: Annotated[
            Literal["1", "7", "30", "never"], typer.Option(help="Days until the link stops working.")
        ] = "7",
        url: Annotated[
            str | None,
            typer.Option(
                "--url", metavar="URL", help="Address of the server in the link. Default: that of this machine."
            ),
        ] = None,
        as_json: AsJson = False,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Print a link to a read-only snapshot of a session. Whoever has it and can reach the server can open it.

        \b
        Examples:
          holdfast sessions share ses_01h…
          holdfast sessions share ses_01h… --recording --tools --expires 30 --url https://chat.example.com
        """
        if url is not None and not url.startswith(("http://", "https://")):
            raise typer.BadParameter("must start with http:// or https://", param_hint="--url")
        settings = context.config(data_dir, config)
        body = {
            "kind": "recording" if recording or run is not None else "text",
            "run_id": run,
            "reasoning": reasoning,
            "tools": tools,
            "files": files,
            "expires_in_days": None if expires == "never" else int(expires),
        }
        made = context.call_api(settings, "POST", "sessions", session, "shares", body=body)
        if url is None:
            running = read_server_file(settings.data_dir / SERVER_FILE)
            address = f"http://{settings.host}:{settings.port}" if running is None else running.url
            base = address + made["root_path"]
        else:
            base = url.rstrip("/")
        link = f"{base}{made['path']}"
        if as_json:
            context.terminal.json({**made, "link": link})
        else:
            context.terminal.raw(f"{link}\n")


def _row(each: Any) -> tuple[str, ...]:
    kind = f"{each['kind']}, {size_text(each['size'])}"
    opened = "never" if each["last_opened_at"] is None else format_age(each["last_opened_at"])
    expires = "never" if each["expires_at"] is None else each["expires_at"][:10]
    return each["id"], format_age(each["created_at"]), kind, expires, opened, each["title"] or "(untitled)"
