"""Prices from the maintained table: found by the kind of provider, and never guessed."""

import sys

import pytest

from holdfast.core.costs import Price
from holdfast.models.catalog import CatalogSettings, ModelCatalog
from holdfast.models.demo_model import DEMO
from holdfast.models.local_model import LOCAL_ID
from holdfast.models.price_table import FREE, LoadedTable, ModelPrices, load
from holdfast.models.provider_config import ProviderConfig
from holdfast.ports.prices import PricesNotLoadedError
from holdfast.testing.fakes import FakeClock
from tests.steps import count_steps

pytest.importorskip("genai_prices")
GPT_4O = Price(2.5, 10.0, 1.25)  # Since October 2024; another price would be another model


@pytest.fixture(scope="module")
def table() -> LoadedTable:
    return load()


def test_prices_are_per_million_tokens_with_cached_ones_apart(table: LoadedTable) -> None:
    assert table.price("openai", "gpt-4o") == GPT_4O


@pytest.mark.parametrize("name", ["gpt-99-imaginary", "", "x" * 1000, "models/gpt-4o"])
def test_a_model_that_the_table_lacks_has_no_price(table: LoadedTable, name: str) -> None:
    assert table.price("openai", name) is None


def test_servers_that_may_charge_anything_have_no_price_and_ones_own_are_free(table: LoadedTable) -> None:
    assert table.price("compatible", "gpt-4o") is None
    assert table.price("ollama", "llama3.2") == FREE


def test_without_the_table_there_is_no_price(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models of one's own machine are free all the same."""
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert load().price("openai", "gpt-4o") is None
    assert load().price("ollama", "llama3.2") == FREE


@pytest.mark.anyio
async def test_the_price_of_a_model_is_found_by_its_id() -> None:
    """By the kind of its provider, whatever that is called, also if the provider was removed since."""
    work = ProviderConfig(name="work", kind="openai", api_key="k", models=("gpt-4o",))
    other = ProviderConfig(name="other", base_url="http://127.0.0.1:1", api_key="k")
    catalog = ModelCatalog(CatalogSettings(providers=(work, other), ports={}), FakeClock())
    price = await ModelPrices(catalog.known_providers).load()
    assert price("work/gpt-4o") == price("openai/gpt-4o") == price("gpt-4o") == GPT_4O
    assert price("other/gpt-4o") is None
    assert price("agent:hermes") is None
    assert price(DEMO.id) == price(LOCAL_ID) == FREE


@pytest.mark.anyio
async def test_a_price_is_looked_up_once() -> None:
    """However many messages need it: it takes long, and other writes wait for the transactions that use it."""
    catalog = ModelCatalog(CatalogSettings(providers=(), ports={}), FakeClock())
    prices = ModelPrices(catalog.known_providers)
    await prices.load()
    steps = [count_steps(lambda: prices.snapshot()("openai/gpt-4o-mini")) for _ in range(3)]
    assert steps[1] == steps[2] < steps[0] / 3, steps


@pytest.mark.anyio
async def test_a_snapshot_of_prices_does_not_change_with_the_catalog() -> None:
    """It is used in a thread of the store, where nothing that changes may be read. Before the table is loaded there is
    none, and it is loaded for whoever asks: not with the server."""
    work = ProviderConfig(name="work", kind="openai", api_key="k")
    catalog = ModelCatalog(CatalogSettings(providers=(work,), ports={}), FakeClock())
    prices = ModelPrices(catalog.known_providers)
    with pytest.raises(PricesNotLoadedError):
        prices.snapshot()("work/gpt-4o")
    before = await prices.load()
    catalog.configure([ProviderConfig(name="work", base_url="http://127.0.0.1:1", api_key="k")])
    assert (before("work/gpt-4o"), prices.snapshot()("work/gpt-4o")) == (GPT_4O, None)
