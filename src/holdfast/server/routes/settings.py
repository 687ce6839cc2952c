"""Server settings, provider keys and tool grants. Keys are stored and never returned. Without a password the shell
cannot be always allowed: refused here."""

from typing import Any

from starlette.requests import Request

from holdfast import __version__
from holdfast.core.errors import NotAllowedError
from holdfast.ports.model import ProviderStatus
from holdfast.server import security_log
from holdfast.server.client_address import request_address
from holdfast.server.context import ApiContext
from holdfast.server.parameters import IdPath
from holdfast.server.reauthentication import require_recent_login
from holdfast.server.routing import Router
from holdfast.server.schemas import settings as s

router = Router("settings", "/api/settings")


@router.get("")
async def read_settings(api: ApiContext) -> s.SettingsResponse:
    settings = await api.engine.preferences.settings()
    grants = await api.engine.preferences.grants()
    providers = [] if api.models is None else api.models.providers()
    return s.SettingsResponse(
        default_model=settings.get("default_model"),
        tools=settings.get("tools") or {},
        grants=[s.GrantResponse.model_validate(grant) for grant in grants],
        providers=[_provider(status) for status in providers],
        password_set=api.authenticator.password_set,
        memory=api.engine.session_memory is not None,
        data_dir=None if api.data_dir is None or api.backup is None else str(api.data_dir),
        version=__version__,
    )


def _provider(status: ProviderStatus) -> s.ProviderResponse:
    source = status.key_source
    return s.ProviderResponse(
        name=status.name,
        title=status.title or status.name,
        has_key=source is not None,
        base_url=status.base_url,
        key_source=source,
        key_variable=status.key_name if source == "environment" else None,
        added=status.added,
        images=status.images,
    )


@router.patch("")
async def change_settings(api: ApiContext, request: Request, body: s.UpdateSettingsRequest) -> s.SettingsResponse:
    """Change the default model, or which tools are allowed, ask first or are denied. Changing the rule of a tool needs
    a recent login."""
    values: dict[str, Any] = {name: getattr(body, name) for name in body.model_fields_set}
    before = (await api.engine.preferences.settings()).get("tools") or {} if "tools" in values else None
    changes_rules = "tools" in values and values["tools"] != before
    if changes_rules:
        require_recent_login(request, "change the rules for tools")
    if values.get("tools", {}).get("shell") == "allow" and not api.authenticator.password_set:
        raise NotAllowedError("always allow the shell", "this server has no password; set one first")
    await api.engine.preferences.change(values)
    if changes_rules:
        address = request_address(request, api.trusted_proxies)
        security_log.record("tool rules changed", address=address, rules=str(values["tools"]))
    return await read_settings(api)


@router.put("/keys/{provider}")
async def set_key(
    api: ApiContext, request: Request, provider: IdPath, body: s.ProviderKeyRequest
) -> s.ProviderKeyResponse:
    """Store a provider's API key on this server. It is never returned. Needs a recent login."""
    require_recent_login(request, "store a key")
    if api.models is None:
        raise NotAllowedError("store a key", "no models are configured on this server")
    doubt = await api.models.set_key(provider, body.key)
    address = request_address(request, api.trusted_proxies)
    security_log.record("provider key stored", address=address, provider=provider)
    return s.ProviderKeyResponse(verified=doubt is None, reason=doubt)


@router.delete("/keys/{provider}", status=204)
async def delete_key(api: ApiContext, request: Request, provider: IdPath) -> None:
    if api.models is not None:
        await api.models.set_key(provider, None)
        address = request_address(request, api.trusted_proxies)
        security_log.record("provider key removed", address=address, provider=provider)


@router.post("/grants/revoke", status=204)
async def revoke_grant(api: ApiContext, request: Request, body: s.RevokeGrantRequest) -> None:
    """Ask again before using a tool that was always allowed."""
    await api.engine.preferences.revoke(body.tool, body.scope)
    security_log.record("grant revoked", address=request_address(request, api.trusted_proxies), tool=body.tool)
