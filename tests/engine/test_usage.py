"""Usage by day, model and project, and budgets that warn or refuse."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from holdfast.agents.scripted_agent import Action, CallTool, Finish, Meet, Say
from holdfast.core.budgets import BUDGETS, Budget, budgets_to_json, read_budgets
from holdfast.core.costs import FindPrice, Price
from holdfast.core.errors import BudgetReachedError, InvalidInputError, NotFoundError, QuotaExceededError
from holdfast.core.events import Usage
from holdfast.core.ids import LOCAL, OwnerId, SessionId
from holdfast.core.parts import TextPart
from holdfast.core.run import Recovery, Run
from holdfast.core.session import Session
from holdfast.core.transcript import Transcript
from holdfast.engine.earlier_usage import EarlierUsage
from holdfast.engine.transactions.accept import RunOptions
from holdfast.engine.transactions.budgets import NotSummedError, OwnerPeriod
from holdfast.engine.usage import MAX_PRICES
from holdfast.ports.prices import PricesNotLoadedError
from holdfast.ports.store import Tx
from holdfast.storage.in_memory import InMemoryStore
from holdfast.storage.sql.tables import RUNS
from holdfast.testing.contracts import samples
from holdfast.testing.fakes import FakeClock
from tests.harness import AnyWorld, Running, World, running
from tests.storage_interceptors import GUARD, Tap

pytestmark = pytest.mark.anyio

NOON = 1_700_000_000.0  # 2023-11-14 22:13:20 UTC
TODAY, TOMORROW = date(2023, 11, 14), date(2023, 11, 15)
DAY = 86400.0
STILL: dict[str, Any] = {"poll_interval": 3600.0, "sweep_interval": 3600.0}
ANSWER: Sequence[Action] = [Say("yes"), Usage(900, 100)]
REFUSE = Budget("day", "tokens", 1000, "refuse")


async def ask(it: Running, **options: Any) -> Run:
    sid = options.pop("sid", None) or await it.new_session()
    accepted = await it.engine.runs.submit(sid, [TextPart("?")], **options)
    await it.ended(accepted.run.id)
    return accepted.run


async def set_budgets(it: Running, time_zone: str, items: Sequence[Budget]) -> None:
    """These instead of all that there are."""
    for budget in read_budgets(await it.store.read(lambda tx: tx.settings(LOCAL))).items:
        await it.engine.usage.remove_budget(budget.id)
    await it.engine.usage.set_time_zone(time_zone)
    for budget in items:
        await it.engine.usage.add_budget(budget)


async def used(it: Running, by: Any = "day", **options: Any) -> dict[str, tuple[int, int]]:
    report = await it.engine.usage.report(by, **options)
    return {group.key: (group.used.runs, group.used.tokens) for group in report.groups if group.used.runs}


# ---- reports ----


async def test_usage_is_listed_by_day_model_and_project(world: AnyWorld) -> None:
    """Every answer once, under the day on which it ended in the time zone that was asked for."""
    async with running(ANSWER, world) as it:
        garden = await it.engine.sessions.create(project="garden", model="m/large")
        await ask(it, sid=garden.id)
        await ask(it, model="m/small")
        world.clock.advance(2 * 3600.0)  # past midnight in UTC, not in New York
        await ask(it, model="m/small")
        assert await used(it) == {"2023-11-14": (2, 2000), "2023-11-15": (1, 1000)}
        assert await used(it, time_zone="America/New_York") == {"2023-11-14": (3, 3000)}
        assert await used(it, "model") == {"m/large": (1, 1000), "m/small": (2, 2000)}
        assert await used(it, "project") == {"garden": (1, 1000), "": (2, 2000)}
        assert await used(it, "model", first=TOMORROW, last=TOMORROW) == {"m/small": (1, 1000)}
        assert await used(it, owner=OwnerId("somebody")) == {}
        report = await it.engine.usage.report("day", TODAY, TOMORROW)
        assert [group.key for group in report.groups] == ["2023-11-14", "2023-11-15"]
        assert report.total.tokens == 3000


async def test_deleting_a_chat_does_not_change_what_was_used(world: AnyWorld) -> None:
    async with running(ANSWER, world) as it:
        garden = await it.engine.sessions.create(project="garden")
        run = await ask(it, sid=garden.id)
        temporary = await it.engine.sessions.create(settings={"keep": False})
        await it.engine.runs.submit(temporary.id, [TextPart("?")])
        with anyio.fail_after(GUARD):
            while (await it.engine.usage.report()).total.tokens < 2000:
                await checkpoint()
        before = [await used(it, by) for by in ("day", "model")]
        await it.engine.sessions.delete(garden.id)
        await it.engine.retention.erase()
        with pytest.raises(NotFoundError):
            await it.engine.runs.get(run.id)
        assert [await used(it, by) for by in ("day", "model")] == before
        assert await used(it, "project") == {"garden": (1, 1000), "": (1, 1000)}


async def test_usage_of_erased_chats_is_forgotten_after_400_days(memory: World) -> None:
    """No report reaches further back, so it is not kept for ever."""
    async with running(ANSWER, memory) as it:
        run = await ask(it)
        await it.engine.sessions.delete(run.session_id)
        await it.engine.retention.erase()
        for days, left in ((399, 1), (401, 0)):
            memory.clock.set(NOON + days * DAY)
            await it.engine.sweeper.tick()
            assert len(await used(it, first=TODAY, last=TODAY)) == left


async def test_own_prices_give_costs_to_what_was_used_before(memory: World) -> None:
    """A price counts for earlier answers too; without one, tokens are counted and no cost is guessed."""
    async with running(ANSWER, memory) as it:
        await ask(it, model="m/large")
        await ask(it, model="m/small")
        total = (await it.engine.usage.report()).total
        assert (total.cost, total.unpriced_tokens) == (None, 2000)
        await it.engine.usage.change_prices({"m/large": Price(1000.0, 20_000.0)})
        report = await it.engine.usage.report("model")
        assert report.total.cost == report.total.estimated_cost == pytest.approx(2.9)
        assert report.total.unpriced_tokens == 1000
        assert {group.key: group.has_own_price for group in report.groups} == {"m/large": True, "m/small": False}
        assert await it.engine.usage.change_prices({"m/large": None}) == {}


async def test_prices_are_limited_in_number(memory: World) -> None:
    """Changed prices are merged with the others; too many are refused, and nothing is changed."""
    async with running((), memory) as it:
        await it.engine.usage.change_prices({"a": Price(1.0, 1.0), "b": Price(1.0, 1.0)})
        with pytest.raises(QuotaExceededError):
            await it.engine.usage.change_prices({f"m{n}": Price(1.0, 1.0) for n in range(MAX_PRICES)})
        await it.engine.usage.change_prices({"b": Price(2.0, 2.0)})
        assert await it.engine.usage.prices() == {"a": Price(1.0, 1.0), "b": Price(2.0, 2.0)}


@pytest.mark.parametrize(
    "wrong",
    [
        {"first": TOMORROW, "last": TODAY},
        {"first": date(2022, 1, 1)},
        {"first": date(1, 1, 1), "last": date(1, 1, 2)},
        {"last": date(9999, 12, 31)},
        {"time_zone": "Nowhere/Land"},
    ],
)
async def test_a_period_that_cannot_be_is_refused(memory: World, wrong: Any) -> None:
    async with running((), memory) as it:
        with pytest.raises(InvalidInputError):
            await it.engine.usage.report(**wrong)


# ---- budgets ----


async def test_a_reached_budget_refuses_until_its_period_is_over(world: AnyWorld) -> None:
    """A refusal stores nothing and uses up no key; the next day the same send with the same key is accepted."""
    async with running(ANSWER, world) as it:
        await set_budgets(it, "UTC", [REFUSE])
        sid = (await ask(it)).session_id
        with pytest.raises(BudgetReachedError):
            await it.engine.runs.submit(sid, [TextPart("!")])
        with pytest.raises(BudgetReachedError) as refused:
            await it.engine.runs.submit(sid, [TextPart("?")], key="k")
        message = str(refused.value)
        assert message.startswith("The daily budget of 1,000 tokens is used up: 1,000 tokens so far.")
        assert "2023-11-15 00:00 (UTC)" in message
        assert (refused.value.resets_at, refused.value.retry_after) == ("2023-11-15T00:00:00.000000Z", 6400.0)
        assert len(await it.shown(sid)) == 2
        world.clock.advance(6400.0)
        await ask(it, sid=sid, key="k")
        assert len(await it.shown(sid)) == 4


async def test_every_way_to_start_a_run_is_refused(memory: World) -> None:
    """Retry, edit and continue too; what exists can be read, and a repeat of an accepted send is answered."""
    async with running([*ANSWER, Finish("length")], memory) as it:
        run = await ask(it, key="once")
        await set_budgets(it, "UTC", [REFUSE])
        runs, sid = it.engine.runs, run.session_id
        for call in (
            runs.retry(sid, run.message_id),
            runs.edit(sid, run.user_message_id, [TextPart("!")]),
            runs.continue_run(run.id),
            runs.start_session(Session(SessionId("ses_new"), LOCAL, 0.0, 0.0), (), [TextPart("?")], RunOptions(None)),
        ):
            with pytest.raises(BudgetReachedError):
                await call
        repeated = await runs.submit(sid, [TextPart("?")], key="once")
        assert (repeated.run.id, repeated.fresh) == (run.id, False)


async def test_an_active_run_and_queued_ones_go_on_when_a_budget_is_reached(memory: World) -> None:
    """What was accepted is answered: a budget decides about new messages alone."""
    async with running([Meet("on"), *ANSWER], memory) as it:
        await set_budgets(it, "UTC", [REFUSE])
        sid = await it.new_session()
        active = await it.send_to_gate(sid, gate="on")
        waiting = (await it.engine.runs.submit(sid, [TextPart("next")])).run
        it.release("on")
        assert (await it.until(active.id, "complete")).usage == Usage(900, 100)
        assert (await it.until(waiting.id, "complete")).usage == Usage(900, 100)
        with pytest.raises(BudgetReachedError):
            await it.engine.runs.submit(sid, [TextPart("?")])


async def test_a_budget_that_warns_accepts_and_says_so(memory: World) -> None:
    async with running(ANSWER, memory) as it:
        await set_budgets(it, "UTC", [Budget("month", "tokens", 1500, "warn")])
        found = []
        for _ in range(3):
            accepted = await it.engine.runs.submit(await it.new_session(), [TextPart("?")])
            await it.ended(accepted.run.id)
            found.append([state.message for state in accepted.over_budget])
        assert found == [[], [], ["The monthly budget of 1,500 tokens is used up: 2,000 tokens so far."]]


async def test_of_several_budgets_the_last_to_be_free_again_is_named(memory: World) -> None:
    async with running(ANSWER, memory) as it:
        await ask(it)
        monthly = Budget("month", "tokens", 500, "refuse")
        for items in ([REFUSE, monthly], [monthly, REFUSE]):
            await set_budgets(it, "Europe/Berlin", items)
            with pytest.raises(BudgetReachedError) as refused:
                await ask(it)
            assert "2023-12-01 00:00 (Europe/Berlin)" in str(refused.value)


async def test_a_budget_of_money_counts_reported_and_estimated_costs(memory: World) -> None:
    """Tokens without a price cannot be counted, which the state of the budget says."""
    usages = iter([Usage(900, 100, 0.25), Usage(900, 100)])

    async def play(turn: Any, out: Any) -> str | None:
        await out.write(next(usages))
        return "stop"

    async with running(play, memory) as it:
        await set_budgets(it, "UTC", [Budget("day", "usd", 1.25, "refuse")])
        await ask(it, model="m")
        await ask(it, model="m")
        _, (state,) = await it.engine.usage.budgets()
        assert (state.used, state.unpriced_tokens, state.is_reached) == (0.25, 1000, False)
        await it.engine.usage.change_prices({"m": Price(1000.0, 1000.0)})
        with pytest.raises(BudgetReachedError, match=r"daily budget of \$1\.25 is used up: \$1\.25 so far"):
            await it.engine.runs.submit(await it.new_session(), [TextPart("?")])


async def test_a_budget_counts_erased_chats_and_no_other_owners(memory: World) -> None:
    """Deleting the chat does not free the budget."""
    async with running(ANSWER, memory) as it:
        await set_budgets(it, "UTC", [REFUSE])
        run = await ask(it)
        await it.engine.sessions.delete(run.session_id)
        await it.engine.retention.erase()
        with pytest.raises(BudgetReachedError):
            await ask(it)
        other = OwnerId("somebody")
        session = await it.engine.sessions.create(other)
        await it.engine.runs.submit(session.id, [TextPart("?")], owner=other)


async def test_a_budget_survives_a_crash(world: AnyWorld) -> None:
    """What is used is what was settled: a crash neither frees a budget nor counts an answer twice."""
    async with running([*ANSWER, CallTool("c"), Meet("on")], world) as it:
        await set_budgets(it, "UTC", [REFUSE])
        await it.send_to_gate(gate="on")
        await it.crash()
    async with running(ANSWER, world) as it:
        assert (await it.engine.usage.report()).total.tokens == 1000
        with pytest.raises(BudgetReachedError):
            await ask(it)


async def test_budgets_cost_no_storage_call(memory: World) -> None:
    """With and without one, accepting is one transaction, and a refusal is one; without one nothing is summed."""
    async with running([Say("ok")], memory, tap=(tap := Tap()), **STILL) as it:
        for items in ([], [Budget("day", "tokens", 0, "warn")], [Budget("day", "tokens", 0, "refuse")]):
            await set_budgets(it, "UTC", items)
            sid = await it.new_session()
            if items and items[0].action == "warn":
                await ask(it)  # once for some time, what was used earlier is summed beside the transaction
            await anyio.wait_all_tasks_blocked()
            tap.seen.clear()
            if items and items[0].action == "refuse":
                with pytest.raises(BudgetReachedError):
                    await it.engine.runs.submit(sid, [TextPart("?")])
                assert (tap.seen.count("store.transact"), tap.seen.count("store.read")) == (1, 0)
            else:
                await ask(it, sid=sid)
                assert tap.seen.count("store.transact") == 2


RECENT = 100  # Runs that ended in the last hour


async def add_history(world: World, count: int) -> None:
    """Runs that ended in this month up to now, most of them long ago."""
    await samples.put(world.base, samples.session("ses_old"))
    run = samples.run(sid="ses_old", model="m", status="complete", usage=Usage(9, 1))
    row = dict(zip(RUNS.names, RUNS.encode(run), strict=True))
    times = [NOON - 3600.0 * n / RECENT for n in range(RECENT)]
    times += [NOON - DAY * (1 + 10 * n / count) for n in range(count - RECENT)]
    rows = [tuple({**row, "id": f"run_{n}", "ended_at": at}.values()) for n, at in enumerate(times)]
    world.base._db.executemany(f"INSERT INTO runs ({RUNS.columns}) VALUES ({RUNS.placeholders})", rows)


async def steps_to_accept(world: World, history: int) -> int:
    """How much work SQLite has with a message when a budget of this month has to be checked."""
    store, steps = world.base, 0

    def step() -> None:
        nonlocal steps
        steps += 1

    await add_history(world, history)
    async with running([Say("ok")], world, tap=(tap := Tap()), **STILL) as it:
        await set_budgets(it, "UTC", [Budget("month", "tokens", 1.0, "warn")])
        sid = await it.new_session()
        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(it.engine.runs.submit, sid, [TextPart("?")])
        await anyio.wait_all_tasks_blocked()
        tap.seen.clear()
        store._db.set_progress_handler(step, 100)
        accepted = await it.engine.runs.submit(sid, [TextPart("?")])
        store._db.set_progress_handler(None, 0)
        assert [state.used for state in accepted.over_budget] == [history * 10]
    return steps


async def test_accepting_with_a_budget_does_not_slow_down_with_the_history() -> None:
    """All other writes wait for the transaction that accepts. The long sum is made beside it, once for some time and
    for all messages that need it."""
    few, many = [await steps_to_accept(World(), history) for history in (1000, 50_000)]
    assert many < few * 1.5, (few, many)


async def test_a_run_that_is_recovered_late_counts(memory: World) -> None:
    """It ended in a time that was summed before."""
    late = samples.run("late", status="interrupted", recovery=Recovery("pending", NOON), ended_at=NOON)
    async with running(ANSWER, memory, **STILL) as it:
        await samples.put(memory.base, samples.session(), late)
        await set_budgets(it, "UTC", [Budget("month", "tokens", 3000.0, "warn")])
        memory.clock.advance(3600.0)
        await ask(it)
        await ask(it)
        await it.engine.settler.settle_recovered(
            {late.id: Transcript(status="complete", usage=Usage(900, 100))}, Recovery("recovered")
        )
        accepted = await it.engine.runs.submit(await it.new_session(), [TextPart("?")])
        assert [state.used for state in accepted.over_budget] == [3000.0]


async def test_a_clock_that_is_set_back_does_not_free_a_budget(memory: World) -> None:
    """What was used after the time that it shows now is summed again."""
    async with running(ANSWER, memory, **STILL) as it:
        await set_budgets(it, "UTC", [Budget("month", "tokens", 2000.0, "warn")])
        memory.clock.advance(7200.0)
        await ask(it)
        memory.clock.advance(-3600.0)
        await ask(it)
        accepted = await it.engine.runs.submit(await it.new_session(), [TextPart("?")])
        assert [state.used for state in accepted.over_budget] == [2000.0]


@dataclass
class TableOnce:
    """A table of prices that notes who loads it, and what is looked up."""

    loads: int = 0
    asked: list[str] = field(default_factory=list)

    def snapshot(self) -> FindPrice:
        return self._find if self.loads else self._refuse

    async def load(self) -> FindPrice:
        await checkpoint()
        self.loads += 1
        return self._find

    def _find(self, model: str) -> Price:
        self.asked.append(model)
        return Price(1000.0, 1000.0)

    def _refuse(self, model: str) -> Price:
        raise PricesNotLoadedError


async def test_prices_are_loaded_when_a_budget_needs_them_first(world: AnyWorld) -> None:
    """And outside of the transaction: without a budget in dollars, or if all costs were reported, nobody loads them or
    looks one up. The message that needs them is accepted, or refused, as if they had been there."""
    usages = iter([Usage(900, 100, 0.25), Usage(900, 100), Usage(900, 100)])

    async def play(turn: Any, out: Any) -> str | None:
        await out.write(next(usages))
        return "stop"

    async with running(play, world, prices=(table := TableOnce())) as it:
        await set_budgets(it, "UTC", [Budget("day", "usd", 2.0, "refuse")])
        await ask(it, model="m")
        await ask(it, model="n")
        assert (table.loads, table.asked) == (0, [])
        await set_budgets(it, "UTC", [Budget("day", "tokens", 1e6, "refuse")])
        await ask(it, model="n")
        assert (table.loads, table.asked) == (0, [])
        await set_budgets(it, "UTC", [Budget(period, "usd", 2.0, "refuse") for period in ("day", "month")])
        sid = await it.new_session()
        for _ in range(2):
            with pytest.raises(BudgetReachedError, match=r"\$2\.25 so far"):
                await it.engine.runs.submit(sid, [TextPart("?")])
        assert (table.loads, table.asked) == (1, ["n"] * 2)  # once for both periods


async def test_the_first_report_loads_prices(memory: World) -> None:
    async with running(ANSWER, memory, prices=(table := TableOnce())) as it:
        await ask(it, model="m")
        assert table.loads == 0
        assert [(await it.engine.usage.report()).total.cost for _ in range(2)] == [1.0, 1.0]
        assert table.loads == 1


async def test_an_unknown_time_zone_of_budgets_is_refused(memory: World) -> None:
    async with running((), memory) as it:
        with pytest.raises(InvalidInputError):
            await set_budgets(it, "Nowhere/Land", [REFUSE])
        assert (await it.engine.usage.budgets(LOCAL))[0].items == ()


async def test_budgets_with_an_unknown_time_zone_count_in_utc_and_say_so(memory: World) -> None:
    """It was set on another system, or its data are gone. A report without a time zone is made in UTC as well. A budget
    that is added leaves the zone as it is."""
    async with running(ANSWER, memory) as it:
        stored = budgets_to_json("Nowhere/Land", [REFUSE])
        await memory.base.transact(lambda tx: tx.put_setting(LOCAL, BUDGETS, stored))
        await ask(it)
        found, (state,) = await it.engine.usage.budgets()
        assert (found.time_zone, found.time_zone_in_use) == ("Nowhere/Land", "UTC")
        assert (state.is_reached, state.resets_at % DAY) == (True, 0.0)
        report = await it.engine.usage.report()
        assert (report.period.time_zone, report.total.tokens) == ("UTC", 1000)
        await it.engine.usage.add_budget(replace(REFUSE, limit=5000.0))
        assert (await it.engine.usage.budgets())[0].time_zone == "Nowhere/Land"


async def test_what_is_forgotten_while_it_is_summed_is_summed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is settled into the past while a period is read is missing in what was read."""
    store = InMemoryStore(FakeClock())
    earlier, period, read = EarlierUsage(store), OwnerPeriod(LOCAL, 0.0), store.read

    async def read_and_forget(work: Callable[[Tx], Any]) -> Any:
        found = await read(work)
        earlier.forget(LOCAL)
        return found

    with monkeypatch.context() as late:
        late.setattr(store, "read", read_and_forget)
        await earlier.load(NotSummedError([period]))
    assert period not in earlier.known
    await earlier.load(NotSummedError([period]))
    assert period in earlier.known
