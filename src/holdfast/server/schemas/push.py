"""Devices with notifications. How they are sent: `engine.push_sender`."""

from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import Field

from holdfast.ports.push import PushResult
from holdfast.ports.store import PushSubscription
from holdfast.server.schemas.base import ListResponse, RequestModel, ResponseModel, Timestamp, shallow_fields

Done = Annotated[bool | None, Field(description="Notify when an answer is ready.")]
Failed = Annotated[bool | None, Field(description="Notify when a run fails or is interrupted.")]
NeedsApproval = Annotated[bool | None, Field(description="Notify when a run asks a person.")]
ShowTitle = Annotated[bool | None, Field(description="Whether notifications contain the title of the chat.")]


class PushKeyResponse(ResponseModel):
    public_key: Annotated[
        str, Field(description="For `applicationServerKey` of `PushManager.subscribe`, as base64url.")
    ]


class PushKeysRequest(RequestModel):
    p256dh: Annotated[str, Field(max_length=200)]
    auth: Annotated[str, Field(max_length=100)]


class PushChoicesRequest(RequestModel):
    """What the device is notified of. Choices that are left out stay as they are; of a new device, all are on."""

    done: Done = None
    failed: Failed = None
    approval: NeedsApproval = None
    show_title: ShowTitle = None


class SubscribeRequest(PushChoicesRequest):
    """A subscription as `PushSubscription.toJSON()` in the browser has it."""

    endpoint: Annotated[str, Field(min_length=1, max_length=2000)]
    keys: PushKeysRequest


class PushDeviceResponse(ResponseModel):
    id: str
    device: Annotated[str, Field(description="Such as `Firefox on Linux`.")]
    service: Annotated[str, Field(description="The host of its push service.")]
    done: bool
    failed: bool
    approval: bool
    show_title: bool
    created_at: Timestamp
    succeeded_at: Annotated[Timestamp | None, Field(description="When its push service last accepted a message.")]
    failed_at: Timestamp | None
    failure: Annotated[str | None, Field(description="Why the last message was not accepted; null if it was.")]

    @classmethod
    def from_subscription(cls, subscription: PushSubscription) -> Self:
        service = urlsplit(subscription.endpoint).hostname or ""
        values = {**shallow_fields(subscription), "show_title": subscription.shows_title, "service": service}
        return cls.model_validate(values)


class PushDeviceListResponse(ListResponse[PushDeviceResponse]): ...


class PushTestResponse(ResponseModel):
    sent: Annotated[bool, Field(description="Whether the push service accepted the message.")]
    reason: Annotated[str | None, Field(description="Why not.")]

    @classmethod
    def from_result(cls, result: PushResult) -> Self:
        sent = result.outcome == "sent"
        return cls(sent=sent, reason=None if sent else result.reason)
