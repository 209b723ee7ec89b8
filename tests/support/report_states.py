"""Stores with the troubles of bug reports, made by script, and patterns that a right answer has and has not.

They are related to the states in ``tests/faults/reports``: the same kinds of trouble, in other tables, services and
files.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from broken_stores import copied_names_only, group_barred, log_of_another_store, table, tables_of_another_broker
from handmade_stores import START, HandmadeStore, healthy, write_queue
from planted_faults import patch

from engine.codec import batch, pop, timer

MINUTE = 60_000
HALF, OP, TIMER = "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC", "rmq_sys_wheel_timer"
REVIVE = "rmq_sys_REVIVE_LOG_DefaultCluster"


@dataclass(frozen=True)
class Command:
    """A command (STORE stands for the store, HERE for the folder it is in), and patterns of the answer."""

    command: str
    must: tuple[str, ...] = ()
    must_not: tuple[str, ...] = ()
    exit: int | None = None


@dataclass(frozen=True)
class ReportState:
    """A function that makes a store below a folder, and the commands to run on it."""

    make: Callable[[Path], object]
    questions: tuple[Command, ...]
    config: dict[str, str] = field(default_factory=dict)


def write_table_and_backup(root: Path, name: str, text: str) -> None:
    """Write a table and its ``.bak`` with the same text, like a broker ten seconds later."""
    table(root, name, text)
    table(root, f"{name}.bak", text)


def group_with_a_word(parent: Path) -> None:
    root = healthy().write(parent / "store")
    group = {"groupName": "billing", "retryMaxTimes": "sixteen", "retryQueueNums": 1}
    write_table_and_backup(
        root, "subscriptionGroup.json", json.dumps({"subscriptionGroupTable": {"billing": group}, "dataVersion": {}})
    )


def level_without_a_number(parent: Path) -> None:
    root = healthy().write(parent / "store")
    write_table_and_backup(root, "delayOffset.json", '{"offsetTable":{"a":5,2:7}}')


def offset_of_null(parent: Path) -> None:
    root = healthy().write(parent / "store")
    write_table_and_backup(root, "consumerOffset.json", '{"offsetTable":{"Orders@billing":{0:null}}}')


def offsets_cut_without_backup(parent: Path) -> None:
    root = healthy().write(parent / "store")
    table(root, "consumerOffset.json", '{"offsetTable":{"Orders@billing":{0:3')


def numbers_as_text(parent: Path) -> None:
    """A broker converts these numbers: it loads the table, and nothing is wrong."""
    root = healthy().write(parent / "store")
    write_table_and_backup(root, "consumerOffset.json", '{"offsetTable":{"Orders@billing":{0:"3",1:3.0}}}')


def _goes_on(handmade: HandmadeStore, minutes: int) -> None:
    """Let the broker store a message a minute."""
    for _ in range(minutes):
        handmade.put(step=MINUTE)


def timer_stands(parent: Path) -> None:
    """A timed message was due; the wheel's hand did not reach it though the broker ran for half an hour more."""
    store = HandmadeStore()
    due = START + 5 * MINUTE
    store.put(TIMER, 0, more={"REAL_TOPIC": "Orders", "REAL_QID": "0", "TIMER_OUT_MS": str(due)})
    _goes_on(store, 30)
    root = store.write(parent / "store")
    (root / "config").mkdir()
    check = timer.TimerCheck(START + MINUTE, 0, 1, 1, 0, 0, 0)
    (root / "config" / "timercheck").write_bytes(check.encoded())


def timer_waits(parent: Path) -> None:
    """The same store, closed before the message was due: nothing stands still."""
    store = HandmadeStore()
    store.put(TIMER, 0, more={"REAL_TOPIC": "Orders", "REAL_QID": "0", "TIMER_OUT_MS": str(START + 90 * MINUTE)})
    _goes_on(store, 30)
    root = store.write(parent / "store")
    (root / "config").mkdir()
    check = timer.TimerCheck(START + 30 * MINUTE, 0, 1, 1, 0, 0, 0)
    (root / "config" / "timercheck").write_bytes(check.encoded())


def transactions_stand(parent: Path) -> None:
    store = HandmadeStore()
    for _ in range(3):
        store.put(HALF, 0, more={"REAL_TOPIC": "Orders", "REAL_QID": "0", "TRAN_MSG": "true"})
    _goes_on(store, 60)
    root = store.write(parent / "store")
    table(root, "consumerOffset.json", json.dumps({"offsetTable": {f"{HALF}@CID_RMQ_SYS_TRANS": {"0": 0}}}))


def check_point(due: int) -> bytes:
    """Return the body of a pop's checkpoint whose messages are visible again at ``due`` (ms)."""
    return pop.CheckPoint("Orders", "popping", 0, 0, due - 10_000, 10_000, "broker-a", (0, 1)).body()


def revive_stands(parent: Path) -> None:
    """A checkpoint of a pop is due; the service ignores it for twenty minutes in which other messages come."""
    handmade = HandmadeStore()
    handmade.put()
    handmade.put(REVIVE, 0, body=check_point(handmade.time), tags="ck")
    _goes_on(handmade, 30)
    root = handmade.write(parent / "store")
    table(root, "consumerOffset.json", '{"offsetTable":{}}')


def popped_messages_are_handled(parent: Path) -> None:
    """A real 5.3.3 and 5.5.1 leave this: the offset is that of the last checkpoint; its acknowledgements follow."""
    handmade = HandmadeStore()
    handmade.put()
    handmade.put(REVIVE, 0, body=check_point(handmade.time), tags="ck")
    for offset in (0, 1):
        ack = pop.Ack("Orders", "popping", 0, 0, handmade.time - 10_000, "broker-a", offset)
        handmade.put(REVIVE, 0, body=ack.body(), tags="ack")
    _goes_on(handmade, 30)
    root = handmade.write(parent / "store")
    offsets = {f"{REVIVE}@CID_RMQ_SYS_REVIVE_GROUP": {"0": 0}}
    table(root, "consumerOffset.json", json.dumps({"offsetTable": offsets}))


def revive_stands_at_damage(parent: Path) -> None:
    """A record of the revive topic cannot be parsed: PopReviveService fails at it again and again."""
    handmade = HandmadeStore()
    handmade.put()
    handmade.put(REVIVE, 0, body=b"{damaged", tags="ack")
    handmade.put(REVIVE, 0, body=check_point(handmade.time), tags="ck")
    _goes_on(handmade, 30)
    root = handmade.write(parent / "store")
    table(root, "consumerOffset.json", '{"offsetTable":{}}')


def transactions_are_decided(parent: Path) -> None:
    """The check did not run, but all half messages were committed or rolled back: nothing waits."""
    handmade = HandmadeStore()
    for _ in range(3):
        handmade.put(HALF, 0, more={"REAL_TOPIC": "Orders", "REAL_QID": "0", "TRAN_MSG": "true"})
    handmade.put(OP, 0, body=b"0,1,2,", tags="d")
    _goes_on(handmade, 60)
    root = handmade.write(parent / "store")
    table(root, "consumerOffset.json", json.dumps({"offsetTable": {f"{HALF}@CID_RMQ_SYS_TRANS": {"0": 0}}}))


def half_message_is_refused(parent: Path) -> None:
    """The check cannot store the first half message again: its body is longer than maxMessageSize."""
    handmade = HandmadeStore()
    for body in (bytes(700), b"small"):
        handmade.put(HALF, 0, body=body, more={"REAL_TOPIC": "Orders", "REAL_QID": "0", "TRAN_MSG": "true"})
    _goes_on(handmade, 60)
    root = handmade.write(parent / "store")
    table(root, "consumerOffset.json", '{"offsetTable":{}}')
    (parent / "broker.conf").write_text("maxMessageSize=512\n")


def timer_refuses_a_large_message(parent: Path) -> None:
    """A real 5.3.3 with the default maxMessageSize and a body of 4 MiB: the timer stopped at that message, nothing
    after it was delivered, and check found no problem.
    """
    handmade = HandmadeStore()
    for body in (b"small", bytes(700), b"small"):
        due = START + 600 * MINUTE
        properties = {"REAL_TOPIC": "Orders", "REAL_QID": "0", "TIMER_OUT_MS": str(due)}
        handmade.put(TIMER, 0, body=body, more=properties)
    _goes_on(handmade, 30)
    root = handmade.write(parent / "store")
    (root / "config").mkdir()
    check = timer.TimerCheck(START + 30 * MINUTE, 0, 1, 1, 0, 0, 0)
    (root / "config" / "timercheck").write_bytes(check.encoded())
    (parent / "broker.conf").write_text("maxMessageSize=512\n")


def level_waited_while_no_broker_ran(parent: Path) -> None:
    """Closed while a message waited, and started ten hours later for a second: nothing stands still."""
    store = HandmadeStore()
    delayed = store.put("SCHEDULE_TOPIC_XXXX", 2, more={"REAL_TOPIC": "Orders", "REAL_QID": "0", "DELAY": "3"})
    delayed.tags_code = delayed.store_timestamp + 10_000
    store.put(step=1000)
    store.put(step=600 * MINUTE)
    store.put(step=500)
    root = store.write(parent / "store")
    table(root, "delayOffset.json", '{"offsetTable":{3:0}}')


def packed_batch(parent: Path) -> None:
    """Messages inside a packed inner batch: neither index nor the bytes of the log have their keys."""
    store = HandmadeStore()
    members = b"".join(
        batch.encode(0, f"body {n}".encode(), {"KEYS": f"K{n}", "UNIQ_KEY": f"M{n:04}"}) for n in range(3)
    )
    packed = zlib.compress(members)
    unit = store.put("Batched", 0, body=packed, sys_flag=0x80 | 0x1, more={"INNER_NUM": "3", "INNER_BASE": "0"})
    store.next_offsets.pop(("Batched", 0))
    store.put()
    root = store.write(parent / "store")
    entry = struct.pack(">qiqqqhi", unit.offset, unit.size, 0, unit.store_timestamp, 0, 3, 0).ljust(46, b"\0")
    write_queue(root / "batchconsumequeue" / "Batched" / "0", entry, 46 * 10)
    topics = {"Batched": {"attributes": {"queue.type": "BatchCQ"}, "readQueueNums": 1, "writeQueueNums": 1}}
    table(root, "topics.json", json.dumps({"topicConfigTable": topics | {"Orders": {}}}))


def two_files_of_one_name(parent: Path) -> None:
    """Two paths have a file of the same name, and neither is zeros."""
    store = healthy()
    root = store.write(parent / "store")
    for disk in ("disk1", "disk2"):
        (parent / disk).mkdir()
    for number, file in enumerate(sorted((root / "commitlog").iterdir())):
        (parent / ("disk1" if number % 2 == 0 else "disk2") / file.name).write_bytes(file.read_bytes())
    first_file = min((root / "commitlog").iterdir())
    (parent / "disk2" / first_file.name).write_bytes(b"x" * len(first_file.read_bytes()))


def properties_of_70000(parent: Path) -> None:
    """Properties of 70,000 bytes: their 16-bit length overflows to a number that looks sound."""
    store = HandmadeStore(log_size=1 << 18)
    store.put()
    long = store.put(more={"note": "c" * 69_953})
    store.put()
    root = store.write(parent / "store")
    _ = long
    assert root.exists()


def foreign_log(parent: Path) -> None:
    root = healthy().write(parent / "store")
    for number, file in enumerate(sorted((root / "commitlog").iterdir())):
        file.write_bytes((b"2026-11-28 INFO line %d of another program\n" % number * 200)[:4096])


def jump_behind_a_clean_close(parent: Path) -> None:
    """A slave was away, its store was closed in order: the queues end at 3, and the log continues with later
    numbers.
    """
    root = healthy().write(parent / "store")
    min((root / "commitlog").iterdir()).unlink()
    (root / "abort").touch()
    for path in (root / "consumequeue").rglob("0*"):
        if path.name == f"{0:020d}":
            patch(path, 60, bytes(path.stat().st_size - 60))
        elif path.is_file():
            path.unlink()


def light_offsets_of_another_log(parent: Path) -> None:
    """Every group is far beyond its queue, and below zero in one: the log was deleted and begun anew."""
    root = healthy().write(parent / "store")
    offsets = {"Orders@billing": {"0": 4000, "1": 5000}, "Payments@audit": {"0": 900, "1": -1}}
    table(root, "consumerOffset.json", json.dumps({"offsetTable": offsets}))


def last_log_file_half_made(parent: Path) -> None:
    """The disk was full while the broker made its next file."""
    root = healthy().write(parent / "store")
    (root / "commitlog" / f"{12288:020d}").write_bytes(bytes(1000))


def last_log_file_cut_behind_its_messages(parent: Path) -> None:
    root = healthy().write(parent / "store")
    os.truncate(max((root / "commitlog").iterdir()), 2000)


def _delayed_minutes_ago(parent: Path, *, delivered: bool) -> None:
    """A message of delay level 3 was due half an hour ago, and delayOffset.json does not name the level."""
    store = HandmadeStore()
    extra = {"REAL_TOPIC": "Orders", "REAL_QID": "0", "DELAY": "3"}
    delayed = store.put("SCHEDULE_TOPIC_XXXX", 2, more=extra)
    delayed.tags_code = delayed.store_timestamp + 10_000
    if delivered:
        store.put(unique="U00000")
    _goes_on(store, 30)
    root = store.write(parent / "store")
    table(root, "delayOffset.json", '{"offsetTable":{1:0}}')


def level_of_another_release(parent: Path) -> None:
    """A broker of 4.9 left the store, and a release without a delay service continued: nothing was delivered."""
    _delayed_minutes_ago(parent, delivered=False)


def level_without_its_offset(parent: Path) -> None:
    _delayed_minutes_ago(parent, delivered=True)


def groups_edited_by_hand(parent: Path) -> None:
    """A name without quotes: 5.3 loads it, 5.5 ends."""
    root = healthy().write(parent / "store")
    write_table_and_backup(
        root, "subscriptionGroup.json", '{subscriptionGroupTable:{"billing":{"groupName":"billing"}},"dataVersion":{}}'
    )


def groups_with_a_remark(parent: Path) -> None:
    root = healthy().write(parent / "store")
    text = '// retries were 16 before\n{"subscriptionGroupTable":{"billing":{"groupName":"billing"}},"dataVersion":{}}'
    write_table_and_backup(root, "subscriptionGroup.json", text)


def table_and_backup_of_zeros(parent: Path) -> None:
    root = healthy().write(parent / "store")
    table(root, "consumerOffset.json", "")
    for name in ("consumerOffset.json", "consumerOffset.json.bak"):
        (root / "config" / name).write_bytes(bytes(599))


def index_of_another_store(parent: Path) -> None:
    """A store of 5.4 or later has another store's index: its entries do not show the release."""
    store, other_store = HandmadeStore(tag_entries=True), HandmadeStore()
    for _ in range(20):
        store.put("Orders", tags="A")
        other_store.put("Bills!", tags="A")
    root, foreign = store.write(parent / "store"), other_store.write(parent / "other")
    (root / "rocksdbstore").mkdir()
    shutil.rmtree(root / "index")
    shutil.move(foreign / "index", root / "index")


def log_of_another(parent: Path) -> None:
    store = healthy()
    log_of_another_store(store.write(parent / "store"), store)


def log_of_another_after_a_crash(parent: Path) -> None:
    log_of_another(parent)
    (parent / "store" / "abort").touch()


def queues_of_another(parent: Path) -> None:
    """Log and index belong to one store, the queues to another."""
    store = healthy()
    root = store.write(parent / "store")
    other_store = HandmadeStore()
    for number in range(40):
        other_store.put("Stock", number % 2, body=b"x" * (17 + number))
    other_store.write(parent / "other")
    shutil.rmtree(root / "consumequeue")
    shutil.move(parent / "other" / "consumequeue", root / "consumequeue")


def topic_folder_twice(parent: Path) -> None:
    """Somebody kept a copy of a topic's folder beside it: a broker takes it for a topic."""
    root = healthy().write(parent / "store")
    shutil.copytree(root / "consumequeue" / "Orders", root / "consumequeue" / "Orders.bak")


def config_of_another(parent: Path) -> None:
    store = healthy()
    tables_of_another_broker(store.write(parent / "store"), store)


def _with_checkpoint(parent: Path, data: bytes, *, crashed: bool) -> None:
    root = healthy().write(parent / "store", abort=crashed)
    (root / "checkpoint").write_bytes(data)


def checkpoint_of_random_bytes(parent: Path) -> None:
    _with_checkpoint(parent, random.Random(7).randbytes(4096), crashed=False)


def checkpoint_of_text(parent: Path) -> None:
    _with_checkpoint(parent, (b"2026-11-28 ERROR no space left on device\n" * 100)[:4096], crashed=True)


def group_that_may_not_consume(parent: Path) -> None:
    store = healthy()
    group_barred(store.write(parent / "store"), store)


def topic_that_may_not_be_read(parent: Path) -> None:
    root = healthy().write(parent / "store")
    topics = {"Orders": {"perm": 2}, "Payments": {"perm": 6}}
    table(root, "topics.json", json.dumps({"topicConfigTable": topics}))
    table(root, "consumerOffset.json", json.dumps({"offsetTable": {"Orders@billing": {"0": 1}}}))


def wheel_in_snapshots(parent: Path) -> None:
    timer_waits(parent)
    with (parent / "store" / "timerwheel.0").open("wb") as file:
        file.truncate(timer.WHEEL_SIZE)


def index_turned_off(parent: Path) -> None:
    """A broker built an index, and continues without one."""
    root = healthy().write(parent / "store")
    for path in sorted((root / "index").iterdir())[1:]:
        path.unlink()


def never_an_index(parent: Path) -> None:
    healthy().write(parent / "store", index=False)


def copy_that_ended(parent: Path) -> None:
    store = healthy()
    copied_names_only(store.write(parent / "store"), store)


def copy_in_text_mode(parent: Path) -> None:
    store = HandmadeStore(log_size=1 << 14)
    for number in range(60):
        store.put(body=b"line\nand\nline %d\n" % number)
    root = store.write(parent / "store")
    for path in (root / "commitlog").iterdir():
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


def log_file_renamed(parent: Path) -> None:
    root = healthy().write(parent / "store")
    path = sorted((root / "commitlog").iterdir())[1]
    path.rename(path.with_suffix(".bak"))


def log_files_shifted(parent: Path) -> None:
    """The first file is gone, and the others have the names of those before them."""
    root = healthy().write(parent / "store")
    files = sorted((root / "commitlog").iterdir())
    files[0].unlink()
    for earlier, file in pairwise(files):
        file.rename(earlier)


def log_files_packed(parent: Path) -> None:
    root = healthy().write(parent / "store")
    path = min((root / "commitlog").iterdir())
    (root / "commitlog" / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()


def log_names_without_zeros(parent: Path) -> None:
    root = healthy().write(parent / "store")
    for path in sorted((root / "commitlog").iterdir()):
        path.rename(path.with_name(str(int(path.name))))


def queue_names_without_zeros(parent: Path) -> None:
    root = healthy().write(parent / "store")
    for path in sorted((root / "consumequeue" / "Orders" / "0").iterdir()):
        path.rename(path.with_name(str(int(path.name))))


def log_one_folder_deeper(parent: Path) -> None:
    root = healthy().write(parent / "store")
    (root / "commitlog").rename(root / "log")
    (root / "commitlog").mkdir()
    (root / "log").rename(root / "commitlog" / "commitlog")


def topics_in_lower_case(parent: Path) -> None:
    root = healthy().write(parent / "store")
    for path in sorted((root / "consumequeue").iterdir()):
        path.rename(path.with_name(path.name.lower()))


def table_in_lower_case(parent: Path) -> None:
    store = healthy()
    store.put(more={"CLUSTER": "DefaultCluster"})
    root = store.write(parent / "store")
    table(root, "consumerFilter.json", "{}")
    table(root, "topics.json", json.dumps({"topicConfigTable": {"Orders": {}, "Payments": {}}}))
    table(root, "consumeroffset.json", '{"offsetTable":{"Orders@billing":{0:1}}}')


def older_copy_of_the_log(parent: Path) -> None:
    """Log, queues and index are from the last backup, the offsets from today."""
    root = healthy(30).write(parent / "store")
    offsets = {"Orders@billing": {"0": 40, "1": 44}, "Payments@billing": {"0": 50}}
    table(root, "consumerOffset.json", json.dumps({"offsetTable": offsets}))


def queue_files_padded(parent: Path) -> None:
    """A tool that writes whole blocks made every queue file longer."""
    root = healthy(90).write(parent / "store")
    for path in (root / "consumequeue").rglob("0*"):
        if path.is_file():
            data = path.read_bytes()
            path.write_bytes(data + bytes(-len(data) % 512))


def empty_queue_file_at_the_end(parent: Path) -> None:
    root = healthy().write(parent / "store")
    (root / "consumequeue" / "Orders" / "0" / f"{400:020d}").write_bytes(b"")


def retention_deletes(root: Path, count: int) -> None:
    """Delete the first ``count`` files of the log, and files of queues and index that lead to nothing else."""
    files = sorted((root / "commitlog").iterdir())
    for path in files[:count]:
        path.unlink()
    start = int(files[count].name)
    for folder in (root / "consumequeue").glob("*/*"):
        for path in sorted(folder.iterdir())[:-1]:
            if struct.unpack_from(">q", path.read_bytes(), path.stat().st_size - 20)[0] < start:
                path.unlink()
    for path in sorted((root / "index").iterdir())[:-1]:
        if struct.unpack_from(">q", path.read_bytes(), 24)[0] < start:
            path.unlink()


def older_files_in_front(parent: Path) -> None:
    """A copy over an older copy: its first two files of the log were deleted by retention meanwhile, and stay."""
    root = healthy(240).write(parent / "store")
    old = [(path, path.read_bytes()) for path in sorted((root / "commitlog").iterdir())[:2]]
    retention_deletes(root, 5)
    for path, data in old:
        path.write_bytes(data)


def middle_file_gone_after_retention(parent: Path) -> None:
    """Retention deleted the first files; later a file in the middle was lost."""
    root = healthy(240).write(parent / "store")
    retention_deletes(root, 3)
    sorted((root / "commitlog").iterdir())[2].unlink()


def index_file_renamed(parent: Path) -> None:
    """The newest index file has the name of an older time."""
    root = healthy().write(parent / "store")
    files = sorted((root / "index").iterdir())
    files[-1].rename(root / "index" / "20230101000000000")


def index_names_swapped(parent: Path) -> None:
    root = healthy().write(parent / "store")
    files = sorted((root / "index").iterdir())
    content = files[0].read_bytes()
    files[0].write_bytes(files[2].read_bytes())
    files[2].write_bytes(content)


def index_names_of_summer_time(parent: Path) -> None:
    """Summer time ended while the broker wrote: names are in local time, so one hour occurs twice."""
    root = healthy().write(parent / "store")
    files = sorted((root / "index").iterdir())
    for number, path in enumerate(files):
        path.rename(root / "index" / (f"20241027025959{number:03d}" if number < 2 else f"20241027020000{number:03d}"))


def log_file_half_copied(parent: Path) -> None:
    """An interrupted copy left its working file beside the file that it was about to replace."""
    root = healthy().write(parent / "store")
    path = sorted((root / "commitlog").iterdir())[1]
    (root / "commitlog" / f".{path.name}.aB3dEf").write_bytes(path.read_bytes()[:1000])


def queue_file_half_made(parent: Path) -> None:
    """The disk was full while the broker made a queue's next file."""
    root = healthy().write(parent / "store")
    folder = root / "consumequeue" / "Orders" / "0"
    (folder / f"{sum(path.stat().st_size for path in folder.iterdir()):020d}").write_bytes(bytes(120))


def index_file_half_made(parent: Path) -> None:
    root = healthy().write(parent / "store")
    (root / "index" / "20240102000000000").write_bytes(bytes(100))


def queue_folder_with_a_zero(parent: Path) -> None:
    """Somebody kept a copy of a queue under a name that is the same number."""
    root = healthy().write(parent / "store")
    shutil.copytree(root / "consumequeue" / "Orders" / "0", root / "consumequeue" / "Orders" / "00")


def files_of_a_desktop(parent: Path) -> None:
    """A file manager left its files in the folders of topics and of the index: every release ignores them."""
    root = healthy().write(parent / "store")
    for folder in ("consumequeue", "consumequeue/Orders", "index"):
        (root / folder / ".DS_Store").write_bytes(bytes(6148))


def log_on_a_disk_that_is_not_mounted(parent: Path) -> None:
    """commitlog is a link to another disk."""
    root = healthy().write(parent / "store")
    shutil.rmtree(root / "commitlog")
    (root / "commitlog").symlink_to(parent / "disk" / "commitlog")


def topic_folder_gone(parent: Path) -> None:
    root = healthy().write(parent / "store")
    shutil.rmtree(root / "consumequeue" / "Orders")
    table(root, "topics.json", json.dumps({"topicConfigTable": {"Orders": {}, "Payments": {}}}))


STATES: dict[str, ReportState] = {
    "older files of the log are back in front": ReportState(
        older_files_in_front,
        (
            Command(
                "check STORE",
                (
                    "2 files of an older copy of the commit log came back in front",
                    "Lost already: no message",
                    "Lost by the next start .*: no message",
                    "the queue .* begins at entry [0-9]+, so retention had deleted the log in front of 20,480",
                    "nothing is lost between 8,192 and 20,480",
                    "mv [^ ]*/commitlog/0{20} [^ ]*/commitlog/00000000000000004096 ELSEWHERE",
                ),
                ("No file holds", r"error\s", "CQ01", "RP01", "missing"),
                exit=0,
            ),
            Command("recover STORE --plan", ("Lost by this start .*: no message",), ("in no queue",)),
            Command("where STORE Orders/0/1", ("expired", "came back with an older copy"), ("notInQueue", "build")),
        ),
    ),
    "a copy left its working file beside a log file": ReportState(
        log_file_half_copied,
        (
            Command(
                "check STORE",
                (
                    r"\.00000000000000004096\.aB3dEf holds messages of the log from 4,096 on",
                    "has a file of its own for this place",
                ),
                ("renamed", "rename the file"),
                exit=1,
            ),
        ),
    ),
    "the disk was full while a queue file was made": ReportState(
        queue_file_half_made,
        (
            Command(
                "check STORE",
                ("was never completed: the disk was full", "no entry is missing", "Move the file out of the folder"),
                ("was cut", "storescope dispatch"),
                exit=1,
            ),
        ),
    ),
    "the disk was full while an index file was made": ReportState(
        index_file_half_made,
        (Command("check STORE", (r"note\s+IX10", "no key is missing"), ("are not found", "dispatch"), exit=0),),
    ),
    "a queue's folder was copied as 00": ReportState(
        queue_folder_with_a_zero,
        (
            Command("check STORE", ("no problems found",), ("CQ11",), exit=0),
            Command("recover STORE --plan --release 5.3", ("RocketMQ 5.3 would start: yes",)),
        ),
    ),
    "the log is a link to a disk that is not mounted": ReportState(
        log_on_a_disk_that_is_not_mounted,
        (Command("check STORE", ("a link to .*disk/commitlog, where nothing is: is its disk mounted",), exit=3),),
    ),
    "a file manager left files in the folders": ReportState(
        files_of_a_desktop, (Command("check STORE", ("no problems found",), exit=0),)
    ),
    "a middle file is lost where retention had deleted others": ReportState(
        middle_file_gone_after_retention,
        (Command("check STORE", ("No file holds the 4,096 bytes", "messages lost"), ("older copy",), exit=1),),
    ),
    "an index file has the name of an older time": ReportState(
        index_file_renamed,
        (
            Command(
                "check STORE",
                (
                    "IX11",
                    "The name of 20230101000000000 does not follow its content",
                    "Nothing is lost",
                    "mv [^ ]*/index/20230101000000000 [^ ]*/index/20240101000000",
                ),
                (r"error\s",),
                exit=0,
            ),
        ),
    ),
    "the names of two index files are swapped": ReportState(
        index_names_swapped,
        (Command("check STORE", ("IX11", "nor those of 1 more file", "storescope dispatch"), exit=0),),
    ),
    "summer time ended while index files were created": ReportState(
        index_names_of_summer_time,
        (Command("check STORE", (r"note\s+IX11", "summer time ended"), (r"warn\s+IX11", "In short"), exit=0),),
    ),
    "the log is another store's": ReportState(
        log_of_another,
        (
            Command(
                "check STORE",
                (
                    "CL14",
                    "Queues and commit log do not fit together",
                    "one of the two is of another store",
                    "Lost already: unknown",
                    "the index leads to the places that the queues name",
                    "do not rebuild queues from this log",
                ),
                (
                    "never written",
                    r"In short.*storescope dispatch.*Severity",
                    r"error\s+CQ",
                    "the index of another store",
                ),
                exit=1,
            ),
        ),
    ),
    "the log is another store's, after a crash": ReportState(
        log_of_another_after_a_crash,
        (
            Command(
                "check STORE",
                ("broker was not closed, and queues and commit log do not fit together", "Lost by .*: unknown"),
                ("never written", r"error\s+CQ"),
                exit=1,
            ),
        ),
    ),
    "the queues are another store's": ReportState(
        queues_of_another,
        (
            Command(
                "check STORE",
                (
                    "CL14",
                    "the index leads to units of this log",
                    "Restore the queues that belong to this log",
                    "storescope dispatch",
                ),
                ("never written", r"error\s+CQ"),
                exit=1,
            ),
        ),
    ),
    "a topic's folder was copied beside it": ReportState(
        topic_folder_twice,
        (
            Command(
                "check STORE",
                (
                    r"The log has no unit of 2 of 6 queues .*Orders\.bak/0, Orders\.bak/1",
                    r"Orders\.bak/0 has the entries of Orders/0",
                    "Move these folders out of consumequeue",
                ),
                ("never written", r"error\s+CQ", "storescope dispatch"),
                exit=1,
            ),
        ),
    ),
    "the tables are another broker's": ReportState(
        config_of_another,
        (
            Command(
                "check STORE",
                (
                    "CF14",
                    r"topics\.json lacks 2 of 2 topics with messages \(Orders, Payments\)",
                    r"groups have offsets in 2 topics of which the store has nothing \(Prices, Stock\)",
                    "Until then declare no topic and reset no offset",
                ),
                (r"warn\s+CQ14", "mqadmin updateTopic -b BROKER -t Orders .*In short", "A topic was deleted and"),
                exit=1,
            ),
        ),
    ),
    "the checkpoint is random bytes": ReportState(
        checkpoint_of_random_bytes,
        (
            Command(
                "check STORE",
                (
                    "CK05",
                    "numbers that no broker writes",
                    "physicMsgTimestamp",
                    "does not choose its first file by them",
                ),
                ("CK03", "CK04", "CL11", "lost its tail", "years behind", "another store's"),
                exit=0,
            ),
            Command("recover STORE --plan", ("numbers that no broker writes",), ("Written by RocketMQ 5.5",)),
        ),
    ),
    "the checkpoint is text, after a crash": ReportState(
        checkpoint_of_text,
        (
            Command(
                "check STORE",
                ("CK05", r"a start of 4\.9, .* begins at the file \d+ by them", "on a copy without the checkpoint"),
                ("CL11", "lost its tail", "another store's", "CK02"),
                exit=1,
            ),
        ),
    ),
    "a group may not consume": ReportState(
        group_that_may_not_consume,
        (
            Command("check STORE", ("CF15", r"billing may not consume .*\(3 in all\)", "consumeEnable"), exit=0),
            Command("groups STORE", ("billing may not consume: subscriptionGroup.json says consumeEnable=false",)),
            Command(
                "where STORE Orders/0/19 --group billing",
                ("notConsumed", "consumeEnable=false", "the broker refuses to hand it out"),
                ("look at its progress",),
            ),
            Command("where STORE Orders/0/0 --group billing", ("consumed",), ("refuses to hand it out",)),
        ),
    ),
    "a topic may not be read": ReportState(
        topic_that_may_not_be_read,
        (
            Command("check STORE", ("CF07", "may not be read", "unread by billing"), exit=1),
            Command("groups STORE", (r"Orders may not be read: topics.json says perm 2",)),
            Command("where STORE Orders/0/5", ("perm 2", "the broker refuses to hand it out"), ("can be read: look",)),
            Command("where STORE Payments/0/0", ("found",), ("refuses",)),
        ),
    ),
    "the timer wheel is in snapshots": ReportState(
        wheel_in_snapshots,
        (
            Command("check STORE", (), ("TM03",), exit=0),
            Command(
                "info STORE", (r"timerwheel\.0: 0 messages wait; a start with timerWheelSnapshotFlush=true takes it",)
            ),
            Command(
                "put STORE --topic Orders --body tea --yes --config HERE/broker.conf", ("timerWheelSnapshotFlush",)
            ),
        ),
        {"timerWheelSnapshotFlush": "true"},
    ),
    "the broker was told to build no more index": ReportState(
        index_turned_off,
        (
            Command("check STORE --config HERE/broker.conf", (), ("IX05", "IX10"), exit=0),
            Command("pipeline verify STORE --no-spark --config HERE/broker.conf", (), ("IX05", "IX10"), exit=0),
            Command("check STORE", ("IX05",)),
        ),
        {"messageIndexEnable": "false"},
    ),
    "the broker builds no index": ReportState(
        never_an_index,
        (
            Command("check STORE --config HERE/broker.conf", (), ("IX05", "IX10"), exit=0),
            Command("check STORE", ("IX10", "messageIndexEnable=false")),
        ),
        {"messageIndexEnable": "false"},
    ),
    "a table and its backup are zeros": ReportState(
        table_and_backup_of_zeros,
        (
            Command(
                "check STORE",
                ("CF01", "599 zero bytes and nothing else", "its .bak cannot be read either", "does not start"),
                ("Compare the file with its .bak",),
                exit=1,
            ),
        ),
    ),
    "a copy ended before its files were whole": ReportState(
        copy_that_ended,
        (
            Command(
                "check STORE",
                ("DK04", "files of the store are empty", "copy the store again", "Lost already: unknown"),
                (r"error\s+CQ", "storescope dispatch .*Severity"),
                exit=1,
            ),
            Command("recover STORE --plan", ("would start: no",), exit=1),
        ),
    ),
    "the files were copied in text mode": ReportState(
        copy_in_text_mode,
        (
            Command(
                "check STORE",
                (
                    "DK04",
                    "transferred in text mode",
                    "Copy the files again in binary mode",
                    "by the next start .*: unknown",
                ),
                (r"error\s+CL", "mappedFileSizeCommitLog that the other", "overwritten"),
                exit=1,
            ),
        ),
    ),
    "a log file was renamed": ReportState(
        log_file_renamed,
        (
            Command(
                "check STORE",
                (r"renamed to 0+4096\.bak", r"mv .*0+4096\.bak .*0+4096", "Lost already: no message"),
                ("messages lost", "never rename", "is missing", "Move it out of the store"),
                exit=1,
            ),
            Command("where STORE Orders/0/10", ("unknown", r"0+4096\.bak", "says of CL07"), ("compare the damaged",)),
        ),
    ),
    "log files have the names of those before them": ReportState(
        log_files_shifted,
        (
            Command(
                "check STORE",
                (
                    "CL05",
                    "the file was renamed",
                    "begin with the last file",
                    r"0+4096 of the commit log was renamed to 0+\b",
                ),
                ("of another log", "restore this log's own file", "storescope copy"),
                exit=1,
            ),
            Command("where STORE U00058", ("belongs at another offset", "CL05"), ("build the queues again",)),
        ),
    ),
    "log files were packed": ReportState(
        log_files_packed,
        (
            Command(
                "check STORE",
                (r"0+ of the commit log was packed \(0+\.gz\)", "Unpack the file in its place"),
                ("Move it out of the store's folders", "something was put"),
                exit=1,
            ),
            Command("where STORE Orders/0/0", ("unknown", r"0+\.gz", "says of CL07"), ("retention", "expired")),
        ),
    ),
    "log files lost the zeros of their names": ReportState(
        log_names_without_zeros,
        (Command("check STORE", ("CL07", "names of 20 digits", "sort files by their names as text"), exit=1),),
    ),
    "queue files lost the zeros of their names": ReportState(
        queue_names_without_zeros,
        (Command("check STORE", ("CQ01", "Orders/0: files have no names of 20 digits", "20 digits back"), exit=1),),
    ),
    "the log stands one folder deeper": ReportState(
        log_one_folder_deeper,
        (
            Command(
                "check STORE",
                ("CL12", "commitlog/commitlog", "one folder up"),
                ("disk mounted", r"happened: \S+ \S+ log is"),
                exit=1,
            ),
        ),
    ),
    "topics have folders in lower case": ReportState(
        topics_in_lower_case,
        (
            Command(
                "check STORE",
                ("CL14", "another case", "orders for Orders", "mv orders Orders", "exact names of their topics"),
                ("head of a message was changed", r"error\s+C[QL]0", "storescope dispatch .*Severity"),
                exit=1,
            ),
            Command("where STORE Orders/0/0", ("orders has one, a name in another case", "give that its name back")),
        ),
    ),
    "a table has a name in lower case": ReportState(
        table_in_lower_case,
        (
            Command(
                "check STORE",
                ("CF03", r"but as consumeroffset\.json", r"mv .*config/consumeroffset\.json .*consumerOffset\.json"),
                ("was deleted or not copied",),
                exit=1,
            ),
        ),
    ),
    "the log is an older copy": ReportState(
        older_copy_of_the_log,
        (
            Command(
                "check STORE",
                ("CF12", "read more messages than the log ever held", "or is an older copy"),
                ("The log was begun anew: it holds",),
            ),
        ),
    ),
    "queue files were padded": ReportState(
        queue_files_padded,
        (
            Command(
                "check STORE", ("CQ01", "expected 400 bytes like the other files, found 512", "does not start"), exit=1
            ),
            Command("recover STORE --plan", ("would start: no",), exit=1),
        ),
    ),
    "a queue's last file has no byte": ReportState(
        empty_queue_file_at_the_end,
        (
            Command(
                "check STORE",
                ("CQ01", "nothing was written into it", "emove the empty file", "4.9 does not start"),
                ("broker died", "storescope dispatch"),
                exit=1,
            ),
        ),
    ),
    "a topic's folder is gone": ReportState(
        topic_folder_gone,
        (
            Command(
                "check STORE",
                ("CQ10", "if Orders was deleted and created again, these messages are from before"),
                exit=1,
            ),
        ),
    ),
    "timers go back to a release without them": ReportState(
        timer_waits,
        (
            Command("check STORE --release 4.9", ("DK03", "RocketMQ 4.9.8 has no timer wheel", "none is delivered")),
            Command("check STORE", (), ("DK03",), exit=0),
        ),
    ),
    "the index is another store's": ReportState(
        index_of_another_store,
        (
            Command("check STORE", ("IX06", "another store"), exit=1),
            Command("recover STORE --plan", ("Probably written by RocketMQ 5.4",), ("ritten by RocketMQ 5.3",)),
        ),
    ),
    "the last log file was half made": ReportState(
        last_log_file_half_made,
        (Command("check STORE", ("CL07", "never completed", "mv .*12288 ELSEWHERE"), ("replica",), exit=1),),
    ),
    "the last log file was cut behind its messages": ReportState(
        last_log_file_cut_behind_its_messages,
        (Command("check STORE", ("CL07", "only zeros are missing", "truncate -s 4096 "), ("replica",), exit=1),),
    ),
    "a delay level of another release": ReportState(
        level_of_another_release, (Command("check STORE", (), ("CF09",), exit=0),)
    ),
    "a delay level lost its offset": ReportState(
        level_without_its_offset, (Command("check STORE", ("CF09", r"were delivered \(3\)"), exit=0),)
    ),
    "a table was edited by hand": ReportState(
        groups_edited_by_hand,
        (
            Command("recover STORE --plan --release 5.5", ("would start: no",), exit=1),
            Command("check STORE --release 5.5", ("CF01", "subscriptionGroupTable' without quotes"), exit=1),
            Command("recover STORE --plan --release 5.3", ("RocketMQ 5.3 would start: yes",)),
        ),
    ),
    "a table has a remark": ReportState(
        groups_with_a_remark,
        (
            Command("check STORE", (), ("CF01",), exit=0),
            Command("recover STORE --plan --release 5.5", ("RocketMQ 5.5 would start: yes",)),
        ),
    ),
    "a group's setting is a word": ReportState(
        group_with_a_word,
        (
            Command("check STORE", ("CF01", "subscriptionGroup", "retryMaxTimes", "sixteen"), exit=1),
            Command("recover STORE --plan", ("would start: no",), exit=1),
        ),
    ),
    "a delay level is no number": ReportState(
        level_without_a_number,
        (
            Command("check STORE", ("CF01", "delayOffset"), exit=1),
            Command("recover STORE --plan", ("would start: no", "'a'"), exit=1),
        ),
    ),
    "an offset is null": ReportState(
        offset_of_null,
        (
            Command("check STORE", ("CF01", "found null"), exit=1),
            Command("config STORE", (), ("consumerOffset.json is sound",)),
            Command("groups STORE", ("consumerOffset.json", "found null"), ("no group has an offset",), exit=3),
            Command("space STORE", ("which groups still read a file: unknown",), exit=3),
            Command(
                "consumerProgress -s STORE -g billing",
                ("consumerOffset.json", "found null"),
                ("no offsets of",),
                exit=3,
            ),
            Command(
                "where STORE Orders/0/0 --group billing",
                ("It is unknown what the group has read", "group: .*found null"),
                ("has not reached it yet", "other brokers"),
                exit=3,
            ),
        ),
    ),
    "a table is cut, and has no backup": ReportState(
        offsets_cut_without_backup,
        (
            Command("check STORE", ("CF01", "it has no .bak that can be read"), ("Compare the file with its .bak",), 1),
            Command("groups STORE", ("consumerOffset.json",), ("no group has an offset",), exit=3),
        ),
    ),
    "offsets are texts and fractions": ReportState(
        numbers_as_text,
        (
            Command("check STORE", (), ("CF01",), exit=0),
            Command("groups STORE", (r"billing\s+Orders\s+0\s+3\b",)),
        ),
    ),
    "the timer wheel stands": ReportState(
        timer_stands,
        (
            Command("check STORE", ("CF13", "timer wheel", "1 message is overdue", "timerWheelEnable")),
            Command("where STORE U00000", ("has been at", "overdue")),
        ),
    ),
    "a timer waits": ReportState(timer_waits, (Command("check STORE", (), ("CF13", "overdue"), exit=0),)),
    "the check of transactions stands": ReportState(
        transactions_stand,
        (Command("check STORE", ("CF13", "check of transactions has been at 0", "3 messages")),),
    ),
    "the revive of pops stands": ReportState(
        revive_stands,
        (Command("check STORE", ("CF13", "revive of pops", "1 checkpoint is overdue", "timerWheelEnable is on")),),
    ),
    "the revive of pops has handled all": ReportState(
        popped_messages_are_handled, (Command("check STORE", (), ("CF13", "overdue"), exit=0),)
    ),
    "the revive of pops fails at a record": ReportState(
        revive_stands_at_damage,
        (Command("check STORE", ("CF13", "entry 0 is not JSON", "1 checkpoint is overdue", "CID_RMQ_SYS_REVIVE")),),
    ),
    "the check of transactions stands, and all are decided": ReportState(
        transactions_are_decided, (Command("check STORE", (), ("CF13", "overdue"), exit=0),)
    ),
    "the check of transactions stands at a large message": ReportState(
        half_message_is_refused,
        (
            Command(
                "check STORE --config HERE/broker.conf",
                ("CF13", "2 messages are overdue", "body of the first has 700 bytes", "Raise maxMessageSize above"),
            ),
            Command("where STORE U00001 --config HERE/broker.conf", ("^half", "check of transactions makes no")),
        ),
    ),
    "the timer stands at a large message": ReportState(
        timer_refuses_a_large_message,
        (
            Command(
                "check STORE --config HERE/broker.conf",
                ("CF13", "2 messages are not put into it", "more than 612 bytes", "aise maxMessageSize to the size"),
            ),
            Command("where STORE U00002 --config HERE/broker.conf", ("^delayed", "makes no progress")),
            Command("check STORE", (), ("CF13",)),
        ),
    ),
    "a level waited while no broker ran": ReportState(
        level_waited_while_no_broker_ran, (Command("check STORE", (), ("CF13", "overdue"), exit=0),)
    ),
    "a key inside a packed batch": ReportState(
        packed_batch,
        (
            Command("where STORE K2", ("member 2 of the batch", "no index holds keys of members"), ("neverSeen",)),
            Command("where STORE M0001", ("member 1 of the batch",), ("neverSeen",)),
            Command("queryMsgByKey -s STORE -t Batched -k K2", ("batch",)),
        ),
    ),
    "two files of one name": ReportState(
        two_files_of_one_name,
        (
            Command(
                "check STORE --config HERE/broker.conf --paths-from-config",
                ("CL07", "disk2", "reads from the other"),
                (r"ha(s|ve) no (RocketMQ )?message", "holds no message"),
                1,
            ),
            Command(
                "recover STORE --plan --config HERE/broker.conf --paths-from-config",
                (r"Lost by this start of RocketMQ [\d.]+: [^:]*every message that it acknowledges from then on",),
            ),
        ),
        {"storePathCommitLog": "HERE/disk1,HERE/disk2", "mappedFileSizeCommitLog": "4096"},
    ),
    "a log of another program": ReportState(
        foreign_log,
        (
            Command(
                "check STORE",
                ("have no RocketMQ message", "another program", "by the next start .*: unknown"),
                (r"\d+ messages lost",),
                1,
            ),
        ),
    ),
    "queue numbers jump": ReportState(
        jump_behind_a_clean_close,
        (
            Command(
                "check STORE", ("RP03", "numbers jump", "storescope dispatch"), ("do not change consumer offsets",), 1
            ),
            Command(
                "recover STORE --plan",
                ("Wrong queue offsets", r"Lost by this start of RocketMQ [\d.]+: \d+ messages get wrong queue offsets"),
                ("start of RocketMQ 5.3: no message",),
            ),
        ),
    ),
    "offsets of a log that was deleted": ReportState(
        light_offsets_of_another_log,
        (
            Command("check STORE", ("CF12", "start as new groups", "CF11"), ("log has deleted",)),
            Command("groups STORE", ("beyondMax", "notBegun")),
            Command("where STORE Orders/0/0 --group billing", ("beyond the end",), ("has read past",)),
        ),
    ),
}
