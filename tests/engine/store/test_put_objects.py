"""Messages put at once, by compiled code or one by one, make the same bytes."""

from __future__ import annotations

import errno
import threading

import pytest
from columns_of import columns_of
from hypothesis import given
from hypothesis import strategies as st
from put_logs import NOW, PutLog

from engine.codec import message as codec
from engine.codec.encode import Message
from engine.mapped.mapped_file import MappedFile
from engine.store import commit_log, put_objects
from engine.store.put_message import PutMessageStatus

Status = PutMessageStatus
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


@pytest.mark.machine_code
@given(st.lists(messages, max_size=12), st.booleans(), st.booleans())
def test_one_by_one_and_all_at_once_make_the_same_bytes(tmp_path_factory, many, crc, lmq) -> None:
    folder = tmp_path_factory.mktemp("twice")
    config = {"enabled_append_prop_crc": crc, "enable_lmq": lmq}
    log, all_at_once = PutLog(folder / "one", 2000, **config), PutLog(folder / "all", 2000, **config)
    compiled = PutLog(folder / "compiled", 2000, **config)
    assert (compiled.log.compiled_put() is None) is crc
    singly = [log.log.put_message(message) for message in many]
    together = all_at_once.log.put_messages(many)
    second_messages = [compiled.log.put_message(message) for message in many]
    assert log.bytes() == all_at_once.bytes() == compiled.bytes()
    expected = [(result.status, result.append) for result in singly]
    assert [(result.status, result.append) for result in together] == expected
    assert [(result.status, result.append) for result in second_messages] == expected
    assert together.ok == all(result.ok for result in singly)
    assert log.offsets.offsets() == all_at_once.offsets.offsets()


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


@given(messages)
def test_a_stored_message_is_read_back_equal(tmp_path_factory, message) -> None:
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
        raw, actual_properties = message.properties_raw, message.properties
        stored = {name: value for name, value in (actual_properties or {}).items() if value}
        assert unit.properties_raw == raw if raw is not None else unit.properties == stored


@pytest.mark.parametrize("properties", [{"a": "b"}, {"a": "b\x02"}], ids=["columns", "one by one"])
def test_wait_flags_decide_whether_a_put_waits_for_the_flush(tmp_path, properties) -> None:
    rushed = [Message("T", b"x", 0, {**properties, "WAIT": "false"})] * 9
    for kind, waits in (("SYNC_FLUSH", True), ("ASYNC_FLUSH", False)):
        put = PutLog(tmp_path / kind, flush_disk_type=kind)
        assert put.log.put_messages([*rushed, Message("T", b"x", 0, {**properties, "WAIT": "true"})]).waits is waits
        assert put.log.put_messages(rushed).waits is False


@pytest.mark.machine_code
def test_compiled_code_comes_once_many_were_put_and_follows_the_log_through_its_files(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(commit_log, "PUTS_UNTIL_COMPILED", 3)
    plain_log, put = PutLog(tmp_path / "plain", 2000), PutLog(tmp_path / "put", 2000)
    plain_log.log._until_compiled, put.log._until_compiled = -1, 3
    many = [Message("AB"[n % 3 == 0], bytes(n), n % 4, {"KEYS": str(n)} if n % 2 else None) for n in range(300)]
    for message in many:
        results = [item.log.put_message(message) for item in (plain_log, put)]
        assert results[0].append == results[1].append
    assert plain_log.log._object_put is None
    assert put.log._object_put is not None
    assert put.log._object_put.file is put.files.last
    assert plain_log.bytes() == put.bytes()
    assert plain_log.offsets.offsets() == put.offsets.offsets()


@pytest.mark.machine_code
def test_written_units_count_despite_an_interrupt(tmp_path) -> None:
    put = PutLog(tmp_path, 1 << 16)
    compiled = put.log.compiled_put()
    for _ in range(5):
        put.log.put_message(Message("T", b"x"))
    write = compiled.put_one

    def interrupted(message: Message) -> int:
        write(message)
        raise KeyboardInterrupt

    compiled.put_one = interrupted
    with pytest.raises(KeyboardInterrupt):
        put.log.put_message(Message("T", b"y"))
    compiled.put_one = write
    result = put.log.put_message(Message("T", b"z"))
    results = [(unit.body, unit.queue_offset) for unit in put.units()]
    assert results == [*((b"x", number) for number in range(5)), (b"y", 5), (b"z", 6)]
    assert (result.append.queue_offset, put.log.lock_time) == (6, 0)


@pytest.mark.machine_code
def test_a_changed_limit_and_a_closed_log_are_respected(tmp_path) -> None:
    put = PutLog(tmp_path, 1 << 16)
    put.log.compiled_put()
    for _ in range(3):
        assert put.log.put_message(Message("T", b"x" * 50)).ok
    put.log.set_max_message_size(20)
    assert put.log.put_message(Message("T", b"x" * 50)).status is Status.MESSAGE_ILLEGAL
    assert {r.status for r in put.log.put_messages([Message("T", b"x" * 50)] * 9)} == {Status.MESSAGE_ILLEGAL}
    put.log.close()
    assert put.log.put_message(Message("T", b"x")).status is Status.SERVICE_NOT_AVAILABLE
    compiled = put.log.compiled_put()
    put_objects.learn_after(put.log, compiled, Message("T", b"x"), 0)  # of a put that began before the end
    assert (compiled.file, compiled.target) == (None, None)


@pytest.mark.machine_code
def test_values_that_cannot_be_learnt_do_not_fail_a_put(tmp_path, monkeypatch) -> None:
    put = PutLog(tmp_path, 1 << 16)
    compiled = put.log.compiled_put()

    def full(*_arguments: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(MappedFile, "target", full)
    assert put.log.put_message(Message("T", b"x")).ok
    assert (compiled.file, put.log.lock_time) == (None, 0)


def test_puts_continue_in_queues_that_columns_have_extended(tmp_path) -> None:
    """Columns enlarge a topic's table of queue positions. Compiled code must use the table that it was given."""
    put = PutLog(tmp_path, 1 << 20)
    put.log.compiled_put()
    for _ in range(5):
        put.log.put_message(Message("T", b"x"))
    for first_queue in (1, 100, 3000):
        put.log.append_columns(columns_of([Message("T", b"y", first_queue + n) for n in range(60)]))
        for queue in (0, first_queue, first_queue + 59, first_queue + 60):
            assert put.log.put_message(Message("T", b"z", queue)).ok
    units = list(put.units())
    for queue in {unit.queue_id for unit in units}:
        queue_offsets = [unit.queue_offset for unit in units if unit.queue_id == queue]
        assert queue_offsets == list(range(len(queue_offsets)))


def test_threads_put_concurrently(tmp_path) -> None:
    put = PutLog(tmp_path, 1 << 20)
    put.log.compiled_put()

    def work(name: str) -> None:
        for number in range(300):
            assert put.log.put_message(
                Message(f"topic {name}", b"x" * number, 0, {name: "1"}, born_host=f"10.0.0.{name}:1")
            ).ok

    threads = [threading.Thread(target=work, args=(str(number),)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    units = list(put.units())
    assert all(unit.crc == "ok" for unit in units)
    for name in "0123":
        our_units = [unit for unit in units if unit.topic == f"topic {name}"]
        assert [(len(u.body), u.queue_offset, u.properties) for u in our_units] == [
            (n, n, {name: "1"}) for n in range(300)
        ]
