"""The first byte in which two logs differ, and two windows that go together until they are untied."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from controls import FakeControl, StoppedByTest
from made_stores import MadeStore, healthy
from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QApplication

from engine.inspection.snapshot import open_store
from viewer.compare.pane import Comparison, Difference, first_difference, sentence
from viewer.runtime import places
from viewer.runtime.jobs import Cancelled
from viewer.runtime.places import History, Place
from viewer.widgets.record_state import State

# ---- the first byte --------------------------------------------------------------------------------------------------


@pytest.fixture
def healthy_store() -> MadeStore:
    """Units over several files of 4 KiB."""
    return healthy()


@pytest.fixture
def pair(healthy_store: MadeStore, tmp_path: Path) -> tuple[Path, Path]:
    """A store and a copy that may be changed."""
    store = healthy_store.write(tmp_path / "one")
    return store, Path(shutil.copytree(store, tmp_path / "other"))


def spoil(store: Path, offset: int, size: int = 4096) -> None:
    """Turn the byte of the log at ``offset``."""
    file = store / "commitlog" / f"{offset // size * size:020d}"
    raw = bytearray(file.read_bytes())
    raw[offset % size] ^= 0xFF
    file.write_bytes(raw)


def difference(path: Path, other_path: Path, start: int = 0, control: Any = None) -> Difference | None:
    with open_store(path) as store, open_store(other_path) as other_store:
        return first_difference(control or FakeControl(), store, other_store, start)


def test_a_copy_has_no_difference(pair: tuple[Path, Path]) -> None:
    assert difference(*pair) is None
    assert sentence(None) == "From here on both logs hold the same bytes."


def test_a_byte_is_named_with_its_unit_and_its_field(healthy_store: MadeStore, pair: tuple[Path, Path]) -> None:
    unit = healthy_store.units[20]
    spoil(pair[1], unit.offset + 15)
    named = difference(*pair)
    assert named is not None
    assert (named.offset, named.unit, named.field) == (unit.offset + 15, unit.offset, "queueId")
    assert named.entry == f"{unit.topic}/{unit.queue_id}/{unit.queue_offset}"
    assert sentence(named) == (
        f"First difference at {named.offset:,}: {named.here:02X} here, {named.there:02X} there"
        f" · {named.entry} · queueId"
    )


def test_the_search_begins_where_it_is_told(healthy_store: MadeStore, pair: tuple[Path, Path]) -> None:
    first_offset, second_offset = healthy_store.units[5].offset + 15, healthy_store.units[40].offset + 15
    for offset in (first_offset, second_offset):
        spoil(pair[1], offset)
    results = [difference(*pair, start) for start in (0, first_offset, first_offset + 1, second_offset + 1)]
    assert [result and result.offset for result in results] == [first_offset, first_offset, second_offset, None]


def test_a_byte_of_no_unit_is_named_by_its_offset(healthy_store: MadeStore, pair: tuple[Path, Path]) -> None:
    """Padding behind the last unit of a file belongs to nobody."""
    spoil(pair[1], 4095)
    named = difference(*pair)
    assert named is not None
    assert (named.offset, named.unit, named.field) == (4095, None, "")
    assert sentence(named) == f"First difference at 4,095: {named.here:02X} here, {named.there:02X} there"


def test_a_log_that_ends_earlier_ends_there(healthy_store: MadeStore, pair: tuple[Path, Path]) -> None:
    files = sorted((pair[1] / "commitlog").iterdir())
    files[-1].unlink()
    named = difference(*pair)
    assert named is not None
    assert (named.offset, named.there) == (int(files[-1].name), None)
    assert sentence(named) == f"At {named.offset:,} one of the two logs ends."
    reversed_difference = difference(pair[1], pair[0])
    assert reversed_difference is not None
    assert (reversed_difference.offset, reversed_difference.here) == (named.offset, None)


def test_a_file_that_both_lack_hides_nothing_behind_it(healthy_store: MadeStore, pair: tuple[Path, Path]) -> None:
    """The search ended at the first byte that neither log has, and said that both hold the same from there on."""
    for store in pair:
        (store / "commitlog" / f"{4096:020d}").unlink()
    assert difference(*pair) is None
    unit = next(candidate for candidate in healthy_store.units if candidate.offset >= 8192)
    spoil(pair[1], unit.offset + 15)
    named = difference(*pair)
    assert named is not None
    assert (named.offset, named.unit) == (unit.offset + 15, unit.offset)


def test_it_can_be_stopped(pair: tuple[Path, Path]) -> None:
    with pytest.raises(StoppedByTest):
        difference(*pair, control=FakeControl(1))


# ---- two windows -----------------------------------------------------------------------------------------------------


class Window(QObject):
    """Fake window with the parts that a comparison uses."""

    opened = Signal()

    def __init__(self, session: Any = None) -> None:
        super().__init__()
        self.history = History()
        self.session = session or SimpleNamespace(shown_path="/some/store", path=Path("/some/store"), snapshot=None)
        self.closed = False
        self.said: list[str] = []
        self.over: State | None = None
        """What stands over the views."""
        self.shares = False
        self.next: Window | None = None
        """What a second store is opened in."""
        self.begun = 0
        self.tied = self.jobs = self
        this: Any = self
        self.comparison = Comparison(this, lambda _store: this.next, lambda any_window: any_window.comparison)  # type: ignore[attr-defined]

    def show_state(self, state: State | None) -> None:
        self.over = state

    def tie(self, on: bool) -> None:
        self.shares = on

    def say(self, words: str) -> None:
        self.said.append(words)

    def go(self, place: Place) -> None:
        self.history.visit(place)

    async def settled(self, _seconds: float) -> bool:
        return True

    def start(self, work: Any) -> None:
        """A job that the test does not wait for."""
        work.close()
        self.begun += 1

    async def run(self, _title: str, work: Callable[[Any], Any]) -> Any:
        return work(FakeControl())


@pytest.fixture
def windows(qapp: QApplication) -> Iterator[list[Window]]:
    three_windows = [Window() for _ in range(3)]
    yield three_windows
    for created in three_windows:
        created.deleteLater()
    QApplication.sendPostedEvents(None, 52)  # DeferredDelete


def tied(window: Window, other_window: Window) -> None:
    window.next = other_window
    assert window.comparison.begin(Path("/other")) is other_window
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


def test_where_there_is_no_room_nothing_is_tied(windows: list[Window]) -> None:
    window = windows[0]
    assert window.comparison.begin(Path("/other")) is None
    assert window.comparison.other is None
    assert window.over is None


def test_each_says_what_it_is_tied_to_and_both_stop_when_it_is_untied(windows: list[Window]) -> None:
    first_window, second_window, _ = windows
    second_window.session.shown_path = "/other"
    tied(first_window, second_window)
    second_window.opened.emit()
    assert first_window.over is not None
    assert second_window.over is not None
    assert "/other" in first_window.over.text
    assert "/some/store" in second_window.over.text
    assert first_window.begun == 1, "it goes to the first difference"
    first_window.comparison.untie()
    assert [(window.over, window.shares, window.comparison.other) for window in (first_window, second_window)] == [
        (None, False, None)
    ] * 2
    first_window.go(places.log(640))
    assert second_window.history.current is None


def test_a_window_that_was_untied_opens_another_store_without_moving_the_first(windows: list[Window]) -> None:
    """The first window went to its first difference with a third one, or said that there is nothing to compare with,
    as often as a store was opened in a window that had been tied to it once.
    """
    window, other_window, third = windows
    tied(window, other_window)
    window.comparison.untie()
    other_window.opened.emit()
    assert window.begun == 0
    tied(window, third)
    other_window.opened.emit()
    assert window.begun == 0
    third.opened.emit()
    assert window.begun == 1


def test_a_window_that_was_untied_takes_no_later_tie_with_it_when_it_closes(windows: list[Window]) -> None:
    """Its end untied the two that were tied since then, without a word over either."""
    window, other_window, third = windows
    tied(window, other_window)
    window.comparison.untie()
    tied(window, third)
    other_window.deleteLater()
    QApplication.sendPostedEvents(None, 52)
    windows.remove(other_window)
    assert window.comparison.other is third
    third.deleteLater()
    QApplication.sendPostedEvents(None, 52)
    windows.remove(third)
    assert window.comparison.other is None


def test_a_third_window_takes_the_second_one_s_place(windows: list[Window]) -> None:
    """The second one went on leading the first, which did not say so any more."""
    window, other_window, third = windows
    tied(window, other_window)
    tied(window, third)
    assert (other_window.comparison.other, other_window.over, other_window.shares) == (None, None, False)
    assert (window.shares, third.shares) == (True, True)
    other_window.go(places.log(640))
    assert window.history.current is None
    window.go(places.log(700))
    assert third.history.current == places.log(700)


def test_both_windows_go_to_the_difference_and_say_it(
    healthy_store: MadeStore, pair: tuple[Path, Path], windows: list[Window]
) -> None:
    first_unit, second_unit = healthy_store.units[5], healthy_store.units[40]
    for unit in (first_unit, second_unit):
        spoil(pair[1], unit.offset + 15)
    window, other_window, _ = windows
    tied(window, other_window)
    with open_store(pair[0]) as store, open_store(pair[1]) as other_store:
        window.session.snapshot, other_window.session.snapshot = store, other_store
        differences = [asyncio.run(window.comparison.find(start)) for start in (0, None, None)]
    assert [window and window.unit for window in differences] == [first_unit.offset, second_unit.offset, None]
    assert window.history.current == other_window.history.current == places.log(second_unit.offset, "queueId")
    assert window.said == other_window.said == [sentence(window) for window in differences]


def test_alone_there_is_nothing_to_compare_with(windows: list[Window]) -> None:
    window = windows[0]
    assert asyncio.run(window.comparison.find()) is None
    assert window.said == ["Nothing to compare with: open another store beside this one."]


def test_a_comparison_that_fails_says_why_and_goes_nowhere(windows: list[Window]) -> None:
    window, other_window, _ = windows
    tied(window, other_window)

    errors: list[Exception] = [Cancelled(), OSError(5, "Input/output error")]

    async def fails(_title: str, _work: object) -> None:
        raise errors.pop()

    window.run = fails  # type: ignore[method-assign, assignment]
    while errors:
        assert asyncio.run(window.comparison.find(0)) is None
    assert window.said[0] == "[Errno 5] Input/output error"
    assert window.history.current is None
