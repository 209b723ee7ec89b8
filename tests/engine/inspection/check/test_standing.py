"""CF13: a service that stands still, as check tells it."""

from __future__ import annotations

from broken_stores import level_stands_still
from made_stores import healthy

from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.rules.findings import Finding


def test_a_service_that_stands_is_a_warning_with_its_step(tmp_path):
    made = healthy()
    root = made.write(tmp_path / "store")
    level_stands_still(root, made)
    with open_store(root) as store:
        (found,) = [one for one in check(store) if isinstance(one, Finding) and one.id == "CF13"]
    assert found.severity == "warn"
    assert found.evidence["queue"] == "SCHEDULE_TOPIC_XXXX/2"
    assert found.evidence["messages"] == 1
    assert "maxMessageSize" in found.next_step


def test_a_healthy_store_is_silent(tmp_path):
    root = healthy().write(tmp_path / "store")
    with open_store(root) as store:
        assert "CF13" not in [one.id for one in check(store) if isinstance(one, Finding)]
