"""What a view of requests keeps: rows as frames come, who talks, counts, a bound that says what has gone."""

from __future__ import annotations

import pytest
import recorded_requests

from engine.remoting.exchanges import CAME, CLOSED, OPENED, WENT, Seen
from engine.remoting.frame import ANSWER, ONE_WAY, Command, encode
from engine.remoting.replaying import exchanges_of
from viewer.requests.request_log import RequestLog, family, is_trouble


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> list[Seen]:
    return recorded_requests.seen_in_a_talk(tmp_path_factory.mktemp("talk") / "store")


def frame(command: Command, kind: int = CAME, ms: int = 0, connection: int = 1) -> Seen:
    return Seen(ms * 1000, connection, kind, b"".join(encode(command)), command)


def test_a_row_comes_with_its_request_and_changes_with_its_answer(talk: list[Seen]) -> None:
    log = RequestLog()
    for seen in talk:
        new, changed = log.take([seen])
        assert len(new) + len(changed) <= 1
    assert [row.name for row in log.rows[:3]] == ["HEART_BEAT", "NOTIFY_CONSUMER_IDS_CHANGED", "SEND_MESSAGE"]
    assert (log.total, log.kept, log.dropped, log.waiting) == (12, 12, 0, 0)
    assert (log.codes[10], log.codes[11], log.answers[17]) == (5, 3, 1)


def test_a_client_has_a_short_name_by_what_it_is(talk: list[Seen]) -> None:
    log = RequestLog()
    log.take(talk)
    (client,) = log.clients.values()
    assert (client.name, client.requests, client.not_ok, client.open) == ("C1", 12, 1, False)
    assert client.talker.client_id == "10.0.0.1@7"
    log.take([Seen(0, 99, OPENED, b"10.0.0.2:5 namesrv"), frame(Command(105, {"topic": "T"}), connection=99)])
    assert log.clients[99].name == "N1"
    log.take([frame(Command(310, {"a": "payers", "b": "T"}), connection=100)])
    assert log.clients[100].name == "P1"


def test_a_filter_lets_through_what_comes_later_too() -> None:
    log = RequestLog()
    log.show(lambda row: row.code == 10)
    new, _ = log.take([frame(Command(34, opaque=1)), frame(Command(10, opaque=2))])
    assert [row.code for row in new] == [row.code for row in log.rows] == [10]
    assert log.kept == 2
    log.show(None)
    assert len(log.rows) == 2


def test_the_oldest_go_where_there_is_no_room() -> None:
    log = RequestLog(most=50_000)
    for number in range(100):
        log.take([frame(Command(10, opaque=number, body=b"x" * 500), ms=number)])
    assert log.bytes <= 50_000
    assert log.dropped == 100 - log.kept > 0
    assert len(log.rows) == log.kept
    assert log.rows[0].exchange.number == log.dropped + 1
    assert log.row(1) is None
    answer = Command(0, opaque=0, flag=ANSWER)
    assert log.take([frame(answer, WENT)]) == ([], [])


def test_seconds_tell_families_and_what_was_not_done() -> None:
    log = RequestLog()
    log.take([
        frame(Command(11, opaque=1), ms=1_000), frame(Command(10, opaque=2), ms=1_500),
        frame(Command(34, opaque=3), ms=3_000), frame(Command(15, flag=ONE_WAY), ms=3_000),
        frame(Command(1, opaque=2, flag=ANSWER), WENT, 1_600),
    ])  # fmt: skip
    assert [(one.at, one.counts, one.not_ok) for one in log.seconds] == [(1, [1, 1, 0, 0], 1), (3, [0, 0, 1, 1], 0)]
    assert [family(code) for code in (11, 310, 14, 34)] == [0, 1, 2, 3]


def test_the_next_one_of_a_client_is_of_its_connection() -> None:
    log = RequestLog()
    log.take([frame(Command(10, opaque=n), connection=1 + n % 2) for n in range(4)])
    first = log.rows[0]
    following = log.next_of(first)
    assert following is log.rows[2]
    assert log.next_of(following) is None
    assert log.next_of(following, -1) is first


def test_what_is_kept_can_be_recorded_again(talk: list[Seen]) -> None:
    log = RequestLog()
    log.take(talk)
    again = exchanges_of(log.items())
    assert [(one.name, one.answer_code, one.peer) for one in again] == [
        (row.name, row.exchange.answer_code, row.peer) for row in log.rows
    ]


def test_a_log_of_whole_exchanges_counts_the_same(talk: list[Seen]) -> None:
    frames, lines = RequestLog(), RequestLog()
    frames.take(talk)
    lines.take_exchanges(exchanges_of(talk))
    assert (lines.codes, lines.answers, lines.total) == (frames.codes, frames.answers, frames.total)
    assert [is_trouble(row.exchange) for row in lines.rows].count(True) == 1


def test_a_connection_that_ends_has_no_one_waiting() -> None:
    log = RequestLog()
    (held,), _ = log.take([frame(Command(11, opaque=1))])
    assert (log.waiting, held.exchange.held) == (1, True)
    _, (changed,) = log.take([Seen(0, 1, CLOSED)])
    assert changed is held
    assert log.waiting == 0
