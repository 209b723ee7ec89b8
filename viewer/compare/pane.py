"""Two stores side by side: windows that go together, and the first byte in which their logs differ, with its unit.

A master and its slave, before and after, a store and its copy: both logs are compared byte by byte at the same offsets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog

from engine.codec.message import Unit, parts
from engine.errors import StoreError
from viewer.look.assets import tr
from viewer.runtime import places
from viewer.runtime.jobs import Cancelled, Control
from viewer.runtime.places import Place
from viewer.widgets.record_state import State

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot
    from viewer.compare.differences import DifferencesBox
    from viewer.pane.store_window import StoreWindow

BLOCK = 1 << 20
SETTLES = 5.0
"""Seconds that the rows of a jump may take before the difference is said over what they say."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first byte that differs: ``here`` and ``there`` are its values, None where a log has no byte. ``unit`` is
    where the unit around it begins in the first log, ``field`` the field of it that the byte belongs to.
    """

    offset: int
    here: int | None
    there: int | None
    unit: int | None = None
    entry: str = ""
    field: str = ""


def first_difference(control: Control, one: StoreSnapshot, other: StoreSnapshot, start: int) -> Difference | None:
    """The first byte at or behind ``start`` in which two logs differ; None where there is none. Reads the disk.

    Compared is what both logs have: from the later of their beginnings to the later of their ends, without the zero
    tails.
    """
    from viewer.compare.work import first_apart

    low = max(start, one.log.min_offset, other.log.min_offset, 0)
    high = max(one.log.max_offset, other.log.max_offset)
    at = low
    while at < high:
        control.check()
        control.report(at - low, max(1, high - low))
        size = min(BLOCK, high - at)
        mine, theirs = one.log.read(at, size), other.log.read(at, size)
        if mine != theirs:
            return _named(one, at + first_apart(mine, theirs), mine, theirs, at)
        if mine:
            at += len(mine)
        else:  # no file of either holds these bytes: both go on behind them
            at = max(at + 1, min(one.log.align(at), other.log.align(at)))
    return None


def _named(store: StoreSnapshot, offset: int, mine: bytes, theirs: bytes, start: int) -> Difference:
    at = offset - start
    here, there = (data[at] if at < len(data) else None for data in (mine, theirs))
    try:
        unit = store.log.unit_at(store.log.align(offset), crc=False)
    except StoreError:
        unit = None
    if not isinstance(unit, Unit) or not unit.offset <= offset < unit.end:
        return Difference(offset, here, there)
    inside = offset - unit.offset
    fields = parts(store.log.read(unit.offset, unit.size))
    field = next((one.name for one in fields if one.position <= inside < one.position + one.length), "")
    return Difference(offset, here, there, unit.offset, f"{unit.topic}/{unit.queue_id}/{unit.queue_offset:,}", field)


def _behind(store: StoreSnapshot, place: Place | None) -> int:
    """Behind the unit at ``place``: what differs inside it was shown. Reads the disk."""
    if place is None or place.kind != "log" or place.offset is None:
        return 0
    item = store.log.unit_at(place.offset, crc=False)
    return item.end if isinstance(item, Unit) else place.offset + 1


def sentence(found: Difference | None) -> str:
    """The difference in words."""
    if found is None:
        return tr("From here on both logs hold the same bytes.")
    if found.there is None or found.here is None:
        return tr("At {offset:,} one of the two logs ends.", offset=found.offset)
    said = tr(
        "First difference at {offset:,}: {here:02X} here, {there:02X} there",
        offset=found.offset,
        here=found.here,
        there=found.there,
    )
    return f"{said} · {found.entry} · {found.field}" if found.unit is not None else said


class Comparison:
    """The other window of one window: both go to the same place of the log, whichever of them is moved."""

    def __init__(
        self,
        window: StoreWindow,
        beside: Callable[[Path], StoreWindow | None],
        of: Callable[[StoreWindow], Comparison],
    ) -> None:
        """``beside(store)`` opens a store in a window tied to this one, None where there is no room for one more;
        ``of(window)`` is the comparison of any window.
        """
        self._window, self._beside, self._of = window, beside, of
        self.other: StoreWindow | None = None
        self.led = False
        """Whether the other window leads just now."""
        window.history.watch = self._went

    def table(self) -> DifferencesBox | None:
        """All differences as a table; asks for the other store where none stands beside this one."""
        from viewer.compare.differences import show_differences

        window, other = self._window, self.other
        if window.session is None or other is None or other.session is None or other.closed:
            self.ask(self._table_when_open)
            return None
        return show_differences(window, other)

    def _table_when_open(self, other: StoreWindow) -> None:
        other.opened.connect(self.table, Qt.ConnectionType.SingleShotConnection)

    def ask(self, then: Callable[[StoreWindow], object] | None = None) -> None:
        """Ask for the other store, open it beside and look for the first difference; ``then`` is told its window."""
        window = self._window
        if window.session is None:
            return
        dialog = QFileDialog(window, tr("Compare with another store"), str(window.session.path.parent))
        dialog.setObjectName("compare.dialog")
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly, True)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(lambda path: self._chosen(Path(path), then))
        dialog.open()

    def _chosen(self, store: Path, then: Callable[[StoreWindow], object] | None) -> None:
        other = self.begin(store)
        if other is not None and then is not None:
            then(other)

    def begin(self, store: Path) -> StoreWindow | None:
        """Open ``store`` beside this window; both go together from now on."""
        window = self._window
        other = self._beside(store)
        if other is None:
            return None
        self._let_go()
        self.other = other
        self._of(other).other = window
        other.destroyed.connect(lambda: self._gone(other))
        other.opened.connect(lambda: self._both(other))
        self.tell()
        other.opened.connect(self._of(other).tell)
        return other

    def _let_go(self) -> None:
        """Another window takes the place of the one that was tied: that one stays, and goes its own ways."""
        before = self.other
        if before is not None and not before.closed:
            self._of(before).other = None
            before.tied.show_state(None)
            before.tie(False)

    def _gone(self, other: StoreWindow) -> None:
        if self.other is other:  # not one that was tied since then
            self.other = None

    def _both(self, other: StoreWindow) -> None:
        """A store was opened in ``other``; one that is not tied any more leads nowhere."""
        if self.other is other:
            self.tell()
            self.next(0)

    def tell(self) -> None:
        """Say over the views which store this one is tied to, while it is."""
        other, window = self.other, self._window
        if other is None or other.closed:
            window.tied.show_state(None)
            return
        path = other.session.shown_path if other.session is not None else ""
        said = tr("Tied to {path}: both windows go to the same place of the log.", path=path)
        said = said if path else tr("Tied to another store: it is being opened.")
        steps = ((tr("Next difference"), lambda: self.next()), (tr("Untie"), self.untie))  # noqa: PLW0108
        window.tied.show_state(State("note", said, steps=steps))

    def untie(self) -> None:
        """Both windows stay, and go their own ways from now on."""
        for window in (self._window, self.other):
            if window is not None and not window.closed:
                self._of(window).other = None
                window.tied.show_state(None)
                window.tie(False)

    def next(self, start: int | None = None) -> None:
        """Go to the next byte that differs, from ``start`` or from behind the place in front."""
        self._window.jobs.start(self.find(start))

    async def find(self, start: int | None = None) -> Difference | None:
        """The same, awaited."""
        window, other = self._window, self.other
        if window.session is None or other is None or other.session is None:
            window.say(tr("Nothing to compare with: open another store beside this one."))
            return None
        mine, theirs, place = window.session.snapshot, other.session.snapshot, window.history.current

        def work(control: Control) -> Difference | None:
            return first_difference(control, mine, theirs, _behind(mine, place) if start is None else start)

        try:
            found = await window.jobs.run(tr("Comparing two logs"), work)
        except (Cancelled, StoreError, OSError) as error:
            window.say(str(error))
            return None
        if found is not None:
            window.go(places.log(found.unit if found.unit is not None else found.offset, found.field))
            await window.settled(SETTLES)
        for one in (window, other):
            one.say(sentence(found))
        return found

    def _went(self, place: Place) -> None:
        """The window went somewhere: the other one goes there too."""
        other = self.other
        if self.led or other is None or other.closed or other.session is None or place.kind != "log":
            return
        there = self._of(other)
        there.led = True
        try:
            other.go(place)
        finally:
            there.led = False
