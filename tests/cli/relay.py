"""A line between a client and a server that loses an answer: what was asked is done, and nobody is told."""

import socket
import threading
from contextlib import suppress
from types import TracebackType
from urllib.parse import urlsplit


class Forgetful:
    """Passes everything on, but cuts the line instead of passing on the first answer to a request that begins so."""

    def __init__(self, url: str, request: bytes) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        assert parts.port is not None
        self._server = (parts.hostname, parts.port)
        self._request = request
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.lost = threading.Event()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._server) as server, suppress(OSError):
            back = threading.Thread(target=self._back, args=(server, client, forget := threading.Event()), daemon=True)
            back.start()
            while got := client.recv(65536):
                if got.startswith(self._request) and not self.lost.is_set():
                    forget.set()
                    self.lost.set()
                server.sendall(got)

    def _back(self, server: socket.socket, client: socket.socket, forget: threading.Event) -> None:
        with suppress(OSError):
            while got := server.recv(65536):
                if forget.is_set():  # the server has answered, so it has done what it was asked
                    client.shutdown(socket.SHUT_RDWR)
                    return
                client.sendall(got)

    def __enter__(self) -> "Forgetful":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._listener.close()
