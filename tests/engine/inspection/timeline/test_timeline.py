"""The timeline beside stores whose past is known: scripted incidents, and stores of real brokers.

The full form: ``STORESCOPE_INCIDENTS=50 STORESCOPE_GOLDEN=all bash packaging/test.sh
tests/engine/inspection/timeline/test_timeline.py``.
"""

from __future__ import annotations

import os
import shutil

import golden_stores
import pytest
from timeline_incidents import INCIDENTAL, write_store

from engine.inspection import open_store
from engine.inspection.timeline.events import TimelineEvent
from engine.inspection.timeline.timeline import Timeline, find_timeline

STORES = int(os.environ.get("STORESCOPE_INCIDENTS", "4"))


def timeline_of(root) -> Timeline:
    with open_store(root) as store:
        return find_timeline(store)


def lines(events: list[TimelineEvent]) -> list[str]:
    return [f"{event.kind} {event.start} {event.end} {event.message}" for event in events]


def test_scripted_incidents_are_found_within_a_second_and_nothing_else(tmp_path):
    missed, invented, total = [], [], 0
    for seed in range(STORES):
        script = write_store(tmp_path / str(seed), seed)
        events = timeline_of(script.root).events
        remaining = list(events)
        for incident in script.incidents:
            total += 1
            event = next((event for event in remaining if incident.is_shown_by(event)), None)
            if event is None:
                missed.append((seed, incident))
            else:
                remaining.remove(event)
        invented += [(seed, line) for line in lines([event for event in remaining if event.kind not in INCIDENTAL])]
    assert not invented
    assert len(missed) <= total // 20, missed


HEALTHY = {"topicAppears", "pause", "cleanStop"}
"""Events of golden stores that nothing happened to. A pause is one: the client waited before it asked the broker."""
KNOWN = {
    "broker-transient": {"crash", "start"},
    "controller-5.5.0": {"masterTerm", "hostChange", "lateIndex"},
    "dledger-old-leader-5.5.1": {"masterTerm", "duplicateSend"},
    "dledger-replaced-5.5.1": {"masterTerm", "hostChange", "lateIndex"},
    "dledger-crash-5.5.1": {"masterTerm"},
    "broker-dledger-5.5.1": {"masterTerm"},
    "first-files-deleted-5.3.3": {"deleted"},
    "several-log-folders-5.5.1": set(),  # without its configuration every other file is missing
    "tiered-5.5.1": {"deleted"},
}
"""What is known to have happened to the others, from the README beside each."""
STORES_OF_BROKERS = sorted(
    path.parent.name
    for path in golden_stores.GOLDEN.glob("*/store.tar.xz")
    if path.parent.name in {*golden_stores.third_of_names(1), *KNOWN} or os.environ.get("STORESCOPE_GOLDEN") == "all"
)


@pytest.mark.golden
@pytest.mark.parametrize("name", STORES_OF_BROKERS)
def test_nothing_is_invented_on_stores_of_real_brokers(golden, name):
    root = golden(name)
    roots = sorted(path for path in root.iterdir() if (path / "commitlog").is_dir()) or [root]
    for root in roots:
        timeline = timeline_of(root)
        allowed = HEALTHY | KNOWN.get(name, set())
        if (root / "abort").exists():
            allowed |= {"crash"}
        assert [line for line in lines(timeline.events) if line.split()[0] not in allowed] == []


@pytest.mark.golden
@pytest.mark.parametrize(
    ("name", "crashed", "started"),
    [
        ("broker-crash", 1_795_248_938_749, 1_795_248_947_782),
        ("broker-crash-5.5.1", 1_795_833_417_771, 1_795_833_427_307),
        ("crash-4.9.8", 1_795_248_944_434, 1_795_248_957_425),
        ("crash-5.4.0", 1_795_833_065_228, 1_795_833_076_698),
    ],
)
def test_a_start_after_a_crash_shows_in_the_index_that_it_made_again(golden, name, crashed, started):
    file = "store-recovered" if name.startswith("broker") else "recovered"
    events = timeline_of(golden(name, file)).events
    assert [(event.start, event.end) for event in events if event.kind == "crash"] == [(crashed, started)]
    assert [event.start for event in events if event.kind == "start"] == [started]


@pytest.mark.golden
def test_messages_that_are_lost_in_damage_are_no_outage(golden, tmp_path):
    """Damaged units left a gap in the store times, and numbers of unique keys that no unit had."""
    root = tmp_path / "store"
    shutil.copytree(golden("broker-orders"), root)
    file = root / "commitlog" / f"{0:020d}"
    data = bytearray(file.read_bytes())
    data[300_000:900_000] = bytes(600_000)
    file.write_bytes(data)
    timeline = timeline_of(root)
    assert timeline.damage > 500_000
    assert {event.kind for event in timeline.events} <= HEALTHY


@pytest.mark.golden
def test_one_file_of_a_log_says_nothing_about_the_files_in_front(golden):
    timeline = timeline_of(golden("broker-orders") / "commitlog" / f"{1 << 20:020d}")
    assert timeline.units > 0
    assert timeline.state is None
    assert "deleted" not in timeline.kinds
