import json
import os
from pathlib import Path

import golden_stores
import numpy as np
import pytest
from dispatching import WAYS, DispatchTarget, Way, blocks, stored
from hypothesis import given, settings
from hypothesis import strategies as st
from raw_units import raw_log
from simulated_disk import SimulatedDisk

from engine.codec.columns import UnitColumns
from engine.codec.topic_table import TopicTable
from engine.config import MessageStoreConfig, from_mapping
from engine.inspection.block_scan import scan_log
from engine.inspection.snapshot import StoreSnapshot, open_store
from engine.mapped.disk import RealDisk
from engine.rules.unit_check import Request
from engine.services.rebuild import Rebuild

CLEAN = (
    "batchcq-5.3.3",
    "broker-lmq",
    "broker-orders",
    "broker-orders-4.9.7",
    "broker-pop",
    "broker-retries",
    "broker-retries-4.9.7",
    "broker-sqlfilter",
    "broker-transactions",
    "broker-transactions-4.9.7",
    "broker-transient",
    "clean-4.9.8",
    "clean-5.3.3",
    "ipv6-and-unicode-5.3.3",
    "lmq-5.3.3",
    "multi-queue-ext-5.3.3",
    "propcrc-5.3.3",
    "sync-5.3.3",
    "transient-5.3.3",
)
DELETED = "DroppedAuditTrail"
SMALL = {"mappedFileSizeConsumeQueue": 60, "mappedFileSizeConsumeQueueExt": 128, "maxHashSlotNum": 3, "maxIndexNum": 5}


def config_of(name: str) -> MessageStoreConfig:
    plan = golden_stores.GOLDEN / name / "plan.json"
    if plan.is_file():
        return from_mapping(json.loads(plan.read_text())["config"])[0]
    run = next(line for line in golden_stores.account(name, "truth.jsonl.xz") if "config" in line)
    return from_mapping(run["config"])[0]


def rebuilt(store: StoreSnapshot, root: Path, config: MessageStoreConfig, way: Way) -> None:
    """Rebuild the queues and index of ``store`` below ``root``."""

    def bit_map(request: Request) -> bytes:
        entry = store.queue(request.topic, request.queue_id).entry(request.queue_offset)
        return entry.ext.bit_map if entry and entry.ext else b""

    batch = frozenset(
        topic for topic, queues in store.topics().items() if any(q.kind == "batch" for q in queues.values())
    )
    ext = bit_map if config.enable_consume_queue_ext else None
    place = DispatchTarget(config, RealDisk(), root, batch, ext)
    topics = TopicTable()
    blocks = scan_log(store.log, crc=False, topics=topics, levels=config.delay_levels())
    if way == "rebuilt":
        with Rebuild(place.queues, place.index, config, bit_map=ext) as rebuild:
            for block in blocks:
                if isinstance(block, UnitColumns):
                    rebuild.take(block, topics)
            rebuild.finish()
        return
    for block in blocks:
        if not isinstance(block, UnitColumns):
            continue
        if way == "by block":
            place.dispatcher.dispatch_block(block, topics)
            continue
        for row in range(block.count):
            request = place.dispatcher._request(block, row)
            if request is not None:
                place.dispatcher.dispatch(request)


@pytest.mark.full_form(keep=12)
@pytest.mark.golden
@pytest.mark.parametrize("name", CLEAN)
@pytest.mark.parametrize("way", WAYS)
def test_a_golden_store_dispatched_from_zero_has_the_bytes_that_rocketmq_wrote(golden, tmp_path, name, way):
    root = golden(name)
    config = config_of(name)
    with open_store(root, config) as store:
        rebuilt(store, tmp_path, config, way)
        theirs = stored(store.path)
    ours = {path: data for path, data in stored(tmp_path).items() if f"/{DELETED}/" not in path}
    assert sorted(ours) == sorted(theirs)
    assert [path for path in ours if ours[path] != theirs[path]] == []


units = st.lists(
    st.fixed_dictionaries(
        {
            "topic": st.sampled_from([b"A", b"B", "主题".encode(), b"%LMQ%x", b"Batch", b"SCHEDULE_TOPIC_XXXX"]),
            "queue_id": st.integers(0, 1),
            "queue_offset": st.sampled_from([0, 1, 2, 3, 4, 5, 9]),
            "sys_flag": st.sampled_from([0, 0, 0, 4, 8, 12, 16]),
            "stored": st.integers(1_700_000_000_000, 1_700_000_009_000),
            "properties": st.sampled_from(
                [
                    b"",
                    b"TAGS\x01a\x02UNIQ_KEY\x01u1\x02KEYS\x01k1 k2  k3\x02",
                    b"KEYS\x01one\x02",
                    b"UNIQ_KEY\x01\xff\xfe\x02DELAY\x012\x02",
                    b"INNER_NUM\x013\x02INNER_BASE\x017\x02KEYS\x01b\x02",
                    b"INNER_MULTI_DISPATCH\x01%LMQ%x,A\x02INNER_MULTI_QUEUE_OFFSET\x013,1\x02TAGS\x01t\x02",
                ]
            ),
        }
    ),
    max_size=40,
)


@settings(max_examples=60)
@given(units, st.booleans(), st.booleans(), st.integers(1, 9))
def test_every_way_gives_the_same_bytes(units, ext, multi, rows):
    config, _ = from_mapping({**SMALL, "enableConsumeQueueExt": ext, "enableMultiDispatch": multi})
    in_order: dict[tuple[bytes, int], int] = {}
    for number, unit in enumerate(units):  # most queue offsets follow each other, as in real logs
        key = (unit["topic"], unit["queue_id"])
        if number % 5:
            unit["queue_offset"] = in_order.get(key, 0)
        in_order[key] = unit["queue_offset"] + 1
    log = raw_log(*units)
    files = []
    for way in WAYS:
        place = DispatchTarget(
            config, batch_topics=frozenset({"Batch"}), bit_map=lambda request: request.topic.encode()
        )
        place.dispatch(log, way, rows)
        files.append((place.files(), place.queues.offsets(), place.queues.max_physic_offset))
    os.environ["STORESCOPE_PLAIN"] = "1"
    try:
        place = DispatchTarget(
            config, batch_topics=frozenset({"Batch"}), bit_map=lambda request: request.topic.encode()
        )
        place.dispatch(log, "by block", rows)
    finally:
        del os.environ["STORESCOPE_PLAIN"]
    files.append((place.files(), place.queues.offsets(), place.queues.max_physic_offset))
    assert files[0] == files[1] == files[2] == files[3]


@settings(max_examples=40)
@given(units, st.integers(0, 40))
def test_repeated_dispatch_changes_no_queue(units, back):
    config, _ = from_mapping(SMALL)
    log = raw_log(*units)
    place = DispatchTarget(config)
    place.dispatch(log, "by block")
    files_before = {path: data for path, data in place.files().items() if not path.startswith("index")}
    place.dispatch(log, "by block" if back % 2 else "singly")
    assert {path: data for path, data in place.files().items() if not path.startswith("index")} == files_before


def test_prepared_and_rolled_back_units_go_into_no_queue_and_rolled_back_ones_into_no_index():
    log = raw_log(*({"sys_flag": kind, "queue_offset": index} for index, kind in enumerate((0, 4, 12, 8))))
    place = DispatchTarget(MessageStoreConfig())
    place.dispatch(log)
    assert [entry[0] for entry in place.entries("TopicTest", 3)] == [0, 3 * len(log) // 4]
    assert place.index.files[-1].header.entries == 3


def test_only_the_given_rows_are_dispatched():
    log = raw_log(*({"queue_offset": position} for position in range(4)))
    place, topics = DispatchTarget(MessageStoreConfig()), TopicTable()
    for columns in blocks(log, 16, topics):
        place.dispatcher.dispatch_block(columns, topics, np.array([0, 2]))
    assert [entry[0] for entry in place.entries("TopicTest", 3)] == [0, len(log) // 2]
    assert place.index.files[-1].header.entries == 2


def test_units_with_falling_offsets_are_skipped_as_known():
    log = bytearray(raw_log({"queue_offset": 0}, {"queue_offset": 1}))
    half = len(log) // 2
    log[half + 28 : half + 36] = (0).to_bytes(8, "big")  # PHYSICALOFFSET of the second unit
    log[28:36] = (500).to_bytes(8, "big")
    place = DispatchTarget(MessageStoreConfig())
    place.dispatch(bytes(log))
    assert [entry[0] for entry in place.entries("TopicTest", 3)] == [500]
    assert place.index.files[-1].header.entries == 1


def test_the_failed_part_is_named_and_the_units_can_be_dispatched_again():
    config, _ = from_mapping(SMALL)
    disk = SimulatedDisk()
    place = DispatchTarget(config, disk)
    log = raw_log(*({"queue_offset": position} for position in range(6)))
    disk.fail(28, kind="write", path="*/consumequeue/*", after=1, times=1)
    with pytest.raises(OSError, match="No space"):
        place.dispatch(log)
    assert place.dispatcher.failed == "queue"
    place.dispatch(log)
    assert place.dispatcher.failed is None
    assert [entry[0] for entry in place.entries("TopicTest", 3)] == [number * len(log) // 6 for number in range(6)]
