"""Signs in to remote MCP servers with OAuth: the SDK discovers the authorization server, registers a client and keeps
tokens fresh; we store what it gets and pass the browser's answer on. Imports the SDK only when a sign-in begins."""

import json
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import anyio
from anyio.abc import TaskGroup

from holdfast import __version__
from holdfast.ports.tool import ToolError
from holdfast.tools.mcp.http_client import ACCEPT, PING, guarded_client

log = logging.getLogger("holdfast.tools")

SIGN_IN_LIMIT: Final = 600.0  # Seconds from the button to the browser's return
_START_LIMIT: Final = 60.0  # Seconds until the authorization page is known
_MAX_SIGN_INS: Final = 20  # Under way at once
_EARLY: Final = 30.0  # Seconds before its end at which a stored token counts as expired


@dataclass(frozen=True, slots=True)
class OAuthSecrets:
    """Reads and writes the tokens of one server as one JSON string. They are valid for its URL only."""

    url: str
    read: Callable[[], str | None] = field(repr=False)
    write: Callable[[str], Awaitable[None]] = field(repr=False)

    def load(self) -> dict[str, Any]:
        stored = json.loads(self.read() or "{}")
        return stored if stored.get("url") == self.url else {"url": self.url}

    @property
    def has_tokens(self) -> bool:
        return "tokens" in self.load()


class StoredTokens:
    """`TokenStorage` of the SDK."""

    def __init__(self, secrets: OAuthSecrets, redirect_uri: str | None = None) -> None:
        self._secrets = secrets
        self._redirect_uri = redirect_uri  # A client that was registered for another one is not used
        self._context: Any = None  # Of the SDK's provider

    def attach(self, context: Any) -> None:
        """Gives a new provider's context what was found out at the sign-in: the SDK forgets when a stored token expires
        and where it is refreshed."""
        from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata

        self._context, stored = context, self._secrets.load()
        if stored.get("authorization_server") is not None:
            context.oauth_metadata = OAuthMetadata.model_validate(stored["authorization_server"])
        if stored.get("resource") is not None:
            context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(stored["resource"])

    async def get_tokens(self) -> Any:
        """Without a known authorization server they cannot be refreshed: the SDK would guess where to send them."""
        from mcp.shared.auth import OAuthToken

        stored = self._secrets.load()
        if "tokens" not in stored:
            return None
        tokens = OAuthToken.model_validate(stored["tokens"])
        if stored.get("expires_at") is not None:
            self._context.token_expiry_time = stored["expires_at"] - _EARLY
        return tokens if self._context.oauth_metadata else tokens.model_copy(update={"refresh_token": None})

    async def set_tokens(self, tokens: Any) -> None:
        await self._store(
            tokens=_as_json(tokens),
            expires_at=None if tokens.expires_in is None else time.time() + tokens.expires_in,
            authorization_server=_as_json(self._context.oauth_metadata),
            resource=_as_json(self._context.protected_resource_metadata),
        )

    async def get_client_info(self) -> Any:
        from mcp.shared.auth import OAuthClientInformationFull

        stored = self._secrets.load().get("client")
        if stored is None:
            return None
        if self._redirect_uri is not None and self._redirect_uri not in (stored.get("redirect_uris") or ()):
            return None
        return OAuthClientInformationFull.model_validate(stored)

    async def set_client_info(self, client_info: Any) -> None:
        await self._store(client=_as_json(client_info))

    async def _store(self, **fields: Any) -> None:
        await self._secrets.write(json.dumps({**self._secrets.load(), **fields}))


def _as_json(model: Any) -> Any:
    return None if model is None else model.model_dump(mode="json", exclude_none=True)


def stored_auth(secrets: OAuthSecrets) -> Any:
    """Authentication with stored tokens for an HTTP client. When they are no longer accepted, it raises ToolError."""

    async def sign_in_again(url: str) -> None:
        raise ToolError("Its sign-in has expired. Press Connect in Settings → MCP servers.")

    return _provider(secrets, "http://localhost/", sign_in_again, None)


def _provider(secrets: OAuthSecrets, redirect_uri: str, redirect: Any, callback: Any) -> Any:
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import OAuthClientMetadata
    from pydantic import AnyUrl

    metadata = OAuthClientMetadata(
        client_name="Holdfast",
        software_id="holdfast",
        software_version=__version__,
        redirect_uris=[AnyUrl(redirect_uri)],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
    )
    storage = StoredTokens(secrets, None if callback is None else redirect_uri)
    provider = OAuthClientProvider(secrets.url, metadata, storage, redirect, callback)
    storage.attach(provider.context)
    return provider


class _SignIn:
    """One sign-in, from the button until the tokens are stored."""

    def __init__(self, server: str, secrets: OAuthSecrets, redirect_uri: str) -> None:
        self.server = server
        self._secrets = secrets
        self._redirect_uri = redirect_uri
        self.url: str | None = None  # Of the authorization page
        self.state: str | None = None
        self.failure: str | None = None
        self.ready = anyio.Event()  # The page's URL is known, or the sign-in has failed
        self.done = anyio.Event()
        self._answered = anyio.Event()
        self._answer: Any = None

    async def run(self) -> None:
        auth = _provider(self._secrets, self._redirect_uri, self._redirect, self._callback)
        try:
            with anyio.fail_after(SIGN_IN_LIMIT):
                async with guarded_client(self._secrets.url, auth=auth, timeout=30.0) as client:
                    answer = await client.post(self._secrets.url, json=PING, headers=ACCEPT)
            if self._secrets.has_tokens and self.url is None and answer.status_code < 500:
                self.failure = "it is connected already. To sign in as somebody else, disconnect it first."
            elif self.url is None:
                self.failure = f"It did not ask for authorization (status {answer.status_code})."
        except Exception as error:  # noqa: BLE001 - the task boundary: the person is told why
            log.warning("signing in to the MCP server %s failed: %s", self.server, type(error).__name__)
            why = "nobody signed in within ten minutes" if isinstance(error, TimeoutError) else str(error)[:500]
            self.failure = self.failure or why
        finally:
            self.ready.set()
            self.done.set()

    async def _redirect(self, url: str) -> None:
        if urlsplit(url).scheme not in ("http", "https"):  # the person's browser opens it
            raise ToolError("The address of its authorization page is not a web address.")
        self.url, self.state = url, parse_qs(urlsplit(url).query).get("state", [None])[0]
        self.ready.set()

    async def _callback(self) -> Any:
        await self._answered.wait()
        return self._answer

    def answer(self, state: str, code: str | None, issuer: str | None, error: str | None) -> None:
        from mcp.shared.auth import AuthorizationCodeResult

        if error is not None:
            self.failure = f"The authorization server answered: {error[:200]}"
        self._answer = AuthorizationCodeResult(code=code or "", state=state, iss=issuer)
        self._answered.set()


class OAuthSignIns:
    """The sign-ins under way in this process."""

    def __init__(self) -> None:
        self._by_state: dict[str, _SignIn] = {}

    async def start(self, tasks: TaskGroup, server: str, secrets: OAuthSecrets, redirect_uri: str) -> str:
        """The address of the authorization page. Raises ToolError."""
        for state in [state for state, each in self._by_state.items() if each.done.is_set()]:
            del self._by_state[state]
        if len(self._by_state) >= _MAX_SIGN_INS:
            raise ToolError("Too many sign-ins are under way. Finish one, or wait ten minutes.")
        sign_in = _SignIn(server, secrets, redirect_uri)
        tasks.start_soon(sign_in.run)
        with anyio.move_on_after(_START_LIMIT):
            await sign_in.ready.wait()
        if sign_in.url is None or sign_in.state is None:
            raise ToolError(f"Not signed in to {server}: {sign_in.failure or 'it did not answer in time'}")
        self._by_state[sign_in.state] = sign_in
        return sign_in.url

    async def finish(self, state: str, code: str | None, issuer: str | None, error: str | None) -> str:
        """Ends a sign-in and returns the name of its server, whose tokens are stored by then. `state` must be that of a
        sign-in under way, and can be used once. Raises ToolError."""
        sign_in = self._by_state.pop(state, None)
        if sign_in is None or sign_in.done.is_set():
            raise ToolError("This sign-in is unknown or took too long. Press Connect again.")
        sign_in.answer(state, code, issuer, error)
        with anyio.move_on_after(_START_LIMIT):
            await sign_in.done.wait()
        if sign_in.failure is not None or not sign_in.done.is_set():
            raise ToolError(f"Signing in to {sign_in.server} failed: {sign_in.failure or 'no answer in time'}")
        return sign_in.server
