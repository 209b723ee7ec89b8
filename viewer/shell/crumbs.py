"""Crumbs: the path from the store down to the current place. Each crumb but the last is a link.

The list that drops down from a crumb shows its sibling places, narrowed as the user types.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPixmap
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QSizePolicy, QVBoxLayout, QWidget

from viewer.look.assets import icon_pixmap, tr
from viewer.look.formats import store_name
from viewer.look.theme import C, follow, mono, px, ui
from viewer.runtime import places
from viewer.runtime.places import Place
from viewer.shell.views import BY_KIND
from viewer.widgets.basics import Field

if TYPE_CHECKING:
    from viewer.runtime.store_session import StoreSession


SIBLINGS_OF_LOG: tuple[places.Kind, ...] = (
    "log",
    "queue",
    "index",
    "positions",
    "findings",
    "groups",
    "config",
    "rows",
    "waiting",
    "timeline",
    "sql",
)


def _view_crumb(kind: places.Kind) -> tuple[str, Place]:
    """Return the crumb of a whole view, or of a kind of place that a view shows."""
    view = BY_KIND[Place(kind).view]
    return tr(view.crumb or view.title), Place(kind)


def crumbs_of(place: Place, session: StoreSession | None) -> list[tuple[str, object]]:
    """Return (words, place) from the store down."""
    name = session.name if session else ""
    parts: list[tuple[str, object]] = [(name, places.log())] if name else []
    match place.kind:
        case "log":
            parts.append(_view_crumb("log"))
            file = session.snapshot.log.sequence.find(place.offset) if session and place.offset is not None else None
            if file is not None:
                parts.append((file.name, places.log(file.start_offset)))
            if place.offset is not None:
                parts.append((f"{place.offset:,}", place))
        case "queue":
            parts.append((place.topic or tr("Queues"), places.queue(place.topic)))
            if place.queue_id is not None:
                parts.append((tr("Queue {number}", number=place.queue_id), places.queue(place.topic, place.queue_id)))
            if place.queue_offset is not None:
                parts.append((f"{place.queue_offset:,}", place))
        case "trace":
            parts += [_view_crumb("index"), (tr("Trace"), places.index()), (place.key, place)]
        case "filter":
            parts += [_view_crumb("log"), (place.name, place)]
        case "index":
            parts.append(_view_crumb("index"))
            if place.name:
                parts.append((place.name, places.index(place.name)))
            if place.part:
                parts.append((f"{tr(place.part)} {place.offset:,}", place))
        case "compare":
            parts.append(_view_crumb("compare"))
            if place.name:
                parts.append((store_name(place.name), place))
        case _:
            parts.append(_view_crumb(place.kind))
            if place.name:
                parts.append((place.name, Place(place.kind, name=place.name)))
            if place.kind == "cluster" and place.part:
                parts.append((place.part, place))
            if place.kind == "requests" and place.key:
                parts.append((place.key, place))
    return parts


def siblings(number: int, place: object, session: StoreSession | None) -> list[tuple[str, object]]:
    """Return (words, place) of the siblings of crumb ``number``: files, topics, queues, index files, tables, rules."""
    survey = session.survey if session is not None else None
    if session is None or not isinstance(place, Place):
        return []
    match place.kind:
        case "log" | "filter" if number == 1:
            return [_view_crumb(kind) for kind in SIBLINGS_OF_LOG]
        case "log":
            return [(file.name, places.log(file.start_offset)) for file in session.snapshot.log.files]
        case "queue" if number == 1 and survey is not None:
            return [(topic.name, places.queue(topic.name)) for topic in survey.topics]
        case "queue" if survey is not None:
            queues = next((topic.queues for topic in survey.topics if topic.name == place.topic), ())
            return [
                (tr("Queue {number}", number=queue.queue_id), places.queue(place.topic, queue.queue_id))
                for queue in queues
            ]
        case "index" | "trace" if survey is not None:
            return [(file.name, places.index(file.name)) for file in survey.index]
        case "config" if survey is not None:
            return [(name, Place("config", name=name)) for name in survey.tables]
        case "findings":
            return [(name, Place("findings", name=name)) for name in sorted({f.id for f in session.findings})]
    return []


MAX_SIBLINGS = 400
"""Largest number of shown lines. Typing narrows the list."""
SiblingPlaces = Sequence[tuple[str, object]]
Siblings = Callable[[int, object], SiblingPlaces]
"""Returns (words, place) of the siblings of a crumb, by its number and place."""


class SiblingList(QWidget):
    """The drop-down list of siblings. Emits ``chosen(place)`` on Enter or a click."""

    chosen = Signal(object)

    def __init__(self, sibling_places: SiblingPlaces, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setObjectName("crumb.drop")
        self.setAccessibleName(tr("Places beside this one"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._sibling_places = list(sibling_places)
        self.field = Field(tr("Type to narrow down"), code=True, icon_name="search")
        self.field.setObjectName("crumb.field")
        self.list = QListWidget()
        self.list.setObjectName("crumb.list")
        self.list.setAccessibleName(tr("Places beside this one"))
        self.list.setFont(mono(12))
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.list.itemClicked.connect(self._take)
        self.setStyleSheet(f"#crumb\\.drop {{ background: {C('pane').name()}; border: 1px solid {C('line').name()}; }}")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(px(6), px(6), px(6), px(6))
        layout.setSpacing(px(4))
        layout.addWidget(self.field)
        layout.addWidget(self.list, 1)
        self.field.textChanged.connect(self._narrow)
        self.field.installEventFilter(self)
        self._narrow("")

    def drop(self, position: QPoint) -> None:
        """Show the list at a position on the screen."""
        self.resize(px(340), min(px(420), px(60) + px(24) * max(2, len(self._sibling_places))))
        self.move(position)
        self.show()
        self.field.setFocus()

    def _narrow(self, typed: str) -> None:
        from viewer.shell.palette_box import rank

        ranked = [
            (match_rank, n, text, place)
            for n, (text, place) in enumerate(self._sibling_places)
            if (match_rank := rank(text, typed)) is not None
        ]
        self.list.clear()
        for _, _, text, place in sorted(ranked, key=lambda item: item[:2])[:MAX_SIBLINGS]:
            item = QListWidgetItem(text)
            item.setData(Qt.ItemDataRole.UserRole, place)
            self.list.addItem(item)
        hidden_count = len(ranked) - self.list.count()
        if hidden_count > 0:
            item = QListWidgetItem(tr("{n:,} more: type to narrow down", n=hidden_count))
            item.setFlags(Qt.ItemFlag.NoItemFlags)
            self.list.addItem(item)
        self.list.setCurrentRow(0)

    def _take(self, item: QListWidgetItem | None) -> None:
        place = item.data(Qt.ItemDataRole.UserRole) if item is not None else None
        if place is not None:
            self.close()
            self.chosen.emit(place)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Move the selection with the arrows, choose with Enter, close with Escape."""
        if watched is self.field and event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            step = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1}.get(Qt.Key(event.key()))
            if step is not None:
                self.list.setCurrentRow((self.list.currentRow() + step) % max(1, self.list.count()))
                return True
            if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
                self._take(self.list.currentItem())
                return True
            if event.key() == Qt.Key.Key_Escape:
                self.close()
                return True
        return bool(super().eventFilter(watched, event))


GAP = 5
CHEVRON = 12


class Crumbs(QWidget):
    """The path to the current place. The last crumb is bold, the others are links.

    Narrow windows leave out the first crumbs.
    """

    placeRequested = Signal(object)

    def __init__(self, siblings: Siblings) -> None:
        super().__init__()
        self.setObjectName("crumbs")
        self._siblings = siblings
        self._chevrons: list[tuple[QRect, int]] = []
        self._parts: list[tuple[str, object]] = []
        self._boxes: list[tuple[QRect, object]] = []
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setMouseTracking(True)
        follow(self, self.update)

    def set_parts(self, parts: Sequence[tuple[str, object]]) -> None:
        """Set the crumbs as (words, place) from the root on."""
        self._parts = list(parts)
        self.setAccessibleName(" › ".join(text for text, _ in parts))
        self.update()

    def sizeHint(self) -> QSize:
        """Return the size of one line."""
        return QSize(px(200), px(30))

    def minimumSizeHint(self) -> QSize:
        """Return room for the last crumb."""
        return QSize(px(80), px(30))

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the crumbs with chevrons between them."""
        p = QPainter(self)
        parts, cut = self._fitting()
        self._boxes, self._chevrons = [], []
        left_out = len(self._parts) - len(parts)
        x = 0
        chevron: QPixmap = icon_pixmap("chevron", C("text3"), px(CHEVRON), self.devicePixelRatioF())
        for number, (text, place) in enumerate(parts):
            is_last = number == len(parts) - 1
            font = ui(13, 600 if is_last else 400)
            p.setFont(font)
            metrics = QFontMetrics(font)
            room = self.width() - x
            shown = (
                text
                if metrics.horizontalAdvance(text) <= room
                else metrics.elidedText(text, Qt.TextElideMode.ElideMiddle, room)
            )
            width = metrics.horizontalAdvance(shown)
            box = QRect(x, 0, width, self.height())
            p.setPen(C("text" if is_last else "text3" if cut and not number else "text2"))
            p.drawText(box, int(Qt.AlignmentFlag.AlignVCenter), shown)
            if not is_last and place is not None:
                self._boxes.append((box, place))
            x += width + px(GAP)
            if not is_last:
                p.drawPixmap(x, (self.height() - px(CHEVRON)) // 2 + 1, chevron)
                self._chevrons.append(
                    (QRect(x - px(GAP), 0, px(CHEVRON) + 2 * px(GAP), self.height()), number + 1 + left_out)
                )
                x += px(CHEVRON) + px(GAP)

    def _fitting(self) -> tuple[list[tuple[str, object]], bool]:
        """Return the last crumbs that fit, with ``…`` before them if some are left out."""

        def width(parts: list[tuple[str, object]]) -> int:
            plain, bold = QFontMetrics(ui(13)), QFontMetrics(ui(13, 600))
            total = sum((bold if n == len(parts) - 1 else plain).horizontalAdvance(t) for n, (t, _) in enumerate(parts))
            return total + (len(parts) - 1) * (2 * px(GAP) + px(CHEVRON))

        parts, cut = list(self._parts), False
        while len(parts) > 2 and width(parts) > self.width():
            del parts[1 if cut else 0]
            if not cut:
                parts.insert(0, ("…", None))
                cut = True
                if len(parts) > 2 and width(parts) <= self.width():
                    break
        return parts, cut

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Go to a clicked crumb. A click on a chevron drops down the siblings of the crumb after it."""
        for box, number in self._chevrons:
            if box.contains(event.position().toPoint()) and self.drop(number):
                return
        for box, place in self._boxes:
            if box.contains(event.position().toPoint()):
                self.placeRequested.emit(place)
                return

    def drop(self, number: int | None = None) -> SiblingList | None:
        """Drop down the siblings of crumb ``number``, or of the last crumb that has any."""
        for index in range(len(self._parts) - 1, 0, -1) if number is None else (number,):
            sibling_places = self._siblings(index, self._parts[index][1]) if 0 <= index < len(self._parts) else ()
            if sibling_places:
                drop_list = SiblingList(sibling_places, self)
                drop_list.chosen.connect(self.placeRequested)
                box = next((box for box, n in self._chevrons if n == index), QRect(0, 0, 1, self.height()))
                drop_list.drop(self.mapToGlobal(box.bottomLeft()))
                return drop_list
        return None

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Show a hand over links."""
        position = event.position().toPoint()
        over = any(box.contains(position) for box, _ in (*self._boxes, *self._chevrons))
        self.setCursor(Qt.CursorShape.PointingHandCursor if over else Qt.CursorShape.ArrowCursor)
