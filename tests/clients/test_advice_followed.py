"""Steps of findings about tables and services are carried out, and RocketMQ's own broker is started on the result. The
stores are those of ``tests/faults/reports``: states that public bug reports describe.
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
from aged_stores import age
from golden_stores import GoldenStores
from served_stores import responses_of

from engine.cli.main import main
from engine.codec import timer
from engine.codec.config_tables import consumer_offsets, delay_offsets
from engine.codec.json_dialect import parse
from engine.codec.message import Unit, decode
from engine.config import MessageStoreConfig
from engine.inspection import archives
from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.inspection.where.evidence import where
from engine.remoting.codes import RequestCode, ResponseCode
from engine.remoting.frame import Command
from engine.rules.findings import Finding
from engine.system_names import CHECK_MAX_TOPIC, HALF_TOPIC, REVIVE_GROUP, REVIVE_PREFIX, TRANSACTION_GROUP

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
MINUTE_MS = 60_000
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


def steps(store: Path, rule: str, max_message_size: int | None = None) -> list[str]:
    """Return the step of each finding of a rule; with a maxMessageSize if one is given."""
    config = MessageStoreConfig(max_message_size=max_message_size) if max_message_size is not None else None
    with open_store(store, config) as opened:
        return [item.next_step for item in check(opened) if isinstance(item, Finding) and item.id == rule]


@contextlib.contextmanager
def broker(folder: Path, release: str, **settings: object) -> Iterator[dict[str, Any]]:
    """Run the real broker over ``folder/store``, and close it cleanly after the block."""
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
    """Return the offset at which the service of a delay level continues."""
    return dict(delay_offsets(table(store, "delayOffset.json"))[0])[level]


@releases
def test_a_level_goes_on_with_a_larger_message_size(states, tmp_path, release):
    """CF13: a body longer than maxMessageSize is refused when it is delivered, and everything after it waits."""
    store = copied(states, "r01", tmp_path)
    assert "Raise maxMessageSize and restart the broker" in steps(store, "CF13")[0]
    offset_before = delay_offset(store, 3)
    with broker(tmp_path, release, maxMessageSize=40_000):
        until(lambda: delay_offset(store, 9) == 3)  # another level that waited only while no broker ran
    assert delay_offset(store, 3) == offset_before
    assert len(steps(store, "CF13")) == 1
    with broker(tmp_path, release, maxMessageSize=65_536):
        until(lambda: delay_offset(store, 3) == offset_before + 21)
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
    """Return the groups that have a filter in the table."""
    topics = table(store, "consumerFilter.json")["filterDataByTopic"].values()
    return {group for topic in topics for group in topic["groupFilterData"]}


ORDERS = {"5.3.3": "broker-orders", "5.5.1": "broker-orders-5.5.1"}
TOPIC, GROUP = "OrderEvents", "billing"
WHOLE_QUEUE = 16


def pull(address: str, offset: int) -> tuple[int, int]:
    """Return the code of a pull of the group from its first queue, and the bytes of messages."""
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
    """Return the offset of the group in the broker."""
    fields = {"consumerGroup": GROUP, "topic": TOPIC, "queueId": "0"}
    (response,) = responses_of(address, Command(RequestCode.QUERY_CONSUMER_OFFSET, fields=fields))
    return int(response.fields["offset"])


@releases
def test_a_broker_goes_on_at_the_offsets_that_were_set(golden, tmp_path, release):
    """``set-offset``: the broker loads the table, and keeps the rest of it."""
    store = Path(shutil.copytree(golden(ORDERS[release]), tmp_path / "store"))
    others_before = {row.key: row.offsets for row in consumer_offsets(table(store, "consumerOffset.json")).rows}
    assert main(["set-offset", str(store), GROUP, TOPIC, "0", "7", "--yes"]) == 0
    with broker(tmp_path, release) as status:
        assert group_offset(status["broker"]) == 7
    others = {row.key: row.offsets for row in consumer_offsets(table(store, "consumerOffset.json")).rows}
    assert others == others_before | {f"{TOPIC}@{GROUP}": others_before[f"{TOPIC}@{GROUP}"] | {0: 7}}


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
        words = command.removeprefix("mqadmin ").replace("BROKER", status["broker"])
        actual_mqadmin = real_cluster.mqadmin(status["namesrv"], words, release)
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
    """Return a store of orders that a real broker of the release wrote."""
    return Path(shutil.copytree(golden(ORDERS[release]), folder / "store"))


def commands(store: Path, rule: str) -> list[str | None]:
    """Return the command of each finding of a rule."""
    with open_store(store) as opened:
        findings = [item for item in check(opened) if isinstance(item, Finding) and item.id == rule]
    return [finding.of_store(str(store)).command for finding in findings]


def errors(store: Path) -> list[str]:
    """Return the findings of a store that are warnings or worse."""
    with open_store(store) as opened:
        return [
            item.message for item in check(opened) if isinstance(item, Finding) and item.severity in ("warn", "error")
        ]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def send(address: str, topic: str, body: bytes, queue_id: int = 0, sys_flag: int = 0, **properties: object) -> None:
    """Send one message with the current time; the broker must accept it."""
    fields = {
        "producerGroup": "senders",
        "topic": topic,
        "defaultTopic": "TBW102",
        "defaultTopicQueueNums": "1",
        "queueId": str(queue_id),
        "sysFlag": str(sys_flag),
        "bornTimestamp": str(now_ms()),
        "flag": "0",
        "properties": "".join(f"{name}\x01{value}\x02" for name, value in properties.items()),
        "reconsumeTimes": "0",
        "unitMode": "false",
        "batch": "false",
    }
    (response,) = responses_of(address, Command(RequestCode.SEND_MESSAGE, fields=fields, body=body))
    assert response.code == ResponseCode.SUCCESS, response.remark


def bodies(store: Path, topic: str) -> list[bytes]:
    """Return the bodies of the messages of a topic, in the order of the log."""
    with open_store(store) as opened:
        return [unit.body for unit in opened.units() if isinstance(unit, Unit) and unit.topic == topic]


def verdict(store: Path, key: str) -> str:
    with open_store(store) as opened:
        (result,) = where(opened, key)
    return result.verdict


def next_offset(store: Path, topic: str, group: str) -> int | None:
    """Return the offset of a group in the first queue of a topic, or None."""
    rows = consumer_offsets(table(store, "consumerOffset.json")).rows
    return next((row.offsets.get(0) for row in rows if (row.topic, row.group) == (topic, group)), None)


def goes_on(folder: Path, release: str, seconds: float, **settings: object) -> None:
    """Run a broker for some seconds and store one message."""
    with broker(folder, release, **settings) as status:
        time.sleep(seconds)
        send(status["broker"], "Other", b"the broker goes on")


BODY_BYTES = 50_000
"""Body of a message that is too large for a broker with a small maxMessageSize."""


def test_the_timer_goes_on_with_a_larger_message_size(tmp_path):
    """CF13: 5.3.3 reads timer messages into a buffer of maxMessageSize and 100 bytes. A body of maxMessageSize is
    accepted, and the timer stops at it: nothing behind it is delivered.
    """
    store = tmp_path / "store"
    with broker(tmp_path, "5.3.3", maxMessageSize=BODY_BYTES) as status:
        for number, body in enumerate((b"first", bytes(BODY_BYTES), b"last")):
            send(status["broker"], "Orders", body, UNIQ_KEY=f"K{number}", TIMER_DELIVER_MS=now_ms() + 2000)
        until(lambda: bodies(store, "Orders"))
    for _ in range(2):
        age(store, 5 * MINUTE_MS)
        goes_on(tmp_path, "5.3.3", 3, maxMessageSize=BODY_BYTES)
    assert bodies(store, "Orders") == [b"first"]
    assert "aise maxMessageSize to the size of this message" in steps(store, "CF13", BODY_BYTES)[0]
    with broker(tmp_path, "5.3.3", maxMessageSize=2 * BODY_BYTES):
        until(lambda: checked(store).queue_offset == 3)
        time.sleep(5)
    assert steps(store, "CF13", BODY_BYTES) == []
    if len(bodies(store, "Orders")) < 3:  # the first was put into its slot before the broker began to deliver
        follow(store, "TM05")
        with broker(tmp_path, "5.3.3", maxMessageSize=2 * BODY_BYTES):
            until(lambda: len(bodies(store, "Orders")) == 3)
    assert sorted(map(len, bodies(store, "Orders"))) == [4, 5, BODY_BYTES]
    assert steps(store, "TM05") == []


def test_a_timer_message_that_5_5_1_passes_over_is_reported(tmp_path):
    """TM05: 5.5.1 skips a timer message that is larger than its buffer, and no later start delivers it."""
    store, body = tmp_path / "store", bytes(200_000)
    with broker(tmp_path, "5.5.1") as status:
        due = now_ms() + 35_000
        send(status["broker"], "Orders", body, UNIQ_KEY="LARGE", TIMER_DELIVER_MS=due)
        send(status["broker"], "Orders", b"small", UNIQ_KEY="SMALL", TIMER_DELIVER_MS=due)
        until(lambda: checked(store).queue_offset == 2)
    assert steps(store, "TM05") == []
    with broker(tmp_path, "5.5.1", maxMessageSize=40_000) as status:
        until(lambda: bodies(store, "Orders") and now_ms() > due + 7000)
        send(status["broker"], "Other", b"the broker goes on")
    assert "no start delivers them" in steps(store, "TM05", 40_000)[0]
    assert verdict(store, "LARGE") == "passedOver"
    goes_on(tmp_path, "5.5.1", 5)
    assert bodies(store, "Orders") == [b"small"]
    assert "send them again" in steps(store, "TM05")[0]


def pop(address: str) -> list[bytes]:
    """Pop messages of the group without acknowledging them; return their bodies."""
    fields = {
        "consumerGroup": "popping",
        "topic": "Orders",
        "queueId": "-1",
        "maxMsgNums": "32",
        "invisibleTime": "3000",
        "pollTime": "1000",
        "bornTime": str(now_ms()),
        "initMode": "0",
        "order": "false",
    }
    (response,) = responses_of(address, Command(RequestCode.POP_MESSAGE, fields=fields))
    units, position = [], 0
    while position < len(response.body):
        units.append(decode(response.body, position, 0))
        position += units[-1].size
    return [unit.body for unit in units]


@releases
def test_the_revive_of_pops_goes_on_behind_a_record_that_cannot_be_parsed(tmp_path, release):
    """CF13: PopReviveService fails at such a record at each round, and popped messages that nobody acknowledged never
    come back. With the offset of the step they do.
    """
    store, revive = tmp_path / "store", f"{REVIVE_PREFIX}PeerCluster"
    with broker(tmp_path, release, reviveQueueNum=1) as status:
        send(status["broker"], revive, b"{damaged", TAGS="ck")
        send(status["broker"], "Orders", b"popped", UNIQ_KEY="P")
        assert pop(status["broker"]) == [b"popped"]
        until(lambda: len(bodies(store, revive)) == 2)
        time.sleep(8)
    assert steps(store, "CF13") == []
    for _ in range(2):
        age(store, 15 * MINUTE_MS)
        goes_on(tmp_path, release, 3, reviveQueueNum=1)
    offsets = table(store, "consumerOffset.json")
    assert f"{revive}@{REVIVE_GROUP}" not in offsets["offsetTable"]
    (step,) = steps(store, "CF13")
    assert "set the offset of CID_RMQ_SYS_REVIVE_GROUP for this queue to that entry" in step
    offsets["offsetTable"][f"{revive}@{REVIVE_GROUP}"] = {"0": 0}
    put_table(store, "consumerOffset.json", offsets)
    with broker(tmp_path, release, reviveQueueNum=1) as status:
        until(lambda: pop(status["broker"]) == [b"popped"])
    assert steps(store, "CF13") == []


def follow(store: Path, rule: str) -> None:
    """Run the command of the only finding of a rule."""
    (command,) = commands(store, rule)
    assert command is not None
    subprocess.run(command, shell=True, check=True, capture_output=True)


def checked(store: Path) -> timer.TimerCheck:
    return timer.decode_check((store / "config" / "timercheck").read_bytes())


@releases
def test_messages_that_the_timer_passed_over_come_with_the_time_set_back(tmp_path, release):
    """TM05: with a time in timercheck that the wheel had not reached, messages that were due before it are never
    delivered. With the command of the finding each comes once.
    """
    store = tmp_path / "store"
    with broker(tmp_path, release) as status:
        due = now_ms() + 25_000
        for number in range(3):
            message = {"UNIQ_KEY": f"K{number}", "TIMER_DELIVER_MS": due + number * 1000}
            send(status["broker"], "Orders", b"%d" % number, 0, **message)
        until(lambda: checked(store).queue_offset == 3)
    path = store / "config" / "timercheck"
    path.write_bytes((due + 15_000).to_bytes(8, "big") + path.read_bytes()[8:])
    with broker(tmp_path, release) as status:
        until(lambda: now_ms() > due + 12_000)
        send(status["broker"], "Other", b"the broker goes on")
        time.sleep(2)
    assert bodies(store, "Orders") == []
    assert verdict(store, "K0") == "passedOver"
    follow(store, "TM05")
    with broker(tmp_path, release):
        until(lambda: len(bodies(store, "Orders")) == 3)
        time.sleep(2)
    assert sorted(bodies(store, "Orders")) == [b"0", b"1", b"2"]
    assert errors(store) == []


@releases
def test_the_check_of_transactions_goes_on_with_a_larger_message_size(tmp_path, release):
    """CF13: the check stores each half message again before it asks the producer. It stops at one whose body is longer
    than maxMessageSize, and asks nobody about those behind it. If that was the first half message, it has no offset.
    """
    store = tmp_path / "store"
    fast = {"transactionCheckInterval": 1000, "transactionTimeOut": 1000}
    with broker(tmp_path, release) as status:
        for number, body in enumerate((bytes(BODY_BYTES), b"small")):
            send(status["broker"], "Orders", body, 0, 4, UNIQ_KEY=f"K{number}", TRAN_MSG="true", PGROUP="payers")
    assert steps(store, "CF13") == []
    age(store, 15 * MINUTE_MS)
    goes_on(tmp_path, release, 1, maxMessageSize=40_000, **fast)
    offset = next_offset(store, HALF_TOPIC, TRANSACTION_GROUP)
    age(store, 15 * MINUTE_MS)
    goes_on(tmp_path, release, 5, maxMessageSize=40_000, **fast)
    assert next_offset(store, HALF_TOPIC, TRANSACTION_GROUP) == offset
    assert "aise maxMessageSize above the body of this half message" in steps(store, "CF13", 40_000)[0]
    with broker(tmp_path, release, transactionCheckMax=2, **fast):
        until(lambda: len(bodies(store, CHECK_MAX_TOPIC)) == 2)
    assert steps(store, "CF13", 40_000) == []
    assert "why no producer of the group answered" in steps(store, "CF16")[0]


def repaired(damaged: Path, folder: Path) -> Path:
    """Write a mended copy of a store as ``folder/store``."""
    target = folder / "store"
    assert main(["repair", str(damaged), "--to", str(target), "--quiet"]) == 0
    assert target.exists()
    return target


@pytest.mark.parametrize("damage", ["timer log of another log", "timer log lost", "wheel cut"])
@releases
def test_repair_lets_the_timer_deliver_each_message_once(tmp_path, release, damage):
    """TM02, TM03, TM04: a real broker does not start, or never delivers what waits. From the mended store it delivers
    each message that waited, and none again.
    """
    store, folder = tmp_path / "store", tmp_path / "mended"
    with broker(tmp_path, release) as status:
        start = now_ms()
        for number, delay in enumerate((3000, 60_000, 3000, 30_000)):
            send(status["broker"], "Orders", b"%d" % number, 0, UNIQ_KEY=f"K{number}", TIMER_DELIVER_MS=start + delay)
        until(lambda: len(bodies(store, "Orders")) == 2)
        until(lambda: checked(store).queue_offset == 4)
        time.sleep(2)
    log = next((store / "timerlog").iterdir())
    match damage:
        case "timer log of another log":
            data = bytearray(log.read_bytes())
            for position in range(28, 4 * timer.UNIT_SIZE, timer.UNIT_SIZE):
                data[position : position + 8] = position.to_bytes(8, "big")
            log.write_bytes(data)
        case "timer log lost":
            log.unlink()
        case "wheel cut":
            (store / "timerwheel").write_bytes(bytes(640))
    mended = repaired(store, folder)
    with broker(folder, release):
        until(lambda: len(bodies(mended, "Orders")) == 4, 90)
        time.sleep(3)
    assert sorted(bodies(mended, "Orders")) == [b"0", b"1", b"2", b"3"]
    assert errors(mended) == []


COMPACTED = {"5.3.3": "broker-compaction-5.3.3", "5.5.1": "broker-compaction-5.5.1"}
COMPACTED_SIZES = {"compactionMappedFileSize": 230_000, "compactionCqMappedFileSize": 46_000}


@releases
def test_repair_gives_consumers_a_damaged_compacted_queue_again(golden, tmp_path, release):
    """CM02: a real broker hands the damaged bytes to consumers, which stop there."""
    damaged, folder = tmp_path / "damaged", tmp_path / "mended"
    shutil.copytree(golden(COMPACTED[release]), damaged)
    with open_store(damaged) as opened:
        expected = [unit.body for unit in opened.compacted_queue("StockLevels", 0).units()]
    log = min((damaged / "compaction" / "compactionLog" / "StockLevels" / "0").iterdir())
    data = log.read_bytes()
    log.write_bytes(data[:1503] + bytes(8) + data[1511:])
    repaired(damaged, folder)
    with broker(folder, release, **COMPACTED_SIZES) as status:
        assert list(pulled(status["broker"], "StockLevels")) == expected


def pulled(address: str, topic: str) -> Iterator[bytes]:
    """Yield the bodies of the messages of a topic's first queue as a consumer pulls them."""
    offset, code = 0, ResponseCode.SUCCESS
    while code == ResponseCode.SUCCESS:
        fields = {"consumerGroup": "g", "topic": topic, "queueId": "0", "queueOffset": str(offset), "maxMsgNums": "32"}
        fields |= {"sysFlag": "4", "commitOffset": "0", "suspendTimeoutMillis": "0", "subscription": "*"}
        fields |= {"subVersion": "0", "expressionType": "TAG"}
        (response,) = responses_of(address, Command(RequestCode.PULL_MESSAGE, fields=fields))
        position, code = 0, response.code
        while code == ResponseCode.SUCCESS and position < len(response.body):
            unit = decode(response.body, position, 0)
            yield unit.body
            position += unit.size
        offset = int(response.fields.get("nextBeginOffset", 0))


@releases
def test_repair_sets_rows_of_tables_right(golden, tmp_path, release):
    """CQ14, CF02, CF08: a topic that the table lacks is not known to clients, and a group beyond the end of its queue
    gets nothing. With the mended tables both go on.
    """
    damaged, folder = tmp_path / "damaged", tmp_path / "mended"
    shutil.copytree(golden(ORDERS[release]), damaged)
    topics, offsets = table(damaged, "topics.json"), table(damaged, "consumerOffset.json")
    del topics["topicConfigTable"][TOPIC]
    offsets["offsetTable"] |= {f"{TOPIC}@{GROUP}": {0: 99_999}, f"Gone@{GROUP}": {0: 7}}
    put_table(damaged, "topics.json", topics)
    put_table(damaged, "consumerOffset.json", offsets)
    with open_store(damaged) as opened:
        end = opened.queues.find(TOPIC, 0).max_offset
    repaired(damaged, folder)
    with broker(folder, release) as status:
        assert pull(status["broker"], 0)[0] == ResponseCode.SUCCESS
        assert group_offset(status["broker"]) == end
        send(status["broker"], TOPIC, b"the next one")
        until(lambda: pull(status["broker"], end)[1] > 0)
    assert errors(folder / "store") == []


@pytest.mark.parametrize("damage", ["beyond", "lost"])
@releases
def test_repair_lets_a_delay_level_go_on_where_it_was(tmp_path, release, damage):
    """CF09, CF03: with an offset beyond its queue a level delivers nothing of it, and without one all of it again."""
    store, folder = tmp_path / "store", tmp_path / "mended"
    with broker(tmp_path, release) as status:
        for number in range(3):
            send(status["broker"], "Orders", b"%d" % number, 0, UNIQ_KEY=f"K{number}", DELAY=1)
        until(lambda: len(bodies(store, "Orders")) == 3)
    path = store / "config" / "delayOffset.json"
    if damage == "beyond":
        path.write_text('{"offsetTable":{1:99}}')
    else:
        path.write_text("")
        path.with_name("delayOffset.json.bak").unlink(missing_ok=True)
    mended = repaired(store, folder)
    with broker(folder, release) as status:
        send(status["broker"], "Orders", b"3", 0, UNIQ_KEY="K3", DELAY=1)
        until(lambda: b"3" in bodies(mended, "Orders"))
        time.sleep(2)
    assert sorted(bodies(mended, "Orders")) == [b"0", b"1", b"2", b"3"]
