"""`holdfast password` and `holdfast token`: the keyring, also beside a running server."""

import sys
from getpass import getpass
from typing import Annotated

import typer

from holdfast.faces.cli.desk import AsJson, ConfigFile, DataDir, Desk
from holdfast.faces.cli.exits import CommandError, Exit
from holdfast.faces.cli.screen import ago
from holdfast.ports import Token


def add(app: typer.Typer, desk: Desk) -> None:
    @app.command()
    def password(
        remove: Annotated[bool, typer.Option("--remove", help="Take the password away.")] = False,
        stdin: Annotated[bool, typer.Option("--stdin", help="Read it from the first line of stdin.")] = False,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Set the password that people log in with. Every login ends.

        \b
        Examples:
          holdfast password
          pass show holdfast | holdfast password --stdin
        """
        from holdfast.faces.http import gate

        settings = desk.config(data_dir, config)
        with desk.reporting():
            keys = desk.keys(settings)
            if remove:
                gate.set_password(keys, None)
                desk.screen.note("There is no password now: the server answers on this machine alone.")
                return
            gate.set_password(keys, _read(stdin, gate.MIN_PASSWORD))
            desk.screen.note("The password is set. Everybody has to log in again.")

    tokens = typer.Typer(help="Keys for programs.", no_args_is_help=True)
    app.add_typer(tokens, name="token")
    _tokens(tokens, desk)


def _read(stdin: bool, least: int) -> str:
    if stdin:
        word = sys.stdin.readline().rstrip("\r\n")
    else:
        if not sys.stdin.isatty():
            raise CommandError("There is no terminal to ask at. Give the password with --stdin.", Exit.USAGE)
        word = getpass("New password: ")
        if word != getpass("The same again: "):
            raise CommandError("The two are not the same. Nothing was changed.")
    if len(word) < least:
        raise CommandError(f"A password has at least {least} characters. Nothing was changed.")
    return word


def _tokens(app: typer.Typer, desk: Desk) -> None:
    @app.command("create")
    def create(
        name: Annotated[str, typer.Argument(help="What it is for.")],
        as_json: AsJson = False,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Make a token. It is shown once, and kept nowhere.

        \b
        Example:
          holdfast token create laptop
        """
        from holdfast.faces.http import gate

        settings = desk.config(data_dir, config)
        with desk.reporting():
            if not name.strip() or len(name) > 200:
                raise CommandError("A token's name has 1 to 200 characters.", Exit.USAGE)
            token, secret = gate.issue_token(desk.keys(settings), name, desk.clock.now())
        if as_json:
            desk.screen.json({"id": token.id, "name": token.name, "token": secret})
            return
        desk.screen.note(f"Token {token.id} for {token.name}. Keep it: it is not shown again.")
        desk.screen.raw(f"{secret}\n")

    @app.command("list")
    def list_tokens(as_json: AsJson = False, data_dir: DataDir = None, config: ConfigFile = None) -> None:
        """What tokens there are, by name.

        \b
        Example:
          holdfast token list
        """
        settings = desk.config(data_dir, config)
        with desk.reporting():
            found = desk.keys(settings).read().tokens
        if as_json:
            desk.screen.json([{"id": t.id, "name": t.name, "created_at": _time(t)} for t in found])
        else:
            desk.screen.table(("id", "made", "name"), [(t.id, ago(_time(t)), t.name) for t in found])

    @app.command()
    def revoke(
        token_id: Annotated[str, typer.Argument(help="Its id, as `token list` shows it.")],
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Make a token worthless, at once.

        \b
        Example:
          holdfast token revoke tok_0123456789abcdef
        """
        from holdfast.faces.http import gate

        settings = desk.config(data_dir, config)
        with desk.reporting():
            if not gate.revoke_token(desk.keys(settings), token_id):
                raise CommandError(f"There is no token {token_id!r}. `holdfast token list` shows them.")
            desk.screen.note(f"Token {token_id} is worthless now.")


def _time(token: Token) -> str:
    from holdfast.core.portable import time_text

    return time_text(token.created_at)
