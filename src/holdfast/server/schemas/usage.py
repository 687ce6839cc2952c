"""Usage, budgets and prices. What they mean: `core.usage`, `core.costs` and `core.budgets`."""

from datetime import date
from typing import Annotated, Self

from pydantic import Field

from holdfast.core.budgets import MAX_LIMIT, Action, Budget, BudgetState, Period, Unit
from holdfast.core.costs import MAX_PRICE, Price
from holdfast.engine.usage import MAX_PRICES, UsageGroup, UsageReport
from holdfast.ports.store import UsageGrouping
from holdfast.server.schemas.base import Name, RequestModel, ResponseModel, Timestamp, shallow_fields

Dollars = Annotated[float, Field(ge=0, le=MAX_PRICE, allow_inf_nan=False)]


class PriceRequest(RequestModel):
    """US dollars per million tokens. Without `cached_input`, cached input tokens cost as much as others."""

    input: Dollars
    output: Dollars
    cached_input: Dollars | None = None

    def to_price(self) -> Price:
        return Price(self.input, self.output, self.cached_input)


class ChangePricesRequest(RequestModel):
    """Own prices by the id of the model; null removes one. Other models keep theirs."""

    prices: Annotated[dict[Name, PriceRequest | None], Field(max_length=MAX_PRICES)]


class PriceResponse(ResponseModel):
    input: float
    output: float
    cached_input: float | None


class PricesResponse(ResponseModel):
    """Own prices by the id of the model, in US dollars per million tokens."""

    prices: dict[str, PriceResponse]


class UsageSummaryResponse(ResponseModel):
    """What runs used, as far as their providers reported it. `cost` is in US dollars, and null if none of it is known;
    `estimated_cost` is the part of it that was computed from prices. `unpriced_tokens` are not in the cost."""

    runs: int
    input_tokens: int
    output_tokens: int
    cached_tokens: Annotated[int, Field(description="Of the input tokens, those that the provider had cached.")]
    reasoning_tokens: Annotated[int, Field(description="Of the output tokens, those of reasoning.")]
    cost: float | None
    estimated_cost: float
    unpriced_tokens: int
    seconds: Annotated[float, Field(description="From the starts of the runs to their ends.")]


class UsageGroupResponse(UsageSummaryResponse):
    """`key` is a day such as `2026-11-19`, the id of a model, or a project, which is empty for chats without one."""

    key: str
    price: Annotated[PriceResponse | None, Field(description="Of a model: what its tokens are estimated with.")]
    has_own_price: bool

    @classmethod
    def from_group(cls, group: UsageGroup) -> Self:
        return cls.model_validate(
            {
                **shallow_fields(group.used),
                "key": group.key,
                "price": group.price,
                "has_own_price": group.has_own_price,
            }
        )


class UsageReportResponse(ResponseModel):
    by: UsageGrouping
    first_day: date
    last_day: date
    time_zone: str
    total: UsageSummaryResponse
    items: list[UsageGroupResponse]
    left_out: Annotated[int, Field(description="Groups beyond the largest 1000, which are only in the total.")]

    @classmethod
    def from_report(cls, by: UsageGrouping, report: UsageReport) -> Self:
        return cls(
            by=by,
            first_day=report.period.first,
            last_day=report.period.last,
            time_zone=report.period.time_zone,
            total=UsageSummaryResponse.model_validate(report.total),
            items=[UsageGroupResponse.from_group(group) for group in report.groups],
            left_out=report.left_out,
        )


class BudgetRequest(RequestModel):
    """At most so many tokens, input and output together, or US dollars in a calendar day or month. When it is used up,
    `refuse` refuses new messages and `warn` only says so."""

    period: Period
    unit: Unit
    limit: Annotated[float, Field(ge=0, le=MAX_LIMIT, allow_inf_nan=False)]
    action: Action

    def to_budget(self) -> Budget:
        return Budget(self.period, self.unit, self.limit, self.action)


class ChangeBudgetsRequest(RequestModel):
    time_zone: Annotated[Name, Field(description="In which days and months begin, such as `Europe/Berlin`.")]


class BudgetResponse(ResponseModel):
    """A budget and how much of it is used in its current period, until `resets_at`."""

    id: str
    period: Period
    unit: Unit
    limit: float
    action: Action
    used: float
    is_reached: bool
    resets_at: Timestamp
    unpriced_tokens: Annotated[int, Field(description="Tokens that a budget in dollars cannot count.")]

    @classmethod
    def from_state(cls, state: BudgetState) -> Self:
        values = {**shallow_fields(state.budget), **shallow_fields(state), "is_reached": state.is_reached}
        return cls.model_validate(values)


class BudgetsResponse(ResponseModel):
    time_zone: Annotated[str, Field(description="As it was set.")]
    time_zone_in_use: Annotated[str, Field(description="`UTC` if the server does not know the one that was set.")]
    items: list[BudgetResponse]
