"""The check on stores of real brokers: no findings on healthy ones, and on crashed ones only those of the crash."""

from __future__ import annotations

import golden_stores
import pytest

from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.rules.findings import at_least

CRASHED = golden_stores.names("recovered.tar.xz")
BROKERS = ("broker-crash", "broker-crash-5.5.1")
HEALTHY = [name for name in golden_stores.names() if name not in CRASHED and name not in BROKERS]
LIVE = ["live-1", "live-2", "live-3"]
CRASH_TELLS = {
    "crash-4.9.8": {"AB01", "CL06"},
    "crash-5.3.3": {"AB01"},
    "crash-flip-5.3.3": {"AB01", "CL03"},
    "crash-late-5.3.3": {"AB01", "CQ10"},
    "crash-nocheckpoint-5.3.3": {"AB01", "CK05"},
    "crash-power-5.3.3": {"AB01", "CL04"},
    "crash-transient-5.3.3": {"AB01"},
    "queues-gone-4.9.8": {"CQ10"},
    "queues-gone-5.3.3": {"CQ10"},
    "crash-5.4.0": {"AB01"},
    "late-queue-flush-5.5.1": {"AB01", "CQ10"},
    "broker-crash": {"AB01"},
}


def grave(path):
    with open_store(path) as store:
        *findings, summary = check(store)
    assert summary.complete
    return [f for f in findings if at_least(f.severity, "warn")]


@pytest.mark.golden
@pytest.mark.parametrize("name", HEALTHY)
def test_nothing_grave_on_a_healthy_store(name, golden, unchanged):
    assert grave(unchanged(golden(name))) == []


@pytest.mark.full_form(keep=8)
@pytest.mark.golden
@pytest.mark.parametrize("name", [name for name in HEALTHY if name not in CRASH_TELLS])
def test_a_healthy_store_has_few_remarks(name, golden):
    with open_store(golden(name)) as store:
        *findings, _ = check(store)
    assert [f.id for f in findings if at_least(f.severity, "note")] in ([], ["CL10"], ["CK01"])
    assert len(findings) <= 3


@pytest.mark.golden
@pytest.mark.parametrize("name", BROKERS)
def test_a_store_that_a_broker_has_recovered_is_healthy(name, golden):
    assert grave(golden(name, "store-recovered")) == []


@pytest.mark.golden
@pytest.mark.parametrize("copy", LIVE)
def test_copies_of_a_running_broker_report_only_that_it_ran(copy, golden):
    folder = golden("broker-transient").parent / copy
    assert [f.id for f in grave(folder)] == ["AB01"]


@pytest.mark.golden
@pytest.mark.crash
@pytest.mark.parametrize("name", sorted(CRASH_TELLS))
def test_a_crashed_store_reports_its_crash(name, golden):
    assert {f.id for f in grave(golden(name))} == CRASH_TELLS[name]


@pytest.mark.golden
@pytest.mark.parametrize("name", ["crash-power-5.3.3", "crash-flip-5.3.3", "broker-orders"])
def test_the_plain_walk_finds_the_same(name, golden, monkeypatch):
    compiled = [f.record() for f in grave(golden(name))]
    monkeypatch.setenv("STORESCOPE_PLAIN", "1")
    assert [f.record() for f in grave(golden(name))] == compiled
