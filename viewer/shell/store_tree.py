"""The left side: a card that sums up the store, over the store's tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QEvent, QModelIndex, QPersistentModelIndex, QPointF, QRect, QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics, QPainter, QResizeEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTreeView,
    QVBoxLayout,
    QWidget,
)

from viewer.look.assets import icon_pixmap, tr, tr_plural, words
from viewer.look.engine_words import engine_words
from viewer.look.formats import moment, size, zone_text
from viewer.look.theme import C, follow, mono, px, scale, ui
from viewer.look.topic_colours import colours_of
from viewer.look.topic_kinds import alike_at_the_start, is_system_topic
from viewer.pane.row_commands import RowCommands
from viewer.runtime import places
from viewer.runtime.lab_session import lab_of
from viewer.runtime.places import Place
from viewer.runtime.survey import card_status
from viewer.widgets.basics import Chip, ElidedLine, Hairline, Label, ThemedPanel
from viewer.widgets.drawn_marks import DrawnMark, node_mark
from viewer.widgets.focus import FocusRing
from viewer.widgets.paint import chip_width, mark
from viewer.widgets.record_menu import MarkMenu
from viewer.widgets.store_tree_rows import RANK, Node, NodeRole, StoreTree, node_of_file, short_count, store_nodes
from viewer.widgets.topic_lead import NAME_INDENT, draw_lead

if TYPE_CHECKING:
    from viewer.look.topic_colours import TopicColours
    from viewer.runtime.store_session import StoreSession
    from viewer.runtime.survey import Survey


STATES = (
    words("log only"),
    words("one file"),
    words("a part"),
    words("broker is running"),
    words("not closed"),
    words("closed"),
    words("not all readable"),
    words("the log is gone"),
)


class StoreCard(ThemedPanel):
    """Name and state; size, topics, messages; first and last time."""

    def __init__(self) -> None:
        super().__init__("side", ("bottom",))
        self.setObjectName("store.card")
        self._facts: list[str] = []
        self._spans: list[str] = []
        self._status = "", ""
        self.name = ElidedLine("", 15, "text", 600, middle=True)
        self.chip = Chip("ok", "")
        self.chip.hide()  # nothing is known yet
        self.facts = ElidedLine("", 12, "text2")
        self.span = ElidedLine("", 12, "text3")
        top = QHBoxLayout()
        top.setSpacing(px(8))
        top.addWidget(self.name, 1)
        top.addWidget(self.chip)
        layout = self._lines = QVBoxLayout(self)
        layout.setContentsMargins(px(14), px(10), px(12), px(10))
        layout.setSpacing(px(3))
        layout.addLayout(top)
        layout.addWidget(self.facts)
        layout.addWidget(self.span)

    def show_name(self, name: str, path: str) -> None:
        """Show the name and path, before the survey is done."""
        self.name.setText(name)
        self.chip.hide()
        self.facts.setText(tr("looking at heads and tails…"))
        self._facts, self._spans = [], []
        self.span.setText("")
        self.setAccessibleName(path)

    def show_survey(self, survey: Survey, counted: Mapping[str, int], units: int) -> None:
        """Show the survey, and for a log without queues the counted bytes by topic and units."""
        self.name.setText(survey.name)
        self._facts, self._spans = _facts_of(survey, counted, units), _spans_of(survey)
        self._fit()

    def show_status(self, mark: str, status_text: str) -> None:
        """Show the store's state: the worse of its last exit and its findings."""
        self._status = mark, status_text
        self.chip.set_chip(mark, status_text)
        self.chip.show()
        self._lines.activate()
        self._fit()
        self.setAccessibleName(f"{self.name.text()}, {status_text}, {self.facts.text()}, {self.span.text()}")

    def _fit(self) -> None:
        """Choose the longest form that fits. A long name is written smaller before it is cut."""
        for line, forms in ((self.facts, self._facts), (self.span, self._spans)):
            fitting = (text for text in forms if line.fontMetrics().horizontalAdvance(text) <= line.width())
            if forms:
                line.setText(next(fitting, forms[-1]))
        self._fit_chip()
        self.name.set_size(15)
        if self.name.fontMetrics().horizontalAdvance(self.name.text()) > self.name.width():
            self.name.set_size(13)

    def _fit_chip(self) -> None:
        """Shorten the chip to its last words, the findings, if the name needs the room."""
        mark, status_text = self._status
        if not status_text:
            return
        self.name.set_size(13)
        room = self.width() - px(14 + 12 + 8) - self.name.fontMetrics().horizontalAdvance(self.name.text())
        self.chip.set_chip(mark, status_text if chip_width(status_text) <= room else status_text.rpartition(" · ")[2])
        self._lines.activate()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Choose the form for the new width."""
        super().resizeEvent(event)
        self._lines.activate()
        self._fit()


def _facts_of(survey: Survey, counted: Mapping[str, int], units: int) -> list[str]:
    """Return ``38 GiB · 13 topics · 36.7 M messages`` and a shorter form."""
    if not survey.all_readable and not survey.messages:
        if survey.log_bytes:
            return [tr("{size} of log; what its queues hold is not known", size=size(survey.log_bytes))]
        return [tr("Its contents are unknown.")]
    if not survey.unqueued or survey.log_gone or (survey.kind == "store" and not survey.log_bytes):
        if survey.log_gone:
            entries_text = tr_plural(
                "{amount} entry", "{amount} entries", n=survey.messages, amount=short_count(survey.messages)
            )
            return [
                " · ".join((size(0), topics_in_words(len(survey.topics)), entries_text)),
                f"{size(0)} · {entries_text}",
            ]
        messages_text = _messages_in_words(survey.messages)
        if survey.missing:  # the queues have more entries than the log has messages
            messages_text = tr_plural(
                "{amount} entry", "{amount} entries", n=survey.messages, amount=short_count(survey.messages)
            )
        short_form = " · ".join((size(survey.log_bytes), messages_text))
        forms = [f"{size(survey.log_bytes)} · {topics_in_words(len(survey.topics))} · {messages_text}", short_form]
        return forms if survey.all_readable else [tr("at least {said}", said=form) for form in forms]
    if counted:
        units_text = tr_plural("{amount} unit", "{amount} units", n=units, amount=short_count(units))
        return [
            f"{size(survey.log_bytes)} · {topics_in_words(len(counted))} · {units_text}",
            f"{size(survey.log_bytes)} · {units_text}",
        ]
    files = tr_plural("{n:,} file", "{n:,} files", n=survey.log_files)
    return [f"{size(survey.log_bytes)} · {files}"]


def counted(log_bytes: int, topics: int, messages: int) -> str:
    """Return bytes, topics and messages in words."""
    return " · ".join((size(log_bytes), topics_in_words(topics), _messages_in_words(messages)))


def _messages_in_words(messages: int) -> str:
    return tr_plural("{amount} message", "{amount} messages", n=messages, amount=short_count(messages))


def topics_in_words(topics: int) -> str:
    """Return ``1 topic`` or ``13 topics``."""
    return tr_plural("{n:,} topic", "{n:,} topics", n=topics)


def _spans_of(survey: Survey) -> list[str]:
    """Return ``2026-11-17 22:04 → 11-20 09:41 +08:00`` and shorter forms, longest first."""
    if survey.first_time is None or survey.last_time is None:
        return [tr("no message") if survey.all_readable else ""]
    first_text, last_text = moment(survey.first_time)[:16], moment(survey.last_time)[:16]
    zone = zone_text(survey.last_time)
    if first_text[:10] == last_text[:10]:
        return [
            f"{first_text} → {last_text[11:]} {zone}",
            f"{first_text} → {last_text[11:]}",
            f"{first_text[5:]} → {last_text[11:]}",
        ]
    end = last_text[5:] if first_text[:5] == last_text[:5] else last_text
    return [
        f"{first_text} → {end} {zone}",
        f"{first_text} → {end}",
        f"{first_text[5:]} → {end}",
        f"{first_text[5:10]} → {last_text[5:10]}",
    ]


class StoreTreePane(QWidget):
    """Card and tree. It emits the place of a clicked line."""

    placeRequested = Signal(object)
    statusMessage = Signal(str)
    helpRequested = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("store.side")
        self.session: StoreSession | None = None
        self.card = StoreCard()
        self.model = StoreTree(self)
        self.tree = StructureTree("store.tree")
        self.tree.setModel(self.model)
        self.tree.setAccessibleName(tr("Store tree"))
        self.menu = MarkMenu(self.tree, self._mark_at)
        self.note = Label("", 12, "text3", wrap=True)
        self.note.setContentsMargins(px(14), px(8), px(12), px(8))
        self.note.hide()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.card)
        layout.addWidget(self.tree, 1)
        layout.addWidget(Hairline())
        layout.addWidget(self.note)
        self._quiet = False
        self._fresh = True
        self._chosen = "log"
        self.tree.clicked.connect(self._follow)
        self.tree.activated.connect(self._follow)
        self.tree.selectionModel().currentChanged.connect(lambda index, _before: self._arrowed(index))
        follow(self, self._retheme)

    @property
    def topic_colours(self) -> TopicColours | None:
        """The colours of the shown topics. None without a store."""
        return self.session.colours if self.session is not None else None

    def set_session(self, session: StoreSession | None) -> None:
        """Show another store."""
        self.session = session
        self._fresh = True
        self.menu.doer = RowCommands(self) if session is not None else None
        self.model.set_nodes(())
        if session is None:
            return
        self.card.show_name(session.name, session.shown_path)
        session.surveyed.connect(self._surveyed)
        session.findingsChanged.connect(self._mark)
        if session.survey is not None:
            self._surveyed()

    def choose(self, place: Place) -> None:
        """Select the line of ``place`` without going there."""
        self._chosen = _name_of(place)
        index = self.model.index_of(self._chosen)
        self._quiet = True
        self.tree.setCurrentIndex(index)  # an invalid index selects nothing
        if index.isValid():
            self.tree.scrollTo(index)
        self._quiet = False

    def _surveyed(self) -> None:
        session = self.session
        if session is None or session.survey is None:
            return
        self.card.show_survey(session.survey, session.counted_topics, session.counted_units)
        self.note.setText("\n".join(engine_words(note) for note in session.survey.notes))
        self.note.setVisible(bool(session.survey.notes))
        counted = session.counted_topics
        session.colours.offer(session.survey.topics_by_bytes or sorted(counted, key=lambda name: -counted[name]))
        opened = {self.model.node(index).name for index in self._open_indexes(QModelIndex())}
        self._quiet = True
        topics = self.model.find("topics")
        if counted and (topics is None or not topics.children):
            opened.add("topics")  # the first ones
        order = [node.name.removeprefix("topic/") for node in topics.children] if topics is not None else []
        order = [name for name in order if name != "system"]
        new = self.model.set_nodes(store_nodes(session.survey, places, is_system_topic, order, session.counted_topics))
        if self._fresh:
            opened = self._opened_at_first(session.survey)
            self._fresh = False
        if new:
            for name in opened:
                self.tree.expand(self.model.index_of(name))
            self.tree.setCurrentIndex(self.model.index_of(self._chosen))
        self._quiet = False
        self._mark()

    def _opened_at_first(self, survey: Survey) -> set[str]:
        opened = {"topics", "index"} if len(survey.index) <= 8 else {"topics"}
        user_topics = [name for name in survey.topics_by_bytes if not is_system_topic(name)]
        largest = next((topic for topic in survey.topics if user_topics and topic.name == user_topics[0]), None)
        if largest is not None and len(largest.queues) <= 8:
            opened.add(f"topic/{largest.name}")
        if len(survey.topics) <= 24:
            opened.add("system")
        return opened

    def _open_indexes(self, parent: QModelIndex) -> list[QModelIndex]:
        open_indexes = []
        for row in range(self.model.rowCount(parent)):
            index = self.model.index(row, 0, parent)
            if self.tree.isExpanded(index):
                open_indexes += [index, *self._open_indexes(index)]
        return open_indexes

    def _mark(self) -> None:
        if self.session is None:
            return
        marks: dict[str, str] = {}
        root = str(self.session.path)
        for finding in self.session.findings:
            name = _node_of_finding(finding, root)
            if RANK.get(finding.severity, 0) > RANK.get(marks.get(name, ""), 0) and finding.severity != "chat":
                marks[name] = finding.severity
        self.model.set_marks(marks)
        self._show_status(self.session)

    def _show_status(self, session: StoreSession) -> None:
        if session.survey is not None:
            lab = lab_of(session.path) is not None
            complete = session.findings_complete
            self.card.show_status(*card_status(session.survey, session.counts(), complete=complete, lab=lab))

    def _follow(self, index: QModelIndex) -> None:
        place = self.model.node(index).place
        if place is not None:
            self.placeRequested.emit(place)
        elif self.model.rowCount(index):
            self.tree.setExpanded(index, not self.tree.isExpanded(index))

    def _arrowed(self, index: QModelIndex) -> None:
        """Go to a line that the arrow keys select, as a click does."""
        if not self._quiet and self.tree.hasFocus() and index.isValid():
            place = self.model.node(index).place
            if place is not None and not self.tree.underMouse():
                self.placeRequested.emit(place)

    def _mark_at(self, point: QPointF | None) -> tuple[DrawnMark, QPointF] | None:
        """Return the line under ``point``, or the selected one."""
        index = self.tree.currentIndex() if point is None else self.tree.indexAt(point.toPoint())
        if not index.isValid():
            return None
        return node_mark(self.model.node(index)), QPointF(self.tree.visualRect(index).bottomLeft())

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return no commands: the views have them."""
        return {}

    def status(self) -> str:
        """Return no sentence."""
        return ""

    def _retheme(self) -> None:
        self.tree.setIndentation(px(14))
        self.tree.viewport().update()

    def keyPressEvent(self, event: Any) -> None:
        """Go to the selected line on Enter."""
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter} and self.tree.currentIndex().isValid():
            self._follow(self.tree.currentIndex())
        else:
            super().keyPressEvent(event)


def _node_of_finding(finding: Any, root: str) -> str:
    file = finding.file or ""
    return node_of_file(file.removeprefix(root))


def _name_of(place: Place) -> str:
    match place.kind:
        case "queue" if place.topic and place.queue_id is not None:
            return f"queue/{place.topic}/{place.queue_id}"
        case "queue":
            return f"topic/{place.topic}" if place.topic else "topics"
        case "index":
            return f"index/{place.name}" if place.name else "index"
        case "trace":
            return "index"
        case "config":
            return f"config/{place.name}" if place.name else "config"
        case _:
            return place.kind


Index = QModelIndex | QPersistentModelIndex
ROW = 24


class TreeDelegate(QStyledItemDelegate):
    """Paints a :class:`Node`."""

    def sizeHint(self, _option: QStyleOptionViewItem, _index: Index) -> QSize:
        """Return the same height for every line."""
        return QSize(px(60), px(ROW))

    def paint(self, p: QPainter, option: Any, index: Index) -> None:
        """Paint a line."""
        node = index.data(NodeRole)
        if not isinstance(node, Node):
            return
        rect: QRect = option.rect
        chosen = bool(option.state & QStyle.StateFlag.State_Selected)
        p.save()
        inner = rect.adjusted(px(4), 0, -px(10), 0)
        inner.setLeft(self._paint_lead(p, node, inner, option.widget))
        dim = "text2" if chosen else "text3"
        inner.setRight(self._paint_badge(p, node, inner, dim))
        p.setFont(ui(13, 500 if node.strong else 400))
        p.setPen(C("text2" if node.dim else "text"))
        alike = alike_at_the_start(node.topic)
        mode = Qt.TextElideMode.ElideLeft if alike else Qt.TextElideMode.ElideMiddle
        shown = QFontMetrics(p.font()).elidedText(node.text, mode, max(0, inner.width()))
        p.drawText(inner, int(Qt.AlignmentFlag.AlignVCenter), shown)
        p.restore()

    def _paint_lead(self, p: QPainter, node: Node, inner: QRect, tree: QWidget | None) -> int:
        x = inner.left()
        if node.icon:
            ratio = p.device().devicePixelRatioF()
            side = px(17)
            p.drawPixmap(x, inner.center().y() - side // 2, icon_pixmap(node.icon, C("text2"), side, ratio))
            return x + px(23)
        if node.topic:
            draw_lead(p, node.topic, colours_of(tree).color(node.topic), x, inner.center().y() + 1, scale())
            return x + px(NAME_INDENT)
        return x

    def _paint_badge(self, p: QPainter, node: Node, inner: QRect, role: str) -> int:
        right = inner.right()
        if node.mark:
            mark(p, node.mark, QPointF(right - px(3), inner.center().y() + 1), 4 * px(100) / 100)
            right -= px(14)
        if not node.badge:
            return right
        p.setFont(mono(11))
        width = QFontMetrics(p.font()).horizontalAdvance(node.badge)
        p.setPen(C(role))
        p.drawText(
            QRect(right - width, inner.top(), width + 1, inner.height()), int(Qt.AlignmentFlag.AlignVCenter), node.badge
        )
        return right - width - px(8)


class StructureTree(QTreeView):
    """A tree with one column, rows as high as the font needs, and a bar left of the selected line."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        FocusRing(self)
        self.setItemDelegate(TreeDelegate(self))
        self.setHeaderHidden(True)
        self.setUniformRowHeights(True)
        self.setIndentation(px(14))
        self.setFrameShape(QTreeView.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setExpandsOnDoubleClick(False)
        self.setMouseTracking(True)

    def drawRow(self, p: QPainter, option: Any, index: Index) -> None:
        """Draw the background over the whole width, then the line."""
        rect = QRect(0, option.rect.top(), self.viewport().width(), option.rect.height())
        if self.selectionModel() is not None and self.selectionModel().isSelected(index):
            p.fillRect(rect, C("select"))
            p.fillRect(QRect(0, rect.top(), 3, rect.height()), C("accent"))
        elif rect.contains(self.viewport().mapFromGlobal(self.cursor().pos())):
            p.fillRect(rect, C("hover"))
        super().drawRow(p, option, index)

    def drawBranches(self, p: QPainter, rect: QRect, index: Index) -> None:
        """Draw a small triangle before each line that can be opened."""
        if not self.model().rowCount(index):
            return
        center = QPointF(rect.right() - px(4), rect.center().y() + 0.5)
        p.save()
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        p.setPen(Qt.PenStyle.NoPen)
        p.setBrush(C("text3"))
        s = px(100) / 100
        if self.isExpanded(index):
            points = [QPointF(-3.5 * s, -1.5 * s), QPointF(3.5 * s, -1.5 * s), QPointF(0, 2.5 * s)]
        else:
            points = [QPointF(-1.5 * s, -3.5 * s), QPointF(2.5 * s, 0), QPointF(-1.5 * s, 3.5 * s)]
        p.drawPolygon([center + point for point in points])
        p.restore()

    def viewportEvent(self, event: QEvent) -> bool:
        """Redraw the line under the pointer as it moves."""
        if event.type() in {QEvent.Type.HoverMove, QEvent.Type.MouseMove, QEvent.Type.Leave}:
            self.viewport().update()
        return super().viewportEvent(event)
