"""Requests: a lab store is served, clients send and consume, their requests appear as rows that lead to the store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import recorded_requests
from clipped_widgets import clipped_widgets
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton
from walker import Run, Walker

from engine.client.consumer import Consumer
from engine.client.consuming import ConsumerConfig
from engine.client.messages import Message, ReceivedMessage, SendResult
from engine.client.producer import Producer
from engine.lab.presets import PRESETS
from engine.remoting.recording import Recorder
from viewer.lab.pane import LabPane
from viewer.requests.pane import RequestsPane
from viewer.widgets.word_tabs import WordTabs

pytestmark = pytest.mark.journey


@pytest.fixture
def lab(walker: Walker, run: Run, tmp_path: Path) -> Iterator[Any]:
    session = walker.window.lab.session
    yield session
    run(session.close())


def requests_of(walker: Walker) -> RequestsPane:
    pane = walker.window.pane("requests")
    assert isinstance(pane, RequestsPane)
    return pane


def test_a_lab_store_is_served_and_its_requests_are_seen(walker: Walker, run: Run, lab: Any, tmp_path: Path) -> None:
    async def scenario() -> None:
        assert await walker.window.lab.open_lab(tmp_path / "lab", PRESETS[3].config, "5.3")
        await walker.act("lab.serve.show")
        pane = walker.window.pane("lab")
        assert isinstance(pane, LabPane)
        await walker.until(
            lambda: walker.find(WordTabs, "lab.deck").key == "serve", "the deck that serves is there", 60
        )
        await cuts_nothing(walker)
        pane = walker.window.pane("lab")
        assert isinstance(pane, LabPane)
        pane.deck.choose("serve")
        pane.serve.port.setText("0")
        pane.serve.namesrv.setText("0")
        walker.find(QPushButton, "lab.serve").click()
        await walker.until(lambda: lab.serving is not None, "it serves", 60)
        await walker.until(pane.serve.chip.isVisible, "the deck says so", 60)
        assert not clipped_widgets(walker.window)
        walker.window.resize(1600, 1000)
        pane.serve.requestsRequested.emit("")
        requests = requests_of(walker)
        await walker.until(requests.chip.isVisible, "it records", 60)

        sent = await asyncio.to_thread(lambda: asyncio.run(sent_and_read(lab.serving.namesrv)))
        await walker.until(
            lambda: sum(row.code == 310 and row.exchange.answer is not None for row in requests._log.rows) >= 4,
            "its sends are rows",
            60,
        )
        requests.set_filter('request = "SEND_MESSAGE_V2" and topic = "Orders"')
        assert requests.table.total_rows() == 4
        requests.table.go_to(requests._log.rows[0].exchange.number)
        row = requests.table.current_row()
        assert (row.topic, row.queue_id, row.offset) == (
            "Orders",
            sent[0].queue.queue_id,
            sent[0].queue_offset,
        )
        assert requests.table.follow()
        await walker.until(lambda: walker.window.view == "queue", "the link leads into the queue", 60)
        walker.action("view.requests").trigger()
        requests = requests_of(walker)
        requests.set_filter('request = "PULL_MESSAGE" and answerCode = 0')
        await walker.until(lambda: requests.table.total_rows() > 0, "a pull was answered", 60)
        QTest.keyClick(requests.table, Qt.Key.Key_Space)
        assert requests._source_status.kind == "paused"
        await lab.stop_serving()
        QTest.keyClick(requests.table, Qt.Key.Key_Space)
        await walker.until(lambda: requests._source_status.kind == "ended", "the end is said", 60)

    run(scenario())


async def cuts_nothing(walker: Walker) -> None:
    """In the smallest window every button of the lab has its words: "Commit now" had lost its C, because its column was
    as wide as the services and not as the buttons above them.
    """
    walker.window.resize(1280, 720)
    for language in ("zh_CN", "en"):
        await walker.act(f"language.{language}")
        pane = walker.window.pane("lab")
        assert isinstance(pane, LabPane)
        for deck in ("plug", "serve"):
            pane.deck.choose(deck)
            await walker.rest()
            assert not clipped_widgets(walker.window), (language, deck)


async def sent_and_read(namesrv: str) -> list[SendResult]:
    """Send four messages by a producer of ours and read them by a consumer of ours."""
    read: list[bytes] = []
    every = asyncio.Event()

    def take(messages: Sequence[ReceivedMessage], _context: object) -> None:
        read.extend(message.body for message in messages)
        if len(read) >= 4:
            every.set()

    async with asyncio.timeout(60), Producer("payers", namesrv) as producer:
        sent = [await producer.send(Message("Orders", b"cup %d" % number, keys=f"K{number}")) for number in range(4)]
        consumer = Consumer("readers", take, namesrv, ConsumerConfig(start="CONSUME_FROM_FIRST_OFFSET"))
        consumer.subscribe("Orders")
        await consumer.start()
        await every.wait()
        await consumer.stop()
    assert sorted(read) == [b"cup 0", b"cup 1", b"cup 2", b"cup 3"]
    return sent


def test_a_recording_is_opened_in_a_window_without_a_store(walker: Walker, run: Run, tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "talk.requests")
    recorded_requests.seen_in_a_talk(tmp_path / "store", recorder.take)
    recorder.close()

    async def scenario() -> None:
        walker.window.close_store()
        assert await walker.window.go_to_text(f"requests:{tmp_path / 'talk.requests'}")
        pane = requests_of(walker)
        await walker.until(lambda: pane.table.total_rows() == 12, "its rows are there", 60)
        walker.action("requests.client").trigger()
        assert pane.filter.text() == 'client = "C1"'

    run(scenario())
