"""What a tap sees is what went over the wire; one that fails harms nobody; the ring is bounded."""

from __future__ import annotations

import asyncio
from pathlib import Path

import recorded_requests
from brokers import run

from engine.remoting.exchanges import BROKEN, CAME, CLOSED, LATER, OPENED, WENT, FrameEvent
from engine.remoting.frame import Command, FrameReader
from engine.remoting.tap import Ring


def test_frames_are_kept_as_they_came_and_went(tmp_path: Path) -> None:
    observed = recorded_requests.seen_in_a_talk(tmp_path / "store")
    assert (observed[0].kind, observed[-1].kind) == (OPENED, CLOSED)
    assert {one.kind for one in observed} == {OPENED, CAME, WENT, LATER, CLOSED}
    for item in observed[1:-1]:
        reader = FrameReader()
        reader.feed(item.data)
        (command,) = reader.commands()
        assert isinstance(command, Command)
        assert item.command is not None
        assert (command.code, command.opaque, command.fields) == (
            item.command.code,
            item.command.opaque,
            item.command.fields,
        )
        assert command.body == item.body


def test_what_is_no_frame_is_seen_with_its_reason(tmp_path: Path) -> None:
    calls: list[FrameEvent] = []

    async def spoken() -> None:
        async with recorded_requests.tapped(tmp_path / "store", calls.append) as client:
            host, _, port = client.server.address.rpartition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            assert await reader.read() == b""
            writer.close()

    run(spoken)
    (broken,) = [item for item in calls if item.kind == BROKEN]
    assert broken.data.startswith(b"GET / HTTP")
    assert "more than" in broken.reason


def test_who_fails_is_told_no_more_and_the_broker_goes_on(tmp_path: Path) -> None:
    reports: list[FrameEvent] = []

    def full(seen: FrameEvent) -> None:
        reports.append(seen)
        raise OSError("no space left on device")

    observed = recorded_requests.seen_in_a_talk(tmp_path / "store", full)
    assert len(reports) == 1
    assert len(observed) > 20


def test_the_oldest_frames_make_room() -> None:
    ring = Ring(10_000)
    for number in range(100):
        ring.take(FrameEvent(number, 1, CAME, b"x" * 400))
    assert ring.bytes <= 10_000
    first, saved = ring.since(0, 1 << 20)
    assert first == ring.dropped == 90
    assert [item.time for item in saved] == list(range(90, 100))
    first, some = ring.since(95, 2_000)
    assert (first, [one.time for one in some]) == (95, [95, 96])
    assert ring.since(100, 1) == (100, [])
    assert len(ring.since(99, 1)[1]) == 1
