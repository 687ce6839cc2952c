"""The pages that the server renders itself: login and API reference. They contain no inline scripts; scripts and styles
come from `/static`. The page of the web app: `server.web_app`."""

from collections.abc import Callable, Mapping
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


def routes(openapi_document: Callable[[], Mapping[str, Any]], root_path: str = "") -> list[Route]:
    static = {name: _static(name) for name in ("holdfast.css", "login.js", "icon.svg")}

    async def asset(request: Request) -> Response:
        body = static.get(request.path_params["name"])
        if body is None:
            return Response(status_code=404)
        kind = _TYPES[request.path_params["name"].rpartition(".")[2]]
        return Response(body, media_type=kind, headers={"Cache-Control": "no-cache"})

    async def login(_: Request) -> Response:
        return HTMLResponse(page("Log in", _LOGIN, root_path))

    async def docs(_: Request) -> Response:
        return HTMLResponse(page("API", _docs(openapi_document()), root_path))

    handlers = {"/login": login, "/docs": docs, "/static/{name}": asset}
    return [Route(path, handler, methods=["GET"]) for path, handler in handlers.items()]


def page(title: str, body: str, root_path: str = "") -> str:
    """A whole page. `root_path` is added to the addresses in it, which are paths in attributes."""
    html = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)} · Holdfast</title>"
        '<link rel="icon" href="/static/icon.svg"><link rel="stylesheet" href="/static/holdfast.css">'
        '<script src="/static/app/theme.js"></script></head>'
        f"<body><main>{body}</main></body></html>"
    )
    return html.replace('="/', f'="{root_path}/')


def refusal(detail: str, status: int) -> Response:
    """The page for a person whose request may not reach the app."""
    return message("No access", detail, status)


def message(title: str, detail: str, status: int, headers: Mapping[str, str] | None = None) -> Response:
    """A page for a person who has no access to the app. Its style is part of it: nothing else of this server can be
    loaded."""
    style = _static("holdfast.css").decode()
    html = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)} · Holdfast</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{style}</style></head>'
        f'<body><main><div class="card"><h1>{escape(title)}</h1><p role="alert">{_prose(detail)}</p></div></main>'
        "</body></html>"
    )
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"
    return HTMLResponse(html, status, {**(headers or {}), "Content-Security-Policy": policy})


@cache
def _static(name: str) -> bytes:
    return (files("holdfast.server") / "static" / name).read_bytes()


_LOGIN = (
    '<form id="login" class="card"><img src="/static/icon.svg" alt="" width="48" height="48"><h1>Holdfast</h1>'
    '<label for="password">Password</label>'
    '<input id="password" name="password" type="password" autocomplete="current-password" required autofocus>'
    '<p id="problem" role="alert"></p><p id="status" role="status"></p><button type="submit">Log in</button>'
    "<p><small>Forgot your password? Run <code>holdfast password</code> on the server, with the same "
    "<code>--data-dir</code> if one was given.</small></p></form>"
    '<script src="/static/login.js" defer></script>'
)


def _docs(description: Mapping[str, Any]) -> str:
    """The API reference, from the OpenAPI document."""
    schemas = description["components"]["schemas"]
    out = [
        f"<h1>{escape(description['info']['title'])} API</h1>",
        '<p>Machine-readable: <a href="/openapi.json">/openapi.json</a> (OpenAPI 3.1).</p>',
        "<p>Errors are returned as <code>application/problem+json</code> (RFC 9457).</p>",
    ]
    for path, calls in description["paths"].items():
        out += [_call(path, method, call, schemas) for method, call in calls.items()]
    return "".join(out)


def _call(path: str, method: str, call: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    rows = [(p["name"], p["in"], p.get("description", "")) for p in call.get("parameters", ())]
    for content in call.get("requestBody", {}).get("content", {}).values():
        rows += _fields(content.get("schema", {}), schemas)
    table = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td>{escape(where)}</td><td>{_prose(text)}</td></tr>"
        for name, where, text in rows
    )
    statuses = ", ".join(escape(status) for status in call["responses"] if status.isdigit())
    return (
        f'<section class="call"><h2><span class="method">{escape(method.upper())}</span> '
        f"<code>{escape(path)}</code></h2><p>{_prose(call.get('description') or call.get('summary', ''))}</p>"
        + (f"<table><tbody>{table}</tbody></table>" if table else "")
        + f"<p>Responses: {statuses}</p></section>"
    )


def _prose(text: str) -> str:
    """Text between backquotes is rendered as code."""
    pieces = escape(text).split("`")
    return "".join(f"<code>{piece}</code>" if n % 2 else piece for n, piece in enumerate(pieces))


def _fields(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Name, location and type of the fields of a request body."""
    schema = _resolved(schema, schemas)
    required = schema.get("required", ())
    return [
        (name, "body" if name in required else "body, optional", _kind(_resolved(field, schemas)))
        for name, field in schema.get("properties", {}).items()
    ]


def _resolved(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follows references, and removes the null of an optional value."""
    choices = [item for item in schema.get("anyOf", ()) if item.get("type") != "null"]
    if len(choices) == 1:
        schema = choices[0]
    return schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def _kind(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(f"`{item}`" for item in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if "anyOf" in schema:
        return " or ".join(_kind(item) for item in schema["anyOf"])
    kind = str(schema.get("type", ""))
    return {"array": "list", "integer": "number"}.get(kind, kind)
