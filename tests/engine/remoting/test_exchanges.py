"""Requests with their answers, as a tap on a broker sees them."""

from __future__ import annotations

import pytest
import recorded_requests

from engine.remoting.codes import answer_name, request_name
from engine.remoting.exchanges import (
    BROKEN,
    CAME,
    CLOSED,
    OPENED,
    WENT,
    Exchange,
    Exchanges,
    FrameEvent,
    HeartbeatClient,
    exchange_of,
    request_record,
)
from engine.remoting.frame import ANSWER, Command, encode
from engine.remoting.recording import exchanges_of


@pytest.fixture(scope="module")
def talked(tmp_path_factory: pytest.TempPathFactory) -> list[Exchange]:
    return exchanges_of(recorded_requests.seen_in_a_talk(tmp_path_factory.mktemp("talk") / "store"))


def a_frame(command: Command, kind: int = CAME, time: int = 0, connection: int = 1) -> FrameEvent:
    return FrameEvent(time, connection, kind, b"".join(encode(command)), command)


def named(talked: list[Exchange], name: str) -> list[Exchange]:
    return [item for item in talked if item.name == name]


def test_every_request_is_recorded_once_with_its_answer(talked: list[Exchange]) -> None:
    names = [exchange.name for exchange in talked if exchange.direction == "in"]
    assert names == [
        "HEART_BEAT",
        "SEND_MESSAGE",
        "SEND_MESSAGE",
        "SEND_MESSAGE",
        "PULL_MESSAGE",
        "PULL_MESSAGE",
        "SEND_MESSAGE",
        "PULL_MESSAGE",
        "UPDATE_CONSUMER_OFFSET",
        "SEND_MESSAGE",
        "END_TRANSACTION",
    ]
    assert all(exchange.answer is not None for exchange in talked if not exchange.one_way)
    assert not any(exchange.waits for exchange in talked)


def test_a_send_has_its_written_offset(talked: list[Exchange]) -> None:
    first_send, second_send, *_ = named(talked, "SEND_MESSAGE")
    assert (first_send.topic, first_send.queue_id, first_send.offset, first_send.group) == ("Orders", 0, 0, "senders")
    assert first_send.written_at == 0
    assert second_send.offset == 1
    assert second_send.written_at is not None
    assert second_send.written_at > 0
    assert second_send.ms is not None
    assert second_send.ms >= 0


def test_a_held_pull_is_distinguished_from_one_answered_at_once(talked: list[Exchange]) -> None:
    at_once, output, refused = named(talked, "PULL_MESSAGE")
    assert (at_once.held, output.held, refused.held) == (False, True, False)
    assert (output.offset, output.answer_code) == (3, 0)
    assert answer_name(refused.answer_code or 0) == "TOPIC_NOT_EXIST"


def test_requests_of_the_broker_have_the_other_direction(talked: list[Exchange]) -> None:
    (reported,) = named(talked, "NOTIFY_CONSUMER_IDS_CHANGED")
    assert (reported.direction, reported.one_way, reported.group) == ("out", True, "readers")


def test_the_record_has_bodies_by_length_and_digest(talked: list[Exchange]) -> None:
    record = request_record(named(talked, "SEND_MESSAGE")[0])
    assert record["body"]["length"] == 5
    assert len(record["body"]["sha256"]) == 64
    assert (record["type"], record["code"], record["answerName"]) == ("request", 10, "SUCCESS")
    assert record["fields"]["topic"] == "Orders"
    assert record["bytes"] > 100


def test_an_exchange_is_restored_from_its_record(talked: list[Exchange]) -> None:
    (broken,) = Exchanges().take(FrameEvent(0, 1, BROKEN, b"GET / HTTP/1.1", None, "no frame"))
    for item in (*talked, broken):
        second_exchange = exchange_of(request_record(item), item.number)
        for name in (
            "time",
            "peer",
            "name",
            "code",
            "direction",
            "opaque",
            "topic",
            "group",
            "queue_id",
            "offset",
            "answer_code",
            "one_way",
            "held",
            "broken",
            "bytes",
            "written_at",
            "waits",
        ):
            assert getattr(second_exchange, name) == getattr(item, name), name
    with pytest.raises(ValueError, match="lacks what a request has"):
        exchange_of({"type": "request"}, 1)
    with pytest.raises(ValueError, match="the type request is expected"):
        exchange_of({"type": "unit"}, 1)


def test_letters_of_a_short_send_stand_for_their_fields() -> None:
    (item,) = Exchanges().take(a_frame(Command(310, {"a": "g", "b": "T", "e": "3"})))
    assert (item.topic, item.group, item.queue_id) == ("T", "g", 3)


def test_answers_find_the_request_of_their_side() -> None:
    """Both sides number their requests separately, so the same opaque means two requests."""
    table = Exchanges()
    (ours,) = table.take(a_frame(Command(34, opaque=5)))
    (theirs,) = table.take(a_frame(Command(39, opaque=5), WENT))
    answer = Command(0, opaque=5, flag=ANSWER)
    assert list(table.take(a_frame(answer, CAME, 2000))) == [theirs]
    assert list(table.take(a_frame(answer, WENT, 3000))) == [ours]
    assert (theirs.ms, ours.ms) == (2.0, 3.0)
    assert list(table.take(a_frame(answer, WENT))) == []


def test_a_closed_connection_leaves_no_waiting_exchange() -> None:
    table = Exchanges()
    list(table.take(FrameEvent(0, 1, OPENED, b"10.0.0.1:5 namesrv")))
    (request,) = table.take(a_frame(Command(105, {"topic": "T"}, opaque=1)))
    assert (request.peer, request.server, request.waits) == ("10.0.0.1:5", "namesrv", True)
    assert list(table.take(FrameEvent(1, 1, CLOSED))) == [request]
    assert (request.waits, request.ms, request.answer_code) == (False, None, None)


def test_broken_bytes_are_a_separate_exchange() -> None:
    (broken,) = Exchanges().take(FrameEvent(0, 1, BROKEN, b"GET / HTTP/1.1", None, "no frame"))
    assert (broken.broken, broken.name, broken.waits) == (True, "", False)
    assert request_record(broken)["broken"]["reason"] == "no frame"


def test_a_client_is_named_by_its_heartbeat(talked: list[Exchange]) -> None:
    talker = HeartbeatClient()
    for item in talked:
        if item.direction == "in":
            talker.hear(item)
    assert (talker.client_id, talker.producers, talker.consumers) == ("10.0.0.1@7", ("senders",), ("readers",))
    assert talker.language == "JAVA"


def test_an_invalid_heartbeat_is_ignored() -> None:
    talker = HeartbeatClient()
    command = Command(34, body=b"{no", version=399)
    (item,) = Exchanges().take(a_frame(command))
    talker.hear(item)
    assert (talker.client_id, talker.version) == ("", 399)


def test_numbers_without_a_name_stand_for_themselves() -> None:
    assert (request_name(310), request_name(987_654)) == ("SEND_MESSAGE_V2", "987654")
    assert (answer_name(0), answer_name(4711)) == ("SUCCESS", "4711")
