"""Passes embedding requests on to a server with OpenAI's format."""

import json
from collections.abc import Mapping
from typing import Final

import anyio
from yarl import URL

from holdfast.core.parts import Json
from holdfast.models.chat_completion_stream import failed_body
from holdfast.models.http_client import HttpClient
from holdfast.models.http_connection import HttpError
from holdfast.models.provider_config import ProviderConfig, base_url, request_headers
from holdfast.models.upstream_errors import UpstreamError, explain

_MAX_BODY: Final = 64 * 1024 * 1024
_HEADERS: Final = {"Accept": "application/json", "Content-Type": "application/json"}


async def embed(http: HttpClient, config: ProviderConfig, name: str, body: Mapping[str, Json], limit: float) -> bytes:
    """The provider's response as it is, within `limit` seconds. A failed request is not repeated: the client decides.
    Raises ModelError."""
    sent = json.dumps({**body, "model": name}, ensure_ascii=False).encode("utf-8", "replace")
    try:
        with anyio.fail_after(limit):
            url = URL(base_url(config) + "/embeddings")
            response = await http.request("POST", url, request_headers(config, _HEADERS), sent)
            try:
                data = bytearray()
                while piece := await response.read():
                    data += piece
                    if len(data) > _MAX_BODY:
                        raise HttpError(UpstreamError("protocol", "the answer is too large"))
            finally:
                response.abort()
    except TimeoutError:
        raise explain(UpstreamError("timeout", f"no answer within {limit:g} s"), config, name) from None
    except HttpError as failed:
        raise explain(failed.error, config, name) from None
    except ValueError:
        raise explain(UpstreamError("bad-request", "the base URL is not a valid address"), config, name) from None
    if not 200 <= response.status < 300:
        raise explain(failed_body(response.status, bytes(data), None), config, name)
    return bytes(data)
