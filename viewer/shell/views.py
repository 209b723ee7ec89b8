"""The views, a row each, in the order in which their panes are made: whatever names a view is made from this.

The views behind each other, brought to the front piece by piece, and the split between them and the tree.

A view painted at once holds the loop as long as all its parts together; painted part by part, the loop comes round
between two of them: keys are answered and positions arrive while a full view is being drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from weakref import WeakSet

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractScrollArea, QScrollArea, QSplitter, QSplitterHandle, QStackedWidget, QWidget
from shiboken6 import isValid

from viewer.look.assets import words
from viewer.look.theme import C, px
from viewer.pane import Pane
from viewer.runtime.places import Kind
from viewer.widgets.stepwise import Turns


@dataclass(frozen=True, slots=True)
class View:
    """One view. ``kind``: the kind of place that is the view as a whole, and the view's name everywhere."""

    kind: Kind
    command: str
    """Id of the command that opens it."""
    title: str
    icon: str
    keys: str
    pane: str
    """``MODULE:CLASS``, imported when the view is first wanted."""
    rail: str = ""
    """``top``: on the rail; ``live``: under a line, for views that listen; ``foot``: apart at its foot, for views that
    do something; empty for none.
    """
    crumb: str = ""
    """What the crumbs call it, where that is not the title."""
    asks: str = ""
    """What the command says where that is not the title: one that asks something first ends with an ellipsis."""
    cli: str = ""
    """The command that answers the same, for the operation log; ``view STORE --at KIND`` where there is none."""
    begins: bool = False
    """Whether it begins anew each time it is opened; the others stand where they were left."""
    alone: bool = False
    """Whether it can stand in a window without a store."""

    @property
    def command_line(self) -> tuple[str, ...]:
        """The equal command line; ``STORE`` stands for the store."""
        return (self.cli, "STORE") if self.cli else ("view", "STORE", "--at", self.kind)


VIEWS = (
    View("log", "view.units", words("Log"), "log", "Ctrl+1", "viewer.log.pane:UnitsPane", "top",
         crumb=words("Commit log")),
    View("queue", "view.queues", words("Queues"), "queue", "Ctrl+2", "viewer.queues.pane:QueuesPane", "top"),
    View("index", "view.index", words("Index"), "index", "Ctrl+3", "viewer.index.pane:IndexPane", "top"),
    View("positions", "view.positions", words("Positions"), "positions", "Ctrl+4",
         "viewer.positions.pane:PositionsPane", "top"),
    View("findings", "view.findings", words("Findings"), "findings", "Ctrl+5", "viewer.findings.pane:FindingsPane",
         "top"),
    View("space", "view.space", words("Space"), "space", "Ctrl+6", "viewer.space.pane:SpacePane", "top", cli="space"),
    View("groups", "view.groups", words("Consumer groups"), "follow", "Ctrl+Alt+3", "viewer.groups.pane:GroupsPane",
         cli="groups", begins=True),
    View("config", "view.config", words("Config"), "config", "Ctrl+Alt+4", "viewer.config.pane:ConfigPane",
         begins=True),
    View("cluster", "view.cluster", words("Cluster"), "cluster", "Ctrl+9", "viewer.cluster.pane:ClusterPane", "live",
         alone=True),
    View("requests", "view.requests", words("Requests"), "requests", "Ctrl+Alt+0", "viewer.requests.pane:RequestsPane",
         "live", alone=True),
    View("lab", "view.lab", words("Lab"), "lab", "Ctrl+7", "viewer.lab.pane:LabPane", "foot"),
    View("where", "view.where", words("Where is my message"), "search", "Ctrl+Shift+M", "viewer.where.pane:WherePane",
         asks=words("Where is my message…"), begins=True),
    View("bookmarks", "view.bookmarks", words("Bookmarks"), "", "Ctrl+Shift+B", "viewer.keep.pane:BookmarksPane"),
    View("pipeline", "view.pipeline", words("Pipeline"), "pipeline", "Ctrl+8", "viewer.pipeline.pane:PipelinePane",
         "foot"),
)  # fmt: skip
BY_KIND: dict[str, View] = {view.kind: view for view in VIEWS}
BY_COMMAND = {view.command: view for view in VIEWS}
ON_RAIL = tuple(view for view in VIEWS if view.rail == "top")
LISTENING = tuple(view for view in VIEWS if view.rail == "live")
AT_FOOT = tuple(view for view in VIEWS if view.rail == "foot")


def load_pane(kind: str) -> type[Pane]:
    """The class of a view's pane; its module is imported now, in whichever thread this is."""
    module, _, name = BY_KIND[kind].pane.partition(":")
    return getattr(import_module(module), name)  # type: ignore[no-any-return]


def make_pane(kind: str) -> Pane:
    """The pane of a view, without a store."""
    made = load_pane(kind)()
    assert isinstance(made, Pane)
    made.view_id = kind
    return made


LARGEST = 6
"""A part larger than this share (one in …) of its view is painted in parts where it has some."""
LEAST = 400
"""Px that the views have at least beside the tree."""
SMALLEST = 100
"""Parts smaller than this share (one in …) are painted with the ground."""


class ViewStack(QStackedWidget):
    """Shows one view; one that was in front before comes back part by part, a part a turn of the loop."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("views")
        self._laid_out: WeakSet[QWidget] = WeakSet()
        self._turns = Turns(self)

    def minimumSizeHint(self) -> QSize:
        """What a view holds, a long name or sentence, moves nothing beside it: the tree's width is the user's."""
        return QSize(px(LEAST), super().minimumSizeHint().height())

    def setCurrentWidget(self, view: QWidget) -> None:
        """Bring ``view`` to the front: its ground at once, its parts at the next turns of the loop."""
        if view is self.currentWidget():
            return
        self._turns.finish()
        if self.isVisible() and view in self._laid_out:
            veiled = list(parts(view))
            for part in veiled:
                part.setUpdatesEnabled(False)
            self._turns.take([lambda: None, *(partial(_unveil, part) for part in veiled)])
        self._laid_out.add(view)
        super().setCurrentWidget(view)


def _unveil(part: QWidget) -> None:
    if isValid(part):
        part.setUpdatesEnabled(True)


def parts(view: QWidget) -> Iterator[QWidget]:
    """What ``view`` is painted of, in the order it was put together; what is too small is left out."""
    whole = view.width() * view.height()
    waiting = _shown_in(view)
    while waiting:
        part = waiting.pop(0)
        area = part.width() * part.height()
        inner = _shown_in(part) if area * LARGEST > whole else []
        if inner:
            waiting[:0] = inner
        elif area * SMALLEST > whole:
            yield part


def _shown_in(part: QWidget) -> list[QWidget]:
    """The children that are painted apart; a table or plot is one picture."""
    if isinstance(part, QScrollArea):
        held = part.widget()
        return [held] if held is not None else []
    if isinstance(part, QAbstractScrollArea):
        return []
    return [
        one for one in part.children()
        if isinstance(one, QWidget) and not one.isHidden() and not one.isWindow() and one.updatesEnabled()
    ]  # fmt: skip


class SideSplit(QSplitter):
    """Side by side, with a hairline between."""

    def __init__(self, name: str) -> None:
        super().__init__(Qt.Orientation.Horizontal)
        self.setObjectName(name)
        self.setHandleWidth(1)
        self.setChildrenCollapsible(False)

    def createHandle(self) -> QSplitterHandle:
        return _Hair(self.orientation(), self)


class _Hair(QSplitterHandle):
    def paintEvent(self, _event: QPaintEvent) -> None:
        QPainter(self).fillRect(self.rect(), C("accent" if self.underMouse() else "hair"))

    def event(self, event: QEvent) -> bool:
        if event.type() in {QEvent.Type.Enter, QEvent.Type.Leave}:
            self.update()
        return super().event(event)
