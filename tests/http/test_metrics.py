"""`/metrics` for Prometheus."""

from prometheus_client.parser import text_string_to_metric_families

from holdfast import __version__
from tests.http.client import Served
from tests.http.conftest import Start


def samples(server: Served) -> dict[tuple[str, ...], float]:
    """Every sample, by its name and the values of its labels, by their names."""
    families = text_string_to_metric_families(server.http.get("/metrics").text)
    return {(s.name, *dict(sorted(s.labels.items())).values()): s.value for family in families for s in family.samples}


def test_durations_tokens_and_errors_are_measured(start: Start) -> None:
    """Histograms whose counts agree, tokens (an absurd number breaks nothing) and errors by model, the version."""
    server = start()
    sid = server.session(model="m1")
    server.turn(sid, [{"say": "hello"}, {"usage": [30, 4]}])
    server.turn(server.session(model="m2"), [{"say": "much"}, {"usage": [10**400, 4]}])
    server.turn(sid, [{"say": "half"}, {"fail": ["provider", "It broke."]}])
    found = samples(server)
    for name in ("queue", "first_token", "turn"):
        assert found[f"holdfast_{name}_seconds_count",] == 3, name
        assert found[f"holdfast_{name}_seconds_bucket", "+Inf"] == 3, name
        assert 0 <= found[f"holdfast_{name}_seconds_sum",] < 60, name
    assert found["holdfast_commit_duration_seconds_count",] == found["holdfast_journal_commits_total",]
    assert (found["holdfast_tokens_total", "input", "m1"], found["holdfast_tokens_total", "output", "m1"]) == (30, 4)
    assert found["holdfast_tokens_total", "output", "m2"] == 4
    assert found["holdfast_run_errors_total", "provider", "m1"] == 1
    assert any(key[0] == "holdfast_build_info" and __version__ in key for key in found)
