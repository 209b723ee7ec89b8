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
def made() -> MadeStore:
    """Units over several files of 4 KiB."""
    return healthy()


@pytest.fixture
def pair(made: MadeStore, tmp_path: Path) -> tuple[Path, Path]:
    """A store and a copy that may be changed."""
    one = made.write(tmp_path / "one")
    return one, Path(shutil.copytree(one, tmp_path / "other"))


def spoil(store: Path, offset: int, size: int = 4096) -> None:
    """Turn the byte of the log at ``offset``."""
    file = store / "commitlog" / f"{offset // size * size:020d}"
    raw = bytearray(file.read_bytes())
    raw[offset % size] ^= 0xFF
    file.write_bytes(raw)


def difference(one: Path, other: Path, start: int = 0, control: Any = None) -> Difference | None:
    with open_store(one) as first, open_store(other) as second:
        return first_difference(control or FakeControl(), first, second, start)


def test_a_copy_has_no_difference(pair: tuple[Path, Path]) -> None:
    assert difference(*pair) is None
    assert sentence(None) == "From here on both logs hold the same bytes."


def test_a_byte_is_named_with_its_unit_and_its_field(made: MadeStore, pair: tuple[Path, Path]) -> None:
    unit = made.units[20]
    spoil(pair[1], unit.offset + 15)
    found = difference(*pair)
    assert found is not None
    assert (found.offset, found.unit, found.field) == (unit.offset + 15, unit.offset, "queueId")
    assert found.entry == f"{unit.topic}/{unit.queue_id}/{unit.queue_offset}"
    assert sentence(found) == (
        f"First difference at {found.offset:,}: {found.here:02X} here, {found.there:02X} there"
        f" · {found.entry} · queueId"
    )


def test_the_search_begins_where_it_is_told(made: MadeStore, pair: tuple[Path, Path]) -> None:
    first, second = made.units[5].offset + 15, made.units[40].offset + 15
    for offset in (first, second):
        spoil(pair[1], offset)
    found = [difference(*pair, start) for start in (0, first, first + 1, second + 1)]
    assert [one and one.offset for one in found] == [first, first, second, None]


def test_a_byte_of_no_unit_is_named_by_its_offset(made: MadeStore, pair: tuple[Path, Path]) -> None:
    """Padding behind the last unit of a file belongs to nobody."""
    spoil(pair[1], 4095)
    found = difference(*pair)
    assert found is not None
    assert (found.offset, found.unit, found.field) == (4095, None, "")
    assert sentence(found) == f"First difference at 4,095: {found.here:02X} here, {found.there:02X} there"


def test_a_log_that_ends_earlier_ends_there(made: MadeStore, pair: tuple[Path, Path]) -> None:
    files = sorted((pair[1] / "commitlog").iterdir())
    files[-1].unlink()
    found = difference(*pair)
    assert found is not None
    assert (found.offset, found.there) == (int(files[-1].name), None)
    assert sentence(found) == f"At {found.offset:,} one of the two logs ends."
    back = difference(pair[1], pair[0])
    assert back is not None
    assert (back.offset, back.here) == (found.offset, None)


def test_a_file_that_both_lack_hides_nothing_behind_it(made: MadeStore, pair: tuple[Path, Path]) -> None:
    """The search ended at the first byte that neither log has, and said that both hold the same from there on."""
    for store in pair:
        (store / "commitlog" / f"{4096:020d}").unlink()
    assert difference(*pair) is None
    unit = next(one for one in made.units if one.offset >= 8192)
    spoil(pair[1], unit.offset + 15)
    found = difference(*pair)
    assert found is not None
    assert (found.offset, found.unit) == (unit.offset + 15, unit.offset)


def test_it_can_be_stopped(pair: tuple[Path, Path]) -> None:
    with pytest.raises(StoppedByTest):
        difference(*pair, control=FakeControl(1))


# ---- two windows -----------------------------------------------------------------------------------------------------


class Window(QObject):
    """As much of a window as a comparison asks for."""

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
        made: Any = self
        self.comparison = Comparison(made, lambda _store: made.next, lambda one: one.comparison)  # type: ignore[attr-defined]

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
    made = [Window() for _ in range(3)]
    yield made
    for one in made:
        one.deleteLater()
    QApplication.sendPostedEvents(None, 52)  # DeferredDelete


def tied(one: Window, other: Window) -> None:
    one.next = other
    assert one.comparison.begin(Path("/other")) is other
    one.tie(True)
    other.tie(True)


def test_either_of_two_windows_leads_the_other_through_the_log(windows: list[Window]) -> None:
    one, other, _ = windows
    tied(one, other)
    one.go(places.log(640))
    other.go(places.log(700))
    assert (one.history.current, other.history.current) == (places.log(700), places.log(700))
    one.go(places.queue("Orders", 0, 5))
    assert other.history.current == places.log(700), "queues of two stores are not the same"
    assert [place.offset for place in one.history.places if place.kind == "log"] == [640, 700], "each step once"


def test_where_there_is_no_room_nothing_is_tied(windows: list[Window]) -> None:
    one = windows[0]
    assert one.comparison.begin(Path("/other")) is None
    assert one.comparison.other is None
    assert one.over is None


def test_each_says_what_it_is_tied_to_and_both_stop_when_it_is_untied(windows: list[Window]) -> None:
    one, other, _ = windows
    other.session.shown_path = "/other"
    tied(one, other)
    other.opened.emit()
    assert one.over is not None
    assert other.over is not None
    assert "/other" in one.over.text
    assert "/some/store" in other.over.text
    assert one.begun == 1, "it goes to the first difference"
    one.comparison.untie()
    assert [(window.over, window.shares, window.comparison.other) for window in (one, other)] == [
        (None, False, None)
    ] * 2
    one.go(places.log(640))
    assert other.history.current is None


def test_a_window_that_was_untied_opens_another_store_without_moving_the_first(windows: list[Window]) -> None:
    """The first window went to its first difference with a third one, or said that there is nothing to compare with,
    as often as a store was opened in a window that had been tied to it once.
    """
    one, other, third = windows
    tied(one, other)
    one.comparison.untie()
    other.opened.emit()
    assert one.begun == 0
    tied(one, third)
    other.opened.emit()
    assert one.begun == 0
    third.opened.emit()
    assert one.begun == 1


def test_a_window_that_was_untied_takes_no_later_tie_with_it_when_it_closes(windows: list[Window]) -> None:
    """Its end untied the two that were tied since then, without a word over either."""
    one, other, third = windows
    tied(one, other)
    one.comparison.untie()
    tied(one, third)
    other.deleteLater()
    QApplication.sendPostedEvents(None, 52)
    windows.remove(other)
    assert one.comparison.other is third
    third.deleteLater()
    QApplication.sendPostedEvents(None, 52)
    windows.remove(third)
    assert one.comparison.other is None


def test_a_third_window_takes_the_second_one_s_place(windows: list[Window]) -> None:
    """The second one went on leading the first, which did not say so any more."""
    one, other, third = windows
    tied(one, other)
    tied(one, third)
    assert (other.comparison.other, other.over, other.shares) == (None, None, False)
    assert (one.shares, third.shares) == (True, True)
    other.go(places.log(640))
    assert one.history.current is None
    one.go(places.log(700))
    assert third.history.current == places.log(700)


def test_both_windows_go_to_the_difference_and_say_it(
    made: MadeStore, pair: tuple[Path, Path], windows: list[Window]
) -> None:
    first, second = made.units[5], made.units[40]
    for unit in (first, second):
        spoil(pair[1], unit.offset + 15)
    one, other, _ = windows
    tied(one, other)
    with open_store(pair[0]) as here, open_store(pair[1]) as there:
        one.session.snapshot, other.session.snapshot = here, there
        found = [asyncio.run(one.comparison.find(start)) for start in (0, None, None)]
    assert [one and one.unit for one in found] == [first.offset, second.offset, None]
    assert one.history.current == other.history.current == places.log(second.offset, "queueId")
    assert one.said == other.said == [sentence(one) for one in found]


def test_alone_there_is_nothing_to_compare_with(windows: list[Window]) -> None:
    one = windows[0]
    assert asyncio.run(one.comparison.find()) is None
    assert one.said == ["Nothing to compare with: open another store beside this one."]


def test_a_comparison_that_fails_says_why_and_goes_nowhere(windows: list[Window]) -> None:
    one, other, _ = windows
    tied(one, other)

    errors: list[Exception] = [Cancelled(), OSError(5, "Input/output error")]

    async def fails(_title: str, _work: object) -> None:
        raise errors.pop()

    one.run = fails  # type: ignore[method-assign, assignment]
    while errors:
        assert asyncio.run(one.comparison.find(0)) is None
    assert one.said[0] == "[Errno 5] Input/output error"
    assert one.history.current is None
