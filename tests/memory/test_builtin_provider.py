"""The built-in provider on a real engine: facts are stored once, recalled, and can be changed by a person."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import pytest

from holdfast.agents.scripted_agent import Say, ScriptedAgent
from holdfast.core.errors import InvalidInputError, NotFoundError, StorageUnavailableError
from holdfast.core.ids import LOCAL, FactId, OwnerId, SessionId
from holdfast.core.memory_ledger import LedgerPolicy
from holdfast.core.parts import RememberedPart
from holdfast.engine.transactions.memory import CommitOutcome
from holdfast.memory.builtin_provider import Ask, FindModel, NotesProvider
from holdfast.ports.memory import FactStore, MemoryBatch, NewFact
from holdfast.ports.store import Fact
from tests.harness import GUARD, QUICK, AnyWorld, Running, running
from tests.memory_providers import ProviderTable

pytestmark = pytest.mark.anyio

SETTINGS = replace(QUICK, memory=LedgerPolicy(pause=1.0), flush_time=5.0, recall_wait=GUARD)


class UnreliableFacts:
    """The engine's facts, bound late; the next `fails` calls of `apply` succeed and are reported as failed."""

    def __init__(self) -> None:
        self.inner: FactStore | None = None
        self.fails = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def apply(self, batch: MemoryBatch, facts: Sequence[NewFact]) -> bool:
        assert self.inner is not None
        done = await self.inner.apply(batch, facts)
        if self.fails:
            self.fails -= 1
            raise StorageUnavailableError("stored, but reported as failed")
        return done


async def rules(_: str | None) -> Ask | None:
    return None


@asynccontextmanager
async def remembering(
    world: AnyWorld, find_model: FindModel = rules, facts: UnreliableFacts | None = None, **options: Any
) -> AsyncIterator[Running]:
    facts = facts or UnreliableFacts()
    table = ProviderTable({"notes": NotesProvider(facts, find_model)}, "notes")
    async with running(ScriptedAgent([Say("ok")]), world, SETTINGS, memory=table, **options) as it:
        facts.inner = it.engine.memory_facts
        yield it


async def tell(it: Running, *said: str, commit: bool = True) -> SessionId:
    sid = await it.new_session()
    for text in said:
        await it.turn(sid, text)
    if commit:
        await it.boundaries.commit(sid)
    return sid


async def known(it: Running, text: str = "") -> list[str]:
    return [fact.text for fact in await it.engine.memory_facts.list(text=text)]


async def the(it: Running, text: str) -> Fact:
    (fact,) = await it.engine.memory_facts.list(text=text)
    return fact


async def recalled(it: Running, question: str) -> list[str]:
    sid = await it.new_session()
    await it.turn(sid, question)
    parts = (await it.answer(sid)).parts
    return [item["text"] for part in parts if isinstance(part, RememberedPart) for item in part.items]


async def test_facts_are_recalled_in_another_session(world: AnyWorld) -> None:
    """M2: after a commit, a question in a new session recalls the fact with its source."""
    async with remembering(world) as it:
        sid = await tell(it, "My name is Anna and I live in Lisbon.", "I'm allergic to peanuts.")
        assert sorted(await known(it)) == [
            "Is allergic to peanuts.",
            "Lives in Lisbon.",
            "Name: Anna.",
        ]
        found = await recalled(it, "Where do I live again?")
        assert "Lives in Lisbon." in found
        assert "Is allergic to peanuts." not in found
        (item, *_) = (await it.engine.memory_facts.list(text="lisbon"),)[0]
        first = (await it.shown(sid))[1]
        assert (item.session_id, item.message_id) == (sid, first.id)


async def test_name_and_wishes_are_always_recalled(world: AnyWorld) -> None:
    """An unrelated question recalls the person's name and standing wishes, and no other fact."""
    async with remembering(world) as it:
        await tell(it, "My name is Anna. I live in Lisbon.", "Always answer in French.")
        found = await recalled(it, "Explain quantum chromodynamics")
        assert sorted(found) == ["Name: Anna.", "Wishes: Always answer in French."]


async def test_wishes_of_an_earlier_version_are_always_recalled(world: AnyWorld) -> None:
    """They were stored with other words."""
    async with remembering(world) as it:
        for text in ("The person wishes: Always answer in French.", "Has a boat."):
            await it.engine.memory_facts.add(text)
        assert await recalled(it, "What is seven times six?") == ["The person wishes: Always answer in French."]


async def test_a_fact_that_changes_is_superseded(world: AnyWorld) -> None:
    """A later fact with the same topic replaces the text, keeps id and pin, and names the newer turn."""
    async with remembering(world) as it:
        await tell(it, "I live in Bonn.")
        old = await the(it, "lives")
        await it.engine.memory_facts.change(old.id, pinned=True)
        sid = await tell(it, "I moved to Berlin.")
        new = await the(it, "lives")
        assert (new.id, new.text, new.session_id, new.pinned) == (old.id, "Lives in Berlin.", sid, True)
        assert await known(it, "bonn") == []
        assert "Lives in Berlin." in await recalled(it, "Where do I live?")


async def test_an_older_fact_does_not_supersede_a_newer_one(world: AnyWorld) -> None:
    """Turns that are committed late do not replace facts from later turns."""
    async with remembering(world) as it:
        late = await tell(it, "I live in Bonn.", commit=False)
        it.world.clock.advance(60.0)
        await tell(it, "I live in Berlin.")
        await it.boundaries.commit(late)
        assert await known(it) == ["Lives in Berlin."]


async def test_a_repeated_statement_is_one_fact(world: AnyWorld) -> None:
    """A fact is stored once, within a session and across sessions."""
    async with remembering(world) as it:
        await tell(it, "Remember that the key is under the mat.", "remember that the key is under the mat")
        await tell(it, "Remember that the key is under the mat!", "I love olives.", "I love olives.")
        assert len(await known(it)) == 2


async def test_a_commit_in_doubt_is_applied_once(world: AnyWorld) -> None:
    """M11: a commit that was stored and reported as failed is retried without effect, also if a person has erased its
    fact meanwhile."""
    facts = UnreliableFacts()
    facts.fails = 1
    async with remembering(world, facts=facts) as it:
        sid = await tell(it, "I live in Bonn.")
        assert (await it.boundaries.status(sid)).dirty_turns == 1
        await it.engine.memory_facts.delete((await the(it, "bonn")).id)
        assert await it.boundaries.commit(sid) == CommitOutcome(1, "notes")
        assert await known(it) == []


async def test_a_crash_between_facts_and_ledger_applies_once(world: AnyWorld) -> None:
    """M11: after a crash between storing the facts and moving the ledger, the facts are not stored again."""
    facts = UnreliableFacts()
    async with remembering(world, facts=facts) as it:
        sid = await tell(it, "I live in Bonn. I love olives.", commit=False)
        facts.fails = 1
        outcome = await it.boundaries.commit(sid)
        assert outcome.error is not None
        before = {fact.id: fact.n for fact in await it.engine.memory_facts.list()}
        await it.crash()
    async with remembering(world) as it:
        with anyio.fail_after(GUARD):
            while (await it.boundaries.status(sid)).dirty_turns:
                await anyio.lowlevel.checkpoint()
        assert {fact.id: fact.n for fact in await it.engine.memory_facts.list()} == before
        assert len(before) == 2


async def test_facts_can_be_changed_pinned_and_erased(world: AnyWorld) -> None:
    """Changes by a person count at once: new text is found and recalled, erased facts are not."""
    async with remembering(world) as it:
        await tell(it, "I live in Bonn.", "My dog is called Rex.")
        home, dog = await the(it, "bonn"), await the(it, "rex")
        changed = await it.engine.memory_facts.change(home.id, text="  Lives in Porto, by the river.  ")
        assert (changed.id, changed.text) == (home.id, "Lives in Porto, by the river.")
        assert await known(it, "bonn") == []
        assert await known(it, "river por") == ["Lives in Porto, by the river."]
        assert await recalled(it, "Which river is near?") == ["Lives in Porto, by the river."]
        await it.engine.memory_facts.change(dog.id, pinned=True)
        assert (await recalled(it, "Explain quantum chromodynamics")) == ["Dog: Rex."]
        await it.engine.memory_facts.change(dog.id, pinned=False)
        assert await recalled(it, "Explain quantum chromodynamics") == []
        await it.engine.memory_facts.delete(home.id)
        assert await recalled(it, "Which river is near? Where do I live?") == []


async def test_an_edit_is_not_undone_by_earlier_turns(world: AnyWorld) -> None:
    """Turns from before an edit that are committed after it do not change the fact back."""
    async with remembering(world) as it:
        await tell(it, "I live in Bonn.")
        late = await tell(it, "I live in Rome.", commit=False)
        it.world.clock.advance(60.0)
        await it.engine.memory_facts.change((await the(it, "bonn")).id, text="Lives in Porto.")
        await it.boundaries.commit(late)
        assert await known(it) == ["Lives in Porto."]
        it.world.clock.advance(60.0)
        await tell(it, "I live in Oslo.")
        assert await known(it) == ["Lives in Oslo."]


async def test_an_edited_fact_is_not_stored_again(world: AnyWorld) -> None:
    """Repeating the original statement does not restore an edited fact."""
    async with remembering(world) as it:
        await tell(it, "Remember that the key is under the mat.")
        await it.engine.memory_facts.change((await the(it, "mat")).id, text="The key is in the shed.")
        await tell(it, "Remember that the key is under the mat.")
        assert await known(it) == ["The key is in the shed."]


async def test_facts_of_another_owner_are_not_accessible(world: AnyWorld) -> None:
    """Unknown facts and those of another owner cannot be changed or erased; an empty text is refused."""
    async with remembering(world) as it:
        await tell(it, "I live in Bonn.")
        fact = await the(it, "bonn")
        stranger = OwnerId("somebody")
        for fid, owner in ((fact.id, stranger), (FactId("fct_none"), LOCAL)):
            with pytest.raises(NotFoundError):
                await it.engine.memory_facts.change(fid, text="mine", owner=owner)
            with pytest.raises(NotFoundError):
                await it.engine.memory_facts.delete(fid, owner)
        with pytest.raises(InvalidInputError):
            await it.engine.memory_facts.change(fact.id, text="   ")
        assert await it.engine.memory_facts.list(stranger) == []
        assert await known(it) == ["Lives in Bonn."]


@pytest.mark.parametrize("forget", [True, False])
async def test_a_deleted_session_is_remembered_or_forgotten(world: AnyWorld, forget: bool) -> None:
    """M2: deleting a session commits it first and keeps its facts. With `forget` its facts alone are erased, and
    no more are learned."""
    async with remembering(world) as it:
        sid = await tell(it, "I live in Bonn.")
        await tell(it, "I love olives.")
        await it.turn(sid, "I'm 34 years old.")
        await it.engine.sessions.delete(sid, forget=forget)
        with anyio.fail_after(GUARD):
            while await it.store.inner.read(lambda tx: tx.session(sid)) is not None:
                await it.tick()
        kept = [] if forget else ["34 years old.", "Lives in Bonn."]
        assert sorted(await known(it)) == sorted(["Likes olives.", *kept])


async def test_an_incognito_session_learns_and_recalls_nothing(world: AnyWorld) -> None:
    """M7: a session without memory stores no facts and recalls none."""
    async with remembering(world) as it:
        await tell(it, "My name is Anna.")
        sid = (await it.engine.sessions.create(memory="none")).id
        await it.turn(sid, "I live in Bonn. What is my name?")
        await it.boundaries.commit(sid)
        assert await known(it) == ["Name: Anna."]
        assert not any(isinstance(part, RememberedPart) for part in (await it.answer(sid)).parts)


async def test_a_model_extracts_and_sees_known_facts(world: AnyWorld) -> None:
    """The session's model is asked once per commit, with the known facts; its facts name their turns and supersede."""
    prompts: list[str] = []
    answers = iter(
        [
            json.dumps([{"turn": 1, "about": "Home town", "fact": "Lives in Bonn."}]),
            json.dumps([{"turn": 2, "about": "home town", "fact": "Lives in Oslo."}]),
        ]
    )

    async def ask(system: str, text: str, most: int) -> str:
        prompts.append(text)
        return next(answers)

    async def find(model: str | None) -> Ask | None:
        return ask if model == "big" else None

    async with remembering(world, find) as it:
        sid = (await it.engine.sessions.create(model="big")).id
        await it.turn(sid, "I live by the Rhine, in Beethoven's town.")
        await it.boundaries.commit(sid)
        first = await the(it, "bonn")
        run = await it.turn(sid, "I live in the Norwegian capital now.")
        await it.boundaries.commit(sid)
        fact = await the(it, "oslo")
        assert (fact.id, fact.message_id) == (first.id, run.message_id)
        assert "Lives in Bonn." in prompts[1]


@pytest.mark.parametrize("answer", ["no JSON at all", "fails"])
async def test_rules_replace_a_model_with_an_invalid_answer(world: AnyWorld, answer: str) -> None:
    """If the answer of the model is invalid, the rules are used; if the model fails, the turn stays dirty."""

    async def ask(system: str, text: str, most: int) -> str:
        if answer == "fails":
            raise ConnectionError("the model is unreachable")
        return answer

    async def find(model: str | None) -> Ask | None:
        return ask

    async with remembering(world, find) as it:
        sid = await tell(it, "I live in Bonn.")
        status = await it.boundaries.status(sid)
        if answer == "fails":
            assert (status.dirty_turns, await known(it)) == (1, [])
            assert "the model is unreachable" in (status.last_error or "")
        else:
            assert (status.dirty_turns, await known(it)) == (0, ["Lives in Bonn."])


async def test_facts_of_another_node_are_recalled(world: AnyWorld) -> None:
    """A second provider on the same store sees what the first one stores, changes and erases."""
    async with remembering(world) as it:
        other = NotesProvider(it.engine.memory_facts, rules)
        assert await other.find(LOCAL, "Where do I live?") == []
        await tell(it, "I live in Bonn.")
        (fact,) = await other.find(LOCAL, "Where do I live?")
        await it.engine.memory_facts.change(fact.id, text="Lives in Porto.")
        assert [found.text for found in await other.find(LOCAL, "Where do I live?")] == ["Lives in Porto."]
        await it.engine.memory_facts.delete(fact.id)
        assert await other.find(LOCAL, "Where do I live?") == []
