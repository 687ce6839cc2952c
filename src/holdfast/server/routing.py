"""Typed routes on Starlette: a handler's signature says what it reads from the request and what it returns.

A parameter named in the path is a path parameter; one annotated with `Header` is a header; a pydantic model is the JSON
body; `ApiContext` and `Request` are passed in; everything else is a query parameter. Pydantic validates them
all, and `openapi.py` describes them from the same annotations.
"""

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final, TypeVar, get_args, get_origin

from anyio import to_thread
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.fields import FieldInfo
from pydantic_core import from_json
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route, compile_path

from holdfast.core.finite_numbers import find_non_finite
from holdfast.core.json_limits import search_in_steps
from holdfast.server.context import ApiContext
from holdfast.server.schemas.base import ProblemResponse

Handler = Callable[..., Awaitable[Any]]
H = TypeVar("H", bound=Handler)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ResponseInfo:
    """What OpenAPI says of a response. Without a model the body is text."""

    description: str
    model: type[BaseModel] | None = None
    media_types: tuple[str, ...] = ("application/json",)


Responses = Mapping[int | str, ResponseInfo]


@dataclass(frozen=True, slots=True)
class Header:
    """Marks a parameter that is read from the header of this name."""

    name: str


_MAX_ERRORS: Final = 1000  # Listing those of a body with a million unknown fields would take seconds
_LARGE: Final = 64 * 1024  # Bytes of a request or a response that is not processed on the event loop
_MAY_OVERFLOW: Final = re.compile(rb"NaN|Infinity|[eE]\+?\d{3}|\d{200}")
"""Matches every body with a number that is not finite, and few others."""


class RequestValidationError(Exception):
    """The request does not match the handler's signature."""

    def __init__(self, errors: Sequence[Mapping[str, Any]], body: Any = None) -> None:
        super().__init__(errors)
        self.errors = errors  # As pydantic reports them; the first item of each `loc` is `parameter` or `body`
        self.body = body  # The parsed body, or None if it is not JSON


def json_response(content: BaseModel, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(content.model_dump_json(), status, headers, media_type="application/json")


async def body_size(request: Request) -> int:
    """Bytes of a body that was read before."""
    return len(await request.body())


async def run_sized(work: Callable[[], T], size: int) -> T:
    """Do work on a request or a response of about `size` bytes: on a large one in a thread, beside the event loop."""
    return work() if size < _LARGE else await to_thread.run_sync(work)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A path, query or header parameter of a handler."""

    name: str
    location: str
    annotation: Any
    default: Any

    @property
    def alias(self) -> str:
        """The name that clients use."""
        for item in _metadata(self.annotation):
            if isinstance(item, Header):
                return item.name
            if isinstance(item, FieldInfo) and item.alias is not None:
                return item.alias
        return self.name

    def read(self, request: Request) -> Any:
        """The raw value, or None if the request has none."""
        if self.location == "path":
            return request.path_params[self.name]
        if self.location == "header":
            return request.headers.get(self.alias)
        if _is_list(self.annotation):
            return request.query_params.getlist(self.alias) or None
        return request.query_params.get(self.alias)


@dataclass(frozen=True)
class ApiEndpoint:
    """One method of one path: the handler, what it reads, and how OpenAPI describes it."""

    method: str
    path: str
    handler: Handler
    tag: str
    status: int
    response_model: type[BaseModel] | None
    responses: Responses
    raw_body: Mapping[str, Any]  # The schema by media type, of a body that the handler reads from the request itself

    @cached_property
    def arguments(self) -> Mapping[str, inspect.Parameter]:
        return inspect.signature(self.handler).parameters

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        in_path = compile_path(self.path)[2]
        found = []
        for name, argument in self.arguments.items():
            if argument.annotation in (Request, ApiContext) or argument is self.body:
                continue
            is_header = any(isinstance(item, Header) for item in _metadata(argument.annotation))
            location = "path" if name in in_path else "header" if is_header else "query"
            default = ... if argument.default is inspect.Parameter.empty else argument.default
            found.append(Parameter(name, location, argument.annotation, default))
        return tuple(found)

    @cached_property
    def body(self) -> inspect.Parameter | None:
        """The argument that receives the JSON body."""
        return next((each for each in self.arguments.values() if body_model(each.annotation) is not None), None)

    @property
    def request_model(self) -> type[BaseModel] | None:
        return None if self.body is None else body_model(self.body.annotation)

    @cached_property
    def parameters_model(self) -> type[BaseModel]:
        fields: dict[str, Any] = {p.name: (p.annotation, Field(p.default, alias=p.alias)) for p in self.parameters}
        return create_model("Parameters", __config__=ConfigDict(defer_build=True), **fields)

    @cached_property
    def _body_adapter(self) -> TypeAdapter[Any]:
        assert self.body is not None
        return TypeAdapter(self.body.annotation)

    def route(self, api: ApiContext) -> Route:
        async def handle(request: Request) -> Response:
            arguments = self._read_parameters(request)
            for name, argument in self.arguments.items():
                if argument.annotation is Request:
                    arguments[name] = request
                elif argument.annotation is ApiContext:
                    arguments[name] = api
            if self.body is not None:
                arguments[self.body.name] = await self._read_body(request, self.body.default)
            result = await self.handler(**arguments)
            if isinstance(result, BaseModel):
                return json_response(result, self.status)
            return Response(status_code=self.status) if result is None else result

        route = Route(self.path, handle, methods=[self.method], name=self.handler.__name__)
        if self.response_model is None or self.responses.get(200) is STREAM_RESPONSE:
            route.methods = {self.method}  # without the HEAD that Starlette adds to GET: streams have no head alone
        return route

    def _read_parameters(self, request: Request) -> dict[str, Any]:
        if not self.parameters:
            return {}
        given = {p.alias: value for p in self.parameters if (value := p.read(request)) is not None}
        try:
            values = self.parameters_model.model_validate(given)
        except ValidationError as error:
            raise RequestValidationError(_located("parameter", error)) from None
        return {p.name: getattr(values, p.name) for p in self.parameters}

    async def _read_body(self, request: Request, default: Any) -> Any:
        try:
            content = await request.body()
        except ClientDisconnect:
            raise HTTPException(400, "The connection closed before the whole request body arrived.") from None
        if not content:
            if default is not inspect.Parameter.empty:
                return default
            raise RequestValidationError([{"type": "missing", "loc": ("body",), "msg": "Field required"}])
        return await run_sized(partial(self._validate_body, content), len(content))

    def _validate_body(self, content: bytes) -> Any:
        try:
            body = self._body_adapter.validate_json(content)
        except ValidationError as error:
            raise RequestValidationError(_located("body", error), _parsed(content)) from None
        if search_in_steps(_MAY_OVERFLOW, content, 200):
            parsed = _parsed(content)
            path = find_non_finite(parsed)
            if path is not None:
                problem = {"type": "finite_number", "loc": ("body", *path), "msg": "Input should be a finite number"}
                raise RequestValidationError([problem], parsed)
        return body


class Router:
    """Collects the endpoints of one subject."""

    def __init__(self, subject: str, prefix: str = "", responses: Responses | None = None) -> None:
        """`responses`: what OpenAPI says of every endpoint, beside its own."""
        self.endpoints: list[ApiEndpoint] = []
        self._subject = subject
        self._prefix = prefix
        self._responses = PROBLEM_RESPONSES if responses is None else responses

    def get(self, path: str, **options: Any) -> Callable[[H], H]:
        return self._add("GET", path, **options)

    def post(self, path: str, **options: Any) -> Callable[[H], H]:
        return self._add("POST", path, **options)

    def put(self, path: str, **options: Any) -> Callable[[H], H]:
        return self._add("PUT", path, **options)

    def patch(self, path: str, **options: Any) -> Callable[[H], H]:
        return self._add("PATCH", path, **options)

    def delete(self, path: str, **options: Any) -> Callable[[H], H]:
        return self._add("DELETE", path, **options)

    def _add(
        self,
        method: str,
        path: str,
        *,
        status: int = 200,
        returns: type[BaseModel] | None = None,
        responses: Responses | None = None,
        raw_body: Mapping[str, Any] | None = None,
    ) -> Callable[[H], H]:
        """`returns`: the response model of a handler that builds its `Response` itself; for others it is the return
        annotation. A handler that returns None sends no body."""

        def add(handler: H) -> H:
            model = returns or body_model(inspect.signature(handler).return_annotation)
            described = {**(responses or {}), **self._responses}
            where = (method, self._prefix + path, handler, self._subject, status)
            self.endpoints.append(ApiEndpoint(*where, model, described, raw_body or {}))
            return handler

        return add


_PROBLEM: Final = ResponseInfo("An error, as problem details.", ProblemResponse, ("application/problem+json",))
PROBLEM_RESPONSES: Final[Responses] = {"4XX": _PROBLEM, "5XX": _PROBLEM}
STREAM_RESPONSE: Final = ResponseInfo("A stream of server-sent events.", media_types=("text/event-stream",))


def body_model(annotation: Any) -> type[BaseModel] | None:
    """The model of a JSON body: `Model` or `Model | None`; None for any other annotation."""
    for item in get_args(annotation) or (annotation,):
        if isinstance(item, type) and issubclass(item, BaseModel):
            return item
    return None


def _metadata(annotation: Any) -> tuple[Any, ...]:
    return getattr(annotation, "__metadata__", ())


def _is_list(annotation: Any) -> bool:
    return get_origin(annotation) is list or any(_is_list(item) for item in get_args(annotation))


def _located(place: str, error: ValidationError) -> list[Mapping[str, Any]]:
    if (count := error.error_count()) > _MAX_ERRORS:
        return [{"type": "too_many_errors", "loc": (place,), "msg": f"{count} values are invalid"}]
    found = error.errors(include_url=False, include_input=False)
    return [{**item, "loc": (place, *item["loc"])} for item in found]


def _parsed(content: bytes) -> Any:
    try:
        return from_json(content)
    except ValueError:
        return None
