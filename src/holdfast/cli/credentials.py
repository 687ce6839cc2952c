"""`holdfast password`, `holdfast token` and `holdfast logins`: they change the keyring, also while a server runs. What
a password, token or login is: `server.authenticator`. `holdfast login-link` asks the running server."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from getpass import getpass
from pathlib import Path
from typing import Annotated

import anyio
import typer

from holdfast.cli.context import AsJson, CliContext, ConfigFile, DataDir
from holdfast.cli.exit_codes import CommandError, ExitCode
from holdfast.cli.server_connection import api_path, ask_running_server
from holdfast.cli.terminal import format_age
from holdfast.core.export_format import iso_timestamp
from holdfast.ports.keyring import KeyringStore
from holdfast.server_file import SERVER_FILE, read_server_file
from holdfast.system import SystemClock


def add(app: typer.Typer, context: CliContext) -> None:
    @app.command()
    def password(
        remove: Annotated[bool, typer.Option("--remove", help="Remove the password.")] = False,
        stdin: Annotated[bool, typer.Option("--stdin", help="Read the password from the first line of stdin.")] = False,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Set the password for logging in. This ends all logins and tokens.

        \b
        Examples:
          holdfast password
          pass show holdfast | holdfast password --stdin
        """
        from holdfast.server import authenticator

        with _keys(context, data_dir, config) as keys:
            if remove:
                authenticator.set_password(keys, None)
                context.terminal.note("Password removed. The server now accepts only connections from this machine.")
                return
            authenticator.set_password(keys, _read_password(stdin, authenticator.MIN_PASSWORD))
            context.terminal.note("Password set. Everyone has to log in again, and all tokens are revoked.")

    _add_login_link(app, context)
    tokens = typer.Typer(help="Manage access tokens for programs.", no_args_is_help=True)
    app.add_typer(tokens, name="token")
    _add_token_commands(tokens, context)
    logins = typer.Typer(help="List browsers that are logged in, and log them out.", no_args_is_help=True)
    app.add_typer(logins, name="logins")
    _add_login_commands(logins, context)


def _add_login_link(app: typer.Typer, context: CliContext) -> None:
    @app.command("login-link")
    def login_link(
        url: Annotated[
            str | None,
            typer.Option(
                "--url", metavar="URL", help="Address at which you open Holdfast. Default: that of this machine."
            ),
        ] = None,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Print a link that logs one browser in without the password. It works once, for five minutes.

        \b
        Examples:
          holdfast login-link
          holdfast login-link --url https://chat.example.com
        """
        settings = context.config(data_dir, config)
        if url is not None and not url.startswith(("http://", "https://")):
            raise typer.BadParameter("must start with http:// or https://", param_hint="--url")
        with context.report_errors():
            made = anyio.run(ask_running_server, settings, api_path("login-links"), "POST")
            running = read_server_file(settings.data_dir / SERVER_FILE)
            if made is None or running is None:
                raise CommandError(
                    f"No server of this user account is running on {settings.data_dir}. Start it, or name its "
                    "directory with --data-dir."
                )
        base = running.url + made["root_path"] if url is None else url.rstrip("/")
        context.terminal.raw(f"{base}{made['path']}\n")


@contextmanager
def _keys(context: CliContext, data_dir: Path | None, file: Path | None) -> Iterator[KeyringStore]:
    """The keyring, with errors reported."""
    from holdfast.app import open_keys

    settings = context.config(data_dir, file)
    with context.report_errors():
        yield open_keys(settings)


def _read_password(stdin: bool, min_length: int) -> str:
    if stdin:
        password = sys.stdin.readline().rstrip("\r\n")
    else:
        if not sys.stdin.isatty():
            raise CommandError("No terminal to ask for the password. Pass it with --stdin.", ExitCode.USAGE)
        password = getpass("New password: ")
        if password != getpass("Repeat password: "):
            raise CommandError("The passwords do not match. Nothing was changed.")
    if len(password) < min_length:
        raise CommandError(f"A password needs at least {min_length} characters. Nothing was changed.")
    return password


def _add_token_commands(app: typer.Typer, context: CliContext) -> None:
    @app.command("create", epilog="Example: holdfast token create laptop")
    def create(
        name: Annotated[str, typer.Argument(metavar="NAME", help="A name to recognize the token by.")],
        as_json: AsJson = False,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Create a token and print it. It cannot be shown again."""
        from holdfast.server import authenticator

        with _keys(context, data_dir, config) as keys:
            if not name.strip() or len(name) > 200:
                raise CommandError("A token name needs 1 to 200 characters.", ExitCode.USAGE)
            if keys.read().password is None and context.config(data_dir, config).password is None:
                raise CommandError("Set a password before creating tokens: `holdfast password`.")
            token, secret = authenticator.issue_token(keys, name, SystemClock().now())
        if as_json:
            context.terminal.json({"id": token.id, "name": token.name, "token": secret})
            return
        context.terminal.note(f"Created token {token.id} ({token.name}). Copy it now; it cannot be shown again.")
        context.terminal.raw(f"{secret}\n")

    @app.command("list", epilog="Example: holdfast token list")
    def list_tokens(as_json: AsJson = False, data_dir: DataDir = None, config: ConfigFile = None) -> None:
        """List tokens by name."""
        with _keys(context, data_dir, config) as keys:
            tokens = keys.read().tokens
        context.terminal.items(
            [{"id": token.id, "name": token.name, "created_at": iso_timestamp(token.created_at)} for token in tokens],
            as_json,
            ("id", "age", "name"),
            lambda each: (each["id"], format_age(each["created_at"]), each["name"]),
            "No tokens.",
        )

    @app.command(epilog="Example: holdfast token revoke tok_0123456789abcdef")
    def revoke(
        token_id: Annotated[str, typer.Argument(metavar="TOKEN", help="Token ID, as shown by `token list`.")],
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Revoke a token immediately."""
        from holdfast.server import authenticator

        with _keys(context, data_dir, config) as keys:
            if not authenticator.revoke_token(keys, token_id):
                raise CommandError(f"There is no token {token_id}. List them with `holdfast token list`.")
            context.terminal.note(f"Revoked token {token_id}.")


def _add_login_commands(app: typer.Typer, context: CliContext) -> None:
    @app.command("list", epilog="Example: holdfast logins list")
    def list_logins(as_json: AsJson = False, data_dir: DataDir = None, config: ConfigFile = None) -> None:
        """List browsers that are logged in."""
        from holdfast.server.authenticator import Authenticator

        settings = context.config(data_dir, config)
        with _keys(context, data_dir, config) as keys:
            found = Authenticator(keys, SystemClock(), idle_days=settings.login_idle_days).logins()
        rows = [(login, iso_timestamp(login.created_at), iso_timestamp(login.used_at)) for login in found]
        if as_json:
            context.terminal.json(
                [
                    {"id": each.id, "device": each.device, "address": each.address, "created_at": made, "used_at": used}
                    for each, made, used in rows
                ]
            )
        else:
            context.terminal.table(
                ("id", "last used", "device", "address"),
                [(each.id, format_age(used), each.device, each.address) for each, _, used in rows],
                "No browser is logged in.",
            )

    @app.command(epilog="Example: holdfast logins end --all")
    def end(
        login_id: Annotated[
            str | None, typer.Argument(metavar="LOGIN", help="Login ID, as shown by `logins list`.")
        ] = None,
        every: Annotated[bool, typer.Option("--all", help="Log out every browser.")] = False,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Log out one browser, or all of them."""
        from holdfast.server import authenticator

        with _keys(context, data_dir, config) as keys:
            if (login_id is None) != every:
                raise CommandError("Name one login, or pass --all.", ExitCode.USAGE)
            ended = authenticator.end_logins(keys, *([] if login_id is None else [login_id]))
            if not ended and login_id is not None:
                raise CommandError(f"There is no login {login_id}. List them with `holdfast logins list`.")
            context.terminal.note("Logged out everywhere." if every else f"Logged out {login_id}.")
