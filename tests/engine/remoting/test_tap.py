"""A tap sees exactly the frames of the connection. A failing tap does no harm, and the ring is bounded."""

from __future__ import annotations

import asyncio
from pathlib import Path

import recorded_requests
from brokers import run_scenario

from engine.remoting.exchanges import BROKEN, CAME, CLOSED, LATER, OPENED, WENT, FrameEvent
from engine.remoting.frame import Command, FrameReader
from engine.remoting.tap import Ring


def test_frames_are_recorded_unchanged(tmp_path: Path) -> None:
    observed = recorded_requests.seen_in_a_talk(tmp_path / "store")
    assert (observed[0].kind, observed[-1].kind) == (OPENED, CLOSED)
    assert {event.kind for event in observed} == {OPENED, CAME, WENT, LATER, CLOSED}
    for frame_event in observed[1:-1]:
        reader = FrameReader()
        reader.feed(frame_event.data)
        (command,) = reader.commands()
        assert isinstance(command, Command)
        assert frame_event.command is not None
        assert (command.code, command.opaque, command.fields) == (
            frame_event.command.code,
            frame_event.command.opaque,
            frame_event.command.fields,
        )
        assert command.body == frame_event.body


def test_invalid_bytes_are_recorded_with_a_reason(tmp_path: Path) -> None:
    calls: list[FrameEvent] = []

    async def spoken() -> None:
        async with recorded_requests.tapped(tmp_path / "store", calls.append) as client:
            host, _, port = client.server.address.rpartition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            assert await reader.read() == b""
            writer.close()

    run_scenario(spoken)
    (broken,) = [item for item in calls if item.kind == BROKEN]
    assert broken.data.startswith(b"GET / HTTP")
    assert "more than" in broken.reason


def test_a_failing_tap_is_removed_and_the_broker_continues(tmp_path: Path) -> None:
    reports: list[FrameEvent] = []

    def failing_tap(event: FrameEvent) -> None:
        reports.append(event)
        raise OSError("no space left on device")

    observed = recorded_requests.seen_in_a_talk(tmp_path / "store", failing_tap)
    assert len(reports) == 1
    assert len(observed) > 20


def test_the_oldest_frames_are_dropped_for_new_ones() -> None:
    ring = Ring(10_000)
    for number in range(100):
        ring.take(FrameEvent(number, 1, CAME, b"x" * 400))
    assert ring.bytes <= 10_000
    first_number, events = ring.events_from(0, 1 << 20)
    assert first_number == ring.dropped == 90
    assert [event.time for event in events] == list(range(90, 100))
    first_number, further_events = ring.events_from(95, 2_000)
    assert (first_number, [event.time for event in further_events]) == (95, [95, 96])
    assert ring.events_from(100, 1) == (100, [])
    assert len(ring.events_from(99, 1)[1]) == 1
