"""Which models there are: from keys, settings, servers on this machine, and what is left without any of them."""

import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from holdfast.core import lenient_json
from holdfast.models import discovery, local_model_weights
from holdfast.models.catalog import CatalogSettings, ModelCatalog
from holdfast.models.demo_model import DEMO
from holdfast.models.discovery import ProbeResult
from holdfast.models.local_model import LOCAL_ID
from holdfast.models.model_list_cache import ModelListCache
from holdfast.models.model_listings import ListedModel
from holdfast.models.openai_client import OpenAIModel
from holdfast.models.provider_config import ProviderConfig, from_environment, merge_providers
from holdfast.ports.model import ModelError, ModelInfo
from holdfast.testing.fakes import FakeClock
from tests.models.asking import KEY, outcome
from tests.upstream import GUARD, Hang, answers, says, upstream

pytestmark = pytest.mark.anyio


def catalogue(
    *providers: ProviderConfig, monotonic: Callable[[], float] = anyio.current_time, **settings: Any
) -> ModelCatalog:
    chosen = {"ports": {}, "list_timeout": GUARD, "providers": providers, **settings}
    return ModelCatalog(CatalogSettings(**chosen), FakeClock(), monotonic=monotonic)


def by_id(infos: Sequence[ModelInfo]) -> dict[str, ModelInfo]:
    return {info.id: info for info in infos}


def models(*items: dict[str, Any]) -> Any:
    return answers(200, {"object": "list", "data": list(items)})


async def test_nothing_configured_leaves_the_demo() -> None:
    """With no key, no server and no weights the demo answers, and the local model says what it lacks."""
    async with catalogue() as it:
        listed = by_id(await it.list())
        assert set(listed) == {LOCAL_ID, DEMO.id}
        assert not listed[LOCAL_ID].available
        assert "holdfast models pull" in (listed[LOCAL_ID].reason or "")
        assert await it.default() == DEMO.id
        assert it.get(DEMO.id).info == DEMO
        with pytest.raises(ModelError, match="holdfast models pull"):
            it.get(LOCAL_ID)


async def test_weights_make_the_local_model_the_default(tmp_path: Path) -> None:
    """Whoever fetched the weights talks to a real model."""
    with (tmp_path / local_model_weights.FILE).open("wb") as file:
        file.truncate(local_model_weights.SIZE)
    async with catalogue(weights_directory=tmp_path) as it:
        assert by_id(await it.list())[LOCAL_ID].available
        assert await it.default() == LOCAL_ID
        assert it.get(LOCAL_ID).info.id == LOCAL_ID


async def test_a_configured_provider_is_listed_and_answers() -> None:
    """Names, context sizes and abilities as the provider says them; models that do not chat are left out."""
    openrouter = {
        "id": "good/model",
        "name": "Good Model",
        "context_length": 32_000,
        "architecture": {"input_modalities": ["text", "image"]},
        "supported_parameters": ["tools", "reasoning"],
    }
    listed = models(openrouter, {"id": "text-embedding-3"}, {"id": "plain", "context_window": 8000}, {"nonsense": 1})
    async with upstream(listed, says("Hello")) as up:
        config = ProviderConfig(name="mine", kind="openrouter", base_url=f"{up.url}/v1", api_key=KEY)
        async with catalogue(config) as it:
            got = by_id(await it.list())
            assert set(got) == {"mine/good/model", "mine/plain", LOCAL_ID, DEMO.id}
            good = got["mine/good/model"]
            assert (good.name, good.provider, good.context) == ("Good Model", "mine", 32_000)
            assert good.abilities == {"tools", "images", "reasoning"}
            assert await it.default() == "mine/good/model"
            model = it.get("mine/good/model")
            assert model.info == good
            assert (await outcome(model)).text == "Hello"
        assert up.exchanges[0].headers["authorization"] == f"Bearer {KEY}"
        assert up.exchanges[1].json()["model"] == "good/model"


async def test_a_name_alone_is_enough_where_it_is_clear() -> None:
    """Programs that know one provider name its models bare: who lists the name is meant, else the only one there is."""
    async with upstream(models({"id": "a"}), models({"id": "b/c"}, {"id": "a"})) as up:
        one = ProviderConfig(name="one", base_url=f"{up.url}/v1")
        two = ProviderConfig(name="two", base_url=f"{up.url}/v1")
        async with catalogue(one) as it:
            await it.list()
            assert [it.get(name).info.id for name in ("a", "one/a", "anything")] == ["one/a", "one/a", "one/anything"]
        async with catalogue(replace(one, models=("x",)), two) as it:
            await it.list()
            assert (it.get("b/c").info.id, it.get("x").info.id) == ("two/b/c", "one/x")
            with pytest.raises(ModelError, match="There is no model 'nobodys'"):
                it.get("nobodys")
            with pytest.raises(ModelError, match="ANTHROPIC_API_KEY"):
                it.get("anthropic/claude")


async def test_a_server_of_ones_own_that_lists_nothing_is_still_the_default() -> None:
    """`OPENAI_BASE_URL` alone is enough, also where there is no list of models: many servers take any name."""
    async with upstream(answers(404, {}), says("Hello")) as up:
        async with catalogue(environment={"OPENAI_BASE_URL": f"{up.url}/v1"}) as it:
            assert await it.default() == "openai/default"
            assert "openai/default" in by_id(await it.list())
            assert (await outcome(it.get("openai/default"))).text == "Hello"
        assert up.exchanges[-1].json()["model"] == "default"


async def test_a_provider_that_is_down_is_listed_with_the_reason() -> None:
    """It stays the default: answering with another model without a word would be worse."""
    with closing(socket.socket()) as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        config = ProviderConfig(name="mine", base_url=url, default="big", api_key=KEY)
        async with catalogue(config) as it:
            down = by_id(await it.list())["mine/big"]
            assert not down.available
            assert "Can't reach" in (down.reason or "")
            assert await it.default() == "mine/big"


async def test_a_refused_key_is_a_reason() -> None:
    """A wrong key is said as such in the list, and is not shown."""
    async with upstream(answers(401, {"error": {"message": f"wrong key {KEY}"}})) as up:
        config = ProviderConfig(name="mine", base_url=up.url, default="big", api_key=KEY, key_name="MY_KEY")
        async with catalogue(config) as it:
            down = by_id(await it.list())["mine/big"]
            assert "MY_KEY" in (down.reason or "")
            assert KEY not in repr(down) + repr(it._settings) + repr(config)


async def test_a_provider_that_hangs_does_not_hold_up_the_others() -> None:
    """All are asked at once, and each only for as long as it may take."""
    async with upstream([Hang()]) as slow, upstream(models({"id": "quick"})) as quick:
        hanging = ProviderConfig(name="slow", base_url=slow.url, default="s")
        fine = ProviderConfig(name="fine", base_url=quick.url)
        listed: dict[str, ModelInfo] = {}
        for patience in (0.5, 2.0, 8.0):  # a busy machine may need longer for the one that answers
            if "fine/quick" not in listed:
                async with catalogue(hanging, fine, list_timeout=patience) as it:
                    listed = by_id(await it.list())
                    await slow.closed()
        assert listed["slow/s"].available  # it may be busy, which says nothing about its answers
        assert listed["fine/quick"].available


async def test_what_is_known_is_shown_at_once_and_asked_for_again() -> None:
    """A list that has grown old is given out without waiting; the next one has what was learned meanwhile."""
    now = 0.0
    async with (
        upstream(models({"id": "one"}), models({"id": "two"})) as up,
        catalogue(ProviderConfig(name="mine", base_url=up.url), monotonic=lambda: now) as it,
    ):
        assert "mine/one" in by_id(await it.list())
        now = 59.0
        await it.list()
        assert len(up.exchanges) == 1
        now = 61.0
        assert "mine/one" in by_id(await it.list())
        await up.asked(2)
        with anyio.fail_after(GUARD):
            while "mine/two" not in by_id(await it.list()):
                await anyio.lowlevel.checkpoint()
        assert len(up.exchanges) == 2


async def test_a_provider_that_went_away_keeps_its_models_as_down() -> None:
    """What was there before is still listed, with the reason why it cannot be had."""
    now = 0.0
    async with (
        upstream(models({"id": "one"}), answers(503, b"")) as up,
        catalogue(ProviderConfig(name="mine", base_url=up.url), monotonic=lambda: now) as it,
    ):
        await it.list()
        now = 100.0
        with anyio.fail_after(GUARD):
            while by_id(await it.list())["mine/one"].available:
                await anyio.lowlevel.checkpoint()
        assert "returned an error" in (by_id(await it.list())["mine/one"].reason or "")


@pytest.mark.parametrize("discovered", [False, True])
async def test_a_provider_that_lists_slowly_keeps_its_models(discovered: bool) -> None:
    """A server that is busy can still answer: its models stay available, and its default stays the default."""
    now = 0.0
    async with upstream(models({"id": "one"}), [Hang()]) as up:
        config = ProviderConfig(name="mine", base_url=up.url, discovered=discovered)
        async with catalogue(config, monotonic=lambda: now, list_timeout=0.5) as it:
            with anyio.fail_after(GUARD):
                while "mine/one" not in by_id(await it.list(refresh=True)):
                    await anyio.lowlevel.checkpoint()
            now = 61.0
            assert by_id(await it.list(refresh=True))["mine/one"].available
            assert "in time" in ((await it.check_all())[0][1].reason or "")
            assert await it.default() == "mine/one"


async def test_ollama_is_found_with_what_its_models_can_do() -> None:
    """A server on this machine is listed with context sizes and abilities, and one that only embeds is left out."""
    tags = answers(200, {"models": [{"name": "llama:8b"}, {"name": "embedder"}]})
    chat = {"capabilities": ["completion", "tools", "vision"], "model_info": {"llama.context_length": 8192}}
    loaded = answers(200, {"models": [{"name": "llama:8b", "context_length": 4096}, {"name": "embedder"}]})
    scripts = tags, answers(200, chat), answers(200, {"capabilities": ["embedding"]}), loaded
    async with upstream(*scripts) as up, catalogue(ports={"ollama": up.port}) as it:
        listed = await it.list()
        assert len(up.exchanges) == 4
        (found,) = (info for info in listed if info.provider == "Ollama")
        assert found.context == (4096 if found.id == "ollama/llama:8b" else 8192)
        assert found.abilities == {"tools", "images"}
        assert await it.default() == found.id
        assert isinstance(it.get(found.id), OpenAIModel)


@pytest.mark.parametrize(
    ("kind", "scripts", "expected"),
    [
        ("vllm", [models({"id": "m", "max_model_len": 4096})], ("m", 4096, {"tools", "prefill"})),
        (
            "llamacpp",
            [
                models({"id": "/w/m.gguf", "meta": {"n_ctx_train": 2048}}),
                answers(200, {"modalities": {"vision": True}}),
            ],
            ("m", 2048, {"tools", "images", "prefill"}),
        ),
        (
            "lmstudio",
            [models({"id": "m", "type": "vlm", "max_context_length": 999}, {"id": "e", "type": "embeddings"})],
            ("m", 999, {"images"}),
        ),
        ("lmstudio", [answers(404, {"error": "no such endpoint"}), models({"id": "m"})], ("m", None, {"tools"})),
    ],
)
async def test_other_servers_on_this_machine(kind: str, scripts: list[Any], expected: tuple[Any, ...]) -> None:
    """vLLM, llama.cpp and LM Studio, old and new, each in its own words."""
    async with upstream(*scripts) as up, catalogue(ports={kind: up.port}) as it:
        (found,) = [info for info in await it.list() if info.id.startswith(kind)]
        assert (found.name, found.context, found.abilities) == expected


async def test_another_program_on_a_usual_port_is_nobody() -> None:
    """A web server that happens to listen there is neither a model nor worth a word."""
    page = answers(200, "<html>My blog</html>", Content_Type="text/html")
    async with upstream(page) as up, catalogue(ports={"vllm": up.port, "ollama": up.port}) as it:
        assert set(by_id(await it.list())) == {LOCAL_ID, DEMO.id}
        assert await it.default() == DEMO.id


FLOODS = {
    "values": '{"data": [' + "{}," * 400_000 + "{}]}",
    "strings": '{"data": [{"id": "m", "x": [' + '"",' * 200_000 + '""]}]}',
    "bytes": '{"data": [{"id": "m"}], "x": "' + "x" * 8 * 1024 * 1024 + '"}',
}


@pytest.mark.parametrize("flood", FLOODS)
async def test_a_list_that_is_too_large_is_none(flood: str) -> None:
    """L6: any program may listen at a usual port, and nothing else runs while its list is parsed."""
    async with upstream(answers(200, FLOODS[flood])) as up, catalogue(ports={"vllm": up.port}) as it:
        assert set(by_id(await it.list())) == {LOCAL_ID, DEMO.id}
        (_, found), *_ = await it.check_all()
        assert found.error is not None
        assert found.error.code == "protocol"


async def test_a_list_is_parsed_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """L6: one that is within the limits may take long enough to hold up streams. Of two models with one name, one is
    listed."""
    threads = []

    def parse(data: bytes) -> Any:
        threads.append(threading.current_thread())
        return lenient_json.loads(data)

    monkeypatch.setattr(discovery, "loads", parse)
    async with upstream(models({"id": "m"}, {"id": "m"})) as up, catalogue(ports={"vllm": up.port}) as it:
        assert len([info for info in await it.list() if info.id == "vllm/m"]) == 1
    assert threads
    assert threading.main_thread() not in threads


async def test_anthropic_and_google_list_their_models() -> None:
    """Each has a list of its own form and takes its key its own way."""
    claude = answers(200, {"data": [{"id": "claude-sonnet-9", "display_name": "Claude Sonnet 9"}]})
    gemini = {"name": "models/gemini-9", "supportedGenerationMethods": ["generateContent"], "inputTokenLimit": 5}
    async with upstream(claude) as a, upstream(answers(200, {"models": [gemini, {"name": "models/aqa"}]})) as g:
        anthropic = ProviderConfig(name="anthropic", kind="anthropic", base_url=a.url, api_key=KEY)
        google = ProviderConfig(name="google", kind="google", base_url=g.url, api_key=KEY)
        async with catalogue(anthropic, google) as it:
            listed = by_id(await it.list())
            assert listed["anthropic/claude-sonnet-9"].name == "Claude Sonnet 9"
            assert listed["google/gemini-9"].context == 5
            assert await it.default() == "anthropic/claude-sonnet-9"
        assert a.exchanges[0].headers["x-api-key"] == g.exchanges[0].headers["x-goog-api-key"] == KEY


async def test_without_the_extra_its_models_are_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are listed with what to install, and are nobody's default."""
    monkeypatch.setattr("holdfast.models.pydantic_ai_models.find_spec", lambda name: None)
    config = ProviderConfig(name="anthropic", kind="anthropic", models=("claude-x",), api_key=KEY)
    async with catalogue(config) as it:
        listed = by_id(await it.list())["anthropic/claude-x"]
        assert "holdfast[providers]" in (listed.reason or "")
        assert await it.default() == DEMO.id


async def test_ids_that_name_nothing() -> None:
    """The sentence says what there is, or which key is missing, and comes out of the catalog's block as it is."""
    with pytest.raises(ModelError, match="Set OPENAI_API_KEY"):  # noqa: PT012 - raised within the block
        async with catalogue() as it:
            with pytest.raises(ModelError, match="There is no model 'nonsense'"):
                it.get("nonsense")
            it.get("openai/gpt-5")


async def test_keys_of_the_environment() -> None:
    """The usual variables make providers; an address of one's own makes OpenAI's a server like any other."""
    found = {c.name: c for c in from_environment({"OPENAI_API_KEY": KEY, "GOOGLE_API_KEY": "g", "GROQ_API_KEY": " "})}
    assert set(found) == {"openai", "google"}
    assert (found["openai"].kind, found["openai"].key_name) == ("openai", "OPENAI_API_KEY")
    assert found["google"].key_name == "GOOGLE_API_KEY"
    (own,) = from_environment({"OPENAI_BASE_URL": "http://box:9000/v1"})
    assert (own.name, own.kind, own.api_key) == ("openai", "compatible", None)
    settings = CatalogSettings(environment={"OPENAI_API_KEY": KEY})
    assert KEY not in repr(found) + repr(settings)


async def test_abilities_that_a_person_vouches_for() -> None:
    """A server of one's own does not say what its models can see; the settings may."""
    mine = ProviderConfig(name="mine", base_url="http://127.0.0.1:1/v1", models=("m",), abilities=("tools", "images"))
    async with catalogue(mine) as it:
        assert it.get("mine/m").info.abilities == {"tools", "images"}


async def test_a_configured_provider_goes_before_one_of_the_environment() -> None:
    """What a person wrote into the settings wins over a variable of the same provider."""
    mine = ProviderConfig(name="openai", models=("m",), base_url="http://127.0.0.1:1/v1")
    both = merge_providers([mine], from_environment({"OPENAI_API_KEY": KEY}))
    assert both == (mine,)
    async with catalogue(mine, environment={"OPENAI_API_KEY": KEY}) as it:
        assert await it.default() == "openai/m"
        assert "openai/m" in by_id(await it.list())


async def test_known_names_see_images_behind_any_address() -> None:
    """A server that reports no abilities gets them by the model's name; the configuration overrides them."""
    environment = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    (config,) = from_environment(environment)
    names = {
        True: "gpt-4o gpt-4.1-mini gpt-5 openai/o3 us.anthropic.claude-3-5-sonnet-v2:0 claude-sonnet-4-5 llava:7b "
        "google/gemini-2.5-pro Qwen2.5-VL-7B-Instruct qwen-vl-max pixtral-12b gemma3:4b",
        False: "gpt-3.5-turbo gpt-4 gpt-oss-120b o3-mini claude-2.1 llama-3.3-70b gemma3:1b",
    }
    for sees, listed in names.items():
        them = tuple(listed.split())
        async with catalogue(replace(config, models=them)) as it:
            found = (await it.list())[: len(them)]
            assert {info.name: "images" in info.abilities for info in found} == dict.fromkeys(them, sees)
    async with catalogue(replace(config, models=("gpt-4o",), abilities=("tools",))) as it:
        assert not any("images" in info.abilities for info in await it.list())


async def test_an_old_address_does_not_answer_for_a_new_one() -> None:
    """A provider whose address changes while it is asked is asked again, and the late answer is dropped."""
    old, new = (ProviderConfig(name="mine", base_url=f"http://{host}/v1") for host in ("old", "new"))
    asked, release = anyio.Event(), anyio.Event()

    async def probe(config: ProviderConfig) -> ProbeResult:
        if config == old:
            asked.set()
            await release.wait()
        return ProbeResult((ListedModel(str(config.base_url), "one"),))

    cache = ModelListCache(probe, anyio.current_time, 60.0)
    with anyio.fail_after(GUARD):
        async with anyio.create_task_group() as cache.group:
            async with anyio.create_task_group() as waiting:
                waiting.start_soon(cache.refresh, [old])
                await asked.wait()
                await cache.refresh([new], all_now=True)
                assert [model.name for model in cache.listed(new)] == ["http://new/v1"]
                release.set()
            assert [model.name for model in cache.listed(new)] == ["http://new/v1"]
            assert [model.name for model in cache.listed(old)] == []
