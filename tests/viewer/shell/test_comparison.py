"""Two windows that are linked until the user unlinks them."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from controls import FakeControl
from handmade_stores import healthy
from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QApplication

from engine.cli.main import main
from engine.codec.message import Unit
from engine.inspection.snapshot import open_store
from viewer.compare.first_difference import sentence
from viewer.runtime import places
from viewer.runtime.jobs import Cancelled
from viewer.runtime.places import History, Place
from viewer.shell import comparison as module
from viewer.shell.comparison import Comparison
from viewer.widgets.record_state import State


class Window(QObject):
    """Fake window with the parts that a comparison uses."""

    opened = Signal()

    def __init__(self, session: Any = None) -> None:
        super().__init__()
        self.history = History(self.lead)
        self.session = session or SimpleNamespace(shown_path="/some/store", path=Path("/some/store"), snapshot=None)
        self.closed = False
        self.messages: list[str] = []
        self.over: State | None = None
        """What stands over the views."""
        self.shares = False
        self.next: Window | None = None
        """What a second store is opened in."""
        self.begun = 0
        self.tied = self.jobs = self
        self.view, self.is_active = "log", True
        self.isActiveWindow = lambda: self.is_active  # type: ignore[method-assign]
        self.scrolled_to: list[int] = []
        self.panes = {"log": SimpleNamespace(scroll_to=self.scrolled_to.append)}
        this: Any = self
        self.workspace = SimpleNamespace(comparison=Comparison(this))

    def lead(self, place: Place) -> None:
        self.workspace.comparison.lead(place)

    def show_state(self, state: State | None) -> None:
        self.over = state

    def tie(self, on: bool) -> None:
        self.shares = on

    def say(self, words: str) -> None:
        self.messages.append(words)

    def go(self, place: Place) -> None:
        self.history.visit(place)

    async def settled(self, _seconds: float) -> bool:
        return True

    def start(self, work: Any) -> None:
        """Start a job that the test does not wait for."""
        work.close()
        self.begun += 1

    async def quick(self, work: Callable[[], Any]) -> Any:
        return work()

    def read(self, work: Callable[[], Any], done: Callable[[Any], None], _failed: object) -> None:
        done(work())

    async def run(self, _title: str, work: Callable[[Any], Any]) -> Any:
        return work(FakeControl())


@pytest.fixture
def windows(qapp: QApplication, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Window]]:
    monkeypatch.setattr(module, "open_beside", lambda window, _store, _place_text, *, tied: window.next)
    three_windows = [Window() for _ in range(3)]
    yield three_windows
    for created in three_windows:
        created.deleteLater()
    QApplication.sendPostedEvents(None, 52)  # DeferredDelete


def flip_byte(store: Path, offset: int, file_bytes: int = 4096) -> None:
    """Change the byte of the log at ``offset``."""
    file = store / "commitlog" / f"{offset // file_bytes * file_bytes:020d}"
    raw = bytearray(file.read_bytes())
    raw[offset % file_bytes] ^= 0xFF
    file.write_bytes(raw)


def tied(window: Window, other_window: Window) -> None:
    window.next = other_window
    assert window.workspace.comparison.begin(Path("/other")) is other_window
    window.tie(True)
    other_window.tie(True)


def test_either_of_two_windows_leads_the_other_through_the_log(windows: list[Window]) -> None:
    window, other_window, _ = windows
    tied(window, other_window)
    window.go(places.log(640))
    other_window.go(places.log(700))
    assert (window.history.current, other_window.history.current) == (places.log(700), places.log(700))
    window.go(places.queue("Orders", 0, 5))
    assert other_window.history.current == places.log(700), "queues of two stores are not the same"
    assert [place.offset for place in window.history.places if place.kind == "log"] == [640, 700], "each step once"


def test_windows_are_not_linked_without_room(windows: list[Window]) -> None:
    window = windows[0]
    assert window.workspace.comparison.begin(Path("/other")) is None
    assert window.workspace.comparison.other_window is None
    assert window.over is None


def test_each_window_shows_its_link_and_both_end_it(windows: list[Window]) -> None:
    first_window, second_window, _ = windows
    second_window.session.shown_path = "/other"
    tied(first_window, second_window)
    second_window.opened.emit()
    assert first_window.over is not None
    assert second_window.over is not None
    assert "/other" in first_window.over.text
    assert "/some/store" in second_window.over.text
    assert first_window.begun == 1, "it goes to the first difference"
    first_window.workspace.comparison.untie()
    assert [
        (window.over, window.shares, window.workspace.comparison.other_window)
        for window in (first_window, second_window)
    ] == [(None, False, None)] * 2
    first_window.go(places.log(640))
    assert second_window.history.current is None


def test_an_unlinked_window_opens_a_store_without_moving_the_first(windows: list[Window]) -> None:
    """Whenever a store was opened in a window that had once been linked, the first window went to its first difference,
    or said that there is nothing to compare with.
    """
    window, other_window, third = windows
    tied(window, other_window)
    window.workspace.comparison.untie()
    other_window.opened.emit()
    assert window.begun == 0
    tied(window, third)
    other_window.opened.emit()
    assert window.begun == 0
    third.opened.emit()
    assert window.begun == 1


def test_an_unlinked_window_ends_no_later_link_when_it_closes(windows: list[Window]) -> None:
    """Closing it unlinked the two windows that were linked since then, without a message."""
    window, other_window, third = windows
    tied(window, other_window)
    window.workspace.comparison.untie()
    tied(window, third)
    other_window.deleteLater()
    QApplication.sendPostedEvents(None, 52)
    windows.remove(other_window)
    assert window.workspace.comparison.other_window is third
    third.deleteLater()
    QApplication.sendPostedEvents(None, 52)
    windows.remove(third)
    assert window.workspace.comparison.other_window is None


def test_a_third_window_replaces_the_second(windows: list[Window]) -> None:
    """The second window still moved the first, which no longer showed the link."""
    window, other_window, third = windows
    tied(window, other_window)
    tied(window, third)
    assert (other_window.workspace.comparison.other_window, other_window.over, other_window.shares) == (
        None,
        None,
        False,
    )
    assert (window.shares, third.shares) == (True, True)
    other_window.go(places.log(640))
    assert window.history.current is None
    window.go(places.log(700))
    assert third.history.current == places.log(700)


def test_both_windows_go_to_the_difference_and_show_it(tmp_path: Path, windows: list[Window]) -> None:
    healthy_store = healthy()
    path = healthy_store.write(tmp_path / "one")
    other_path = Path(shutil.copytree(path, tmp_path / "other"))
    first_unit, second_unit = healthy_store.units[5], healthy_store.units[40]
    for unit in (first_unit, second_unit):
        flip_byte(other_path, unit.offset + 15)
    window, other_window, _ = windows
    tied(window, other_window)
    with open_store(path) as store, open_store(other_path) as other_store:
        window.session.snapshot, other_window.session.snapshot = store, other_store
        differences = [asyncio.run(window.workspace.comparison.find(start)) for start in (0, None, None)]
    assert [window and window.unit for window in differences] == [first_unit.offset, second_unit.offset, None]
    assert window.history.current == other_window.history.current == places.log(second_unit.offset, "queueId")
    assert window.messages == other_window.messages == [sentence(window) for window in differences]


def test_alone_there_is_nothing_to_compare_with(windows: list[Window]) -> None:
    window = windows[0]
    assert asyncio.run(window.workspace.comparison.find()) is None
    assert window.messages == ["Nothing to compare with: open another store beside this one."]


def test_a_failed_comparison_shows_a_reason_and_moves_nothing(windows: list[Window]) -> None:
    window, other_window, _ = windows
    tied(window, other_window)

    errors: list[Exception] = [Cancelled(), OSError(5, "Input/output error")]

    async def fails(_title: str, _work: object) -> None:
        raise errors.pop()

    window.run = fails  # type: ignore[method-assign, assignment]
    while errors:
        assert asyncio.run(window.workspace.comparison.find(0)) is None
    assert window.messages[0] == "[Errno 5] Input/output error"
    assert window.history.current is None


def test_steps_lead_to_the_next_and_previous_difference(tmp_path: Path, windows: list[Window]) -> None:
    healthy_store = healthy()
    path = healthy_store.write(tmp_path / "one")
    other_path = Path(shutil.copytree(path, tmp_path / "other"))
    changed = [healthy_store.units[5].offset, healthy_store.units[40].offset]
    for offset in changed:
        flip_byte(other_path, offset + 15)
    window, other_window, _ = windows
    tied(window, other_window)
    with open_store(path) as store, open_store(other_path) as other_store:
        window.session.snapshot, other_window.session.snapshot = store, other_store
        rows = [asyncio.run(window.workspace.comparison.step(direction)) for direction in (1, 1, 1, -1, -1)]
        assert [row and row.offset for row in rows] == [*changed, None, changed[0], None]
        window.go(places.log(healthy_store.units[20].offset))
        row = asyncio.run(window.workspace.comparison.step(1))
        assert row is not None
        assert row.offset == changed[1]
    assert window.history.current == other_window.history.current == places.log(changed[1], "queueId")
    assert window.messages[0].startswith("Difference 1 of 2: differs · ")
    assert window.messages[2] == "No further difference."
    assert window.messages[4] == "No earlier difference."


def test_the_other_window_goes_to_the_same_message_at_its_own_offset(tmp_path: Path, windows: list[Window]) -> None:
    """In a store made by ``copy`` the other window went to the same offset, at which there is another message."""
    healthy_store = healthy()
    path = healthy_store.write(tmp_path / "one")
    assert main(["copy", str(path), str(tmp_path / "other"), "--where", "queueOffset > 0"]) == 0
    window, other_window, _ = windows
    tied(window, other_window)
    with open_store(path) as store, open_store(tmp_path / "other") as other_store:
        window.session.snapshot, other_window.session.snapshot = store, other_store
        row = asyncio.run(window.workspace.comparison.step(1))
        assert row is not None
        assert (row.side, row.is_beyond) == ("here", True)
        unit = next(unit for unit in store.units() if isinstance(unit, Unit) and unit.queue_offset == 3)
        window.go(places.log(unit.offset))
        shown = other_window.history.current
        assert shown is not None
        assert shown.offset != unit.offset
        other_unit = other_store.log.unit_at(shown.offset or 0)
        assert isinstance(other_unit, Unit)
        assert (other_unit.topic, other_unit.queue_offset) == (unit.topic, 3)
        other_window.go(places.log(other_unit.offset))
        assert window.history.current == places.log(unit.offset), "either leads"
        missing = next(unit for unit in store.units() if isinstance(unit, Unit) and unit.queue_offset == 0)
        window.go(places.log(missing.offset))
        assert other_window.history.current == places.log(other_unit.offset)
        assert "does not have the message at" in other_window.messages[-1]


def test_the_window_in_which_the_user_scrolls_leads(windows: list[Window]) -> None:
    window, other_window, _ = windows
    tied(window, other_window)
    other_window.is_active = False
    window.workspace.comparison.lead_scroll(640)
    other_window.workspace.comparison.lead_scroll(700)
    assert (window.scrolled_to, other_window.scrolled_to) == ([], [640])
    window.workspace.comparison.take_ranges([(600, 900)])
    window.workspace.comparison.lead_scroll(640)
    window.workspace.comparison.lead_scroll(900)
    assert other_window.scrolled_to == [640, 900], "no place of the other log is the same between 600 and 900"
    other_window.view = "queue"
    window.workspace.comparison.lead_scroll(950)
    window.workspace.comparison.untie()
    window.workspace.comparison.lead_scroll(960)
    assert other_window.scrolled_to == [640, 900]
