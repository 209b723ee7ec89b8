"""Results of puts: every status of the put path, and the rules that change a message
(docs/formats/writing.md#flush, #checks, docs/formats/delays.md#levels, #timer-messages).
"""

from __future__ import annotations

import pytest
from put_logs import NOW, PutLog

from engine.codec import message as codec
from engine.codec.encode import Message
from engine.config import MessageStoreConfig
from engine.store.put_message import (
    AppendMessageResult,
    AppendMessageStatus,
    PutMessageResult,
    PutMessageResults,
    PutMessageStatus,
    check_topic,
    delay_level,
    reschedule,
    wants_light_queues,
)

Status = PutMessageStatus
INNER = codec.INNER_BATCH | codec.NEED_UNWRAP
RETRY = "%RETRY%" + "g" * 248  # 255 bytes
REFUSED = [
    pytest.param(Message("t" * 128, b"x"), "5.3", Status.MESSAGE_ILLEGAL, id="plain topic over 127 bytes"),
    pytest.param(Message("中" * 43, b"x"), "5.3", Status.MESSAGE_ILLEGAL, id="bytes count, not characters"),
    pytest.param(Message(RETRY + "g", b"x"), "5.3", Status.MESSAGE_ILLEGAL, id="retry topic over 255 bytes"),
    pytest.param(Message(RETRY, b"x"), "4.9", Status.MESSAGE_ILLEGAL, id="4.9 has no long topics at all"),
    pytest.param(Message("", b"x"), "5.3", Status.MESSAGE_ILLEGAL, id="no topic"),
    pytest.param(Message("../../etc", b"x"), "5.3", Status.MESSAGE_ILLEGAL, id="topic that leaves its folder"),
    pytest.param(Message("T", None), "5.3", Status.MESSAGE_ILLEGAL, id="no body"),  # type: ignore[arg-type]
    pytest.param(Message("T", b"x", -1), "5.3", Status.MESSAGE_ILLEGAL, id="queue below zero"),
    pytest.param(Message("T", b"x" * 1001), "5.3", Status.MESSAGE_ILLEGAL, id="body over maxMessageSize"),
    pytest.param(
        Message("T", b"x", properties={"p": "v" * 32_766}), "5.3", Status.PROPERTIES_SIZE_EXCEEDED, id="properties"
    ),
    pytest.param(
        Message("T", b"x", properties={"p": "v" * 32_766}), "4.9", Status.MESSAGE_ILLEGAL, id="4.9: characters"
    ),
    pytest.param(
        Message("T", b"x", properties={"p": "é" * 16_384}), "4.9", Status.PROPERTIES_SIZE_EXCEEDED, id="4.9: bytes"
    ),
    pytest.param(
        Message("T", b"x", properties={"INNER_NUM": "2"}), "5.3", Status.MESSAGE_ILLEGAL, id="INNER_NUM alone"
    ),
    pytest.param(
        Message("T", b"x", properties={"INNER_NUM": "2"}, sys_flag=INNER),
        "5.3",
        Status.MESSAGE_ILLEGAL,
        id="no BatchCQ",
    ),
    pytest.param(Message("T", b"x", properties={"DELAY": "soon"}), "5.3", Status.MESSAGE_ILLEGAL, id="DELAY no number"),
    pytest.param(Message("T", b"x", properties={"a": "b\x02c"}), "5.3", Status.MESSAGE_ILLEGAL, id="0x02 in a value"),
    pytest.param(Message("T", b"x", born_host="nowhere"), "5.3", Status.MESSAGE_ILLEGAL, id="no host"),
    pytest.param(Message("T", b"x", flag=1 << 31), "5.3", Status.MESSAGE_ILLEGAL, id="flag beyond 32 bits"),
    pytest.param(Message("T", b"x", flag=1 << 31, sys_flag=4), "5.3", Status.MESSAGE_ILLEGAL, id="the same, prepared"),
    pytest.param(
        Message("T", b"x", properties={"TIMER_DELAY_SEC": "soon"}), "5.3", Status.WHEEL_TIMER_MSG_ILLEGAL, id="no time"
    ),
    pytest.param(
        Message("T", b"x", properties={"TIMER_DELAY_SEC": "259201"}),
        "5.3",
        Status.WHEEL_TIMER_MSG_ILLEGAL,
        id="further than timerMaxDelaySec",
    ),
    pytest.param(
        Message("T", b"x", properties={"TIMER_DELIVER_MS": "5", "TIMER_DEL_UNIQKEY": "T+U"}),
        "5.3",
        Status.WHEEL_TIMER_MSG_ILLEGAL,
        id="deletion of what is due",
    ),
]


@pytest.mark.parametrize(("message", "release", "status"), REFUSED)
def test_a_refused_message_is_not_written(tmp_path, message, release, status) -> None:
    put = PutLog(tmp_path, release=release, max_message_size=1000)
    result = put.log.put_message(message)
    assert (result.status, result.ok) == (status, False)
    assert put.log.wrote == 0
    assert put.log.put_message(Message("T", b"next")).append.queue_offset == 0, "no queue offset was used up"


ACCEPTED = [
    pytest.param(Message("t" * 127, b""), "5.3", id="127 bytes of topic, no body"),
    pytest.param(Message(RETRY, b"x"), "5.3", id="retry topic of 255 bytes, version 2"),
    pytest.param(Message("T", b"x" * 1000), "5.3", id="body of maxMessageSize"),
    pytest.param(Message("T", b"x", properties={"p": "v" * 32_764}), "5.3", id="32767 bytes of properties"),
    pytest.param(Message("T", b"x", properties={"p": ""}), "5.3", id="empty value"),
    pytest.param(Message("T", b"x", properties_raw=b"DELAY\x013\x02"), "5.3", id="stored text is not looked at"),
    pytest.param(Message("T", b"x", properties={"DELAY": "0"}), "5.3", id="level 0"),
    pytest.param(Message("a|b", b"x"), "5.3", id="odd topic"),
]


@pytest.mark.parametrize(("message", "release"), ACCEPTED)
def test_accepted_messages_are_stored_unchanged(tmp_path, message, release) -> None:
    put = PutLog(tmp_path, release=release, max_message_size=1000)
    result = put.log.put_message(message)
    assert result.status is Status.PUT_OK
    unit = put.unit(result)
    assert (unit.topic, unit.body, unit.queue_id) == (message.topic, message.body, message.queue_id)


def test_a_refusing_store_returns_its_reason_first(tmp_path) -> None:
    put = PutLog(tmp_path)
    put.log.refuses = Status.SERVICE_NOT_AVAILABLE
    assert put.log.put_message(Message("", b"")).status is Status.SERVICE_NOT_AVAILABLE
    assert put.log.put_batch([Message("T", b"x")]).status is Status.SERVICE_NOT_AVAILABLE
    assert [result.status for result in put.log.put_messages([Message("T", b"x")] * 2)] == [
        Status.SERVICE_NOT_AVAILABLE
    ] * 2


@pytest.mark.parametrize(
    ("locked_ms", "status"),
    [
        (1000, Status.PUT_OK),
        (1001, Status.OS_PAGE_CACHE_BUSY),
        (9_999_999, Status.OS_PAGE_CACHE_BUSY),
        (10_000_000, Status.PUT_OK),
    ],
)
def test_busy_while_the_append_lock_is_held_too_long(tmp_path, locked_ms, status) -> None:
    put = PutLog(tmp_path)
    put.log.locked_since = NOW
    put.now = NOW + locked_ms
    assert put.log.lock_time == locked_ms
    assert put.log.put_message(Message("T", b"x")).status is status
    put.log.locked_since = NOW
    assert put.log.put_batch([Message("T", b"x")]).status is status


def test_the_limit_for_bodies_may_change(tmp_path) -> None:
    put = PutLog(tmp_path, max_message_size=100)
    put.log.set_max_message_size(9)
    assert put.log.put_message(Message("T", b"x" * 100)).ok
    put.log.set_max_message_size(10)
    assert put.log.put_message(Message("T", b"x" * 11)).status is Status.MESSAGE_ILLEGAL


# Delays and timers

CONFIG = MessageStoreConfig()


def test_a_delayed_message_goes_to_the_schedule_topic(tmp_path) -> None:
    put = PutLog(tmp_path)
    message = Message("T", b"x", 5, {"TAGS": "a", "DELAY": "3", "TIMER_DELAY_SEC": "9"})
    unit = put.unit(put.log.put_message(message))
    assert (unit.topic, unit.queue_id) == (codec.SCHEDULE_TOPIC, 2)
    assert unit.properties == {"TAGS": "a", "DELAY": "3", "REAL_TOPIC": "T", "REAL_QID": "5"}
    assert unit.tags_code == NOW + 10_000
    assert message.topic == "T", "the caller's message stays as it was"


def test_4_9_keeps_timer_properties_and_has_no_timer(tmp_path) -> None:
    put = PutLog(tmp_path, release="4.9")
    unit = put.unit(put.log.put_message(Message("T", b"x", 0, {"DELAY": "1", "TIMER_DELAY_SEC": "9"})))
    assert unit.properties["TIMER_DELAY_SEC"] == "9"
    assert put.unit(put.log.put_message(Message("T", b"x", 0, {"TIMER_DELAY_SEC": "9"}))).topic == "T"


def test_a_level_too_high_is_capped(tmp_path) -> None:
    unit = (put := PutLog(tmp_path)).unit(put.log.put_message(Message("T", b"x", 0, {"DELAY": "99"})))
    assert (unit.queue_id, unit.properties["DELAY"]) == (17, "18")


def test_a_level_is_written_as_it_was_given(tmp_path) -> None:
    unit = (put := PutLog(tmp_path)).unit(put.log.put_message(Message("T", b"x", 0, {"DELAY": "+02"})))
    assert (unit.queue_id, unit.properties["DELAY"]) == (1, "+02")


@pytest.mark.parametrize(("flag", "topic"), [(0, codec.SCHEDULE_TOPIC), (8, codec.SCHEDULE_TOPIC), (4, "T"), (12, "T")])
def test_half_messages_and_rollbacks_are_not_delayed(tmp_path, flag, topic) -> None:
    unit = (put := PutLog(tmp_path)).unit(put.log.put_message(Message("T", b"x", 0, {"DELAY": "1"}, sys_flag=flag)))
    assert unit.topic == topic


def test_a_map_without_delay_beside_stored_text_is_not_delayed_again(tmp_path) -> None:
    """A message delivered from the schedule topic keeps DELAY in its text. Applying it again would loop forever."""
    put = PutLog(tmp_path)
    message = Message("T", b"x", 0, {"TAGS": "a"}, b"TAGS\x01a\x02DELAY\x013\x02REAL_TOPIC\x01T\x02")
    unit = put.unit(put.log.put_message(message))
    assert (unit.topic, unit.properties_raw) == ("T", message.properties_raw)


TIMES = [
    ({"TIMER_DELIVER_MS": str(NOW + 2877)}, NOW + 2877 - 1000, "a multiple moves one precision earlier"),
    ({"TIMER_DELIVER_MS": str(NOW + 2878)}, NOW + 2877, "floored"),
    ({"TIMER_DELAY_MS": "5001"}, NOW + 4877, "from now, floored"),
    ({"TIMER_DELAY_SEC": "3", "TIMER_DELAY_MS": "1"}, NOW + 2877, "seconds win"),
]


@pytest.mark.parametrize(("properties", "out", "_why"), TIMES)
def test_a_timed_message_goes_to_the_timer_topic(tmp_path, properties, out, _why) -> None:
    put = PutLog(tmp_path)
    unit = put.unit(put.log.put_message(Message("T", b"x", 4, dict(properties))))
    assert (unit.topic, unit.queue_id) == ("rmq_sys_wheel_timer", 0)
    assert unit.properties == {**properties, "TIMER_OUT_MS": str(out), "REAL_TOPIC": "T", "REAL_QID": "4"}


def test_due_messages_are_stored_at_once(tmp_path) -> None:
    put = PutLog(tmp_path)
    assert put.unit(put.log.put_message(Message("T", b"x", 0, {"TIMER_DELIVER_MS": str(NOW)}))).topic == "T"


def test_no_timer_without_a_wheel(tmp_path) -> None:
    put = PutLog(tmp_path, timer_wheel_enable=False)
    assert put.log.put_message(Message("T", b"x", 0, {"TIMER_DELAY_MS": "x"})).status is Status.WHEEL_TIMER_NOT_ENABLE


@pytest.mark.parametrize(
    "message",
    [
        Message("rmq_sys_wheel_timer", b"x", 0, {"TIMER_DELAY_SEC": "3"}),
        Message("T", b"x", 0, {"TIMER_DELAY_SEC": "3", "TIMER_OUT_MS": "5"}),
        Message("T", b"x", 0, {"TIMER_DELAY_SEC": "3"}, sys_flag=codec.PREPARED),
        Message("T", b"x", 0, {}),
        Message("T", b"x"),
    ],
)
def test_messages_that_stay_unchanged(message) -> None:
    assert reschedule(message, CONFIG, NOW, "5.3") is message


def test_numbers_are_read_as_java_reads_them() -> None:
    assert delay_level(Message("T", b"", properties={"DELAY": "-3"})) == -3
    for text in ("1_0", " 1", "", "٣"):
        with pytest.raises(ValueError, match="expected a number"):
            delay_level(Message("T", b"", properties={"DELAY": text}))


@pytest.mark.parametrize(
    ("topic", "names", "expected"),
    [
        ("T", "%LMQ%a", True),
        ("T", " ", False),
        ("%RETRY%g", "%LMQ%a", False),
        ("rmq_sys_x", "%LMQ%a", False),
        (codec.SCHEDULE_TOPIC, "%LMQ%a", False),
    ],
)
def test_which_messages_go_to_light_queues(topic, names, expected) -> None:
    assert wants_light_queues(Message(topic, b"", properties={"INNER_MULTI_DISPATCH": names})) is expected


def test_topics_that_are_no_folder_name() -> None:
    assert not any(check_topic(name, "5.3") for name in ("", ".", "..", "a/b", "a\0", "\ud800"))
    assert check_topic("%LMQ%a|b", "5.3")


# Answers

DONE = AppendMessageResult(AppendMessageStatus.PUT_OK, 1234, 123, NOW, 5, 1, bytes.fromhex("7F00000100002A9F"))


def test_a_result_has_its_message_id() -> None:
    assert DONE.msg_id == "7F00000100002A9F00000000000004D2"
    assert DONE.end_offset == 1357
    batch_result = DONE._replace(unit_offsets=(1234, 1300))
    assert batch_result.msg_id == "7F00000100002A9F00000000000004D2,7F00000100002A9F0000000000000514"


def test_put_ok_with_a_failed_append_is_not_ok() -> None:
    ended = AppendMessageResult(AppendMessageStatus.END_OF_FILE)
    assert not PutMessageResult(Status.PUT_OK, ended).ok
    assert not PutMessageResult(Status.PUT_OK).ok
    assert PutMessageResult(Status.FLUSH_DISK_TIMEOUT, DONE).ok
    assert "FLUSH_DISK_TIMEOUT" in repr(PutMessageResult(Status.FLUSH_DISK_TIMEOUT, DONE))


def test_results_are_built_on_access_and_cached() -> None:
    rows = []

    def make(row: int) -> PutMessageResult:
        rows.append(row)
        return PutMessageResult(Status.PUT_OK, DONE._replace(queue_offset=row))

    answers = PutMessageResults(3, make, ok=True, end_offset=9)
    assert len(answers) == 3
    assert answers[-1] is answers[2]
    assert rows == [2]
    assert [answer.append.queue_offset for answer in answers[:2]] == [0, 1]
    with pytest.raises(IndexError):
        answers[3]
    answers.set_status(Status.FLUSH_DISK_TIMEOUT)
    assert {answer.status for answer in answers} == {Status.FLUSH_DISK_TIMEOUT}
    assert rows == [2, 0, 1]


def test_results_from_a_list() -> None:
    refused = PutMessageResult(Status.MESSAGE_ILLEGAL)
    answers = PutMessageResults.of([refused, PutMessageResult(Status.PUT_OK, DONE)])
    assert (answers.ok, answers.end_offset, answers[0]) == (False, 1357, refused)
    answers.set_status(Status.FLUSH_DISK_TIMEOUT)
    assert refused.status is Status.MESSAGE_ILLEGAL
