"""Notifications on devices: the server's key, subscriptions of browsers, a test. How they are sent:
`engine.push_sender`."""

from starlette.requests import Request

from holdfast.core.ids import SubscriptionId
from holdfast.engine.notifications import PushChoices
from holdfast.server.access_rules import CREDENTIALS, Credentials
from holdfast.server.authenticator import SERVER_TOKEN
from holdfast.server.client_address import device_name
from holdfast.server.context import ApiContext
from holdfast.server.parameters import IdPath
from holdfast.server.routing import Router
from holdfast.server.schemas import push as s

router = Router("push", "/api/push")


@router.get("/key")
async def read_key(api: ApiContext) -> s.PushKeyResponse:
    """Read the key that browsers subscribe with. It is created at the first call."""
    return s.PushKeyResponse(public_key=await api.engine.notifications.public_key())


@router.get("/subscriptions")
async def list_devices(api: ApiContext) -> s.PushDeviceListResponse:
    """List the devices that are sent notifications."""
    devices = await api.engine.notifications.devices()
    return s.PushDeviceListResponse(items=[s.PushDeviceResponse.from_subscription(each) for each in devices], next=None)


@router.post("/subscriptions")
async def subscribe(api: ApiContext, request: Request, body: s.SubscribeRequest) -> s.PushDeviceResponse:
    """Send notifications to a browser, until it or its push service ends the subscription, or the login ends that made
    this request. A repeat with the same endpoint updates the device. The address must be public, and use HTTPS."""
    subscription = await api.engine.notifications.subscribe(
        body.endpoint,
        body.keys.p256dh,
        body.keys.auth,
        _choices(body),
        device=device_name(request.headers.get("user-agent", "")),
        credential=_credential(request),
    )
    return s.PushDeviceResponse.from_subscription(subscription)


@router.patch("/subscriptions/{pid}")
async def change_device(api: ApiContext, pid: IdPath, body: s.PushChoicesRequest) -> s.PushDeviceResponse:
    """Change what a device is notified of."""
    changed = await api.engine.notifications.change(SubscriptionId(pid), _choices(body))
    return s.PushDeviceResponse.from_subscription(changed)


@router.delete("/subscriptions/{pid}", status=204)
async def remove_device(api: ApiContext, pid: IdPath) -> None:
    """Send no more notifications to a device."""
    await api.engine.notifications.unsubscribe(SubscriptionId(pid))


@router.post("/subscriptions/{pid}/test")
async def test_device(api: ApiContext, pid: IdPath) -> s.PushTestResponse:
    """Send a test notification to a device, and wait for the answer of its push service. A device whose subscription
    has ended is removed."""
    return s.PushTestResponse.from_result(await api.engine.notifications.test(SubscriptionId(pid)))


def _choices(body: s.PushChoicesRequest) -> PushChoices:
    return PushChoices(body.done, body.failed, body.approval, body.show_title)


def _credential(request: Request) -> str | None:
    """The login or token that the request was made with. The server's own token is another one after a restart."""
    found: Credentials = request.scope[CREDENTIALS]
    return found.login or (found.token if found.token != SERVER_TOKEN else None)
