"""What a person has settled for good. Keys go in and never come out."""

from typing import Any

from starlette.responses import JSONResponse, Response

from holdfast import __version__
from holdfast.core.errors import NotAllowed
from holdfast.faces.http import answers
from holdfast.faces.http import descriptions as d
from holdfast.faces.http.api import Api, Rid
from holdfast.faces.http.requests import Allowance, ProviderKey, SettingsPatch
from holdfast.faces.http.routing import Router


def routes(api: Api) -> Router:
    router = Router("settings", "/api/settings")
    preferences = api.engine.preferences

    async def shown() -> Response:
        settings = await preferences.settings()
        grants = await preferences.grants()
        body: dict[str, Any] = {
            "default_model": settings.get("default_model"),
            "tools": settings.get("tools") or {},
            "grants": [{"tool": g.tool, "scope": g.scope, "created_at": answers.time(g.created_at)} for g in grants],
            "providers": [
                {"name": name, "has_key": has} for name, has in ([] if api.models is None else api.models.providers())
            ],
            "password_set": api.gate.password_set,
            "memory": api.engine.boundaries is not None,
            "version": __version__,
        }
        return JSONResponse(body)

    @router.get("", response_model=d.SettingsOut)
    async def read_settings() -> Response:
        return await shown()

    @router.patch("", response_model=d.SettingsOut)
    async def change_settings(body: SettingsPatch) -> Response:
        """The model to begin with, and which tools are allowed, ask, or are denied."""
        values: dict[str, Any] = {name: getattr(body, name) for name in body.model_fields_set}
        if values.get("tools", {}).get("shell") == "allow" and not api.gate.password_set:
            raise NotAllowed("allow the shell for good", "this server has no password; set one first")
        await preferences.change(values)
        return await shown()

    @router.put("/keys/{provider}", status_code=204)
    async def set_key(provider: Rid, body: ProviderKey) -> Response:
        """Keep a provider's key on this machine. It is never shown again."""
        if api.models is None:
            raise NotAllowed("keep a key", "no models are configured here")
        await api.models.set_key(provider, body.key)
        return Response(status_code=204)

    @router.delete("/keys/{provider}", status_code=204)
    async def drop_key(provider: Rid) -> Response:
        if api.models is not None:
            await api.models.set_key(provider, None)
        return Response(status_code=204)

    @router.post("/grants/revoke", status_code=204)
    async def revoke(body: Allowance) -> Response:
        """Ask again about a tool that was allowed for good."""
        await preferences.revoke(body.tool, body.scope)
        return Response(status_code=204)

    return router
