"""The lane of events: glyphs below their places, the worst of those that are near, and the way to units and events."""

from __future__ import annotations

import pytest
from panes import on_store, wait_until, wait_until_idle
from PySide6.QtCore import QPointF, Qt

from engine.inspection.timeline.events import Kind, TimelineEvent
from viewer.log import event_lane
from viewer.log.event_lane import EventLane
from viewer.log.pane import UnitsPane
from viewer.runtime.places import Place
from viewer.widgets.line_strip import LineStrip
from viewer.widgets.log_line import LogLine

LAST_STORED = 50_000


def event(kind: Kind, offset: int | None, time: int = 0) -> TimelineEvent:
    return TimelineEvent(kind, time, time, offset, f"a {kind}", "certain", "commitlog")


@pytest.fixture
def lane(qtbot) -> EventLane:
    strip = LineStrip("test.line")
    lane = EventLane(strip)
    for widget in (strip, lane):
        qtbot.addWidget(widget)
        widget.resize(1000, widget.sizeHint().height())
        widget.show()
    strip.set_line(LogLine(0, 100_000, 100_000))
    return lane


def test_of_events_that_are_near_the_worst_is_drawn_and_the_tip_names_all(lane: EventLane) -> None:
    events = [event("start", 20_010), event("crash", 20_000), event("clockStep", 60_000), event("topicAppears", 0)]
    lane.show_events(events, LAST_STORED)
    lane.grab()
    assert [[shown.kind for shown in group] for _, group in lane.groups()] == [["crash", "start"], ["clockStep"]]
    x = lane.groups()[0][0]
    tip = lane.words_under(QPointF(x, 5)).splitlines()
    assert tip[0].startswith("crash · ")
    assert tip[1] == "a crash"
    assert tip[2].startswith("start · ")
    assert lane.words_under(QPointF(x + 100, 5)) == ""


def test_an_event_without_a_unit_stands_at_the_end_if_it_came_after_the_last_message(lane: EventLane) -> None:
    lane.show_events([event("start", None, 10), event("cleanStop", None, LAST_STORED + 1)], LAST_STORED)
    assert [group[0].kind for _, group in lane.groups()] == ["cleanStop"]
    assert lane.groups()[0][0] == lane._strip.x_of(100_000)


def test_keys_and_clicks_choose_and_follow(lane: EventLane, qtbot) -> None:
    events = [event("crash", 20_000), event("stall", 60_000)]
    lane.show_events(events, LAST_STORED, events[1])
    chosen, followed = [], []
    lane.eventChosen.connect(chosen.append)
    lane.eventFollowed.connect(followed.append)
    qtbot.mouseClick(lane, Qt.MouseButton.LeftButton, pos=QPointF(lane.groups()[0][0], 5).toPoint())
    qtbot.keyClick(lane, Qt.Key.Key_Right)
    qtbot.keyClick(lane, Qt.Key.Key_Return)
    assert (chosen, followed) == (events, [events[1]])
    lane.grab()


def test_a_log_without_events_says_so_only_once_it_is_read(lane: EventLane) -> None:
    lane.show_events([], LAST_STORED)
    picture = lane.grab().toImage()
    assert len({picture.pixel(x, 10) for x in range(10, 300)}) > 2, "a sentence is drawn"


@pytest.mark.golden
def test_the_lane_fills_itself_behind_and_leads_to_the_unit(qapp, golden, monkeypatch) -> None:
    monkeypatch.setattr(event_lane, "IDLE_MS", 10)

    async def drive(pane: UnitsPane, session) -> None:
        await wait_until(lambda: session.timeline is not None, "the events are read")
        await wait_until_idle(session.jobs)
        assert not pane.lane.isHidden()
        kinds = [group[0].kind for _, group in pane.lane.groups()]
        assert kinds == ["pause", "crash"]
        pane.lane.eventChosen.emit(pane.lane.groups()[0][1][0])
        await wait_until_idle(session.jobs)
        assert pane.table.current_row().offset == 1_405_036
        pane.lane.eventChosen.emit(pane.lane.groups()[1][1][0])
        await wait_until_idle(session.jobs)
        assert pane.table.current_row().end == pane.line.line.written
        assert session.chosen_event.kind == "crash"
        emitted = []
        pane.placeRequested.connect(emitted.append)
        pane.lane.eventFollowed.emit(session.chosen_event)
        assert emitted == [Place("timeline")]

    on_store(qapp, UnitsPane, golden("broker-crash", "store-recovered"), drive)


@pytest.mark.golden
def test_the_lane_has_its_room_before_the_log_is_read_for_events(qapp, golden, monkeypatch) -> None:
    """The lane appeared seconds after the rows. It moved them down by 20 px, under the pointer."""
    monkeypatch.setattr(event_lane, "IDLE_MS", 2000)

    async def drive(pane: UnitsPane, session) -> None:
        assert session.timeline is None
        assert pane.reads_behind()
        assert pane.lane.accessibleDescription().startswith("The log is read for events when")
        top = pane.table.mapTo(pane, pane.table.rect().topLeft()).y()
        await wait_until(lambda: session.timeline is not None, "the events are read")
        await wait_until_idle(session.jobs)
        assert not pane.reads_behind()
        assert pane.lane.accessibleDescription().endswith(" events")
        assert pane.table.mapTo(pane, pane.table.rect().topLeft()).y() == top

    on_store(qapp, UnitsPane, golden("broker-crash", "store-recovered"), drive)


@pytest.mark.golden
def test_the_lane_of_a_longer_log_stays_away_until_somebody_reads_the_events(qapp, golden, monkeypatch) -> None:
    monkeypatch.setattr(event_lane, "MAX_LOG_BYTES", 1)

    async def drive(pane: UnitsPane, session) -> None:
        assert pane.lane.isHidden()
        assert not pane.reads_behind()

    on_store(qapp, UnitsPane, golden("broker-crash", "store-recovered"), drive)
