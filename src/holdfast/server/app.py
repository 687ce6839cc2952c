"""Builds the ASGI app: routes, error responses, pages and access control. The rules of access: `access_rules`."""

import logging
from functools import cache
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from holdfast.core.errors import HoldfastError, StorageUnavailableError
from holdfast.ports.agent import AgentError
from holdfast.server import error_responses, html_pages, openapi, web_app
from holdfast.server.access_middleware import AccessMiddleware
from holdfast.server.access_rules import loggable_path
from holdfast.server.anthropic import routes as anthropic_routes
from holdfast.server.context import ApiContext
from holdfast.server.cors_middleware import CorsMiddleware
from holdfast.server.openai import conversation_routes, stored_completion_routes
from holdfast.server.openai import routes as openai_routes
from holdfast.server.root_path import RootPathMiddleware
from holdfast.server.route_index import RouteIndex
from holdfast.server.routes import (
    agents,
    auth,
    change_feed,
    chat_defaults,
    compare,
    drafts,
    export_import,
    files,
    health,
    memory,
    models,
    personas,
    projects,
    prompts,
    push,
    run_changes,
    runs,
    sessions,
    settings,
    setup,
    shares,
    tools,
    usage,
    workspace,
    workspace_changes,
)
from holdfast.server.routing import ApiEndpoint, RequestValidationError

log = logging.getLogger("holdfast.http")


def native_endpoints() -> list[ApiEndpoint]:
    chats = (
        sessions,
        projects,
        run_changes,
        personas,
        prompts,
        runs,
        change_feed,
        compare,
        drafts,
        files,
        workspace,
        workspace_changes,
        export_import,
        shares,
        memory,
        usage,
        push,
    )
    administration = (models, agents, health, settings, chat_defaults, setup, tools, auth)
    return [endpoint for module in (*chats, *administration) for endpoint in module.router.endpoints]


def build(api: ApiContext) -> ASGIApp:
    modules = (openai_routes, conversation_routes, stored_completion_routes, anthropic_routes)
    endpoints = [*native_endpoints(), *(endpoint for module in modules for endpoint in module.router.endpoints)]

    @cache
    def document() -> dict[str, Any]:
        return openapi.build_document(endpoints, api.root_path)

    async def read_openapi(_: Request) -> Response:
        return JSONResponse(document())

    async def respond_to_error(request: Request, error: Exception) -> Response:
        response = error_responses.from_exception(request.url.path, error)
        if response.status_code >= 500:
            # The engine logs when an outage of storage begins and ends, so each request is a detail.
            level = logging.INFO if isinstance(error, StorageUnavailableError) else logging.WARNING
            path = loggable_path(request.url.path)
            log.log(level, "%s %r failed: %s", request.method, path, type(error).__name__)
        page = await web_app.unknown_page(request, api.root_path) if response.status_code == 404 else None
        return page or response

    routes = [endpoint.route(api) for endpoint in endpoints]
    pages = [
        Route("/openapi.json", read_openapi, methods=["GET"]),
        auth.open_link(api),
        shares.shared_page(api),
        *web_app.routes(api.root_path),
        *html_pages.routes(document, api.root_path),
    ]
    app = Starlette(
        routes=[
            RouteIndex(route for route in routes if RouteIndex.can_hold(route)),
            *(route for route in routes if not RouteIndex.can_hold(route)),
            *pages,
        ],
        exception_handlers=dict.fromkeys(
            (HoldfastError, AgentError, RequestValidationError, HTTPException, Exception), respond_to_error
        ),
    )
    app.router.redirect_slashes = False
    guarded = AccessMiddleware(
        app, api.authenticator, api.limits.max_body, api.request_counts, password_needed=api.password_needed
    )
    public: ASGIApp = CorsMiddleware(guarded, api.cors_origins) if api.cors_origins else guarded
    if not api.root_path:
        return public
    return RootPathMiddleware(public, api.root_path, {route.path.split("/")[1] for route in (*routes, *pages)})
