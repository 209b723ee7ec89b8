"""The steps of findings about tables and services, carried out as an operator would, and RocketMQ's own broker started
on the result. The stores are those of ``tests/faults/reports``: what public bug reports describe.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import real_cluster
from served_stores import asked

from engine.codec.config_tables import delay_offsets
from engine.codec.json_dialect import parse
from engine.inspection import archives
from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.remoting.frame import Command

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]
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
QUERY_CONSUMER_OFFSET = 14
NOT_FOUND = 22


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reports")
    with STATES.open("rb") as packed:
        archives.unpack(packed, folder, 1 << 30)
    return folder


def copied(states: Path, name: str, folder: Path) -> Path:
    (state,) = states.glob(f"{name}_*")
    return Path(shutil.copytree(state / "store", folder / "store"))


def findings(store: Path, rule: str) -> list[str]:
    with open_store(store) as opened:
        return [one.next_step for one in list(check(opened))[:-1] if one.id == rule]


@contextlib.contextmanager
def broker(folder: Path, **settings: object) -> Iterator[str]:
    """The address of the real broker over ``folder/store``; it is closed cleanly behind the block."""
    ports = ("--namesrv-port", real_cluster.free_port(), "--port", real_cluster.free_port())
    words = [word for key, value in (SIZES | settings).items() for word in ("--set", f"{key}={value}")]
    with real_cluster.real(folder, *ports, *words) as said:
        yield said["broker"]


def table(store: Path, name: str) -> Any:
    return parse((store / "config" / name).read_bytes()).value


def delay_offset(store: Path, level: int) -> int:
    """Where the service of a delay level goes on."""
    return dict(delay_offsets(table(store, "delayOffset.json"))[0])[level]


def offset_of(address: str, group: str, topic: str, queue: int) -> int | None:
    """The offset at which a broker says that a group begins; None where it has none."""
    fields = {"consumerGroup": group, "topic": topic, "queueId": str(queue)}
    (answer,) = asked(address, Command(QUERY_CONSUMER_OFFSET, fields=fields))
    return None if answer.code == NOT_FOUND else int(answer.fields["offset"])


def test_a_level_that_stands_still_goes_on_with_a_larger_message_size(states, tmp_path):
    """CF13: a message as long as maxMessageSize is refused when it is delivered, and all behind it wait."""
    store = copied(states, "r01", tmp_path)
    assert "raise maxMessageSize and restart the broker" in findings(store, "CF13")[0]
    before = delay_offset(store, 3)
    with broker(tmp_path, maxMessageSize=65_536):
        time.sleep(6)
    assert delay_offset(store, 3) == before, "a restart alone helps nothing"
    with broker(tmp_path, maxMessageSize=4 << 20):
        time.sleep(12)
    assert delay_offset(store, 3) >= before + 21
    assert findings(store, "CF13") == []


def test_filters_are_kept_without_the_one_that_has_no_bloom_data(states, tmp_path):
    """CF10: with one filter without data a broker throws all away; without it, it keeps the others."""
    store = copied(states, "r03", tmp_path)
    assert "take the filter out of a copy of the table while the broker is stopped" in findings(store, "CF10")[0]
    path = store / "config" / "consumerFilter.json"
    filters = json.loads(path.read_text())
    settings = {"enableCalcFilterBitMap": "true", "enableConsumeQueueExt": "true", "enablePropertyFilter": "true"}
    with broker(tmp_path, **settings):
        pass
    assert not groups_of(table(store, "consumerFilter.json"))
    del filters["filterDataByTopic"]["CartUpdates"]["groupFilterData"]["restock"]
    path.write_text(json.dumps(filters))
    with broker(tmp_path, **settings):
        pass
    assert groups_of(table(store, "consumerFilter.json")) == {"wallboard", "pricing"}


def groups_of(filters: Any) -> set[str]:
    return {group for topic in filters["filterDataByTopic"].values() for group in topic["groupFilterData"]}


def test_groups_begin_anew_once_they_are_out_of_the_table(states, tmp_path):
    """CF12: the log was begun anew, and groups ask for offsets that do not exist yet."""
    store = copied(states, "r10", tmp_path)
    assert "take these groups out of a copy of the table while the broker is stopped" in findings(store, "CF12")[0]
    with broker(tmp_path) as address:
        assert offset_of(address, "restock", "CartUpdates", 0) == 372
    path = store / "config" / "consumerOffset.json"
    offsets = table(store, "consumerOffset.json")
    for key in [key for key in offsets["offsetTable"] if "@" in key]:
        del offsets["offsetTable"][key]
    path.write_text(json.dumps(offsets))
    path.with_name(f"{path.name}.bak").unlink(missing_ok=True)
    with broker(tmp_path) as address:
        assert offset_of(address, "restock", "CartUpdates", 0) in (0, None)
    assert findings(store, "CF12") == []


def test_an_offset_below_zero_is_none(states, tmp_path):
    """CF11: the group begins with the first message that the queue holds."""
    store = copied(states, "r13", tmp_path)
    assert len(findings(store, "CF11")) == 2
    with broker(tmp_path) as address:
        assert offset_of(address, "restock", "CartUpdates", 1) in (0, None)
        assert offset_of(address, "pricing", "CartUpdates", 2) in (0, None)
        assert offset_of(address, "restock", "CartUpdates", 2) == 382
