"""Share links as requests and responses. What a share is: `engine.shares`."""

from typing import Annotated, Literal, Self

from pydantic import Field

from holdfast.core.ids import RunId
from holdfast.core.shares import Share, ShareKind
from holdfast.engine.shares import ShareRequest
from holdfast.server.schemas.base import ListResponse, Name, RequestModel, ResponseModel, Timestamp, shallow_fields

_DAY = 86400.0


class CreateShareRequest(RequestModel):
    kind: Annotated[
        ShareKind,
        Field(description="`text`: the messages of the shown branch; `recording`: how each answer came about."),
    ] = "text"
    run_id: Annotated[Name | None, Field(description="Share only this run. Only for recordings.")] = None
    reasoning: Annotated[bool, Field(description="Include reasoning.")] = False
    tools: Annotated[bool, Field(description="Include tool calls with their arguments and results, and plans.")] = False
    files: Annotated[bool, Field(description="Include images and other files.")] = False
    expires_in_days: Annotated[
        Literal[1, 7, 30] | None, Field(description="Days until the link stops working; null: never.")
    ] = 7

    def to_request(self) -> ShareRequest:
        return ShareRequest(
            self.kind,
            None if self.run_id is None else RunId(self.run_id),
            self.reasoning,
            self.tools,
            self.files,
            None if self.expires_in_days is None else self.expires_in_days * _DAY,
        )


class ShareResponse(ResponseModel):
    id: str
    session_id: str
    kind: ShareKind
    title: Annotated[str, Field(description="Of the chat when it was shared.")]
    reasoning: bool
    tools: bool
    files: bool
    size: Annotated[int, Field(description="Bytes of the page.")]
    created_at: Timestamp
    expires_at: Timestamp | None
    last_opened_at: Annotated[Timestamp | None, Field(description="To within a minute.")]

    @classmethod
    def from_share(cls, share: Share, **more: str) -> Self:
        included = {"reasoning": share.with_reasoning, "tools": share.with_tools, "files": share.with_files}
        return cls.model_validate({**shallow_fields(share), **included, **more})


class CreatedShareResponse(ShareResponse):
    path: Annotated[str, Field(description="What follows the address of the server in the link. It contains a secret.")]
    root_path: Annotated[
        str, Field(description="The path below which the server is published; empty if there is none.")
    ]


class ShareListResponse(ListResponse[ShareResponse]): ...
