"""The window with messages at a broker: table and detail of the Log view, places, filter, and errors in words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.broker.serving import Addresses, serving_beside
from engine.codec.encode import Message
from engine.message_store import MessageStore
from viewer.cluster.access import NO_FILES
from viewer.remote.window import RemoteWindow


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Addresses]:
    """A broker with 200 messages in queue 1 of Orders, every tenth of them hot; queue 0 and Empty have none."""
    path: Path = tmp_path_factory.mktemp("remote") / "store"
    with MessageStore(path) as store:
        store.tables.create_topic("Orders", 2)
        store.tables.create_topic("Empty", 1)
        for number in range(200):
            tag = "cold" if number % 10 else "hot"
            store.put_message(Message("Orders", b'{"n": %d}' % number, queue_id=1, properties={"TAGS": tag}))
    with serving_beside(path) as addresses:
        yield addresses


@pytest.fixture
def window(qtbot: Any, themed_app: Any, cluster: Addresses) -> Iterator[RemoteWindow]:
    remote = RemoteWindow((cluster.namesrv,), NO_FILES)
    qtbot.addWidget(remote)
    remote.show()
    yield remote
    remote.session.close()


def shown_offsets(window: RemoteWindow) -> list[int]:
    return [row.queue_offset for row in window.table.table.rows]


def open_orders(window: RemoteWindow, qtbot: Any) -> None:
    window.show_topic("Orders")
    qtbot.waitUntil(lambda: bool(shown_offsets(window)))


def test_a_topic_shows_its_first_queue_with_messages(window: RemoteWindow, qtbot: Any) -> None:
    operations: list[tuple[Any, ...]] = []
    window.operationDone.connect(lambda *words: operations.append(words))
    open_orders(window, qtbot)
    assert window.queue.currentText() == "broker-a / 1 · 0 – 199"
    assert shown_offsets(window)[0] == 0
    window.table.choose_next(0)
    qtbot.waitUntil(lambda: window.panes.current is not None)
    loaded = window.panes.current
    assert loaded is not None
    assert loaded.decoded is not None
    assert loaded.decoded.unit.body == b'{"n": 0}'
    assert loaded.decoded.origin == "in the log of broker-a, as it wrote it into the message"
    assert [words[0] for words in operations] == ["cluster.browse"]
    row = window.table.current_row()
    command = window.table.kind.command
    assert command is not None
    assert " ".join(command(row)).endswith("-t Orders -b broker-a -i 1 -o 0 -c 1")


def test_places_are_offsets_and_times_and_both_ends(window: RemoteWindow, qtbot: Any) -> None:
    open_orders(window, qtbot)

    def chosen() -> int:
        row = window.table.current_row()
        return -1 if row is None else int(row.queue_offset)

    window.go_to_end()
    qtbot.waitUntil(lambda: chosen() == 199)
    window.place.setText("1_20")
    window.go_to_place()
    qtbot.waitUntil(lambda: chosen() == 120)
    window.go_to_begin()
    qtbot.waitUntil(lambda: chosen() == 0)
    window.place.setText("5000")
    window.go_to_place()
    assert window.status.text() == "Offset 5,000 is out of range: the queue has 0 to 199."
    window.place.setText("2999-01-01 00:00:00")
    window.go_to_place()
    qtbot.waitUntil(lambda: chosen() == 199)
    assert window.status.text() == ""
    window.place.setText("2001-01-01 00:00:00")
    window.go_to_place()
    qtbot.waitUntil(lambda: chosen() == 0)
    window.place.setText("yesterday")
    window.go_to_place()
    assert "is no offset and no time" in window.status.text()


def test_a_filter_says_how_many_messages_it_has_read(window: RemoteWindow, qtbot: Any) -> None:
    open_orders(window, qtbot)
    window.filter.apply('tags = "hot"')
    qtbot.waitUntil(lambda: len(shown_offsets(window)) == 20)
    qtbot.waitUntil(lambda: window.table.strip.state.kind == "note")
    assert window.table.strip.state.text == "20 matches in 200 messages read, up to offset 200 of 200"
    window.filter.apply("")
    qtbot.waitUntil(lambda: shown_offsets(window)[:3] == [0, 1, 2])


def test_an_empty_queue_a_missing_topic_and_no_broker_are_sentences(
    window: RemoteWindow, qtbot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def state_text() -> str:
        state = window.table.note.state or window.table.strip.state
        return "" if state is None else state.text

    window.show_topic("Empty")
    qtbot.waitUntil(lambda: state_text() == "The queue has no messages.")
    window.go_to_begin()
    assert window.status.text() == "The queue has no messages."
    window.show_topic("Nowhere")
    qtbot.waitUntil(lambda: state_text() == "no broker serves the topic Nowhere")
    open_orders(window, qtbot)

    def gone(*_: object) -> None:
        raise ConnectionRefusedError("connection refused")

    monkeypatch.setattr(window.session.reader(), "ends", gone)
    window.refresh()
    assert window.stop_button.isEnabled(), "a broker that does not answer need not be waited for"
    qtbot.waitUntil(lambda: state_text().startswith("the broker cannot be reached"))
    assert shown_offsets(window), "what was read stays"
