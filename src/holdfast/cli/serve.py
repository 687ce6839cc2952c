"""`holdfast serve`: starts the server."""

import gc
import os
import sys
from typing import Annotated

import anyio
import typer

from holdfast import logs
from holdfast.cli import desktop
from holdfast.cli.context import CliContext, ConfigFile, DataDir
from holdfast.cli.models import download_model, wants_model


def add(root: typer.Typer, context: CliContext) -> None:
    @root.command(epilog="Example: holdfast serve --port 8484 --data-dir ~/holdfast")
    def serve(
        host: Annotated[str | None, typer.Option(help="Address to listen on. Default: 127.0.0.1")] = None,
        port: Annotated[
            int | None, typer.Option(help="Port to listen on; 0 picks a free one. Default: 8484", min=0, max=65535)
        ] = None,
        root_path: Annotated[
            str | None,
            typer.Option(
                help="Path below which a reverse proxy publishes the server, such as /holdfast.", metavar="PATH"
            ),
        ] = None,
        open_browser: Annotated[
            bool,
            typer.Option("--open/--no-open", help="Open the browser, on a desktop. Default: if no command is given"),
        ] = False,
        model: Annotated[
            bool | None,
            typer.Option(
                "--model/--no-model",
                help="Download the small local model first, or do not offer it. Default: ask at the first start",
            ),
        ] = None,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Start the server and print its address. Stop it with Ctrl-C."""
        settings = context.config(data_dir, config, host=host, port=port, root_path=root_path)
        logs.configure(settings.log_level, settings.log_format)

        if wants_model(context.terminal, settings, model):
            download_model(context)

        def ready(url: str) -> None:
            context.terminal.raw(f"Holdfast is running at {url}\n")
            if open_browser and desktop.is_desktop(os.environ, sys.platform):
                desktop.open_browser(url)

        with context.report_errors():
            gc.disable()  # until `tune_gc`: collections during the imports free nothing and take a tenth of the start
            from holdfast.app import lifecycle, tune_gc
            from holdfast.server.event_loop import ServerEventLoop

            tune_gc()
            if password := lifecycle.create_first_password(settings):
                context.terminal.raw(
                    f"Password for logging in: {password}\n"
                    "It is not shown again. Change it in the settings or with `holdfast password`.\n"
                )
            options = {"loop_factory": ServerEventLoop}
            anyio.run(lifecycle.serve, settings, context.build_agents(), ready, backend_options=options)
