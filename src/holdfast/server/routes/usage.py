"""Usage by day, model or project, budgets, and prices. How they are computed: `engine.usage`."""

import csv
import io
from datetime import date
from typing import Annotated, Final, Literal

from pydantic import Field
from starlette.responses import Response

from holdfast.engine.usage import UsageReport
from holdfast.ports.store import UsageGrouping
from holdfast.server.context import ApiContext
from holdfast.server.parameters import IdPath
from holdfast.server.routing import ResponseInfo, Router, json_response, run_sized
from holdfast.server.schemas import usage as s
from holdfast.server.schemas.base import Name, shallow_fields

router = Router("usage", "/api")

_CSV: Final = "text/csv"
_GROUP_SIZE: Final = 300  # About how many bytes of JSON a group has
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


@router.get(
    "/usage",
    returns=s.UsageReportResponse,
    responses={200: ResponseInfo("The usage.", s.UsageReportResponse, ("application/json", _CSV))},
)
async def read_usage(
    api: ApiContext,
    by: UsageGrouping = "day",
    first: Annotated[date | None, Field(alias="from", description="First day; by default 30 days up to `to`.")] = None,
    last: Annotated[date | None, Field(alias="to", description="Last day; today by default. At most 366 days.")] = None,
    time_zone: Annotated[Name | None, Field(description="Of the days; by default that of the budgets, or UTC.")] = None,
    format: Literal["json", "csv"] = "json",
) -> Response:
    """Read what runs used, by the day on which they ended, their model, or the project of their chat. Deleted chats are
    included. A cost that the provider did not report is estimated from your price of the model, or else from a table of
    prices if one is installed."""
    report = await api.engine.usage.report(by, first, last, time_zone)
    if format == "csv":
        return _csv_response(by, report)
    size = _GROUP_SIZE * len(report.groups)
    return await run_sized(lambda: json_response(s.UsageReportResponse.from_report(by, report)), size)


def _csv_response(by: UsageGrouping, report: UsageReport) -> Response:
    text = io.StringIO()
    names = list(shallow_fields(report.total))
    writer = csv.DictWriter(text, [by, *names])
    writer.writeheader()
    for group in report.groups:
        writer.writerow({by: _plain(group.key), **shallow_fields(group.used)})
    name = f"holdfast-usage-{by}-{report.period.first}-{report.period.last}.csv"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    return Response(text.getvalue(), 200, headers, media_type=_CSV)


def _plain(text: str) -> str:
    """A spreadsheet would evaluate a text that begins like a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


@router.get("/budgets")
async def read_budgets(api: ApiContext) -> s.BudgetsResponse:
    """Read the budgets and how much of each is used."""
    budgets, states = await api.engine.usage.budgets()
    return s.BudgetsResponse(
        time_zone=budgets.time_zone,
        time_zone_in_use=budgets.time_zone_in_use,
        items=[s.BudgetResponse.from_state(state) for state in states],
    )


@router.post("/budgets", status=201)
async def add_budget(api: ApiContext, body: s.BudgetRequest) -> s.BudgetsResponse:
    """Add a budget, of at most 8, and read all of them. It counts from the next message on. A budget that refuses
    answers new messages with 429 and `budget-reached` until `resets_at`; runs that were accepted before go on."""
    await api.engine.usage.add_budget(body.to_budget())
    return await read_budgets(api)


@router.patch("/budgets")
async def change_budgets(api: ApiContext, body: s.ChangeBudgetsRequest) -> s.BudgetsResponse:
    """Set the time zone of all budgets, which is UTC at first."""
    await api.engine.usage.set_time_zone(body.time_zone)
    return await read_budgets(api)


@router.delete("/budgets/{bid}", status=204)
async def delete_budget(api: ApiContext, bid: IdPath) -> None:
    """Delete a budget."""
    await api.engine.usage.remove_budget(bid)


@router.get("/prices")
async def read_prices(api: ApiContext) -> s.PricesResponse:
    """Read your own prices of models."""
    return s.PricesResponse.model_validate({"prices": dict(await api.engine.usage.prices())})


@router.patch("/prices")
async def change_prices(api: ApiContext, body: s.ChangePricesRequest) -> s.PricesResponse:
    """Set or remove your own prices of models. They go before those of the table and count for earlier runs too."""
    changes = {model: None if price is None else price.to_price() for model, price in body.prices.items()}
    return s.PricesResponse.model_validate({"prices": dict(await api.engine.usage.change_prices(changes))})
