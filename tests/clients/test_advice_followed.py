"""The steps of findings about tables and services, carried out as an operator would, and RocketMQ's own broker started
on the result. The stores are those of ``tests/faults/reports``: what public bug reports describe.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import real_cluster

from engine.codec.config_tables import delay_offsets
from engine.codec.json_dialect import parse
from engine.inspection import archives
from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.rules.findings import Finding

pytestmark = [pytest.mark.peer, pytest.mark.clients_full, pytest.mark.timeout(400)]
STATES = Path(__file__).resolve().parent.parent / "faults" / "reports" / "states.tar.xz"
SIZES = {
    "mappedFileSizeCommitLog": 1_048_576,
    "mappedFileSizeConsumeQueue": 6000,
    "mappedFileSizeConsumeQueueExt": 12_000,
    "mapperFileSizeBatchConsumeQueue": 4600,
    "mappedFileSizeTimerLog": 102_400,
    "maxHashSlotNum": 100,
    "maxIndexNum": 400,
}
HOUR_MS = 3_600_000
releases = pytest.mark.parametrize("release", ["5.3.3", "5.5.1"])


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reports")
    with STATES.open("rb") as packed:
        archives.unpack(packed, folder, 1 << 30)
    return folder


def copied(states: Path, name: str, folder: Path) -> Path:
    (state,) = states.glob(f"{name}_*")
    return Path(shutil.copytree(state / "store", folder / "store"))


def steps(store: Path, rule: str) -> list[str]:
    """The step of each finding of a rule."""
    with open_store(store) as opened:
        return [item.next_step for item in check(opened) if isinstance(item, Finding) and item.id == rule]


@contextlib.contextmanager
def broker(folder: Path, release: str, **settings: object) -> Iterator[dict[str, Any]]:
    """The real broker over ``folder/store``, closed cleanly after the block."""
    ports = ("--namesrv-port", real_cluster.free_port(), "--port", real_cluster.free_port())
    words = [word for key, value in (SIZES | settings).items() for word in ("--set", f"{key}={value}")]
    with real_cluster.real(folder, *ports, *words, release=release, clean_end=True) as status:
        yield status


def until(condition: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.2)


def table(store: Path, name: str) -> Any:
    return parse((store / "config" / name).read_bytes()).value


def delay_offset(store: Path, level: int) -> int:
    """Where the service of a delay level goes on."""
    return dict(delay_offsets(table(store, "delayOffset.json"))[0])[level]


@releases
def test_a_level_goes_on_with_a_larger_message_size(states, tmp_path, release):
    """CF13: a body longer than maxMessageSize is refused when it is delivered, and everything after it waits."""
    store = copied(states, "r01", tmp_path)
    assert "Raise maxMessageSize and restart the broker" in steps(store, "CF13")[0]
    before = delay_offset(store, 3)
    with broker(tmp_path, release, maxMessageSize=40_000):
        until(lambda: delay_offset(store, 9) == 3)  # another level that waited only while no broker ran
    assert delay_offset(store, 3) == before
    assert len(steps(store, "CF13")) == 1
    with broker(tmp_path, release, maxMessageSize=65_536):
        until(lambda: delay_offset(store, 3) == before + 21)
    assert steps(store, "CF13") == []


@releases
def test_filters_are_retained_without_the_one_that_has_no_bloom_data(states, tmp_path, release):
    """CF10: with one filter without data a broker discards all; without it, the others are retained, if their groups
    had a client within the last 24 hours.
    """
    store = copied(states, "r03", tmp_path)
    assert "remove the filters that do not fit from a copy of the table" in steps(store, "CF10")[0]
    path = store / "config" / "consumerFilter.json"
    filters = json.loads(path.read_text())
    rows = filters["filterDataByTopic"]["CartUpdates"]["groupFilterData"]
    now = time.time_ns() // 1_000_000
    for row in rows.values():
        row |= {"bornTime": now - 2 * HOUR_MS, "clientVersion": now - 2 * HOUR_MS, "deadTime": now - HOUR_MS}
    path.write_text(json.dumps(filters))
    with broker(tmp_path, release):
        pass
    assert groups_of(store) == set()
    del rows["restock"]
    path.write_text(json.dumps(filters))
    with broker(tmp_path, release):
        pass
    assert groups_of(store) == {"pricing", "wallboard"}
    assert steps(store, "CF10") == []


def groups_of(store: Path) -> set[str]:
    """Groups that have a filter in the table."""
    topics = table(store, "consumerFilter.json")["filterDataByTopic"].values()
    return {group for topic in topics for group in topic["groupFilterData"]}
