"""Rows of requests as text: answers, times, links, fields under their long names, and conversations that are
filters.
"""

from __future__ import annotations

import pytest
import recorded_requests

from engine.remoting.exchanges import BROKEN, CAME, FrameEvent
from engine.remoting.frame import Command
from viewer.requests.columns import (
    EXCHANGES,
    FIELD_ROWS,
    FILTER_ENTRIES,
    answer_chip,
    entry_place,
    field_rows,
    filter_entries,
    ms_text,
    unit_place,
)
from viewer.requests.fields import request_filter
from viewer.requests.request_log import RequestLog, Row
from viewer.runtime import places


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> RequestLog:
    request_log = RequestLog()
    request_log.take(recorded_requests.seen_in_a_talk(tmp_path_factory.mktemp("talk") / "store"))
    return request_log


def cells(row: Row) -> dict[str, str]:
    return {column.key: column.text(row) for column in EXCHANGES.columns if column.key}


def named(log: RequestLog, name: str) -> list[Row]:
    return [row for row in log.rows if row.name == name]


def test_a_send_leads_to_its_entry_and_its_unit(log: RequestLog) -> None:
    second = named(log, "SEND_MESSAGE")[1]
    assert entry_place(second) == places.queue("Orders", 0, 1)
    place = unit_place(second)
    assert place is not None
    assert place.offset == second.exchange.written_at
    texts = cells(second)
    assert (texts["client"], texts["direction"], texts["code"], texts["offset"]) == ("C1", "→", "10", "1")
    assert texts["answer"] == "✓ SUCCESS"


def test_a_held_pull_is_marked_and_links_to_its_answer(log: RequestLog) -> None:
    _, held_pull, refused = named(log, "PULL_MESSAGE")
    assert ms_text(held_pull).startswith("held ")
    assert entry_place(held_pull) == places.queue("Orders", 0, 3)
    assert entry_place(refused) is None
    assert answer_chip(refused).kind == "warn"
    look = EXCHANGES.look(refused)
    assert look is not None
    assert look.mark == "warn"
    assert EXCHANGES.speak(refused).startswith("TOPIC_NOT_EXIST")


def test_one_way_requests_and_requests_of_the_server(log: RequestLog) -> None:
    (notification,) = named(log, "NOTIFY_CONSUMER_IDS_CHANGED")
    assert (cells(notification)["direction"], cells(notification)["answer"], cells(notification)["ms"]) == (
        "←",
        "one-way",
        "",
    )


def test_a_request_without_an_answer_waits_or_is_held() -> None:
    log = RequestLog()
    log.take([FrameEvent(0, 1, CAME, b"", Command(34, opaque=1)), FrameEvent(0, 1, CAME, b"", Command(11, opaque=2))])
    assert [answer_chip(row).word for row in log.rows] == ["waits", "held by the broker"]


def test_invalid_bytes_are_a_row_with_a_text() -> None:
    log = RequestLog()
    log.take([FrameEvent(0, 1, BROKEN, b"GET", None, "the client begins with TLS")])
    look = EXCHANGES.look(log.rows[0])
    assert look is not None
    assert (look.mark, look.words) == ("error", "No frame: the client begins with TLS")
    assert [field_row.value for field_row in field_rows(log.rows[0])] == ["the client begins with TLS", "3"]


def test_the_answers_fields_come_first_with_links(log: RequestLog) -> None:
    rows = field_rows(named(log, "SEND_MESSAGE")[1])
    assert [field_row.name for field_row in rows if field_row.head] == ["Answer", "Request", "extFields"]
    assert rows[0].value == "0 SUCCESS"
    links = {field_row.name: field_row.place for field_row in rows if field_row.place is not None}
    assert set(links) == {"msgId", "queueOffset"}
    assert all(FIELD_ROWS.columns[1].jump is not None for _ in links)
    assert {"topic", "queueId", "body"} <= {field_row.name for field_row in rows}


def test_letters_have_their_long_names() -> None:
    log = RequestLog()
    log.take([FrameEvent(0, 1, CAME, b"", Command(310, {"a": "g", "i": "KEYS\x01K1\x02"}, opaque=1))])
    fields = {field_row.name: (field_row.value, field_row.note) for field_row in field_rows(log.rows[0])}
    assert fields["a"] == ("g", "producerGroup")
    assert fields["i"] == ("KEYS␁K1␂", "properties")


def test_each_line_of_the_conversations_is_a_valid_filter(log: RequestLog) -> None:
    rows = filter_entries(log)
    heads = [row.name for row in rows if row.kind == "head"]
    assert heads == ["Connections", "Codes", "Answers", "Held now", "Broken frames"]
    for row in rows:
        test = request_filter(row.term)
        matching = sum(test.matches(request_row) for request_row in log.rows)  # type: ignore[arg-type]
        if row.kind != "head":
            assert matching == row.count, row
    assert FILTER_ENTRIES.as_text(rows[1], " ").split() == ["C1", "senders,", "readers", "12"]
