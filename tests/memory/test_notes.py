"""The built-in provider on a real engine: facts in the store, each once, found again, and a person's to change."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import pytest

from holdfast.agents.scripted import Say, ScriptedAgent
from holdfast.core.errors import Invalid, NotFound, StorageUnavailable
from holdfast.core.ids import LOCAL, FactId, OwnerId, SessionId
from holdfast.core.ledger import Policy
from holdfast.core.parts import Remembered
from holdfast.engine.boundaries import Outcome
from holdfast.memory.notes import Ask, FindModel, Notes
from holdfast.ports import Batch, Fact, FactShelf, NewFact
from holdfast.testing.memory import ProviderTable
from tests.harness import GUARD, QUICK, AnyWorld, Running, running

pytestmark = pytest.mark.anyio

SETTINGS = replace(QUICK, memory=Policy(pause=1.0), flush=5.0)


class Shelf:
    """The engine's, which is there later; `fails` calls of `apply` happen and are reported as failed."""

    def __init__(self) -> None:
        self.inner: FactShelf | None = None
        self.fails = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def apply(self, batch: Batch, facts: Sequence[NewFact]) -> bool:
        assert self.inner is not None
        done = await self.inner.apply(batch, facts)
        if self.fails:
            self.fails -= 1
            raise StorageUnavailable("done, and reported as failed")
        return done


async def rules(_: str | None) -> Ask | None:
    return None


@asynccontextmanager
async def noting(
    world: AnyWorld, find_model: FindModel = rules, shelf: Shelf | None = None, **options: Any
) -> AsyncIterator[Running]:
    shelf = shelf or Shelf()
    table = ProviderTable({"notes": Notes(shelf, find_model)}, "notes")
    async with running(ScriptedAgent([Say("ok")]), world, SETTINGS, memory=table, **options) as it:
        shelf.inner = it.engine.facts
        yield it


async def tell(it: Running, *said: str, commit: bool = True) -> SessionId:
    sid = await it.new_session()
    for text in said:
        await it.turn(sid, text)
    if commit:
        await it.boundaries.commit(sid)
    return sid


async def known(it: Running, text: str = "") -> list[str]:
    return [fact.text for fact in await it.engine.facts.list(text=text)]


async def the(it: Running, text: str) -> Fact:
    (fact,) = await it.engine.facts.list(text=text)
    return fact


async def recalled(it: Running, question: str) -> list[str]:
    sid = await it.new_session()
    await it.turn(sid, question)
    parts = (await it.answer(sid)).parts
    return [item["text"] for part in parts if isinstance(part, Remembered) for item in part.items]


async def test_what_was_said_is_recalled_in_another_session(world: AnyWorld) -> None:
    """M2: after a commit, a question in a new session has the fact in front of it, with its source."""
    async with noting(world) as it:
        sid = await tell(it, "My name is Anna and I live in Lisbon.", "I'm allergic to peanuts.")
        assert sorted(await known(it)) == [
            "The person is allergic to peanuts.",
            "The person lives in Lisbon.",
            "The person's name is Anna.",
        ]
        found = await recalled(it, "Where do I live again?")
        assert "The person lives in Lisbon." in found
        assert "The person is allergic to peanuts." not in found
        (item, *_) = (await it.engine.facts.list(text="lisbon"),)[0]
        first = (await it.shown(sid))[1]
        assert (item.session_id, item.message_id) == (sid, first.id)


async def test_the_name_is_always_there_and_other_things_are_not(world: AnyWorld) -> None:
    """A question that has to do with nothing known gets the person's name and standing wishes, and no other fact."""
    async with noting(world) as it:
        await tell(it, "My name is Anna. I live in Lisbon.", "Always answer in French.")
        found = await recalled(it, "Explain quantum chromodynamics")
        assert sorted(found) == ["The person wishes: Always answer in French.", "The person's name is Anna."]


async def test_a_fact_that_changes_is_superseded(world: AnyWorld) -> None:
    """A later word about the same thing takes the fact's place, keeps its id and pin, and names the newer turn."""
    async with noting(world) as it:
        await tell(it, "I live in Bonn.")
        old = await the(it, "lives")
        await it.engine.facts.change(old.id, pinned=True)
        sid = await tell(it, "I moved to Berlin.")
        new = await the(it, "lives")
        assert (new.id, new.text, new.session_id, new.pinned) == (old.id, "The person lives in Berlin.", sid, True)
        assert await known(it, "bonn") == []
        assert "The person lives in Berlin." in await recalled(it, "Where do I live?")


async def test_an_older_word_does_not_supersede_a_newer_one(world: AnyWorld) -> None:
    """Turns that are committed late do not undo what was said after them."""
    async with noting(world) as it:
        late = await tell(it, "I live in Bonn.", commit=False)
        it.world.clock.advance(60.0)
        await tell(it, "I live in Berlin.")
        await it.boundaries.commit(late)
        assert await known(it) == ["The person lives in Berlin."]


async def test_the_same_thing_said_again_is_one_fact(world: AnyWorld) -> None:
    """A fact is never written twice, within a session or across them."""
    async with noting(world) as it:
        await tell(it, "Remember that the key is under the mat.", "remember that the key is under the mat")
        await tell(it, "Remember that the key is under the mat!", "I love olives.", "I love olives.")
        assert len(await known(it)) == 2


async def test_a_commit_in_doubt_is_applied_once(world: AnyWorld) -> None:
    """M11: a commit that was written and reported as failed is tried again and changes nothing, not even what a person
    erased meanwhile."""
    shelf = Shelf()
    shelf.fails = 1
    async with noting(world, shelf=shelf) as it:
        sid = await tell(it, "I live in Bonn.")
        assert (await it.boundaries.status(sid)).dirty_turns == 1
        await it.engine.facts.delete((await the(it, "bonn")).id)
        assert await it.boundaries.commit(sid) == Outcome(1, "notes")
        assert await known(it) == []


async def test_a_crash_between_facts_and_ledger_applies_once(world: AnyWorld) -> None:
    """M11: the process dies when the facts are written and the ledger is not moved yet: the next life finds it done."""
    shelf = Shelf()
    async with noting(world, shelf=shelf) as it:
        sid = await tell(it, "I live in Bonn. I love olives.", commit=False)
        shelf.fails = 1
        it_is_written = await it.boundaries.commit(sid)
        assert it_is_written.error is not None
        before = {fact.id: fact.n for fact in await it.engine.facts.list()}
        await it.crash()
    async with noting(world) as it:
        with anyio.fail_after(GUARD):
            while (await it.boundaries.status(sid)).dirty_turns:
                await anyio.lowlevel.checkpoint()
        assert {fact.id: fact.n for fact in await it.engine.facts.list()} == before
        assert len(before) == 2


async def test_facts_can_be_changed_pinned_and_erased(world: AnyWorld) -> None:
    """A person's word about a fact counts at once: changed words are found and recalled, erased ones are not."""
    async with noting(world) as it:
        await tell(it, "I live in Bonn.", "My dog is called Rex.")
        home, dog = await the(it, "bonn"), await the(it, "rex")
        changed = await it.engine.facts.change(home.id, text="  The person lives in Porto, by the river.  ")
        assert (changed.id, changed.text) == (home.id, "The person lives in Porto, by the river.")
        assert await known(it, "bonn") == []
        assert await known(it, "river por") == ["The person lives in Porto, by the river."]
        assert await recalled(it, "Which river is near?") == ["The person lives in Porto, by the river."]
        await it.engine.facts.change(dog.id, pinned=True)
        assert (await recalled(it, "Explain quantum chromodynamics")) == ["The person's dog is called Rex."]
        await it.engine.facts.change(dog.id, pinned=False)
        assert await recalled(it, "Explain quantum chromodynamics") == []
        await it.engine.facts.delete(home.id)
        assert await recalled(it, "Which river is near? Where do I live?") == []


async def test_a_persons_edit_stands_against_what_was_said_before(world: AnyWorld) -> None:
    """An edit is the latest word: turns that were said earlier and are committed later do not change it back."""
    async with noting(world) as it:
        await tell(it, "I live in Bonn.")
        late = await tell(it, "I live in Rome.", commit=False)
        it.world.clock.advance(60.0)
        await it.engine.facts.change((await the(it, "bonn")).id, text="The person lives in Porto.")
        await it.boundaries.commit(late)
        assert await known(it) == ["The person lives in Porto."]
        it.world.clock.advance(60.0)
        await tell(it, "I live in Oslo.")
        assert await known(it) == ["The person lives in Oslo."]


async def test_an_edited_note_is_not_written_again(world: AnyWorld) -> None:
    """The same words said again do not bring an edited fact back beside the edit, nor in its place."""
    async with noting(world) as it:
        await tell(it, "Remember that the key is under the mat.")
        await it.engine.facts.change((await the(it, "mat")).id, text="The key is in the shed.")
        await tell(it, "Remember that the key is under the mat.")
        assert await known(it) == ["The key is in the shed."]


async def test_others_facts_are_not_ones_own(world: AnyWorld) -> None:
    """An unknown fact, or somebody else's, can be neither changed nor erased; an empty text is refused."""
    async with noting(world) as it:
        await tell(it, "I live in Bonn.")
        fact = await the(it, "bonn")
        stranger = OwnerId("somebody")
        for fid, owner in ((fact.id, stranger), (FactId("fct_none"), LOCAL)):
            with pytest.raises(NotFound):
                await it.engine.facts.change(fid, text="mine", owner=owner)
            with pytest.raises(NotFound):
                await it.engine.facts.delete(fid, owner)
        with pytest.raises(Invalid):
            await it.engine.facts.change(fact.id, text="   ")
        assert await it.engine.facts.list(stranger) == []
        assert await known(it) == ["The person lives in Bonn."]


async def test_forgetting_a_session_erases_what_it_taught(world: AnyWorld) -> None:
    """Deleting with `forget` erases the facts of that session, keeps those of others, and learns nothing more."""
    async with noting(world) as it:
        sid = await tell(it, "I live in Bonn.")
        await tell(it, "I love olives.")
        await it.turn(sid, "I'm 34 years old.")
        await it.service.delete(sid, forget=True)
        with anyio.fail_after(GUARD):
            while await it.store.inner.read(lambda tx: tx.session(sid)) is not None:
                await it.tick()
        assert await known(it) == ["The person likes olives."]


async def test_a_deleted_session_is_remembered_first(world: AnyWorld) -> None:
    """M2: deleting a session commits it; its facts outlive it."""
    async with noting(world) as it:
        sid = await tell(it, "I live in Bonn.", commit=False)
        await it.service.delete(sid)
        with anyio.fail_after(GUARD):
            while await it.store.inner.read(lambda tx: tx.session(sid)) is not None:
                await it.tick()
        assert await known(it) == ["The person lives in Bonn."]


async def test_an_incognito_session_teaches_and_recalls_nothing(world: AnyWorld) -> None:
    """M7: of a session without memory no fact is written, and none is put in front of it."""
    async with noting(world) as it:
        await tell(it, "My name is Anna.")
        sid = (await it.service.create_session(memory="none")).id
        await it.turn(sid, "I live in Bonn. What is my name?")
        await it.boundaries.commit(sid)
        assert await known(it) == ["The person's name is Anna."]
        assert not any(isinstance(part, Remembered) for part in (await it.answer(sid)).parts)


async def test_a_model_extracts_and_sees_what_is_known(world: AnyWorld) -> None:
    """The session's model is asked once per commit, with what is known; its facts name their turns and supersede."""
    prompts: list[str] = []
    answers = iter(
        [
            json.dumps([{"turn": 1, "about": "Home town", "fact": "The person lives in Bonn."}]),
            json.dumps([{"turn": 2, "about": "home town", "fact": "The person lives in Oslo."}]),
        ]
    )

    async def ask(system: str, text: str, most: int) -> str:
        prompts.append(text)
        return next(answers)

    async def find(model: str | None) -> Ask | None:
        return ask if model == "big" else None

    async with noting(world, find) as it:
        sid = (await it.service.create_session(model="big")).id
        await it.turn(sid, "I live by the Rhine, in Beethoven's town.")
        await it.boundaries.commit(sid)
        first = await the(it, "bonn")
        run = await it.turn(sid, "I live in the Norwegian capital now.")
        await it.boundaries.commit(sid)
        fact = await the(it, "oslo")
        assert (fact.id, fact.message_id) == (first.id, run.message_id)
        assert "The person lives in Bonn." in prompts[1]


@pytest.mark.parametrize("answer", ["no JSON at all", "fails"])
async def test_rules_stand_in_for_a_model_that_answers_wrongly(world: AnyWorld, answer: str) -> None:
    """A model that answers something else is replaced by the rules; one that fails leaves the turn dirty."""

    async def ask(system: str, text: str, most: int) -> str:
        if answer == "fails":
            raise ConnectionError("the model is away")
        return answer

    async def find(model: str | None) -> Ask | None:
        return ask

    async with noting(world, find) as it:
        sid = await tell(it, "I live in Bonn.")
        status = await it.boundaries.status(sid)
        if answer == "fails":
            assert (status.dirty_turns, await known(it)) == (1, [])
            assert "the model is away" in (status.last_error or "")
        else:
            assert (status.dirty_turns, await known(it)) == (0, ["The person lives in Bonn."])


async def test_facts_of_another_node_are_recalled(world: AnyWorld) -> None:
    """A second provider on the same facts follows what the first one writes, changes and erases."""
    async with noting(world) as it:
        other = Notes(it.engine.facts, rules)
        assert await other.find(LOCAL, "Where do I live?") == []
        await tell(it, "I live in Bonn.")
        (fact,) = await other.find(LOCAL, "Where do I live?")
        await it.engine.facts.change(fact.id, text="The person lives in Porto.")
        assert [found.text for found in await other.find(LOCAL, "Where do I live?")] == ["The person lives in Porto."]
        await it.engine.facts.delete(fact.id)
        assert await other.find(LOCAL, "Where do I live?") == []
