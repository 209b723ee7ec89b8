"""A broken store for every rule: functions that spoil the healthy store of ``handmade_stores`` so that the rule
applies.
"""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

import made_rocksdb
from dledger_damage import as_dledger
from handmade_stores import LOG_SIZE, SLOTS, HandmadeStore, HandmadeUnit, add_key
from made_rocksdb import make_database
from planted_faults import patch, read

from engine.codec import (
    filler,
    rocksdb_index_rows,
    rocksdb_pop_rows,
    rocksdb_timer_rows,
    rocksdb_transaction_rows,
    tiered,
    timer,
)
from engine.codec import rocksdb_queue_rows as codec
from engine.codec.queue_mappings import MappedRange, TopicMapping
from engine.config import MessageStoreConfig
from engine.inspection.snapshot import open_store
from engine.mapped.backup import BackupWriter

ENTRY = 40 + 4 * SLOTS


def timer_row_to_nowhere(root: Path, _handmade: HandmadeStore) -> None:
    rows = dict([rocksdb_timer_rows.encode(rocksdb_timer_rows.TimerRow(1 << 41, "A", 100, 1 << 40))])
    rows[rocksdb_timer_rows.SCAN_KEY] = struct.pack(">q", 1)
    make_database(root / "rocksdbstore", {rocksdb_timer_rows.FAMILY: rows, rocksdb_transaction_rows.FAMILY: {}})


def half_row_to_nowhere(root: Path, _handmade: HandmadeStore) -> None:
    row = rocksdb_transaction_rows.TransactionRow(1 << 40, "Orders", "A", 0, 100)
    rows = dict([rocksdb_transaction_rows.encode(row)])
    make_database(root / "rocksdbstore", {rocksdb_timer_rows.FAMILY: {}, rocksdb_transaction_rows.FAMILY: rows})


def index_row_to_nowhere(root: Path, handmade: HandmadeStore) -> None:
    row = rocksdb_index_rows.IndexKeyRow("Orders", "K", "A", "B", handmade.units[0].offset)
    families = {
        rocksdb_index_rows.FAMILY: {rocksdb_index_rows.encode_key(row, 1 << 41): struct.pack(">q", 1 << 41)},
        rocksdb_timer_rows.FAMILY: {},
        rocksdb_transaction_rows.FAMILY: {},
    }
    make_database(root / "rocksdbstore", families)


def pop_row_without_json(root: Path, _handmade: HandmadeStore) -> None:
    make_database(root / "kvStore", {rocksdb_pop_rows.FAMILY: {struct.pack(">q", 1 << 40) + b"g@Orders": b"no json"}})


def stand_in(unit: HandmadeUnit) -> bytes:
    """Return the unit that ``repair`` puts where a message is lost."""
    data = filler.placeholder(
        unit.size,
        physical_offset=unit.offset,
        topic=unit.topic,
        queue_id=unit.queue_id,
        queue_offset=unit.queue_offset,
        store_timestamp=unit.store_timestamp,
    )
    assert data is not None
    return data


def log(root: Path, offset: int, data: bytes) -> None:
    patch(root / "commitlog" / f"{offset // LOG_SIZE * LOG_SIZE:020d}", offset % LOG_SIZE, data)


def zero_log_from(root: Path, offset: int) -> None:
    for file in sorted((root / "commitlog").iterdir()):
        start = int(file.name)
        keep = min(max(offset - start, 0), LOG_SIZE)
        patch(file, keep, bytes(LOG_SIZE - keep))


def queue(root: Path, topic: str = "Orders", number: int = 0, start: int = 0) -> Path:
    return root / "consumequeue" / topic / str(number) / f"{start:020d}"


def index(root: Path) -> Path:
    return min((root / "index").iterdir())


def table(root: Path, name: str, text: str) -> None:
    (root / "config").mkdir(exist_ok=True)
    (root / "config" / name).write_text(text)


def early_blank(root: Path, handmade: HandmadeStore) -> None:
    shutil.rmtree(root)
    room = LOG_SIZE - len(handmade.log) % LOG_SIZE
    handmade.log += struct.pack(">iI", room, 0xCBD43194).ljust(room, b"\0")
    handmade.put()
    handmade.write(root)


def rewritten(root: Path, handmade: HandmadeStore, topic: str, **how: int) -> None:
    shutil.rmtree(root)
    handmade.put(topic, 0, **how)
    handmade.write(root)


def index_rows_gone(root: Path, _: HandmadeStore) -> None:
    as_dledger(root)
    patch(root / "dledger-n0" / "index" / f"{0:020d}", 0, bytes(320))


def committed_beyond_the_end(root: Path, _: HandmadeStore) -> None:
    as_dledger(root)
    (root / "dledger-n0" / "checkpoint").write_text("committedIndex=99999\nendIndex=99999\n")


def uncommitted_entries(root: Path, _: HandmadeStore) -> None:
    as_dledger(root)
    (root / "dledger-n0" / "checkpoint").write_text("committedIndex=3\nendIndex=3\n")


def entry_of_a_replaced_message(root: Path, _: HandmadeStore) -> None:
    """The newest entry is of a later term, and the queue entry with its place has the size of another message."""
    as_dledger(root, term=1)
    with open_store(root) as store:
        unit = store.log.items_before(store.log.max_offset, 1)[0]
    path = root / "consumequeue" / unit.topic / str(unit.queue_id) / f"{0:020d}"
    patch(path, 20 * unit.queue_offset + 8, struct.pack(">i", unit.size + 1))


def ext_files_gone(root: Path, handmade: HandmadeStore) -> None:
    """The entries of a queue hold addresses of ext units, and there are no ext files."""
    for number in range(20):
        patch(queue(root), 20 * number + 12, struct.pack(">q", -(1 << 63) + 20 * number))


def later_than_born(root: Path, handmade: HandmadeStore) -> None:
    """All units are stored two hours after the time of their producer's clock."""
    shutil.rmtree(root)
    second_store = HandmadeStore()
    second_store.time += 7_200_000
    for _ in range(20):
        second_store.put()
    second_store.write(root)


def far_behind(root: Path, handmade: HandmadeStore) -> None:
    shutil.rmtree(root)
    handmade.put(step=3_600_000)
    handmade.write(root)
    handmade.write_checkpoint(root, handmade.units[0].store_timestamp, handmade.units[0].store_timestamp)


def change_interrupted(root: Path, _handmade: HandmadeStore) -> None:
    """A repair is killed after it has saved a table, and before it writes it."""
    writer = BackupWriter(root, "repair")
    writer.before_change(root / "checkpoint")
    writer.close()


def queue_ahead(root: Path, handmade: HandmadeStore) -> None:
    """A queue has an entry more than the log: left by a recovery that moved positions only."""
    entry = struct.pack(">qiq", handmade.end, 200, 0)
    patch(queue(root, "Payments", 1), 20 * handmade.next_offsets["Payments", 1], entry)


def index_ahead(root: Path, handmade: HandmadeStore) -> None:
    newest = max((root / "index").iterdir())
    data = bytearray(newest.read_bytes())
    add_key(data, "Orders#later", handmade.end + 100, handmade.time)
    newest.write_bytes(data)


def declared(root: Path, *topics: str, **fields: int) -> None:
    table(root, "topics.json", json.dumps({"topicConfigTable": dict.fromkeys(topics, fields)}))


def rocksdb_minimum_too_high(root: Path, handmade: HandmadeStore) -> None:
    shutil.rmtree(root / "consumequeue")
    rows = made_rocksdb.rows_of_store(handmade)
    bound = rows["offset"]
    unit = [unit for unit in handmade.units if (unit.topic, unit.queue_id) == ("Orders", 0)][2]
    row = codec.BoundRow("Orders", 0, "min", unit.offset, unit.queue_offset)
    bound[codec.bound_key("Orders", 0, "min")] = codec.encode_bound(row)
    made_rocksdb.make_database(root / "consumequeue", rows)


def first_file_expired(root: Path, handmade: HandmadeStore) -> None:
    min((root / "commitlog").iterdir()).unlink()
    table(root, "consumerOffset.json", '{"offsetTable":{"Orders@g":{0:0}}}')


def delay_level_beyond(root: Path, handmade: HandmadeStore) -> None:
    shutil.rmtree(root)
    handmade.put("SCHEDULE_TOPIC_XXXX", 2)
    handmade.write(root)
    table(root, "delayOffset.json", '{"offsetTable":{3:9}}')


def log_begun_anew(root: Path, handmade: HandmadeStore) -> None:
    """The offsets of groups belong to a log that was much longer."""
    offsets = {f"Payments@{group}": {"0": 900, "1": 800} for group in ("billing", "audit")}
    table(root, "consumerOffset.json", json.dumps({"offsetTable": offsets}))


def filter_without_bloom(root: Path, handmade: HandmadeStore) -> None:
    row = {"topic": "Orders", "expression": "a > 1", "expressionType": "SQL92", "bornTime": 1, "deadTime": 2}
    bloom = {"bitNum": 112, "bitPos": [1, 2, 3]}
    filters = {
        "sound": row | {"bloomFilterData": bloom, "consumerGroup": "sound"},
        "old": row | {"consumerGroup": "old"},
    }
    text = json.dumps({"filterDataByTopic": {"Orders": {"topic": "Orders", "groupFilterData": filters}}})
    table(root, "consumerFilter.json", text)


def dispatch_stops(root: Path, handmade: HandmadeStore, names: str = "%LMQ%$Orders$a$b", offsets: str = "0") -> None:
    """A lite topic has a ``$`` in its name: a broker of 5.5 wrote the entries of its message, and no later ones. With
    other ``names`` of further queues: its entry in its own queue only.
    """
    shutil.rmtree(root)
    properties = {"INNER_MULTI_DISPATCH": names, "INNER_MULTI_QUEUE_OFFSET": offsets}
    properties |= {} if "," in names else {"__LITE_TOPIC": "a$b"}
    handmade.put(more=properties)
    dispatched = len(handmade.units)
    handmade.put()
    handmade.put("Payments", 0)
    behind = handmade.units[dispatched:]
    del handmade.units[dispatched:]
    handmade.write(root)
    handmade.units += behind
    if "," in names:
        return
    (root / "consumequeue" / names / "0").mkdir(parents=True)
    message = handmade.units[dispatched - 1]
    entry = struct.pack(">qiq", message.offset, message.size, 0)
    length = queue(root).stat().st_size
    (root / "consumequeue" / names / "0" / f"{0:020d}").write_bytes(entry.ljust(length, b"\0"))


def level_stands_still(root: Path, handmade: HandmadeStore) -> None:
    """A delayed message was due, and the broker ran for three more minutes without delivering it."""
    shutil.rmtree(root)
    delayed = handmade.put("SCHEDULE_TOPIC_XXXX", 2, more={"REAL_TOPIC": "Orders", "REAL_QID": "0", "DELAY": "3"})
    delayed.tags_code = delayed.store_timestamp + 10_000
    for _ in range(6):
        handmade.put(step=30_000)
    handmade.write(root)
    table(root, "delayOffset.json", '{"offsetTable":{3:0}}')


def numbers_jump(root: Path, handmade: HandmadeStore) -> None:
    """A slave was away: the log's first files are gone, and its queues end before the log begins."""
    (root / "abort").touch()
    for file in sorted((root / "commitlog").iterdir())[:1]:
        file.unlink()
    for path in (root / "consumequeue").rglob("0*"):
        if path.name == f"{0:020d}":
            patch(path, 20, bytes(path.stat().st_size - 20))
        elif path.is_file():
            path.unlink()


def timers(root: Path, handmade: HandmadeStore, *, queue_offset: int = 1, leads_to: int = -1, flushed: int = 0) -> None:
    """A timer message waits, and a file around it is wrong."""
    shutil.rmtree(root)
    unit = handmade.put("rmq_sys_wheel_timer", 0, more={"TIMER_OUT_MS": str(handmade.time + 1000)})
    handmade.write(root)
    (root / "config").mkdir()
    check = timer.TimerCheck(handmade.time, flushed, queue_offset, queue_offset, 0, 0, 0)
    (root / "config" / "timercheck").write_bytes(check.encoded())
    if leads_to >= 0:
        waits = timer.TimerLogUnit(0, -1, 1, handmade.time, 1000, leads_to, unit.size, 0)
        (root / "timerlog").mkdir()
        (root / "timerlog" / f"{0:020d}").write_bytes(waits.encoded().ljust(520, b"\0"))


def timer_message_passed_over(root: Path, handmade: HandmadeStore) -> None:
    """A timer message was due a minute before the newest message; the timer has read on and did not deliver it."""
    shutil.rmtree(root)
    due = handmade.time + 1000
    unit = handmade.put("rmq_sys_wheel_timer", 0, more={"REAL_TOPIC": "Orders", "TIMER_OUT_MS": str(due)})
    handmade.put(step=60_000)
    handmade.write(root)
    (root / "config").mkdir()
    check = timer.TimerCheck(handmade.time // 1000 * 1000, timer.UNIT_SIZE, 1, 1, 0, 0, 0)
    (root / "config" / "timercheck").write_bytes(check.encoded())
    waits = timer.TimerLogUnit(0, -1, 1, due - 1000, 1000, unit.offset, unit.size, 0)
    (root / "timerlog").mkdir()
    (root / "timerlog" / f"{0:020d}").write_bytes(waits.encoded().ljust(520, b"\0"))


def half_message_given_up(root: Path, handmade: HandmadeStore) -> None:
    shutil.rmtree(root)
    handmade.put("TRANS_CHECK_MAX_TIME_TOPIC", 0, more={"REAL_TOPIC": "Orders", "TRANSACTION_CHECK_TIMES": "15"})
    handmade.write(root)


def log_of_another_store(root: Path, handmade: HandmadeStore) -> None:
    """The commit log is that of a store with messages of other lengths, so no entry leads to its unit."""
    other_store = HandmadeStore()
    for number in range(60):
        other_store.put("Orders" if number % 2 else "Payments", number % 2, body=b"another body %d " % number * 3)
    shutil.rmtree(root / "commitlog")
    other_store.write(root.parent / "another")
    shutil.move(root.parent / "another" / "commitlog", root / "commitlog")


def tables_of_another_broker(root: Path, handmade: HandmadeStore) -> None:
    table(root, "topics.json", json.dumps({"topicConfigTable": {"Stock": {}, "Prices": {}, "%DLQ%pricing": {}}}))
    offsets = {"Stock@pricing": {"0": 27}, "Prices@pricing": {"0": 4}}
    table(root, "consumerOffset.json", json.dumps({"offsetTable": offsets}))


def group_barred(root: Path, handmade: HandmadeStore) -> None:
    """The group may not consume, and 3 messages of the queue wait for it."""
    group = {"groupName": "billing", "consumeEnable": False}
    table(root, "subscriptionGroup.json", json.dumps({"subscriptionGroupTable": {"billing": group}}))
    offset = handmade.next_offsets["Orders", 0] - 3
    table(root, "consumerOffset.json", json.dumps({"offsetTable": {"Orders@billing": {"0": offset}}}))


def mapping_with_one_queue_twice(root: Path, handmade: HandmadeStore) -> None:
    ranges = (MappedRange(0, 0, "broker-a", 0),)
    mapping = TopicMapping("Orders", "broker-a", 2, 1, {0: ranges, 1: ranges})
    table(root, "topicQueueMapping.json", json.dumps({"topicQueueMappingInfoMap": {"Orders": mapping.record()}}))


def copied_names_only(root: Path, handmade: HandmadeStore) -> None:
    """The disk was full when the queues were copied: their files are empty."""
    for path in (root / "consumequeue").rglob("0*"):
        if path.is_file():
            path.write_bytes(b"")


def unmounted(root: Path, handmade: HandmadeStore) -> None:
    """The log's folder is empty, as if its disk were not mounted."""
    shutil.rmtree(root / "commitlog")
    (root / "commitlog").mkdir()


def queue_lost_its_tail(root: Path, handmade: HandmadeStore) -> None:
    """Entries of one queue are gone, another queue has a later unit: no start goes back for them."""
    lost = queue(root)
    patch(lost, 200, bytes(lost.stat().st_size - 200))


def compacted(root: Path, handmade: HandmadeStore) -> Path:
    """Orders/0 is compacted, and compaction has removed nothing yet; returns the file of its log."""
    table(root, "topics.json", '{"topicConfigTable":{"Orders":{"attributes":{"cleanup.policy":"COMPACTION"}}}}')
    log_bytes, entries = bytearray(), bytearray()
    for unit in (item for item in handmade.units if (item.topic, item.queue_id) == ("Orders", 0)):
        data = bytearray(handmade.log[unit.offset : unit.offset + unit.size])
        data[28:36] = struct.pack(">q", len(log_bytes))
        entries += struct.pack(
            ">qiqqqhii", len(log_bytes), unit.size, unit.tags_code, unit.store_timestamp, unit.queue_offset, 1, -1, 0
        )
        log_bytes += data
    for part, data in (("compactionLog", log_bytes), ("compactionCq", entries)):
        folder = root / "compaction" / part / "Orders" / "0"
        folder.mkdir(parents=True)
        (folder / f"{0:020d}").write_bytes(data + bytes(460))
    return root / "compaction" / "compactionLog" / "Orders" / "0" / f"{0:020d}"


def gap_before_dispatch(root: Path, handmade: HandmadeStore) -> None:
    """A log file is lost and somebody removed the queues to have them built again."""
    sorted((root / "commitlog").iterdir())[1].unlink()
    shutil.rmtree(root / "consumequeue")


def of_release_55(root: Path) -> None:
    """Make the store one that a broker of 5.5 wrote last: its index would have entries of tags."""
    shutil.rmtree(root / "index", ignore_errors=True)
    data = (root / "checkpoint").read_bytes() if (root / "checkpoint").exists() else bytes(4096)
    (root / "checkpoint").write_bytes(data[:40] + struct.pack(">q", 1) + data[48:])


def priority_in_higher_queue(root: Path, handmade: HandmadeStore) -> None:
    """A message of priority 0 is in queue 1 of a topic of type PRIORITY."""
    shutil.rmtree(root)
    handmade.put("Orders", 1, more={"_SYS_MSG_PRIORITY_": "0", "CLUSTER": "c"})
    handmade.write(root)
    of_release_55(root)
    topic = {"attributes": {"message.type": "PRIORITY"}}
    table(root, "topics.json", json.dumps({"topicConfigTable": {"Orders": topic, "Payments": {}}}))


def lite_topic_due(root: Path, handmade: HandmadeStore) -> None:
    """The last message of a lite topic is older than its topic allows."""
    shutil.rmtree(root)
    handmade.put(more={"INNER_MULTI_DISPATCH": "%LMQ%$Orders$a", "INNER_MULTI_QUEUE_OFFSET": "0", "__LITE_TOPIC": "a"})
    handmade.write(root)
    message = handmade.units[-1]
    folder = root / "consumequeue" / "%LMQ%$Orders$a" / "0"
    folder.mkdir(parents=True)
    entry = struct.pack(">qiq", message.offset, message.size, 0)
    (folder / f"{0:020d}").write_bytes(entry.ljust(queue(root).stat().st_size, b"\0"))
    of_release_55(root)
    topic = {"attributes": {"message.type": "LITE", "lite.topic.expiration": "30"}}
    table(root, "topics.json", json.dumps({"topicConfigTable": {"Orders": topic, "Payments": {}}}))


def rocksdb_beside_files_differs(root: Path, store: HandmadeStore) -> None:
    """An entry in the RocksDB beside the files is that of another message."""
    rows = make_database(root / "consumequeue_rocksdb", made_rocksdb.rows_of_store(store))
    changed = made_rocksdb.QueueRows(rows)
    changed.change_entry("Orders", 0, 3, size=7)
    changed.write()


def tiered_segment_lost(root: Path, store: HandmadeStore) -> None:
    """Name a file of tiered storage that is not there."""
    (root / "tiered" / tiered.cluster_folder("c")).mkdir(parents=True)
    (root / "config").mkdir(exist_ok=True)
    segment = {"baseOffset": 0, "size": 20, "beginTimestamp": 0, "endTimestamp": 0}
    table = {"consumeQueueFileSegmentTable": {"b/Orders/0": {"0": segment}}}
    (root / "config" / "tieredStoreMetadata.json").write_text(json.dumps(table))


BROKEN = {
    "CL01": lambda root, store: log(root, store.units[20].offset + 4, b"xxxx"),
    "CL02": lambda root, store: log(root, next_blank(root), struct.pack(">i", 9)),
    "CL03": lambda root, store: log(root, store.units[20].offset + 90, b"\xff"),
    "CL04": lambda root, store: log(root, store.units[20].offset + store.units[20].size - 6, bytes(6)),
    "CL05": lambda root, store: log(root, store.units[20].offset + 28, struct.pack(">q", 5)),
    "CL06": lambda root, store: log(root, store.end, b"torn bytes"),
    "CL07": lambda root, store: sorted((root / "commitlog").iterdir())[1].unlink(),
    "CL08": lambda root, store: log(root, store.units[20].offset + 56, struct.pack(">q", store.time - 10**7)),
    "CL09": lambda root, store: log(root, store.units[20].offset + 20, struct.pack(">q", 9999)),
    "CL10": early_blank,
    "CL11": lambda root, store: zero_log_from(root, store.units[50].offset),
    "CL12": unmounted,
    "CL15": lambda root, store: log(root, store.units[20].offset, stand_in(store.units[20])),
    "CL14": log_of_another_store,
    "CQ15": ext_files_gone,
    "CQ16": rocksdb_minimum_too_high,
    "CQ17": dispatch_stops,
    "DK03": lambda root, store: rewritten(root, store, "T" * 130, magic=0xDAA320AB),
    "CL13": later_than_born,
    "CM01": compacted,
    "TS01": tiered_segment_lost,
    "CQ18": priority_in_higher_queue,
    "CQ19": rocksdb_beside_files_differs,
    "LT01": lite_topic_due,
    "CM02": lambda root, store: patch(compacted(root, store), 90, b"\xff"),
    "CM03": lambda root, store: shutil.rmtree(compacted(root, store).parents[3]),
    "CQ01": lambda root, store: patch(queue(root), 400, b"too long"),
    "CQ03": lambda root, store: patch(queue(root), 100, bytes(20)),
    "CQ04": lambda root, store: patch(queue(root), 108, struct.pack(">i", 7)),
    "CQ05": lambda root, store: patch(queue(root), 100, read(queue(root), 80, 20)),
    "CQ06": lambda root, store: queue(root, start=400).write_bytes(bytes(400)),
    "CQ08": lambda root, store: shutil.rmtree(root / "consumequeue" / "Payments"),
    "CQ09": lambda root, store: patch(queue(root), 112, struct.pack(">q", 12345)),
    "CQ10": lambda root, store: patch(queue(root), 300, bytes(100)),
    "CQ11": lambda root, store: table(
        root, "topics.json", '{"topicConfigTable":{"Orders":{"attributes":{"queue.type":"BatchCQ"}}}}'
    ),
    "TM01": lambda root, store: timers(root, store, queue_offset=99),
    "TM02": lambda root, store: timers(root, store, leads_to=3),
    "TM03": lambda root, store: timers(root, store, flushed=5200),
    "TM04": lambda root, store: (root / "timerwheel").write_bytes(bytes(640)),
    "TM05": timer_message_passed_over,
    "TM06": timer_row_to_nowhere,
    "CQ12": lambda root, store: patch(queue(root), 100, read(queue(root), 20, 20)),
    "CQ13": queue_ahead,
    "CQ14": lambda root, store: declared(root, "Orders"),
    "IX01": lambda root, store: patch(index(root), 36, struct.pack(">i", 12)),
    "IX02": lambda root, store: patch(index(root), ENTRY + 20 * 30 + 16, struct.pack(">i", 5000)),
    "IX03": lambda root, store: patch(index(root), ENTRY + 20 * 30 + 16, struct.pack(">i", 30)),
    "IX04": lambda root, store: (root / "abort").touch(),
    "IX05": lambda root, store: max((root / "index").iterdir()).unlink(),
    "IX06": lambda root, store: patch(index(root), ENTRY + 20 * 30 + 4, struct.pack(">q", 3)),
    "IX07": index_ahead,
    "IX08": lambda root, store: index(root).write_bytes(bytes(36) + b"\0\0\0\7" + bytes(100)),
    "IX09": lambda root, store: patch(index(root), ENTRY + 20 * 58 + 16, struct.pack(">i", 0)),
    "IX10": lambda root, store: shutil.rmtree(root / "index"),
    "IX12": index_row_to_nowhere,
    "IX11": lambda root, store: max((root / "index").iterdir()).rename(root / "index" / "20230101000000000"),
    "CK01": lambda root, store: patch(root / "checkpoint", 0, bytes(8)),
    "CK02": lambda root, store: patch(root / "checkpoint", 8, struct.pack(">q", store.time + 1)),
    "CK03": far_behind,
    "CK04": lambda root, store: patch(root / "checkpoint", 32, struct.pack(">q", store.end + 1)),
    "CK05": lambda root, store: (root / "checkpoint").write_bytes(b"short"),
    "CK06": lambda root, store: (root / "epochFileCheckpoint").write_text("1\n5\n1-0\n"),
    "CF01": lambda root, store: table(root, "topics.json", '{"dataVersion":{'),
    "CF02": lambda root, store: table(root, "consumerOffset.json", '{"offsetTable":{"Orders@g":{0:99999}}}'),
    "CF03": lambda root, store: table(root, "consumerOffset.json", ""),
    "CF04": lambda root, store: table(root, "topics.json", "{} left over"),
    "DL01": lambda root, store: as_dledger(root, index=7),
    "DL02": index_rows_gone,
    "DL03": committed_beyond_the_end,
    "DL04": lambda root, store: as_dledger(root, term=3),
    "DL05": uncommitted_entries,
    "DL06": entry_of_a_replaced_message,
    "CF05": lambda root, store: None,
    "CF06": first_file_expired,
    "CF07": lambda root, store: declared(root, "Orders", "Payments", readQueueNums=0),
    "CF08": lambda root, store: table(root, "consumerOffset.json", '{"offsetTable":{"Gone@g":{0:7}}}'),
    "CF09": delay_level_beyond,
    "CF10": filter_without_bloom,
    "CF11": lambda root, store: table(root, "consumerOffset.json", '{"offsetTable":{"Orders@g":{0:-1}}}'),
    "CF12": log_begun_anew,
    "CF13": level_stands_still,
    "CF14": tables_of_another_broker,
    "CF15": group_barred,
    "CF16": half_message_given_up,
    "CF17": half_row_to_nowhere,
    "CF18": pop_row_without_json,
    "CF19": mapping_with_one_queue_twice,
    "RP03": numbers_jump,
    "RP01": queue_lost_its_tail,
    "RP02": gap_before_dispatch,
    "AB02": change_interrupted,
    "AB01": lambda root, store: (root / "abort").write_bytes(b"123"),
    "DK04": copied_names_only,
    "DK02": lambda root, store: (root / "dledger-n0").mkdir(),
    "DK01": lambda root, store: (root / "commitlog" / "readme.txt").write_text("x"),
}
CONFIG = {"CF05": MessageStoreConfig(mapped_file_size_commit_log=8192, given=frozenset({"mappedFileSizeCommitLog"}))}


def next_blank(root: Path) -> int:
    with open_store(root) as store:
        return next(i.offset for i in store.units() if type(i).__name__ == "Blank")
