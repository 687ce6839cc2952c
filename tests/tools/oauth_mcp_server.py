"""An MCP server behind OAuth, with its authorization server, as a program: `oauth_mcp_server.py LOG FD PORT`.

The authorization server is not at the server's origin.
It registers clients, consents at once, and issues tokens that expire within an hour; a refresh revokes the earlier
token. Grants are lines in LOG.
"""

import secrets
import sys
import time
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl

log, url = Path(sys.argv[1]), f"http://127.0.0.1:{sys.argv[3]}"


class Provider:
    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info
        self.note(f"registered {client_info.client_name}")

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        code = secrets.token_urlsafe(24)
        self.codes[code] = AuthorizationCode(
            code=code,
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(self, client: Any, authorization_code: str) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        self.note("authorization_code")
        return self.issue(client, authorization_code.scopes)

    async def load_refresh_token(self, client: Any, refresh_token: str) -> RefreshToken | None:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        self.access.clear()
        del self.refresh[refresh_token.token]
        self.note("refresh_token")
        return self.issue(client, scopes)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def revoke_token(self, token: Any) -> None:
        raise NotImplementedError

    def issue(self, client: OAuthClientInformationFull, scopes: list[str]) -> OAuthToken:
        access, refresh = f"access-{secrets.token_urlsafe(24)}", f"refresh-{secrets.token_urlsafe(24)}"
        self.access[access] = AccessToken(
            token=access, client_id=client.client_id, scopes=scopes, resource=f"{url}/mcp"
        )
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client.client_id, scopes=scopes)
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=3600, scope=" ".join(scopes))

    def note(self, line: str) -> None:
        with log.open("a") as file:
            file.write(f"{line}\n")


provider: Any = Provider()
server = MCPServer(
    "private",
    auth_server_provider=provider,
    auth=AuthSettings(
        issuer_url=AnyHttpUrl(f"{url}/issuer"),
        resource_server_url=AnyHttpUrl(f"{url}/mcp"),
        validate_token_resource=True,
        client_registration_options=ClientRegistrationOptions(enabled=True),
    ),
)


@server.tool()
def secret() -> str:
    """Tell what only those who signed in are told."""
    return "the harbour master's birthday"


inner = server.streamable_http_app()


async def app(scope: Any, receive: Any, send: Any) -> None:
    """The authorization server is below /issuer only."""
    if scope["type"] == "http":
        path = "/nowhere" if scope["path"] in ("/token", "/register") else scope["path"]
        scope = {**scope, "path": path.removeprefix("/issuer").removesuffix("/issuer")}
    await inner(scope, receive, send)


if __name__ == "__main__":
    uvicorn.Server(uvicorn.Config(app, fd=int(sys.argv[2]), log_level="critical")).run()
