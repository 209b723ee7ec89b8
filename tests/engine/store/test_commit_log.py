"""The log: places, queue offsets, ends of files, batches of both kinds, light queues, many threads (spec 2, 3.2)."""

from __future__ import annotations

import errno
import threading

import golden_stores
import pytest
from hypothesis import given
from hypothesis import strategies as st
from put_logs import NOW, PutLog

from engine.codec import batch, properties
from engine.codec import message as codec
from engine.codec.encode import Message
from engine.codec.gather import gather
from engine.codec.unit_scan import Blank
from engine.errors import CorruptUnit, UsageError
from engine.mapped.mapped_file import MappedFile
from engine.store.put_message import RULED, AppendMessageStatus, PutMessageStatus

Status = PutMessageStatus


def test_units_follow_each_other(tmp_path) -> None:
    put = PutLog(tmp_path)
    first = put.log.put_message(Message("T", b"one", 1)).append
    put.now += 5
    second = put.log.put_message(Message("T", b"second", 1)).append
    assert (first.physical_offset, first.queue_offset, first.store_timestamp) == (0, 0, NOW)
    assert (second.physical_offset, second.queue_offset, second.store_timestamp) == (first.size, 1, NOW + 5)
    assert [(unit.offset, unit.queue_offset, unit.body, unit.stale) for unit in put.units()] == [
        (0, 0, b"one", False),
        (first.size, 1, b"second", False),
    ]
    assert put.log.wrote == put.log.max_offset == second.end_offset
    assert put.files.files[0].store_timestamp == NOW + 5


def test_a_birth_without_a_time_is_now(tmp_path) -> None:
    unit = (put := PutLog(tmp_path)).unit(put.log.put_message(Message("T", b"x")))
    assert (unit.born_timestamp, unit.born_host, unit.store_host) == (NOW, "127.0.0.1:0", "127.0.0.1:10911")


def test_every_queue_counts_for_itself(tmp_path) -> None:
    put = PutLog(tmp_path)
    offsets = [put.log.put_message(Message(t, b"x", q)).append.queue_offset for t, q in ["A0", "A1", "A0", "B0", "A0"]
               for q in [int(q)]]  # fmt: skip
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


def test_offsets_that_recovery_found_go_on(tmp_path) -> None:
    put = PutLog(tmp_path)
    put.log.put_message(Message("T", b"x", 1))
    put.offsets.load({("T", 0): 40, ("U", 3): 7})
    assert put.log.put_message(Message("T", b"x", 0)).append.queue_offset == 40
    assert put.log.put_message(Message("T", b"x", 1)).append.queue_offset == 0
    assert put.offsets.next("U", 3) == 7
    put.offsets.forget("T")
    assert put.log.put_message(Message("T", b"x", 0)).append.queue_offset == 0


def test_thousands_of_queues_keep_their_places(tmp_path) -> None:
    put = PutLog(tmp_path, 1 << 20)
    for _ in range(2):
        for queue in range(200):
            put.log.put_message(Message("T", b"x", queue))
    assert put.offsets.offsets() == {("T", queue): 2 for queue in range(200)}


# Ends of files


def test_a_unit_that_does_not_fit_with_eight_bytes_to_spare_goes_to_the_next_file(tmp_path) -> None:
    put = PutLog(tmp_path, 1000)
    size = put.log.put_message(Message("T", b"")).append.size
    put.log.put_message(Message("T", b"x" * (1000 - 8 - 2 * size)))
    assert put.log.wrote == 992, "eight bytes are left: enough"
    assert put.log.put_message(Message("T", b"")).append.physical_offset == 1000
    blank = next(seen for seen in put.seen() if isinstance(seen, Blank))
    assert (blank.offset, blank.size) == (992, 8)


def test_one_byte_more_and_it_goes_to_the_next_file(tmp_path) -> None:
    put = PutLog(tmp_path, 1000)
    size = put.log.put_message(Message("T", b"")).append.size
    second = put.log.put_message(Message("T", b"x" * (1000 - 7 - 2 * size))).append
    assert second.physical_offset == 1000
    blank = next(seen for seen in put.seen() if isinstance(seen, Blank))
    assert (blank.offset, blank.size) == (size, 1000 - size)


def test_bytes_behind_a_blank_stay_as_they_are(tmp_path) -> None:
    put = PutLog(tmp_path, 1000)
    put.log.put_message(Message("T", b"x" * 800))
    file = put.files.files[0]
    file.set_positions(100)
    before = file.read(0, 100) + bytes(file.target(0)[108:])
    put.log.put_message(Message("T", b"x" * 810))
    data = file.read(0, 1000)
    assert data[:100] + data[108:] == before
    assert data[100:108] == bytes.fromhex("00000384 CBD43194")


def test_a_message_longer_than_a_file_burns_two_files_and_says_put_ok(tmp_path) -> None:
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
def test_a_disk_that_refuses_takes_no_queue_offset(tmp_path, flag, monkeypatch) -> None:
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


# Property CRC, IPv6, version 2


def test_property_crc_when_configured(tmp_path) -> None:
    put = PutLog(tmp_path, enabled_append_prop_crc=True)
    for found in ({}, {"a": "b"}, {"__CRC32#": "1234567890", "a": "b"}):
        result = put.log.put_message(Message("T", b"x", 0, found))
        unit = put.files.read(result.append.physical_offset, result.append.size)
        assert properties.verify_crc(unit)
        assert codec.decode(unit).properties.keys() == {"__CRC32#", *found}
    size = put.log.wrote
    assert put.log.put_message(Message("T", b"", 0, {"p": "v" * 32_745})).status is Status.PROPERTIES_SIZE_EXCEEDED
    assert put.log.put_message(Message("T", b"", 0, {"p": "v" * 32_744})).ok
    assert put.log.wrote > size


def test_hosts_of_both_families(tmp_path) -> None:
    put = PutLog(tmp_path)
    for born, stored, bits in [
        ("10.0.0.1:1", "[2001:db8::1]:2", 0x20),
        ("[2001:db8::1]:1", None, 0x10),
        ("[::1]:1", "[::2]:2", 0x30),
    ]:
        result = put.log.put_message(Message("T", b"x", born_host=born, store_host=stored))
        unit = put.unit(result)
        assert unit.sys_flag == bits
        assert (unit.born_host, unit.store_host) == (born, stored or "127.0.0.1:10911")
        assert result.append.msg_id == unit.offset_msg_id


def test_versions(tmp_path) -> None:
    long = Message("%RETRY%" + "g" * 121, b"x")
    put = PutLog(tmp_path / "new")
    assert put.unit(put.log.put_message(long)).version == 2
    put = PutLog(tmp_path / "old", auto_message_version_on_topic_len=False)
    assert put.log.put_message(long).status is Status.MESSAGE_ILLEGAL


# Batches


def test_a_classic_batch_becomes_a_unit_each(tmp_path) -> None:
    put = PutLog(tmp_path)
    put.log.put_message(Message("T", b"before", 2))
    many = [
        Message("T", b"one", 2, {"TAGS": "a"}, flag=1, reconsume_times=3, born_host="10.0.0.1:1"),
        Message("T", b"two", 2, properties_raw=b"KEYS\x01k", flag=2, born_host="10.0.0.2:2"),
        Message("T", b"", 2),
    ]
    result = put.log.put_batch(many, {"WAIT": "true"})
    units = put.units()[1:]
    assert result.status is Status.PUT_OK
    assert (result.append.queue_offset, result.append.message_count) == (1, 3)
    assert result.append.unit_offsets == tuple(unit.offset for unit in units)
    assert result.append.msg_id.split(",") == [unit.offset_msg_id for unit in units]
    assert result.append.end_offset == put.log.wrote
    assert [unit.queue_offset for unit in units] == [1, 2, 3]
    assert [unit.flag for unit in units] == [1, 2, 0]
    assert {(unit.born_host, unit.reconsume_times) for unit in units} == {("10.0.0.1:1", 3)}, (
        "the batch's, not their own"
    )
    assert [unit.properties_raw for unit in units] == [
        b"TAGS\x01a\x02WAIT\x01true\x02",
        b"KEYS\x01k\x02WAIT\x01true\x02",
        b"WAIT\x01true\x02",
    ]
    assert put.log.put_message(Message("T", b"after", 2)).append.queue_offset == 4


def test_a_batch_lies_in_one_file(tmp_path) -> None:
    """The sum decides: though the first elements would still fit, all go to the next file."""
    put = PutLog(tmp_path, 1000)
    put.log.put_message(Message("T", b"x" * 300))
    result = put.log.put_batch([Message("T", b"y" * 100)] * 4)
    assert result.append.physical_offset == 1000
    too_long = put.log.put_batch([Message("T", b"y" * 400)] * 4)
    assert (too_long.status, too_long.append.status) == (Status.PUT_OK, AppendMessageStatus.END_OF_FILE)
    assert put.offsets.next("T", 0) == 5


def test_a_batch_with_property_crcs(tmp_path) -> None:
    put = PutLog(tmp_path, enabled_append_prop_crc=True)
    put.log.put_batch([Message("T", b"x", properties_raw=b"a\x01b"), Message("T", b"y")])
    for unit in put.units():
        assert properties.verify_crc(put.files.read(unit.offset, unit.size))


NO_BATCHES = [
    pytest.param([], None, id="nothing"),
    pytest.param([Message("T", b"x"), Message("U", b"x")], None, id="two topics"),
    pytest.param([Message("T", b"x"), Message("T", b"x", 1)], None, id="two queues"),
    pytest.param([Message("%RETRY%g", b"x")], None, id="retry topic"),
    pytest.param([Message("T", b"x", sys_flag=4)], None, id="transaction"),
    pytest.param([Message("T", b"x")], {"DELAY": "1"}, id="delayed"),
    pytest.param([Message("T", b"x", properties={"DELAY": "1"})], None, id="delayed element"),
    pytest.param([Message("T", b"x")], {"DELAY": "x"}, id="delayed by nonsense"),
    pytest.param([Message("T", b"x" * 100_001)], None, id="too long"),
    pytest.param([Message("T", b"x", born_host="?")], None, id="no host"),
    pytest.param([Message("T", None)], None, id="no body"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("many", "shared"), NO_BATCHES)
def test_no_batch(tmp_path, many, shared) -> None:
    put = PutLog(tmp_path, max_message_size=100_000)
    assert put.log.put_batch(many, shared).status is Status.MESSAGE_ILLEGAL
    assert put.log.wrote == 0


def test_properties_of_a_batch_count_for_each_element(tmp_path) -> None:
    put = PutLog(tmp_path)
    many = [Message("T", b"x"), Message("T", b"x", 0, {"p": "v" * 20_000})]
    assert put.log.put_batch(many, {"q": "v" * 20_000}).status is Status.PROPERTIES_SIZE_EXCEEDED


def test_an_inner_batch_is_one_unit(tmp_path) -> None:
    put = PutLog(tmp_path)
    many = [Message("Batch", b"one", 1, {"TAGS": "a"}), Message("Batch", b"two", 1, {"TAGS": "b"}, flag=9)]
    for base in (0, 2):
        result = put.log.put_batch(many, {"UNIQ_KEY": "U"})
        unit = put.unit(result)
        assert (result.append.queue_offset, result.append.message_count) == (base, 2)
        assert unit.sys_flag == codec.INNER_BATCH | codec.NEED_UNWRAP
        assert unit.properties == {"UNIQ_KEY": "U", "INNER_NUM": "2", "INNER_BASE": str(base)}
        assert [(member.body, member.flag) for member in batch.members(unit.body)] == [(b"one", 0), (b"two", 9)]
    assert put.log.put_message(Message("Batch", b"x", 1)).append.queue_offset == 4


def test_without_a_unique_key_a_batch_topic_takes_a_classic_batch(tmp_path) -> None:
    put = PutLog(tmp_path)
    assert len(put.log.put_batch([Message("Batch", b"one"), Message("Batch", b"two")]).append.unit_offsets) == 2


def test_a_ready_inner_batch_may_be_put_as_a_message(tmp_path) -> None:
    put = PutLog(tmp_path)
    flags = codec.INNER_BATCH | codec.NEED_UNWRAP
    for found in ({"properties": {"INNER_NUM": "3"}}, {"properties_raw": b"INNER_NUM\x013\x02"}):
        result = put.log.put_message(Message("Batch", b"...", sys_flag=flags, **found))
        assert result.append.message_count == 3
    assert put.unit(result).properties == {"INNER_NUM": "3", "INNER_BASE": "3"}
    assert (
        put.log.put_message(Message("Batch", b"", sys_flag=flags, properties={"INNER_NUM": "0"})).append.message_count
        == 1
    )
    for bad in ("40000", "x"):
        result = put.log.put_message(Message("Batch", b"", sys_flag=flags, properties={"INNER_NUM": bad}))
        assert result.status is Status.MESSAGE_ILLEGAL


# Light queues


def test_a_message_to_light_queues_carries_their_offsets(tmp_path) -> None:
    put = PutLog(tmp_path, enable_lmq=True)
    message = Message("T", b"x", 3, {"INNER_MULTI_DISPATCH": "%LMQ%a,plain,%LMQ%b,"})
    assert put.unit(put.log.put_message(message)).properties_raw.endswith(b"INNER_MULTI_QUEUE_OFFSET\x010,,0\x02")
    put.log.put_message(Message("T", b"x", 0, {"INNER_MULTI_DISPATCH": "%LMQ%b"}))
    unit = put.unit(put.log.put_message(message))
    assert unit.properties["INNER_MULTI_QUEUE_OFFSET"] == "1,,2"
    assert unit.queue_offset == 1
    assert put.offsets.next("%LMQ%b", 0) == 3


def test_no_light_queues_unless_they_are_on(tmp_path) -> None:
    put = PutLog(tmp_path)
    unit = put.unit(put.log.put_message(Message("T", b"x", 3, {"INNER_MULTI_DISPATCH": "%LMQ%a"})))
    assert "INNER_MULTI_QUEUE_OFFSET" not in unit.properties


def test_4_9_takes_the_waiting_out_of_what_goes_to_light_queues(tmp_path) -> None:
    put = PutLog(tmp_path, like="4.9", enable_lmq=True, enable_multi_dispatch=True)
    unit = put.unit(put.log.put_message(Message("T", b"x", 3, {"INNER_MULTI_DISPATCH": "%LMQ%a", "WAIT": "true"})))
    assert unit.properties == {"INNER_MULTI_DISPATCH": "%LMQ%a", "INNER_MULTI_QUEUE_OFFSET": "0"}
    put.offsets.load({(f"%LMQ%{n}", 0): 1 for n in range(20_001)})
    full = put.log.put_message(Message("T", b"x", 3, {"INNER_MULTI_DISPATCH": "%LMQ%a"}))
    assert full.status is Status.LMQ_CONSUME_QUEUE_NUM_EXCEEDED


@pytest.mark.parametrize(
    ("body", "extra", "status"),
    [(b"x", "v" * 32_720, "PROPERTIES_SIZE_EXCEEDED"), (b"x" * 1000, "v", "MESSAGE_SIZE_EXCEEDED")],
)
def test_light_queues_find_out_late_what_is_too_long(tmp_path, body, extra, status) -> None:
    put = PutLog(tmp_path, enable_lmq=True, max_message_size=1000)
    result = put.log.put_message(Message("T", body, 0, {"INNER_MULTI_DISPATCH": "%LMQ%a", "p": extra}))
    assert (result.status, result.append.status.name) == (Status.MESSAGE_ILLEGAL, status)
    assert (put.log.wrote, put.offsets.next("%LMQ%a", 0), put.offsets.next("T", 0)) == (0, 0, 0)


# Units stored again


@pytest.mark.golden
@pytest.mark.parametrize("name", ["clean-5.3.3", "propcrc-5.3.3", "ipv6-and-unicode-5.3.3", "batchcq-5.3.3"])
def test_units_of_a_real_store_are_stored_again_elsewhere(golden, tmp_path, name) -> None:
    assert name in golden_stores.names()
    put = PutLog(tmp_path, 1 << 20)
    put.log.put_message(Message("T", b"something else first"))
    data = next(iter(sorted(golden(name).glob("commitlog/*")))).read_bytes()
    at = 0
    while at < 100_000 and not isinstance(frame := codec.measure(data, at, len(data)), str):
        raw = data[at : at + frame.size]
        offset = put.log.append_raw(raw)
        again = put.files.read(offset, frame.size)
        unit, copy = codec.decode(raw), codec.decode(again)
        assert (copy.physical_offset, copy.queue_offset, copy.store_timestamp) == (
            offset, unit.queue_offset, unit.store_timestamp,
        )  # fmt: skip
        assert properties.verify_crc(again) is properties.verify_crc(raw)
        assert put.log.append_raw(again) == offset + frame.size
        at += frame.size
    assert at > 10_000


def test_what_is_no_unit_is_not_stored_again(tmp_path) -> None:
    put = PutLog(tmp_path, 200)
    put.log.put_message(Message("T", b"x"))
    raw = put.files.read(0, put.log.wrote)
    for bad in (raw[:-1], raw + b"\0", b""):
        with pytest.raises(CorruptUnit):
            put.log.append_raw(bad)
    big = PutLog(tmp_path / "big")
    big.log.put_message(Message("T", b"x" * 200))
    with pytest.raises(UsageError, match="does not fit"):
        put.log.append_raw(big.files.read(0, big.log.wrote))


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
    assert sorted(place for found in answers for place in found) == [(unit.offset, unit.queue_offset) for unit in units]
    assert all(found == sorted(found) for found in answers)
    for queue in range(3):
        offsets = [unit.queue_offset for unit in units if unit.queue_id == queue]
        assert offsets == list(range(len(offsets)))


plain = st.characters(exclude_categories=["Cs"], exclude_characters="\x01\x02")
messages = st.builds(
    Message,
    st.sampled_from(["A", "B", "Ж", "Batch", "%RETRY%" + "g" * 121, "t" * 128]),
    st.binary(max_size=200),
    st.integers(-1, 3),
    st.dictionaries(
        st.sampled_from(["TAGS", "KEYS", "p", "DELAY", "INNER_NUM", "UNIQ_KEY", "INNER_MULTI_DISPATCH"]),
        st.sampled_from(["", "1", "x", "中", "%LMQ%a,%LMQ%b"]) | st.text(plain, max_size=9),
        max_size=4,
    )
    | st.none(),
    st.binary(max_size=20) | st.none(),
    flag=st.integers(-5, 5),
    sys_flag=st.sampled_from([0, 0, 0, 1, 4, 8, 12, 0x80, 0xC0, 0x10]),
    born_timestamp=st.none() | st.integers(0, 1 << 40),
    born_host=st.sampled_from(["10.0.0.1:1", "[::1]:2"]),
    store_host=st.sampled_from([None, None, "[::1]:10911"]),
    reconsume_times=st.integers(0, 3),
    prepared_transaction_offset=st.integers(0, 1 << 40),
)


@given(st.lists(messages, max_size=12), st.booleans(), st.booleans())
def test_one_by_one_and_all_at_once_make_the_same_bytes(tmp_path_factory, many, crc, lmq) -> None:
    folder = tmp_path_factory.mktemp("twice")
    config = {"enabled_append_prop_crc": crc, "enable_lmq": lmq}
    one, all_at_once = PutLog(folder / "one", 2000, **config), PutLog(folder / "all", 2000, **config)
    singly = [one.log.put_message(message) for message in many]
    together = all_at_once.log.put_messages(many)
    assert one.bytes() == all_at_once.bytes()
    assert [(result.status, result.append) for result in together] == [
        (result.status, result.append) for result in singly
    ]
    assert together.ok == all(result.ok for result in singly)
    assert one.offsets.offsets() == all_at_once.offsets.offsets()


simple = st.builds(
    Message,
    st.sampled_from(["A", "B"]),
    st.binary(max_size=200),
    st.sampled_from([0, 1, 9, 70_000]),
    st.fixed_dictionaries({"UNIQ_KEY": st.text(plain, max_size=9), "TAGS": st.just("a")}),
    flag=st.integers(-5, 5),
    sys_flag=st.sampled_from([0, 1, 4, 8, 12]),
    born_timestamp=st.integers(0, 1 << 40),
    born_host=st.sampled_from(["10.0.0.1:1", "[::1]:2"]),
)


@given(st.lists(simple, min_size=8, max_size=30), st.integers(300, 1500), st.sampled_from([150, 1 << 20]))
def test_columns_make_the_bytes_of_single_puts(tmp_path_factory, many, file_size, longest) -> None:
    folder = tmp_path_factory.mktemp("columns")
    config = {"max_message_size": longest}
    one, all_at_once = PutLog(folder / "one", file_size, **config), PutLog(folder / "all", file_size, **config)
    columns = PutLog(folder / "columns", file_size, **config)
    singly = [one.log.put_message(message) for message in many]
    together = all_at_once.log.put_messages(many)
    what = gather(many, RULED)
    in_columns = columns.log.append_columns(what)
    assert one.bytes() == all_at_once.bytes() == columns.bytes()
    expected = [(result.status, result.append) for result in singly]
    assert [(result.status, result.append) for result in together] == expected
    assert [(result.status, result.append) for result in in_columns] == expected
    assert in_columns.end_offset == max((r.append.end_offset for r in singly if r.ok), default=0)
    assert in_columns.ok == all(result.ok for result in singly)


def test_columns_with_property_crcs_and_refusals(tmp_path) -> None:
    put = PutLog(tmp_path, enabled_append_prop_crc=True)
    what = gather([Message("T", b"x", 0, {"a": "b"})] * 9, RULED)
    assert [result.append.queue_offset for result in put.log.append_columns(what)] == list(range(9))
    assert all(properties.verify_crc(put.files.read(unit.offset, unit.size)) for unit in put.units())
    what.topics = ["../T"]
    assert {result.status for result in put.log.append_columns(what)} == {Status.MESSAGE_ILLEGAL}
    what.topics, what.topic_id = ["T"], [1] * 9
    with pytest.raises(ValueError, match="topic_id"):
        put.log.append_columns(what)
    put.log.refuses = Status.SERVICE_NOT_AVAILABLE
    what.topic_id = None
    refused = put.log.append_columns(what)
    assert ({result.status for result in refused}, refused.ok, refused.end_offset) == ({put.log.refuses}, False, 0)


def test_columns_on_a_disk_that_fills_up(tmp_path, monkeypatch) -> None:
    put = PutLog(tmp_path)
    many = [Message("T", b"x", 0, {"a": "b"})] * 9

    def full(*_arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    put.log.put_message(many[0])
    with monkeypatch.context() as patch:
        patch.setattr(MappedFile, "target", full)
        refused = put.log.put_messages(many)
        assert {result.status for result in refused} == {Status.UNKNOWN_ERROR}
        assert (refused.ok, put.log.lock_time) == (False, 0)
    assert put.log.put_messages(many)[0].append.queue_offset == 1


def test_many_at_once_while_the_lock_is_held_too_long(tmp_path) -> None:
    put = PutLog(tmp_path)
    put.log.put_messages([Message("T", b"x")] * 9)
    put.log.locked_since = NOW
    put.now += 5000
    assert {result.status for result in put.log.put_messages([Message("T", b"x")] * 9)} == {Status.OS_PAGE_CACHE_BUSY}


def test_no_files_for_many_at_once(tmp_path) -> None:
    put = PutLog(tmp_path, 1000)
    put.files._allocate = lambda _start: None
    refused = put.log.put_messages([Message("T", b"x")] * 9)
    assert {result.status for result in refused} == {Status.CREATE_MAPPED_FILE_FAILED}


# What real stores made of the same messages

REPLAYED = ["clean-5.3.3", "clean-4.9.8", "lmq-5.3.3", "batchcq-5.3.3", "propcrc-5.3.3", "ipv6-and-unicode-5.3.3",
            "broker-lmq", "broker-orders", "broker-transactions", "broker-pop", "multi-queue-ext-5.3.3"]  # fmt: skip
MADE_BY_THE_STORE = {"INNER_MULTI_QUEUE_OFFSET", "INNER_BASE"}


@pytest.mark.golden
@pytest.mark.parametrize("name", REPLAYED)
def test_a_real_stores_messages_put_again_get_its_offsets_and_properties(golden, tmp_path, name) -> None:
    """Every message of the log with what its sender gave: queue offsets, light and inner offsets and CRCs come out as
    RocketMQ made them.
    """
    lmq, crc = "lmq" in name, "propcrc" in name
    put = PutLog(tmp_path, 1 << 24, enable_lmq=lmq, enabled_append_prop_crc=crc, like="4.9" if "4.9" in name else "5.3")
    put.log.is_batch_topic = lambda topic: topic in batch_topics
    batch_topics: set[str] = set()
    units = []
    for path in sorted(golden(name).glob("commitlog/*")):
        data, at = path.read_bytes(), 0
        while not isinstance(frame := codec.measure(data, at, len(data)), str):
            units.append(codec.cut(data, at, frame, 0))
            at += frame.size
    batch_topics |= {unit.topic for unit in units if unit.sys_flag & codec.INNER_BATCH}
    assert len(units) > 50
    for unit in units:
        put.now = unit.store_timestamp
        message = Message.of_unit(unit)
        if MADE_BY_THE_STORE & unit.properties.keys():
            sent = {key: value for key, value in unit.properties.items() if key not in MADE_BY_THE_STORE}
            message = message.changed(properties=sent, properties_raw=None)
        result = put.log.put_message(message)
        again = put.unit(result)
        assert (again.queue_offset, again.topic, again.queue_id) == (unit.queue_offset, unit.topic, unit.queue_id)
        assert (again.size, again.sys_flag, again.body_crc) == (unit.size, unit.sys_flag, unit.body_crc)
        assert again.properties.keys() == unit.properties.keys()
        if crc:
            assert properties.verify_crc(put.files.read(again.offset, again.size))
        else:
            assert again.properties == unit.properties


@given(messages)
def test_a_message_that_is_taken_comes_back_equal(tmp_path_factory, message) -> None:
    put = PutLog(tmp_path_factory.mktemp("one"), 1 << 16)
    result = put.log.put_message(message)
    if not result.ok:
        assert result.status is not Status.PUT_OK
        assert put.log.wrote == 0
        return
    unit = put.unit(result)
    assert unit.crc == "ok"
    assert (unit.body, unit.flag, unit.reconsume_times) == (message.body, message.flag, message.reconsume_times)
    assert unit.born_timestamp == (NOW if message.born_timestamp is None else message.born_timestamp)
    assert (unit.born_host, unit.store_host) == (message.born_host, message.store_host or "127.0.0.1:10911")
    assert unit.prepared_transaction_offset == message.prepared_transaction_offset
    assert unit.properties.get("REAL_TOPIC", unit.topic) == message.topic
    assert int(unit.properties.get("REAL_QID", unit.queue_id)) == message.queue_id
    if unit.topic == message.topic and not message.sys_flag & codec.INNER_BATCH:
        raw, found = message.properties_raw, message.properties
        stored = {name: value for name, value in (found or {}).items() if value}
        assert unit.properties_raw == raw if raw is not None else unit.properties == stored
