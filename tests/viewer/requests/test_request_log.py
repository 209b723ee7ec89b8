"""Stored requests: rows as frames arrive, clients, counts, the limit, and dropped frames."""

from __future__ import annotations

import pytest
import recorded_requests

from engine.remoting.exchanges import CAME, CLOSED, OPENED, WENT, FrameEvent
from engine.remoting.frame import ANSWER, ONE_WAY, Command, encode
from engine.remoting.recording import exchanges_of
from viewer.requests.fields import request_filter
from viewer.requests.request_log import Frame, RequestLog, family_index, frame_record, is_trouble


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> list[FrameEvent]:
    return recorded_requests.seen_in_a_talk(tmp_path_factory.mktemp("talk") / "store")


def frame(command: Command, kind: int = CAME, ms: int = 0, connection: int = 1) -> FrameEvent:
    return FrameEvent(ms * 1000, connection, kind, b"".join(encode(command)), command)


def test_a_row_comes_with_its_request_and_changes_with_its_answer(talk: list[FrameEvent]) -> None:
    log = RequestLog()
    for recorded in talk:
        new, changed = log.take([recorded])
        assert len(new) + len(changed) <= 1
    assert [row.name for row in log.rows[:3]] == ["HEART_BEAT", "NOTIFY_CONSUMER_IDS_CHANGED", "SEND_MESSAGE"]
    assert (log.total, log.stored_count, log.dropped, log.waiting) == (12, 12, 0, 0)
    assert (log.codes[10], log.codes[11], log.answers[17]) == (5, 3, 1)


def test_a_client_has_a_short_name_by_what_it_is(talk: list[FrameEvent]) -> None:
    log = RequestLog()
    log.take(talk)
    (client,) = log.clients.values()
    assert (client.name, client.requests, client.not_ok, client.open) == ("C1", 12, 1, False)
    assert client.heartbeats.client_id == "10.0.0.1@7"
    log.take([FrameEvent(0, 99, OPENED, b"10.0.0.2:5 namesrv"), frame(Command(105, {"topic": "T"}), connection=99)])
    assert log.clients[99].name == "N1"
    log.take([frame(Command(310, {"a": "payers", "b": "T"}), connection=100)])
    assert log.clients[100].name == "P1"


def test_a_filter_applies_to_later_rows_too() -> None:
    log = RequestLog()
    log.show(lambda row: row.code == 10)
    new, _ = log.take([frame(Command(34, opaque=1)), frame(Command(10, opaque=2))])
    assert [row.code for row in new] == [row.code for row in log.rows] == [10]
    assert log.stored_count == 2
    log.show(None)
    assert len(log.rows) == 2


def test_the_oldest_rows_are_dropped_at_the_limit() -> None:
    log = RequestLog(max_bytes=50_000)
    for number in range(100):
        log.take([frame(Command(10, opaque=number, body=b"x" * 500), ms=number)])
    assert log.bytes <= 50_000
    assert log.dropped == 100 - log.stored_count > 0
    assert len(log.rows) == log.stored_count
    assert log.rows[0].exchange.number == log.dropped + 1
    assert log.row(1) is None
    answer = Command(0, opaque=0, flag=ANSWER)
    assert log.take([frame(answer, WENT)]) == ([], [])


def test_seconds_count_families_and_failures() -> None:
    log = RequestLog()
    log.take(
        [
            frame(Command(11, opaque=1), ms=1_000),
            frame(Command(10, opaque=2), ms=1_500),
            frame(Command(34, opaque=3), ms=3_000),
            frame(Command(15, flag=ONE_WAY), ms=3_000),
            frame(Command(1, opaque=2, flag=ANSWER), WENT, 1_600),
        ]
    )
    assert [(second.second, second.counts, second.not_ok) for second in log.seconds] == [
        (1, [1, 1, 0, 0], 1),
        (3, [0, 0, 1, 1], 0),
    ]
    assert [family_index(code) for code in (11, 310, 14, 34)] == [0, 1, 2, 3]


def test_the_next_one_of_a_client_is_of_its_connection() -> None:
    log = RequestLog()
    log.take([frame(Command(10, opaque=n), connection=1 + n % 2) for n in range(4)])
    first_row = log.rows[0]
    following = log.next_of(first_row)
    assert following is log.rows[2]
    assert log.next_of(following) is None
    assert log.next_of(following, -1) is first_row


def test_stored_frames_can_be_recorded_again(talk: list[FrameEvent]) -> None:
    log = RequestLog()
    log.take(talk)
    replayed = exchanges_of(log.items())
    assert [(exchange.name, exchange.answer_code, exchange.peer) for exchange in replayed] == [
        (row.name, row.exchange.answer_code, row.peer) for row in log.rows
    ]


def test_a_log_of_whole_exchanges_counts_the_same(talk: list[FrameEvent]) -> None:
    frames, lines = RequestLog(), RequestLog()
    frames.take(talk)
    lines.take_exchanges(exchanges_of(talk))
    assert (lines.codes, lines.answers, lines.total) == (frames.codes, frames.answers, frames.total)
    assert [is_trouble(row.exchange) for row in lines.rows].count(True) == 1


def test_a_closed_connection_has_no_waiting_request() -> None:
    log = RequestLog()
    (held_pull,), _ = log.take([frame(Command(11, opaque=1))])
    assert (log.waiting, held_pull.exchange.held) == (1, True)
    _, (changed,) = log.take([FrameEvent(0, 1, CLOSED)])
    assert changed is held_pull
    assert log.waiting == 0


def halves(log: RequestLog) -> list[tuple[int, str, int]]:
    return [(row.number, row.frame, row.opaque) for row in log.rows if isinstance(row, Frame)]


def request_frame(opaque: int, code: int = 10, size: int = 0, ms: int = 0) -> FrameEvent:
    return frame(Command(code, opaque=opaque, body=b"x" * size), ms=ms)


def answered(opaque: int, code: int = 0, size: int = 0, ms: int = 0) -> FrameEvent:
    return frame(Command(code, opaque=opaque, flag=ANSWER, body=b"x" * size), WENT, ms)


def test_frames_are_rows_in_order_with_their_other_half() -> None:
    log = RequestLog()
    log.show_by_frame(True)
    new, _ = log.take([request_frame(1, 11), request_frame(2, size=9)])
    assert halves(log) == [(1, "request", 1), (2, "request", 2)]
    new, changed = log.take([answered(2, ms=5), answered(1, 19, ms=9)])
    assert [row.number for row in new] == [3, 4]
    assert [row.number for row in changed] == [2, 1], "what stood there has another half now"
    assert halves(log) == [(1, "request", 1), (2, "request", 2), (3, "answer", 2), (4, "answer", 1)]
    request_1, request_2, response_2, response_1 = log.rows
    assert (request_1.counterpart, request_2.counterpart, response_2.counterpart, response_1.counterpart) == (
        response_1,
        response_2,
        request_2,
        request_1,
    )
    assert [row.direction for row in log.rows] == ["in", "in", "out", "out"]
    assert [row.frame_code for row in log.rows] == [11, 10, 0, 19]
    assert [row.time for row in log.rows] == [0, 0, 5, 9]
    assert sum(row.bytes for row in log.rows) == request_1.row.exchange.bytes + request_2.row.exchange.bytes
    assert log.showable == 4
    log.show_by_frame(False)
    assert log.rows == [request_1.row, request_2.row]


def test_both_views_have_the_same_content(talk: list[FrameEvent]) -> None:
    live, later = RequestLog(), RequestLog()
    live.show_by_frame(True)
    for recorded in talk:
        live.take([recorded])
    later.take(talk)
    later.show_by_frame(True)
    assert halves(live) == halves(later)
    assert len(live.rows) == live.showable == live.frames
    assert [row.recorded.data for row in live.rows] == [
        recorded.data for recorded in talk if recorded.command is not None
    ]
    lines = RequestLog()
    lines.show_by_frame(True)
    lines.take_exchanges(exchanges_of(talk))
    assert [row.name for row in lines.rows] == [row.name for row in live.rows]
    assert [row.number for row in lines.rows] == list(range(1, len(live.rows) + 1))
    records = [frame_record(row) for row in live.rows if isinstance(row, Frame)]
    assert [record["other"] for record in records] == [row.counterpart and row.counterpart.number for row in live.rows]
    assert {record["frame"] for record in records} == {"request", "answer"}
    assert {record["name"] for record in records} >= {"SEND_MESSAGE", "SUCCESS", "TOPIC_NOT_EXIST"}


def test_a_condition_takes_both_halves_and_a_frame_by_its_own_bytes() -> None:
    log = RequestLog()
    log.show_by_frame(True)
    log.take([request_frame(1, 11), answered(1, 19), request_frame(2, size=400), answered(2)])
    for text, numbers in (
        ("code = 11", [1, 2]),
        ("answerCode = 0", [3, 4]),
        ("bytes > 400", [3]),
        ('frame = "answer"', [2, 4]),
        ('direction = "out"', [2, 4]),
        ("opaque = 2", [3, 4]),
    ):
        log.show(request_filter(text).matches)  # type: ignore[arg-type]
        assert [row.number for row in log.rows] == numbers, text


def test_an_answer_that_comes_later_is_judged_by_the_filter() -> None:
    """A live filter for answers that are not 0 showed no rows, because rows were judged once, when their request
    arrived.
    """
    for by_frame in (False, True):
        log = RequestLog()
        log.show_by_frame(by_frame)
        log.show(request_filter("answerCode = 1 or waits").matches)  # type: ignore[arg-type]
        log.take([request_frame(1), request_frame(2), request_frame(3)])
        assert [row.opaque for row in log.rows] == [1, 2, 3]
        log.take([answered(2)])
        assert ([row.opaque for row in log.rows], log.reordered) == ([1, 3], True)
        log.show(request_filter("answerCode = 1").matches)  # type: ignore[arg-type]
        assert log.rows == []
        log.take([answered(3, 1)])
        log.take([request_frame(4)])
        new, _ = log.take([answered(1, 1)])
        assert log.reordered
        assert new
        expected = [1, 1, 3, 3] if by_frame else [1, 3]
        assert sorted(row.opaque for row in log.rows) == expected
        assert [row.number for row in log.rows] == sorted(row.number for row in log.rows)


def test_an_answer_without_its_request_is_a_frame_and_no_exchange(talk: list[FrameEvent]) -> None:
    log = RequestLog()
    log.take([FrameEvent(0, 1, OPENED, b"10.0.0.2:5 broker"), answered(7, ms=1), request_frame(8, ms=2)])
    assert [row.opaque for row in log.rows] == [8]
    log.show_by_frame(True)
    stray, request_half = log.rows
    assert (stray.opaque, stray.frame, stray.counterpart, stray.ms, stray.name, stray.peer) == (
        7,
        "answer",
        None,
        None,
        "",
        "10.0.0.2:5",
    )
    assert stray.client == request_half.client == "A1"
    second_log = RequestLog()
    second_log.show_by_frame(True)
    second_log.take(log.items())
    assert halves(second_log) == halves(log), "a recording of what is kept has it too"


@pytest.mark.parametrize("by_frame", [False, True])
@pytest.mark.parametrize("text", ["", "opaque != 3"])
def test_frames_are_kept_within_the_same_bound(by_frame: bool, text: str) -> None:
    """However answers and requests cross, the shown rows are the stored ones, in order, and their bytes are counted."""
    log = RequestLog(max_bytes=60_000)
    log.show_by_frame(by_frame)
    log.show(request_filter(text).matches if text else None)  # type: ignore[arg-type]
    for number in range(200):
        log.take([request_frame(number, size=number % 7 * 100, ms=number)])
        if number % 3 == 0:
            log.take([answered(number - 9, size=300, ms=number), answered(9_000 + number, ms=number)])
        shown = list(log.rows)
        log.show(log._test)
        assert shown == log.rows
    assert log.dropped > 100
    assert log.bytes <= 60_000
    stored = [row.exchange for row in log.stored_rows()] + [item.row.exchange for item in log._orphans]
    assert log.bytes == sum(item.bytes + 1500 for item in stored)
