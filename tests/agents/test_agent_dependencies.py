"""What the loop takes from outside: grants, files, a history that becomes shorter, summaries and titles."""

import anyio
import pytest

from holdfast.agents.chat.attachments import read_attachments
from holdfast.agents.chat.summary_and_title import SUMMARIZE, ModelSummarizer, ModelTitler
from holdfast.agents.direct_agent import DirectAgent
from holdfast.app.engine_proxy import EngineProxy
from holdfast.core import chat_settings
from holdfast.core.events import ApprovalRequested, Decision, Usage
from holdfast.core.ids import LOCAL, FileId, MessageId, RunId, SessionId
from holdfast.core.parts import FilePart, TextPart
from holdfast.core.session import Message
from holdfast.ports.agent import Agent
from holdfast.ports.model import Ability, Media, ModelError, ModelInfo, ModelRequest, UserMessage
from holdfast.ports.tool import ToolTraits
from holdfast.tools.approval_policy import ApprovalPolicy
from tests.agents.models import (
    Asks,
    Breaks,
    Gates,
    KeptGrants,
    Piece,
    ScriptedModel,
    Shelf,
    Shrinking,
    Thinks,
    Trace,
    answers,
    chat,
    chatting,
    results,
    tool_parts,
)
from tests.harness import GUARD, AnyWorld, Running, World, running

pytestmark = pytest.mark.anyio


async def answered(it: Running, sid: SessionId, decision: Decision) -> RunId:
    run = await it.send(sid)
    await it.until(run.id, "waiting")
    await it.engine.runs.decide(run.id, (await it.question(run.id)).id, decision)
    assert (await it.ended(run.id)).status == "complete"
    return run.id


async def test_an_allowance_for_the_session_is_remembered(world: AnyWorld) -> None:
    """X5: *session* asks once in its session and again in another; *always* asks no more anywhere."""
    effects: list[str] = []
    grants = KeptGrants()
    model = ScriptedModel(answers([Asks("c1", "one")], ["Done."]))
    agent = chat(model, Trace("one", effects, ToolTraits()), grants=grants)
    async with running(agents={"chat": agent}, world=world) as it:
        sid = await it.new_session()
        await answered(it, sid, "session")
        assert (await it.turn(sid)).status == "complete"
        other = await it.new_session()
        await answered(it, other, "always")
        assert (await it.turn(await it.new_session())).status == "complete"
        assert len(effects) == 4
        assert {(grant.session_id, grant.tool) for grant in grants.kept} == {(sid, "one"), (None, "one")}


async def test_an_allowance_covers_its_scope(memory: World) -> None:
    """X5: allowed for one host, say, another one still asks."""
    grants = KeptGrants()
    model = ScriptedModel(
        answers([Asks("c1", "one", {"x": 1}), Asks("c2", "one", {"x": 1}), Asks("c3", "one", {"x": 2})], ["."])
    )
    agent = chat(model, Trace("one", [], ToolTraits(), scopes=True), grants=grants)
    async with running(agents={"chat": agent}, world=memory) as it:
        run = await it.send(await it.new_session())
        await it.until(run.id, "waiting")
        await it.engine.runs.decide(run.id, (await it.question(run.id)).id, "session")
        await it.until(run.id, "waiting")
        assert (await it.question(run.id)).call_id == "c3"


async def test_an_always_that_a_tool_cannot_have_counts_once(memory: World) -> None:
    """X5: on an open server the shell asks in the next turn again, whatever the answer said."""
    grants = KeptGrants()
    model = ScriptedModel(answers([Asks("c1", "shell")], ["Done."]))
    policy = ApprovalPolicy({"shell": "allow"}, never_always=frozenset({"shell"}))
    agent = chat(model, Trace("shell", [], ToolTraits()), grants=grants, policy=policy)
    async with running(agents={"chat": agent}, world=memory) as it:
        sid = await it.new_session()
        run = await answered(it, sid, "always")
        assert grants.kept == set()
        (asked,) = [e for e in (entry.event() for entry in await it.events(run)) if isinstance(e, ApprovalRequested)]
        assert asked.always is False
        assert "password" in asked.reason
        await answered(it, sid, "once")


# ---- files ----


async def test_files_are_shown_to_models_that_can_use_them(memory: World) -> None:
    """A1: a text file goes along; an image is told as one to a model that sees none; a lost file is told as lost."""
    shelf = Shelf({"notes.txt": b"hello"})
    model = ScriptedModel(answers([Asks("c1", "one")], ["Done."]))
    async with running(agents={"chat": chat(model, Trace("one", []), files=shelf)}, world=memory) as it:
        notes, lost = await it.add_file("notes.txt"), await it.add_file("lost.txt", "6b")
        sid = await it.new_session()
        run = (await it.engine.runs.submit(sid, [TextPart("look"), notes, lost])).run
        assert (await it.ended(run.id)).status == "complete"
        (said,) = model.requests[0].messages
        assert isinstance(said, UserMessage)
        assert said.content[:2] == ("look", "File notes.txt:\n\nhello\n")
        assert "was deleted" in str(said.content[2])
        assert shelf.reads == ["notes.txt", "lost.txt"]


@pytest.mark.parametrize(
    ("kind", "abilities", "shown"),
    [
        ("text/markdown; charset=utf-8", [], "gr\ufffde"),
        ("application/ld+json", [], "gr\ufffde"),
        ("image/png", ["images"], None),
        ("image/png", ["documents"], "cannot see images"),
        ("application/pdf", ["documents"], None),
        ("application/pdf", ["images"], "cannot read this kind"),
        ("application/zip", ["images", "documents"], "cannot read this kind"),
    ],
)
async def test_a_file_is_shown_as_the_model_can_read_it(kind: str, abilities: list[Ability], shown: str | None) -> None:
    """A1: text files as text, images and PDFs as data if the model takes them; what it cannot read is named instead."""
    shelf, file = Shelf({"a": b"gr\xfce"}), FilePart(FileId("f"), "a", kind, 4)
    message = Message(MessageId("m"), LOCAL, SessionId("s"), "user", None, 0.0, parts=(file,))
    found = await read_attachments(shelf, [message], ModelInfo("a/b", "b", "a", abilities=frozenset(abilities)), {})
    content = found[file.file_id]
    assert content == Media("a", kind, b"gr\xfce") if shown is None else shown in str(content)


async def test_a_file_that_was_not_imported_is_told_as_such() -> None:
    """It was not deleted, and nothing looks for its content."""
    shelf = Shelf({})
    file = FilePart(FileId("f"), "a.png", "image/png", 4, missing="not_in_export")
    message = Message(MessageId("m"), LOCAL, SessionId("s"), "user", None, 0.0, parts=(file,))
    found = await read_attachments(shelf, [message], ModelInfo("a/b", "b", "a", abilities=frozenset({"images"})), {})
    assert "its content was not imported" in str(found[file.file_id])
    assert shelf.reads == []


# ---- a history that becomes shorter ----


async def test_a_full_context_is_compacted_before_the_model_is_asked(memory: World) -> None:
    """O3: near the limit what came before is summarized, once, and the question stays."""
    history = Shrinking()
    model = ScriptedModel(answers(["y" * 4000]), context=1200)
    async with chatting(memory, model, history=history) as (it, sid):
        await it.turn(sid, "first")
        assert history.compactions == 0
        await it.turn(sid, "second")
        assert history.compactions == 1
        assert model.requests[-1].messages == (UserMessage(("second",)),)
        assert "They talked." in (model.requests[-1].system or "")


async def test_long_results_of_a_long_run_make_room(memory: World) -> None:
    """O3: where there is nothing to summarize, old tool results are left out and the newest are kept."""
    model = ScriptedModel(
        lambda request: [Asks("c", "one", {"x": len(request.messages)})] if len(request.messages) < 12 else ["Done."],
        context=5000,
    )
    async with chatting(memory, model, Trace("one", [], result="x" * 4000)) as (it, sid):
        assert (await it.turn(sid)).status == "complete"
        sizes = [len(each.text) for each in results(model.requests[-1])]
        assert sizes[-2:] == [4000, 4000]
        assert max(sizes[:2]) < 200
        saved = [part.result for part in tool_parts(await it.answer(sid))]
        assert {len(result) for result in saved} == {4000}


async def test_a_context_that_the_provider_finds_too_small_is_compacted_too(memory: World) -> None:
    """O3: the provider refuses the length before a word is said: the past is summarized, and it is asked again."""
    history = Shrinking()
    model = ScriptedModel(lambda request: ["Fine."] if len(request.messages) == 1 else [Breaks("context-length")])
    async with chatting(memory, model, history=history) as (it, sid):
        assert (await it.turn(sid, "first")).status == "complete"
        assert (await it.turn(sid, "second")).status == "complete"
        assert (history.compactions, len(model.requests)) == (1, 3)


async def test_a_context_that_stays_too_small_is_a_failure(memory: World) -> None:
    """E1: it is tried once more and not forever."""
    history = Shrinking()
    model = ScriptedModel(answers([Breaks("context-length")]))
    async with chatting(memory, model, history=history) as (it, sid):
        run = await it.turn(sid)
        assert run.error is not None
        assert (run.error.code, history.compactions, len(model.requests)) == ("context-length", 1, 2)


async def test_a_full_context_is_compacted_through_the_engine(world: AnyWorld) -> None:
    """O3: the run's own model writes the summary, the session keeps every message, and the turn goes on."""
    engine = EngineProxy()

    def script(request: ModelRequest) -> list[Piece]:
        return ["A summary."] if request.system == SUMMARIZE else ["y" * 4000]

    model = ScriptedModel(script, context=1200)
    async with running(agents={"chat": chat(model, history=engine)}, world=world) as it:
        engine.engine = it.engine
        sid = await it.new_session()
        await it.turn(sid, "first")
        assert (await it.turn(sid, "second")).status == "complete"
        assert model.requests[-1].messages == (UserMessage(("second",)),)
        assert "A summary." in (model.requests[-1].system or "")
        assert len(await it.shown(sid)) == 4


async def test_a_compaction_during_a_run_waits_for_its_next_step(world: AnyWorld) -> None:
    """O3: asked for while a tool runs, it is done at once, and the step that follows is shown the summary."""
    engine = EngineProxy()
    model = ScriptedModel(answers([Asks("c1", "one")], ["Done."]))
    tool = Trace("one", [], before="here", gates=model.gates)
    async with running(agents={"chat": chat(model, tool, history=engine)}, world=world) as it:
        engine.engine = it.engine
        sid = await it.new_session()
        model.gates.open("here").set()
        await it.turn(sid, "first")
        model.gates = tool.gates = Gates()
        run = await it.send(sid, "second")
        with anyio.fail_after(GUARD):
            await tool.gates.reached("here").wait()
        await it.engine.sessions.compact(sid, ModelSummarizer(ScriptedModel(answers(["A summary."]))))
        tool.gates.open("here").set()
        assert (await it.ended(run.id)).status == "complete"
        before, after = model.requests[-2:]
        assert (len(before.messages), before.system) != (len(after.messages), after.system)
        assert after.messages[0] == UserMessage(("second",))
        assert "A summary." in (after.system or "")


async def test_a_summary_that_fails_does_not_fail_the_run(memory: World) -> None:
    """E1: the model cannot summarize; the turn is answered with what there is."""
    engine = EngineProxy()
    model = ScriptedModel(lambda request: [Breaks()] if request.system == SUMMARIZE else ["y" * 4000], context=1200)
    async with running(agents={"chat": chat(model, history=engine)}, world=memory) as it:
        engine.engine = it.engine
        sid = await it.new_session()
        await it.turn(sid, "first")
        assert (await it.turn(sid, "second")).status == "complete"


# ---- summaries and titles ----


async def test_a_conversation_is_summarized_by_the_model(world: AnyWorld) -> None:
    """O3: the engine's compact and the model's summary meet: the next turn is shown the summary and its question."""
    model = ScriptedModel(answers(["An answer."]))
    writer = ScriptedModel(answers([Thinks("hm"), "They said ", "hello.", Usage(1, 1)]))
    async with chatting(world, model) as (it, sid):
        await it.turn(sid, "hello")
        await it.engine.sessions.compact(sid, ModelSummarizer(writer))
        assert writer.requests[0].messages == (UserMessage(("User: hello\n\nAssistant: An answer.",)),)
        await it.turn(sid, "next")
        assert model.requests[-1].messages == (UserMessage(("next",)),)
        assert "They said hello." in (model.requests[-1].system or "")


async def test_a_summary_leaves_out_reasoning_that_is_written_as_text(memory: World) -> None:
    """O3: some models write `<think>` into their text; the summary is what follows it."""
    model = ScriptedModel(answers(["An answer."]))
    writer = ScriptedModel(answers(["<thi", "nk>They greeted me.</think>\n\n", "They said hello."]))
    async with chatting(memory, model) as (it, sid):
        await it.turn(sid, "hello")
        await it.engine.sessions.compact(sid, ModelSummarizer(writer))
        await it.turn(sid, "next")
        assert "They said hello." in (model.requests[-1].system or "")
        assert "They greeted me." not in (model.requests[-1].system or "")


@pytest.mark.parametrize("says", [[Thinks("hm")], ["<think>They said"]])
async def test_an_empty_summary_is_refused(memory: World, says: list[Piece]) -> None:
    """O3: a history is never replaced by nothing."""
    async with chatting(memory, ScriptedModel(answers(["x"]))) as (it, sid):
        await it.turn(sid)
        with pytest.raises(ModelError):
            await it.engine.sessions.compact(sid, ModelSummarizer(ScriptedModel(answers(says))))


@pytest.mark.parametrize(
    ("says", "title"),
    [
        ("A Walk", "A Walk"),
        ('"A Walk."', "A Walk"),
        ("\n**A Walk**\nmore", "A Walk"),
        ("", "hello"),
        ("<think>\nThey greet.\n</think>\n\nA Walk", "A Walk"),
        ("<think>\nThey greet me, so", "hello"),
        ('{\n  "title": "A Walk"\n}', "hello"),
    ],
)
async def test_a_title_is_one_clean_line(memory: World, says: str, title: str) -> None:
    """P8: whatever decoration or reasoning the model adds, the title is a plain line; without one, the first words."""
    async with chatting(memory, ScriptedModel(answers(["x"]))) as (it, sid):
        await it.turn(sid, "hello")
        session = await it.engine.titles.generate(sid, ModelTitler(ScriptedModel(answers([says]))))
        assert session.title == title


async def test_settings_of_session_and_run_reach_the_model(memory: World) -> None:
    """A3: the run's settings go before the session's; what is no model setting stays out."""
    model = ScriptedModel(answers(["x"]))
    async with running(agents={"chat": chat(model)}, world=memory) as it:
        session = await it.engine.sessions.create(
            settings={"temperature": 0.1, "seed": 1, "theme": "dark"}, system="Be odd."
        )
        run = (await it.engine.runs.submit(session.id, [TextPart("q")], settings={"temperature": 0.9})).run
        await it.ended(run.id)
        request: ModelRequest = model.requests[0]
        assert request.settings == {"temperature": 0.9, "seed": 1}
        assert "Be odd." in (request.system or "")


@pytest.mark.parametrize("agent", ["chat", "direct"])
async def test_values_out_of_range_are_inherited_from_the_defaults(memory: World, agent: str) -> None:
    """A3: an imported session may have settings that no model takes; both agents send the owner's defaults instead."""
    model = ScriptedModel(answers(["x"]))
    chat_agent = chat(model)
    agents: dict[str, Agent] = {"chat": chat_agent, "direct": DirectAgent(chat_agent.find_model, chat_agent.files)}
    async with running(agents=agents, world=memory) as it:
        await it.engine.preferences.update(
            chat_settings.DEFAULTS, lambda stored: {"temperature": 0.5, "max_tokens": 100, "system": "Be brief."}
        )
        sid = (await it.engine.sessions.create(settings={"temperature": 99, "max_tokens": -5}, agent=agent)).id
        await it.ended((await it.engine.runs.submit(sid, [TextPart("q")])).run.id)
        request: ModelRequest = model.requests[0]
        assert request.settings == {"temperature": 0.5, "max_tokens": 100}
        assert "Be brief." in (request.system or "")
