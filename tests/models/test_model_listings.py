"""Lists of models, in the forms that servers have and in forms that none should have."""

from contextlib import suppress
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.models import model_listings
from holdfast.models.model_listings import ListedModel, pick_default, unique

NAMES = ("id", "name", "data", "models", "meta", "type", "capabilities", "architecture", "supported_parameters")
MORE = ("input_modalities", "model_info", "x.context_length", "parameters", "context_length", "max_input_tokens")
keys = st.sampled_from([*NAMES, *MORE, "supportedGenerationMethods", "displayName", "display_name", "n_ctx"])
words = st.sampled_from(
    ["m", "m.gguf", "models/m", "llm", "vlm", "tools", "completion", "generateContent", "num_ctx 5"]
)
leaves = st.none() | st.booleans() | st.integers(-5, 10**6) | st.floats() | words
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=6), max_leaves=8
)
lists = st.builds(
    lambda items: {"data": items, "models": items}, st.lists(st.dictionaries(keys, values, max_size=8), max_size=4)
)


@settings(deadline=None)
@given(values | lists)
@example({"models": True, "data": 7})
@example({"models": [{"name": "m", "supportedGenerationMethods": 5}]})
@example({"data": [{"id": "m", "architecture": {"input_modalities": True}, "supported_parameters": [[]]}]})
def test_nothing_that_a_server_sends_breaks_the_list(data: Any) -> None:
    """Whatever the shape, there are models or there are none."""
    for read in (model_listings.from_openai, model_listings.from_anthropic, model_listings.from_google):
        with suppress(ValueError):
            assert all(model.name for model in read(data))
    with suppress(ValueError):
        assert all(isinstance(name, str) for name in model_listings.from_ollama(data))
    shown = model_listings.from_ollama_show("m", data)
    assert shown is None or shown.name == "m"
    assert all(size > 0 for size in model_listings.from_ollama_ps(data).values())
    assert model_listings.sees_images(data) in (True, False)


def test_models_that_cannot_chat_are_left_out() -> None:
    """Embedding and ranking models are recognized by what the server says, or else by their names."""
    names = ["BAAI/bge-m3", "intfloat/e5-large", "thenlper/gte-base", "mxbai-large", "all-minilm:33m", "voyage-3"]
    names += ["text-embedding-3-small", "nomic-embed-text", "sentence-transformers/paraphrase-x", "bge-reranker-v2"]
    chats = ["gpt-5", "qwen3:8b", "llama-3.3-70b", "claude-sonnet", "mistral-large", "gemma3", "beige-7b"]
    listed = model_listings.from_openai({"data": [{"id": name} for name in [*names, *chats]]})
    assert [model.name for model in listed] == chats
    vectors = {"id": "any", "architecture": {"output_modalities": ["embeddings"]}}
    assert model_listings.from_openai({"data": [vectors]}) == []
    assert model_listings.from_ollama_show("any", {"details": {"family": "nomic-bert"}}) is None
    assert model_listings.from_ollama_show("bge-m3", {}) is None
    assert model_listings.from_ollama_show("llama3", {"details": {"family": "llama"}}) is not None


def test_the_model_to_begin_with() -> None:
    """A preference by name goes before one by its beginning, the shortest of those first; else what is listed first."""
    assert pick_default(["b-mini", "a", "b"], ("x", "b")) == "b"
    assert pick_default(["b-mini-old", "a", "b-mini"], ("b",)) == "b-mini"
    assert pick_default(["z", "a"], ("b",)) == "z"
    assert pick_default([], ("b",)) is None


def test_a_list_has_an_end() -> None:
    """L6: so many entries are read, and names and titles are no longer than people read."""
    many = [{"id": f"m{n}", "name": f"m{n}", "supportedGenerationMethods": ["generateContent"]} for n in range(3_000)]
    long = [{"id": "x" * 1_000_000, "name": "x" * 1_000_000}, {"id": "m", "name": "t" * 1_000_000}]
    for read in (model_listings.from_openai, model_listings.from_anthropic, model_listings.from_google):
        assert len(read({"data": many, "models": many})) == model_listings.MAX_MODELS
    assert len(model_listings.from_ollama({"models": many})) == model_listings.MAX_MODELS
    (found,) = model_listings.from_openai({"data": long})
    assert (found.name, len(found.title)) == ("m", 300)
    assert [model.title for model in model_listings.from_openai({"data": [{"id": "m", "name": {"a": 1}}]})] == ["m"]


def test_a_name_is_listed_once() -> None:
    """The first entry counts."""
    models = [ListedModel("a", "A"), ListedModel("b", "B"), ListedModel("a", "Another")]
    assert [model.title for model in unique(models)] == ["A", "B"]


def test_an_absurd_context_is_none() -> None:
    """E1: a number that Python refuses to read is not one."""
    shown = {"parameters": "num_ctx " + "9" * 5_000, "details": {}}
    assert model_listings.from_ollama_show("m", shown) == ListedModel("m", "m")
