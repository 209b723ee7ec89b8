"""The steps of findings about tables and services, carried out as an operator would, and RocketMQ's own broker started
on the result. The stores are those of ``tests/faults/reports``: what public bug reports describe.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import real_cluster
from golden_stores import GoldenStores
from served_stores import responses_of

from engine.codec.config_tables import delay_offsets
from engine.codec.json_dialect import parse
from engine.inspection import archives
from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.remoting.codes import RequestCode, ResponseCode
from engine.remoting.frame import Command
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


ORDERS = {"5.3.3": "broker-orders", "5.5.1": "broker-orders-5.5.1"}
TOPIC, GROUP = "OrderEvents", "billing"
WHOLE_QUEUE = 16


def pull(address: str, offset: int) -> tuple[int, int]:
    """The code of a pull of the group from its first queue, and the bytes of messages."""
    fields = {
        "consumerGroup": GROUP,
        "topic": TOPIC,
        "queueId": "0",
        "queueOffset": str(offset),
        "maxMsgNums": str(WHOLE_QUEUE),
        "sysFlag": "4",
        "commitOffset": "0",
        "suspendTimeoutMillis": "0",
        "subscription": "*",
        "subVersion": "0",
        "expressionType": "TAG",
    }
    (response,) = responses_of(address, Command(RequestCode.PULL_MESSAGE, fields=fields))
    return response.code, len(response.body)


def group_offset(address: str) -> int:
    """The offset at which the broker says that the group is."""
    fields = {"consumerGroup": GROUP, "topic": TOPIC, "queueId": "0"}
    (response,) = responses_of(address, Command(RequestCode.QUERY_CONSUMER_OFFSET, fields=fields))
    return int(response.fields["offset"])


def mqadmin(release: str, namesrv: str, command: str) -> str:
    words = ["bash", str(real_cluster.JAVA / "mqadmin"), release, namesrv]
    done = subprocess.run(
        words, input=command, env=real_cluster.environment(), capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout


def put_table(store: Path, name: str, value: object) -> None:
    """Write a table and its ``.bak``, as a broker has them ten seconds after a change."""
    for suffix in ("", ".bak"):
        (store / "config" / f"{name}{suffix}").write_text(json.dumps(value))


@releases
def test_a_barred_group_consumes_again_with_mqadmin(golden, tmp_path, release):
    """CF15: the broker refuses every pull of the group. The command of the finding lets it consume while the broker
    runs, at the offset where it was; settings that the command does not name are reset.
    """
    store = orders(golden, tmp_path, release)
    offsets, groups = table(store, "consumerOffset.json"), table(store, "subscriptionGroup.json")
    offsets["offsetTable"][f"{TOPIC}@{GROUP}"] = {"0": 100, "1": 100}
    groups["subscriptionGroupTable"][GROUP] |= {"consumeEnable": False, "retryMaxTimes": 5}
    put_table(store, "consumerOffset.json", offsets)
    put_table(store, "subscriptionGroup.json", groups)
    (command,) = commands(store, "CF15")
    assert command == f"mqadmin updateSubGroup -b BROKER -g {GROUP} -s true"
    with broker(tmp_path, release) as status:
        assert pull(status["broker"], 100) == (ResponseCode.NO_PERMISSION, 0)
        actual_mqadmin = mqadmin(
            release, status["namesrv"], command.removeprefix("mqadmin ").replace("BROKER", status["broker"])
        )
        assert "success" in actual_mqadmin, actual_mqadmin
        code, body_bytes = pull(status["broker"], 100)
        assert code == ResponseCode.SUCCESS
        assert body_bytes > 0
        assert group_offset(status["broker"]) == 100
    assert steps(store, "CF15") == []
    assert table(store, "subscriptionGroup.json")["subscriptionGroupTable"][GROUP]["retryMaxTimes"] == 16


@releases
def test_a_store_delivers_with_its_own_tables(golden, tmp_path, release):
    """CF14: with tables of another broker a real broker starts and knows none of the topics. With the store's own
    tables in their place it delivers, and groups are where they were.
    """
    store = orders(golden, tmp_path, release)
    replica = shutil.copytree(store / "config", tmp_path / "replica")
    offset = table(store, "consumerOffset.json")["offsetTable"][f"{TOPIC}@{GROUP}"][0]
    topics, offsets = table(store, "topics.json"), table(store, "consumerOffset.json")
    rows = topics["topicConfigTable"]
    for name in ("OrderEvents", "PaymentEvents", "AuditTrail", "ShipmentEvents"):
        rows[f"Other{name}"] = rows.pop(name) | {"topicName": f"Other{name}"}
    offsets["offsetTable"] = {f"Other{key}": value for key, value in offsets["offsetTable"].items()}
    put_table(store, "topics.json", topics)
    put_table(store, "consumerOffset.json", offsets)
    (command,) = commands(store, "CF14")
    with broker(shutil.copytree(tmp_path, tmp_path.with_name(f"{tmp_path.name}-wrong")), release) as status:
        assert pull(status["broker"], 0)[0] == ResponseCode.TOPIC_NOT_EXIST
    assert command == f"cp -r REPLICA/config/. {store}/config/"
    subprocess.run(["cp", "-r", f"{replica}/.", str(store / "config")], check=True)
    assert errors(store) == []
    with broker(tmp_path, release) as status:
        code, body_bytes = pull(status["broker"], 0)
        assert code == ResponseCode.SUCCESS
        assert body_bytes > 0
        assert group_offset(status["broker"]) == offset
    assert errors(store) == []


def orders(golden: GoldenStores, folder: Path, release: str) -> Path:
    """A store of orders that a real broker of the release wrote."""
    return Path(shutil.copytree(golden(ORDERS[release]), folder / "store"))


def commands(store: Path, rule: str) -> list[str | None]:
    """The command of each finding of a rule."""
    with open_store(store) as opened:
        findings = [item for item in check(opened) if isinstance(item, Finding) and item.id == rule]
    return [finding.of_store(str(store)).command for finding in findings]


def errors(store: Path) -> list[str]:
    """Findings of a store that are warnings or worse."""
    with open_store(store) as opened:
        return [
            item.message for item in check(opened) if isinstance(item, Finding) and item.severity in ("warn", "error")
        ]
