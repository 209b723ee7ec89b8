"""The commit log: offsets, ends of files, many threads, and the bytes of real stores for the same messages
(docs/formats/commit-log.md#append, docs/formats/consume-queue.md#queue-offsets).
"""

from __future__ import annotations

import errno
import threading

import pytest
from put_logs import NOW, PutLog

from engine.codec import message as codec
from engine.codec import properties
from engine.codec.encode import Message
from engine.codec.unit_scan import Blank
from engine.mapped.mapped_file import MappedFile
from engine.store.put_message import AppendMessageStatus, PutMessageStatus

Status = PutMessageStatus


def test_units_follow_each_other(tmp_path) -> None:
    put = PutLog(tmp_path)
    first_append = put.log.put_message(Message("T", b"one", 1)).append
    put.now += 5
    second_append = put.log.put_message(Message("T", b"second", 1)).append
    assert (first_append.physical_offset, first_append.queue_offset, first_append.store_timestamp) == (0, 0, NOW)
    assert (second_append.physical_offset, second_append.queue_offset, second_append.store_timestamp) == (
        first_append.size,
        1,
        NOW + 5,
    )
    assert [(unit.offset, unit.queue_offset, unit.body, unit.stale) for unit in put.units()] == [
        (0, 0, b"one", False),
        (first_append.size, 1, b"second", False),
    ]
    assert put.log.wrote == put.log.max_offset == second_append.end_offset
    assert put.files.files[0].store_timestamp == NOW + 5


def test_a_birth_without_a_time_is_now(tmp_path) -> None:
    unit = (put := PutLog(tmp_path)).unit(put.log.put_message(Message("T", b"x")))
    assert (unit.born_timestamp, unit.born_host, unit.store_host) == (NOW, "127.0.0.1:0", "127.0.0.1:10911")


def test_every_queue_counts_for_itself(tmp_path) -> None:
    put = PutLog(tmp_path)
    offsets = [
        put.log.put_message(Message(t, b"x", q)).append.queue_offset
        for t, q in ["A0", "A1", "A0", "B0", "A0"]
        for q in [int(q)]
    ]
    assert offsets == [0, 0, 1, 0, 2]
    assert put.offsets.offsets() == {("A", 0): 3, ("A", 1): 1, ("B", 0): 1}


@pytest.mark.parametrize("flag", [codec.PREPARED, codec.ROLLBACK])
def test_half_messages_and_rollbacks_take_no_queue_offset(tmp_path, flag) -> None:
    put = PutLog(tmp_path)
    put.log.put_message(Message("T", b"x"))
    half = put.log.put_message(Message("T", b"x", sys_flag=flag))
    assert (half.append.queue_offset, put.unit(half).queue_offset) == (0, 0)
    commit = put.log.put_message(Message("T", b"x", sys_flag=codec.COMMIT, prepared_transaction_offset=77))
    assert (commit.append.queue_offset, put.unit(commit).prepared_transaction_offset) == (1, 77)


# Ends of files


def test_a_unit_that_does_not_fit_with_eight_bytes_to_spare_goes_to_the_next_file(tmp_path) -> None:
    put = PutLog(tmp_path, 1000)
    size = put.log.put_message(Message("T", b"")).append.size
    put.log.put_message(Message("T", b"x" * (1000 - 8 - 2 * size)))
    assert put.log.wrote == 992, "eight bytes are left: enough"
    assert put.log.put_message(Message("T", b"")).append.physical_offset == 1000
    blank = next(actual_blank for actual_blank in put.seen() if isinstance(actual_blank, Blank))
    assert (blank.offset, blank.size) == (992, 8)


def test_a_unit_one_byte_longer_goes_to_the_next_file(tmp_path) -> None:
    put = PutLog(tmp_path, 1000)
    size = put.log.put_message(Message("T", b"")).append.size
    second = put.log.put_message(Message("T", b"x" * (1000 - 7 - 2 * size))).append
    assert second.physical_offset == 1000
    blank = next(actual_blank for actual_blank in put.seen() if isinstance(actual_blank, Blank))
    assert (blank.offset, blank.size) == (size, 1000 - size)


def test_bytes_after_a_blank_are_unchanged(tmp_path) -> None:
    put = PutLog(tmp_path, 1000)
    put.log.put_message(Message("T", b"x" * 800))
    file = put.files.files[0]
    file.set_positions(100)
    bytes_before = file.read(0, 100) + bytes(file.target(0)[108:])
    put.log.put_message(Message("T", b"x" * 810))
    data = file.read(0, 1000)
    assert data[:100] + data[108:] == bytes_before
    assert data[100:108] == bytes.fromhex("00000384 CBD43194")


def test_a_message_longer_than_a_file_uses_up_two_files_and_returns_put_ok(tmp_path) -> None:
    put = PutLog(tmp_path, 1000)
    put.log.put_message(Message("T", b"x"))
    result = put.log.put_message(Message("T", b"x" * 1000))
    assert (result.status, result.append.status) == (Status.PUT_OK, AppendMessageStatus.END_OF_FILE)
    assert not result.ok
    assert put.log.wrote == 2000
    assert put.log.put_message(Message("T", b"x")).append.physical_offset == 2000
    assert put.offsets.next("T", 0) == 2


def test_a_blank_on_request(tmp_path) -> None:
    put = PutLog(tmp_path, 1000)
    assert not put.log.append_blank()
    put.log.put_message(Message("T", b"x"))
    assert put.log.append_blank()
    assert put.log.wrote == 1000
    assert not put.log.append_blank()


def test_no_new_file(tmp_path) -> None:
    put = PutLog(tmp_path, 1000)
    put.files._allocate = lambda _start: None
    assert put.log.put_message(Message("T", b"x")).status is Status.CREATE_MAPPED_FILE_FAILED
    put.files._allocate = None
    put.log.put_message(Message("T", b"x" * 800))

    def refuse(_start: int) -> MappedFile:
        raise OSError(errno.ENOSPC, "No space left on device")

    put.files._allocate = refuse
    result = put.log.put_message(Message("T", b"x" * 800))
    assert (result.status, result.append.status) == (Status.CREATE_MAPPED_FILE_FAILED, AppendMessageStatus.END_OF_FILE)


@pytest.mark.parametrize("flag", [0, codec.PREPARED])
def test_a_failed_write_uses_no_queue_offset(tmp_path, flag, monkeypatch) -> None:
    put = PutLog(tmp_path)
    put.log.put_message(Message("T", b"x"))
    wrote = put.log.wrote

    def full(*_arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(MappedFile, "append", full)
        result = put.log.put_message(Message("T", b"x", sys_flag=flag))
        assert (result.status, result.append.status) == (Status.UNKNOWN_ERROR, AppendMessageStatus.UNKNOWN_ERROR)
        assert put.log.put_batch([Message("T", b"x")] * 2).status is Status.UNKNOWN_ERROR
    assert (put.log.wrote, put.log.lock_time, put.offsets.next("T", 0)) == (wrote, 0, 1)


def test_bounds_of_the_log(tmp_path) -> None:
    put = PutLog(tmp_path, 1000)
    assert (put.log.min_offset, put.log.max_offset) == (-1, 0)
    for _ in range(20):
        put.log.put_message(Message("T", b"x" * 400))
    assert put.log.min_offset == 0
    put.files.files[0].shutdown(0, NOW)
    assert put.log.min_offset == 1000


# Threads


def test_many_threads_put_in_the_order_of_the_log(tmp_path) -> None:
    put = PutLog(tmp_path, 1 << 16)
    answers: list[list[tuple[int, int]]] = [[] for _ in range(8)]

    def work(number: int) -> None:
        for turn in range(60):
            many = [Message("T", bytes([number]), turn % 3)] * (1 + turn % 3)
            for result in put.log.put_messages(many) if turn % 2 else [put.log.put_message(many[0])]:
                answers[number].append((result.append.physical_offset, result.append.queue_offset))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    units = put.units()
    assert sorted(place for answer in answers for place in answer) == [
        (unit.offset, unit.queue_offset) for unit in units
    ]
    assert all(actual_answer == sorted(actual_answer) for actual_answer in answers)
    for queue in range(3):
        offsets = [unit.queue_offset for unit in units if unit.queue_id == queue]
        assert offsets == list(range(len(offsets)))


# The bytes of real stores for the same messages

REPLAYED = [
    "clean-5.3.3",
    "clean-4.9.8",
    "lmq-5.3.3",
    "batchcq-5.3.3",
    "propcrc-5.3.3",
    "ipv6-and-unicode-5.3.3",
    "broker-lmq",
    "broker-orders",
    "broker-transactions",
    "broker-pop",
    "multi-queue-ext-5.3.3",
]
MADE_BY_THE_STORE = {"INNER_MULTI_QUEUE_OFFSET", "INNER_BASE"}


@pytest.mark.golden
@pytest.mark.parametrize("name", REPLAYED)
def test_a_real_stores_messages_put_again_get_its_offsets_and_properties(golden, tmp_path, name) -> None:
    """Every message of the log is put with what its sender gave: queue offsets, light and inner offsets and CRCs equal
    those of RocketMQ.
    """
    lmq, crc = "lmq" in name, "propcrc" in name
    put = PutLog(
        tmp_path, 1 << 24, enable_lmq=lmq, enabled_append_prop_crc=crc, release="4.9" if "4.9" in name else "5.3"
    )
    put.log.is_batch_topic = lambda topic: topic in batch_topics
    batch_topics: set[str] = set()
    units = []
    for path in sorted(golden(name).glob("commitlog/*")):
        data, position = path.read_bytes(), 0
        while not isinstance(frame := codec.check_frame(data, position, len(data)), str):
            units.append(codec.decode_frame(data, position, frame, 0))
            position += frame.size
    batch_topics |= {unit.topic for unit in units if unit.sys_flag & codec.INNER_BATCH}
    assert len(units) > 50
    for unit in units:
        put.now = unit.store_timestamp
        message = Message.of_unit(unit)
        if MADE_BY_THE_STORE & unit.properties.keys():
            sent = {key: value for key, value in unit.properties.items() if key not in MADE_BY_THE_STORE}
            message = message.changed(properties=sent, properties_raw=None)
        result = put.log.put_message(message)
        second_unit = put.unit(result)
        assert (second_unit.queue_offset, second_unit.topic, second_unit.queue_id) == (
            unit.queue_offset,
            unit.topic,
            unit.queue_id,
        )
        assert (second_unit.size, second_unit.sys_flag, second_unit.body_crc) == (
            unit.size,
            unit.sys_flag,
            unit.body_crc,
        )
        assert second_unit.properties.keys() == unit.properties.keys()
        if crc:
            assert properties.verify_crc(put.files.read(second_unit.offset, second_unit.size))
        else:
            assert second_unit.properties == unit.properties


def test_store_times_never_run_backwards(tmp_path):
    """Recovery finds its first file by store times. The clock was set back a minute, and a later file began with an
    earlier time than the checkpoint's, so queue entries of the files before it were never rebuilt.
    """
    put = PutLog(tmp_path, 1 << 16)
    times = []
    for now in (5000, 4000, 4999, 5001, 100):
        put.now = now
        times.append(put.log.put_message(Message("T", b"x")).append.store_timestamp)
        times.append(put.log.put_messages([Message("T", b"x")] * 2)[1].append.store_timestamp)
        times.append(put.log.put_batch([Message("T", b"x")] * 2).append.store_timestamp)
    assert times == [5000] * 9 + [5001] * 6
