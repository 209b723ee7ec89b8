"""Lite topics that the next start of a broker deletes (LT01)."""

from __future__ import annotations

import pytest

from engine.inspection.check.lite_topics import findings
from engine.inspection.snapshot import open_store

pytestmark = pytest.mark.golden
LAST_MESSAGE = 1795977639186
"""Store time (ms) of the last message of a lite topic."""


def test_lite_topics_are_due_once_their_time_is_over(golden):
    """Real brokers of 5.5.0 and 5.5.1 deleted the three of Chat, the unread one too, and kept that of News."""
    with open_store(golden("lite-priority-5.5.1")) as store:
        assert list(findings(store, LAST_MESSAGE + 29 * 60_000)) == []
        (finding,) = findings(store, LAST_MESSAGE + 31 * 60_000)
    assert (finding.id, finding.severity) == ("LT01", "warn")
    assert finding.evidence["liteTopics"] == ["room-1", "room-2", "room-3"]
    assert finding.evidence["unread"] == ["chatters: room-2 (5)"]


def test_nothing_is_said_beside_a_running_broker(golden, monkeypatch):
    monkeypatch.setattr("engine.inspection.snapshot.lock_state", lambda *_: "held")
    with open_store(golden("lite-priority-5.5.1")) as store:
        assert list(findings(store, LAST_MESSAGE + 31 * 60_000)) == []
