"""The OpenAPI document, made from the routes and their pydantic models."""

import inspect
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from holdfast import __version__
from holdfast.server.routing import ApiEndpoint, Parameter, ResponseInfo

_REF = "#/components/schemas/{model}"


def build_document(endpoints: Sequence[ApiEndpoint], root_path: str = "") -> dict[str, Any]:
    models: dict[tuple[type[BaseModel], JsonSchemaMode], None] = {}
    for endpoint in endpoints:
        if endpoint.request_model is not None:
            models[endpoint.request_model, "validation"] = None
        for model in (endpoint.response_model, *(response.model for response in endpoint.responses.values())):
            if model is not None:
                models[model, "serialization"] = None
    refs, definitions = models_json_schema(list(models), ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        path = endpoint.path.replace(":path}", "}")
        paths.setdefault(path, {})[endpoint.method.lower()] = _operation(endpoint, refs)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Holdfast",
            "description": "AI chat and agents that never lose a token.",
            "version": __version__,
        },
        **({"servers": [{"url": root_path}]} if root_path else {}),
        "paths": paths,
        "components": {"schemas": definitions["$defs"]},
    }


def _operation(endpoint: ApiEndpoint, refs: Any) -> dict[str, Any]:
    name = endpoint.handler.__name__
    operation: dict[str, Any] = {
        "tags": [endpoint.tag],
        "summary": name.replace("_", " ").capitalize(),
        "operationId": name,
    }
    if endpoint.handler.__doc__:
        operation["description"] = inspect.cleandoc(endpoint.handler.__doc__)
    if endpoint.parameters:
        schema = endpoint.parameters_model.model_json_schema()
        operation["parameters"] = [_parameter(parameter, schema) for parameter in endpoint.parameters]
    if endpoint.body is not None:
        required = endpoint.body.default is inspect.Parameter.empty
        content = {"application/json": {"schema": refs[endpoint.request_model, "validation"]}}
        operation["requestBody"] = {"content": content, **({"required": True} if required else {})}
    operation["responses"] = {str(endpoint.status): {"description": "Success"}}
    if endpoint.response_model is not None:
        _add_response(operation, endpoint.status, ResponseInfo("Success", endpoint.response_model), refs)
    for status, response in endpoint.responses.items():
        _add_response(operation, status, response, refs)
    if endpoint.raw_body:
        content = {kind: {"schema": schema} for kind, schema in endpoint.raw_body.items()}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _add_response(operation: dict[str, Any], status: int | str, response: ResponseInfo, refs: Any) -> None:
    """A status may be described more than once: as JSON and as a stream, for example."""
    found = operation["responses"].setdefault(str(status), {})
    found["description"] = response.description
    schema = {"type": "string"} if response.model is None else refs[response.model, "serialization"]
    if response.media_types:
        found.setdefault("content", {}).update({kind: {"schema": schema} for kind in response.media_types})


def _parameter(parameter: Parameter, schema: dict[str, Any]) -> dict[str, Any]:
    own = {name: value for name, value in schema["properties"][parameter.alias].items() if name != "title"}
    description = own.pop("description", None)
    if own.get("default", "") is None:
        del own["default"]
    found = {"name": parameter.alias, "in": parameter.location, "required": parameter.default is ..., "schema": own}
    return found if description is None else {**found, "description": description}
