"""Pages of other origins that call `/v1`."""

import json

import httpx

from tests.http.client import Served
from tests.http.conftest import Start
from tests.openai.scripts import named

APP = "https://app.example.com"
CHAT = {"model": named("cors"), "messages": [{"role": "user", "content": "Hello"}]}


def chat(served: Served, origin: str, **headers: str) -> httpx.Response:
    sent = {"Origin": origin, "Sec-Fetch-Site": "cross-site", **headers}
    return httpx.post(f"{served.url}/v1/chat/completions", verify=False, json=CHAT, headers=sent)


def test_a_configured_origin_may_call(start: Start) -> None:
    """Its preflight and its calls with a token are answered, with the headers that browsers ask for; others are not."""
    served = start(more={"cors_origins": [APP]})
    asks = {"Origin": APP, "Access-Control-Request-Method": "POST"}
    allowed = httpx.options(f"{served.url}/v1/chat/completions", headers=asks)
    assert (allowed.status_code, allowed.headers["access-control-allow-origin"]) == (204, APP)
    unknown = chat(served, APP)
    assert (unknown.status_code, unknown.headers["access-control-allow-origin"]) == (403, APP)
    token = json.loads((served.data_dir / "server.json").read_text())["token"]
    made = chat(served, APP, Authorization=f"Bearer {token}")
    assert (made.status_code, made.headers["access-control-allow-origin"]) == (200, APP)
    assert "holdfast-run" in made.headers["access-control-expose-headers"]
    other = chat(served, "https://evil.example.com")
    assert other.status_code == 403
    assert "access-control-allow-origin" not in other.headers
    native = httpx.post(f"{served.url}/api/sessions", verify=False, json={}, headers={"Origin": APP})
    assert native.status_code == 403


def test_a_page_of_another_origin_needs_a_token(start: Start) -> None:
    """With a password the cookie of the person's own page does not count."""
    served = start(password="secret enough", more={"cors_origins": [APP]})
    login = httpx.post(f"{served.url}/api/login", verify=False, json={"password": "secret enough"})
    cookie = "; ".join(f"{name}={value}" for name, value in login.cookies.items())
    assert chat(served, APP, Cookie=cookie).status_code == 401
    token = httpx.post(f"{served.url}/api/tokens", verify=False, json={"name": "page"}, cookies=login.cookies).json()[
        "token"
    ]
    assert chat(served, APP, Authorization=f"Bearer {token}").status_code == 200
