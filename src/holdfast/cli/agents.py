"""`holdfast agents`: lists agents and tests the programs among them. Which are found: `app.agent_programs`."""

from typing import Annotated

import typer

from holdfast.cli.context import AsJson, CliContext, ConfigFile, DataDir
from holdfast.cli.exit_codes import ExitCode
from holdfast.cli.server_connection import CommandServerPurpose


def add(root: typer.Typer, context: CliContext) -> None:
    app = typer.Typer(help="Manage agents.", no_args_is_help=True)
    root.add_typer(app, name="agents")

    @app.command("list", epilog="Example: holdfast agents list")
    def list_agents(as_json: AsJson = False, data_dir: DataDir = None, config: ConfigFile = None) -> None:
        """List agents and whether each is available."""
        settings = context.config(data_dir, config)
        found = context.call_api(settings, "GET", "agents", creates=True, purpose=CommandServerPurpose.MODELS)
        if as_json:
            context.terminal.json(found)
            return
        rows = [
            (item["name"], "program" if item["is_program"] else "built in", item["reason"] or "available")
            for item in found["items"]
        ]
        context.terminal.table(("agent", "", "state"), rows)

    @app.command("test", epilog="Example: holdfast agents test hermes")
    def test_agent(
        name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the agent.")],
        as_json: AsJson = False,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Start an agent's program and show its name, its version and whether it needs a login."""
        settings = context.config(data_dir, config)
        names, purpose = ("agents", name, "test"), CommandServerPurpose.MODELS
        found = context.call_api(settings, "POST", *names, creates=True, purpose=purpose)
        if as_json:
            context.terminal.json(found)
        elif found["ok"]:
            about = " ".join(filter(None, (found["program"], found["version"]))) or name
            login = f" Ways to log in: {', '.join(found['login'])}." if found["login"] else ""
            context.terminal.note(f"{about} answered after {found['took_ms']} ms.{login}")
            if found["capabilities"]:
                context.terminal.note(f"Supports: {', '.join(found['capabilities'])}.")
            if found["session_problem"]:
                context.terminal.note(
                    ("Login required. " if found["login_required"] else "") + found["session_problem"]
                )
        else:
            context.terminal.note(found["reason"])
        if not found["ok"] or found["session_problem"]:
            raise typer.Exit(ExitCode.FAILED)
