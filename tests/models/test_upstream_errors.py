"""What providers' words and statuses mean, and what people are told."""

from dataclasses import replace
from typing import Any, get_args

import pytest

from holdfast.models.chat_completion_stream import failed_body
from holdfast.models.provider_config import ProviderConfig
from holdfast.models.upstream_errors import Code, UpstreamError, describe, explain, from_error, quote

ACME = ProviderConfig(
    name="Acme", base_url="https://api.acme.example", key_name="ACME_API_KEY", api_key="sk-secret-123456"
)


@pytest.mark.parametrize(
    ("error", "status", "code", "retry"),
    [
        ({"message": "Invalid key", "code": "invalid_api_key"}, 401, "auth", False),
        (
            {"message": "API key not valid. Please pass a valid API key.", "status": "INVALID_ARGUMENT"},
            400,
            "auth",
            False,
        ),
        ({"message": "flagged by moderation", "code": 403}, 403, "refused", False),
        ({"message": "Country not supported"}, 403, "auth", False),
        ({"type": "invalid_request_error", "message": "prompt is too long: 9 > 5"}, 400, "context-length", False),
        ({"message": "input token count (9) exceeds the maximum"}, 400, "context-length", False),
        ({"message": "Request too large on tokens per min", "code": "rate_limit_exceeded"}, 429, "rate-limit", True),
        ({"message": "You exceeded your quota", "code": "insufficient_quota"}, 429, "rate-limit", False),
        ({"message": "model 'x' not found, try pulling it first"}, 404, "not-found", False),
        ({"message": "Overloaded", "type": "overloaded_error"}, 529, "unavailable", True),
        ({"message": "rate limit reached for big-model"}, 500, "unavailable", True),
        ({"message": "gateway", "code": "504"}, None, "timeout", True),
        ({"message": "too many requests", "code": 429}, None, "rate-limit", True),
        ({"message": "no idea"}, None, "unavailable", True),
        ("it broke", 502, "unavailable", True),
        ({"detail": [{"msg": "field required"}]}, 422, "bad-request", False),
        ({}, 400, "bad-request", False),
        (None, 500, "unavailable", True),
        ([1, 2], 500, "unavailable", True),
    ],
)
def test_errors_are_told_apart(error: Any, status: int | None, code: Code, retry: bool) -> None:
    """A request that cannot succeed is not repeated, and one that may is."""
    found = from_error(error, status)
    assert (found.code, found.retry) == (code, retry)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ({"message": "Unsupported value: 'temperature' does not support 0.3 with this model."}, "temperature"),
        ({"message": "Not for this model.", "param": "top_p"}, "top_p"),
        ({"message": "max_completion_tokens: 99999 > 8192, with temperature 1"}, "max_tokens"),
        ({"message": "Unknown name 'reasoning.effort'", "code": 400}, "reasoning_effort"),
    ],
)
def test_a_setting_that_the_model_rejects_is_named(error: Any, code: str) -> None:
    """The page offers to change this setting of the chat, or to leave it out."""
    failed = explain(from_error(error, 400), ACME, "picky")
    assert failed.code == f"unsupported-{code}"
    assert str(failed).startswith(f"picky does not accept this {code.replace('_', ' ')} (")


def test_a_word_that_contains_a_settings_name_is_no_setting() -> None:
    """Nor is one in an error that is not about the request."""
    assert from_error({"message": "Bad my_temperature_probe tool"}, 400).setting is None
    assert from_error({"message": "Overloaded by temperature"}, 503).setting is None


@pytest.mark.parametrize("code", get_args(Code))
def test_every_failure_is_a_sentence_to_act_on(code: Code) -> None:
    """What happened, why, and what to do; the code to the outside is one of the port's."""
    failed = explain(UpstreamError(code, "the reason"), ACME, "big-model")
    sentence = str(failed)
    assert "the reason" in sentence
    assert sentence.endswith(".")
    assert any(verb in sentence for verb in ("Check", "Try", "Choose", "Summarize"))
    assert failed.code in set(get_args(Code)) - {"not-found"}


def test_other_peoples_words_are_tamed() -> None:
    """Keys, control characters, line breaks and essays do not get into a sentence of ours."""
    assert quote("Bad\nkey\x1b[31m sk-secret-123456.", "sk-secret-123456") == "Bad key [31m …"
    assert len(quote("x" * 5000, None)) == 300
    assert quote("none of the models is known", "none") == "none of the models is known"


@pytest.mark.parametrize(
    ("after", "words"), [(None, "later"), (0.2, "1 s"), (45, "45 s"), (600, "10 min"), (9000, "2 h")]
)
def test_a_wait_is_said_in_words(after: float | None, words: str) -> None:
    """How long is in a unit that fits."""
    assert words in str(explain(UpstreamError("rate-limit", "busy", after=after), ACME, "big-model"))


def test_an_unavailable_provider_is_told_from_an_unreachable_one() -> None:
    """The provider's own error is quoted; without a connection, the address is named."""
    failed = explain(from_error({"message": "The server had an error."}, 500), ACME, "big-model")
    assert str(failed) == 'Acme returned an error: "The server had an error". Try again in a minute.'
    failed_once = describe(from_error({"message": "The server had an error."}, 500), ACME, "big-model")
    assert failed_once == 'Acme returned an error: "The server had an error".'  # it is being asked again
    lost = explain(UpstreamError("unavailable", "host not found", source="connection"), ACME, "big-model")
    assert str(lost) == "Can't reach Acme (api.acme.example): host not found. Try again in a minute."
    assert {failed.code, lost.code} == {"unavailable"}


@pytest.mark.parametrize(("name", "shown"), [("localhost-8978", "localhost:8978"), ("mine", "mine (localhost:8978)")])
def test_a_server_of_ones_own_that_does_not_run(name: str, shown: str) -> None:
    """Whoever runs the server is told to start it, and its address is not repeated where the name says it."""
    own = ProviderConfig(name=name, base_url="http://localhost:8978/v1")
    refused = explain(UpstreamError("unavailable", "connection refused", source="connection"), own, "big-model")
    assert str(refused) == f"Can't reach {shown}. Check that it is running."


def test_a_missing_key_is_not_called_wrong() -> None:
    """Where no key is set, people are told to set one, not to check it."""
    keyless = replace(ACME, api_key=None)
    sentence = str(explain(UpstreamError("auth", "Unauthorized"), keyless, "big-model"))
    assert sentence == "Acme needs an API key. Add it in Settings → Models."


def test_a_broken_answer_can_be_continued() -> None:
    """A connection that breaks in the middle of an answer says so, and what to do."""
    broken = UpstreamError("unavailable", "the connection broke", retry=True, source="answer")
    assert "Acme broke in the middle of the answer. Continue it" in str(explain(broken, ACME, "big-model"))


def test_only_the_beginning_of_an_error_is_looked_at() -> None:
    """L6: looking for words takes long in megabytes of them."""
    found = from_error({"message": "Overloaded. " + "x" * 5_000_000, "type": ["y" * 5_000_000]})
    assert (found.code, len(found.detail)) == ("unavailable", 4_000)
    body = b'{"error": {"message": "' + b"x" * 5_000_000 + b'"}}'
    assert failed_body(500, body, None).detail.startswith('{"error": {"message": "xxx')
