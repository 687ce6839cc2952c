"""`holdfast serve`: starts the server. The process: `app.lifecycle`; settings: `config`."""

import gc
import os
import sys
from typing import Annotated

import anyio
import typer

from holdfast import logs
from holdfast.cli import desktop
from holdfast.cli.context import CliContext, ConfigFile, DataDir
from holdfast.cli.exit_codes import CommandError, ExitCode
from holdfast.cli.models import download_model, wants_model
from holdfast.cli.server_connection import find_running_server


def add(root: typer.Typer, context: CliContext) -> None:
    @root.command(epilog="Example: holdfast serve --port 8484 --data-dir ~/holdfast")
    def serve(
        host: Annotated[
            str | None, typer.Option(metavar="HOST", help="Address to listen on. Default: 127.0.0.1")
        ] = None,
        port: Annotated[
            int | None,
            typer.Option(metavar="PORT", help="Port to listen on; 0 picks a free one. Default: 8484", min=0, max=65535),
        ] = None,
        root_path: Annotated[
            str | None,
            typer.Option(
                help="Path below which a reverse proxy publishes the server, such as /holdfast.", metavar="PATH"
            ),
        ] = None,
        open_browser: Annotated[
            bool,
            typer.Option(
                "--open/--no-open",
                help="Open the browser, on a desktop. Default: only without a command",
                show_default=False,
            ),
        ] = False,
        model: Annotated[
            bool | None,
            typer.Option(
                "--model/--no-model",
                help="Download the small local model without asking, or never ask. Default: the first start asks.",
            ),
        ] = None,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Start the server and print its address. Stop it with Ctrl-C."""
        settings = context.config(data_dir, config, host=host, port=port, root_path=root_path)
        logs.configure(settings.log_level, settings.log_format)

        def show(url: str, state: str = "running") -> None:
            context.terminal.raw(f"Holdfast is {state} at {url}\n")
            if open_browser and desktop.is_desktop(os.environ, sys.platform):
                desktop.open_browser(url)

        # A person who types `holdfast` again wants the page. A service that starts twice must fail.
        if (running := anyio.run(find_running_server, settings)) is not None:
            from holdfast.app import lifecycle

            address = lifecycle.page_address(settings, running)
            if open_browser:
                show(address, "already running")
                return
            with context.report_errors():
                raise CommandError(f"Holdfast is already running at {address}", ExitCode.IN_USE)
        if wants_model(context.terminal, settings, model):
            download_model(context)

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
            anyio.run(lifecycle.serve, settings, context.build_agents(), show, backend_options=options)
