"""`holdfast config`: shows the settings in effect and where each one comes from. Which value wins is decided in
`config`."""

from typing import Any, Final

import typer

from holdfast.cli.context import AsJson, CliContext, ConfigFile, DataDir

_UNITS: Final = {
    **dict.fromkeys(("drain", "heartbeat", "write_deadline", "lease_time", "lease_renewal"), "s"),
    **dict.fromkeys(("retention_days", "login_idle_days"), "days"),
    "max_file_mb": "MB",
}


def add(root: typer.Typer, context: CliContext) -> None:
    app = typer.Typer(help="Inspect the configuration.", no_args_is_help=True, callback=lambda: None)
    root.add_typer(app, name="config")

    @app.command("show", epilog="Example: holdfast config show")
    def show(as_json: AsJson = False, data_dir: DataDir = None, config: ConfigFile = None) -> None:
        """Show each setting, its value and where it comes from.

        The source is a flag, an environment variable, the configuration file or the default.
        Passwords and keys are masked.
        """
        loaded = context.load_config(data_dir, config)
        context.terminal.items(
            [each._asdict() for each in loaded.settings()],
            as_json,
            ("setting", "value", "source"),
            lambda each: (each["name"], _text(each["name"], each["value"]), each["source"]),
        )
        if not as_json and not loaded.file.is_file():
            context.terminal.note(f"No configuration file. Create {loaded.file} to add one.")


def _text(name: str, value: Any) -> str:
    match value:
        case None | "" | [] | () | {}:
            return "(not set)"
        case bool():
            return str(value).lower()
        case list() | tuple():
            return ", ".join(map(str, value))
        case int() | float():
            return f"{value:.12g} {_UNITS[name]}" if name in _UNITS else str(value)
        case _:
            return str(value)
