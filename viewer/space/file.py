"""The map of one file of the log: drawn in the worker when it is chosen, CRCs checked; a click goes there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout

from engine.errors import StoreError
from viewer.look.assets import tr
from viewer.runtime.jobs import Cancelled
from viewer.runtime.worker import WorkerDied
from viewer.space.file_strip import FileStrip
from viewer.widgets.basics import PaneHead, Paper, Tool

if TYPE_CHECKING:
    from engine.inspection.file_map import FileMap
    from viewer.runtime.store_session import StoreSession

CELLS = 400


class FilePanel(Paper):
    """Hidden until a file is chosen. ``placed(offset)`` where the strip is clicked, ``closed()`` when put away."""

    placed = Signal(object)
    closed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("space.filePanel")
        self._session: StoreSession | None = None
        self._name = ""
        self._maps: dict[str, FileMap] = {}
        close = Tool("close", tr("Put the map away"))
        close.setObjectName("space.fileClose")
        close.clicked.connect(self.put_away)
        self.head = PaneHead("", "", close)
        self.strip = FileStrip()
        self.strip.placed.connect(self.placed)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        box.addWidget(self.head)
        box.addWidget(self.strip)
        self.hide()

    def set_session(self, session: StoreSession | None) -> None:
        """Another store: what was drawn is forgotten."""
        self._session = session
        self._maps.clear()
        self._name = ""
        self.hide()

    def put_away(self) -> None:
        """Hide the map."""
        self._name = ""
        self.hide()
        self.closed.emit()

    def show_file(self, name: str) -> None:
        """Draw the map of a file; a map drawn before stands until the new one is there."""
        self._name = name
        self.head.set_title(tr("File {name}", name=name))
        known = self._maps.get(name)
        self._show(known, tr("Reading the file and checking every CRC …"))
        self.show()
        if self._session is not None:
            self._session.jobs.start(self._draw(self._session, name))

    def _show(self, found: FileMap | None, words: str) -> None:
        self.strip.show_map(found, words)
        if found is None:
            self.head.set_note("")
            return
        parts = [tr("{n:,} units", n=found.units)]
        if found.bad:
            parts.append(tr("{n:,} wrong CRC", n=len(found.bad)))
        if found.damage:
            parts.append(tr("{n:,} spans of damage", n=len(found.damage)))
        if not found.bad and not found.damage:
            parts.append(tr("every CRC right"))
        if not found.complete:
            parts.append(tr("stopped before its end"))
        self.head.set_note(" · ".join(parts))

    async def _draw(self, session: StoreSession, name: str) -> None:
        found: FileMap | None = None
        words = tr("stopped")
        try:
            found = await session.jobs.in_worker(
                tr("Drawing file {name}", name=name), "viewer.space.work:map_of", session.path, session.config,
                name, CELLS,
            )  # fmt: skip
        except Cancelled:
            pass
        except (StoreError, OSError, WorkerDied, RuntimeError) as error:
            words = str(error)
        if session is not self._session:
            return
        if found is not None:
            while len(self._maps) >= 8:
                del self._maps[next(iter(self._maps))]
            self._maps[name] = found
        if name == self._name:
            self._show(found, words)
