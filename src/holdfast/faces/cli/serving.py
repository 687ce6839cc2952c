"""`holdfast serve`."""

from typing import Annotated

import anyio
import typer

from holdfast import logs
from holdfast.faces.cli.desk import ConfigFile, DataDir, Desk


def add(app: typer.Typer, desk: Desk) -> None:
    @app.command()
    def serve(
        host: Annotated[str | None, typer.Option(help="Address to listen on; 127.0.0.1 by default.")] = None,
        port: Annotated[
            int | None, typer.Option(help="Port; 8484 by default, 0 for any that is free.", min=0, max=65535)
        ] = None,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Start the server. It says where it listens, and stops on Ctrl-C.

        \b
        Example:
          holdfast serve --port 8484 --data-dir ~/holdfast
        """
        settings = desk.config(data_dir, config, host=host, port=port)
        logs.configure(settings.log_level, settings.log_format)

        def ready(url: str) -> None:
            desk.screen.raw(f"Holdfast listens on {url}\n")

        with desk.reporting():
            anyio.run(desk.serve, settings, ready, backend_options={"use_uvloop": True})
