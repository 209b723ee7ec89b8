"""Two store windows that move together, and the first byte in which their logs differ.

A master and its slave, before and after, a store and its copy: both logs are compared byte by byte at the same offsets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog

from engine.codec.message import Unit, list_fields
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

BLOCK_BYTES = 1 << 20
SETTLE_TIMEOUT_S = 5.0
"""Wait this long for the rows of a jump, so that its status message does not cover the difference."""


@dataclass(frozen=True, slots=True)
class Difference:
    """First byte that differs.

    ``here`` and ``there`` are its values; None where that log has no byte. ``unit`` is the offset of the unit around
    it in the first log, ``field`` the unit's field that contains the byte.
    """

    offset: int
    here: int | None
    there: int | None
    unit: int | None = None
    entry: str = ""
    field: str = ""


def first_difference(
    control: Control, store: StoreSnapshot, other_store: StoreSnapshot, start: int
) -> Difference | None:
    """Find the first byte at or behind ``start`` in which two logs differ; None if they are equal. Reads the disk.

    Compares from the later of the two beginnings to the later of the two ends, without the zero tails.
    """
    from viewer.compare.work import first_difference_position

    start_offset = max(start, store.log.min_offset, other_store.log.min_offset, 0)
    end_offset = max(store.log.max_offset, other_store.log.max_offset)
    offset = start_offset
    while offset < end_offset:
        control.check()
        control.report(offset - start_offset, max(1, end_offset - start_offset))
        length = min(BLOCK_BYTES, end_offset - offset)
        data, other_data = store.log.read(offset, length), other_store.log.read(offset, length)
        if data != other_data:
            return _difference_at(store, offset + first_difference_position(data, other_data), data, other_data, offset)
        if data:
            offset += len(data)
        else:  # no file of either store holds these bytes: skip them
            offset = max(offset + 1, min(store.log.align(offset), other_store.log.align(offset)))
    return None


def _difference_at(store: StoreSnapshot, offset: int, bytes_here: bytes, bytes_there: bytes, start: int) -> Difference:
    index = offset - start
    byte_here, byte_there = (data[index] if index < len(data) else None for data in (bytes_here, bytes_there))
    try:
        unit = store.log.unit_at(store.log.align(offset), crc=False)
    except StoreError:
        unit = None
    if not isinstance(unit, Unit) or not unit.offset <= offset < unit.end:
        return Difference(offset, byte_here, byte_there)
    position = offset - unit.offset
    fields = list_fields(store.log.read(unit.offset, unit.size))
    field = next((part.name for part in fields if part.position <= position < part.position + part.length), "")
    return Difference(
        offset, byte_here, byte_there, unit.offset, f"{unit.topic}/{unit.queue_id}/{unit.queue_offset:,}", field
    )


def _end_of_shown_unit(store: StoreSnapshot, place: Place | None) -> int:
    """Return the end of the unit at ``place``, whose differences were shown already. Reads the disk."""
    if place is None or place.kind != "log" or place.offset is None:
        return 0
    unit = store.log.unit_at(place.offset, crc=False)
    return unit.end if isinstance(unit, Unit) else place.offset + 1


def sentence(difference: Difference | None) -> str:
    """Describe the difference in words."""
    if difference is None:
        return tr("From here on both logs hold the same bytes.")
    if difference.there is None or difference.here is None:
        return tr("At {offset:,} one of the two logs ends.", offset=difference.offset)
    text = tr(
        "First difference at {offset:,}: {here:02X} here, {there:02X} there",
        offset=difference.offset,
        here=difference.here,
        there=difference.there,
    )
    return f"{text} · {difference.entry} · {difference.field}" if difference.unit is not None else text


class Comparison:
    """Ties a window to a second one: when either moves in the log, the other follows."""

    def __init__(
        self,
        window: StoreWindow,
        open_beside: Callable[[Path], StoreWindow | None],
        comparison_of: Callable[[StoreWindow], Comparison],
    ) -> None:
        """``beside(store)`` opens a store in a window tied to this one; None if no window can be added.

        ``of(window)`` returns the comparison of any window.
        """
        self._window, self._open_beside, self._comparison_of = window, open_beside, comparison_of
        self.other: StoreWindow | None = None
        self.is_following = False
        """True while the other window leads."""
        window.history.watch = self._on_place_changed

    def table(self) -> DifferencesBox | None:
        """Show all differences as a table; ask for the other store if none is open beside this one."""
        from viewer.compare.differences import show_differences

        window, other_window = self._window, self.other
        if window.session is None or other_window is None or other_window.session is None or other_window.closed:
            self.ask(self._table_when_open)
            return None
        return show_differences(window, other_window)

    def _table_when_open(self, other_window: StoreWindow) -> None:
        other_window.opened.connect(self.table, Qt.ConnectionType.SingleShotConnection)

    def ask(self, on_window: Callable[[StoreWindow], object] | None = None) -> None:
        """Ask for the other store and open it beside this one; call ``on_window`` with its window."""
        window = self._window
        if window.session is None:
            return
        dialog = QFileDialog(window, tr("Compare with another store"), str(window.session.path.parent))
        dialog.setObjectName("compare.dialog")
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly, True)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(lambda path: self._chosen(Path(path), on_window))
        dialog.open()

    def _chosen(self, store: Path, on_window: Callable[[StoreWindow], object] | None) -> None:
        other_window = self.begin(store)
        if other_window is not None and on_window is not None:
            on_window(other_window)

    def begin(self, store: Path) -> StoreWindow | None:
        """Open ``store`` beside this window and tie both windows."""
        window = self._window
        other_window = self._open_beside(store)
        if other_window is None:
            return None
        self._untie_previous()
        self.other = other_window
        self._comparison_of(other_window).other = window
        other_window.destroyed.connect(lambda: self._on_destroyed(other_window))
        other_window.opened.connect(lambda: self._on_opened(other_window))
        self.show_tie()
        other_window.opened.connect(self._comparison_of(other_window).show_tie)
        return other_window

    def _untie_previous(self) -> None:
        """Untie the window that was tied before; it stays open."""
        previous = self.other
        if previous is not None and not previous.closed:
            self._comparison_of(previous).other = None
            previous.tied.show_state(None)
            previous.tie(False)

    def _on_destroyed(self, other_window: StoreWindow) -> None:
        if self.other is other_window:  # a window that was tied since then stays
            self.other = None

    def _on_opened(self, other_window: StoreWindow) -> None:
        """Go to the first difference once ``other_window`` has its store, unless it was untied meanwhile."""
        if self.other is other_window:
            self.show_tie()
            self.next(0)

    def show_tie(self) -> None:
        """Show above the views which store this window is tied to."""
        other_window, window = self.other, self._window
        if other_window is None or other_window.closed:
            window.tied.show_state(None)
            return
        path = other_window.session.shown_path if other_window.session is not None else ""
        text = tr("Tied to {path}: both windows go to the same place of the log.", path=path)
        text = text if path else tr("Tied to another store: it is being opened.")
        steps = ((tr("Next difference"), lambda: self.next()), (tr("Untie"), self.untie))  # noqa: PLW0108
        window.tied.show_state(State("note", text, steps=steps))

    def untie(self) -> None:
        """Untie both windows; they stay open."""
        for window in (self._window, self.other):
            if window is not None and not window.closed:
                self._comparison_of(window).other = None
                window.tied.show_state(None)
                window.tie(False)

    def next(self, start: int | None = None) -> None:
        """Go to the next byte that differs, from ``start`` or from behind the place in front."""
        self._window.jobs.start(self.find(start))

    async def find(self, start: int | None = None) -> Difference | None:
        """Find the next byte that differs, go to it and return it."""
        import viewer.compare.work  # noqa: F401 (it uses Qt: imported here, on the loop's thread, before the job needs it)

        window, other_window = self._window, self.other
        if window.session is None or other_window is None or other_window.session is None:
            window.say(tr("Nothing to compare with: open another store beside this one."))
            return None
        store, other_store, place = window.session.snapshot, other_window.session.snapshot, window.history.current

        def work(control: Control) -> Difference | None:
            return first_difference(
                control, store, other_store, _end_of_shown_unit(store, place) if start is None else start
            )

        try:
            difference = await window.jobs.run(tr("Comparing two logs"), work)
        except (Cancelled, StoreError, OSError) as error:
            window.say(str(error))
            return None
        if difference is not None:
            window.go(
                places.log(difference.unit if difference.unit is not None else difference.offset, difference.field)
            )
            await window.settled(SETTLE_TIMEOUT_S)
        for store_window in (window, other_window):
            store_window.say(sentence(difference))
        return difference

    def _on_place_changed(self, place: Place) -> None:
        """Move the other window to the place that this window went to."""
        other_window = self.other
        if (
            self.is_following
            or other_window is None
            or other_window.closed
            or other_window.session is None
            or place.kind != "log"
        ):
            return
        comparison = self._comparison_of(other_window)
        comparison.is_following = True
        try:
            other_window.go(place)
        finally:
            comparison.is_following = False
