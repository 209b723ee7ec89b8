"""How a line of the store tree is drawn: icon or topic bar, words, count at the right, mark behind it."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QEvent, QModelIndex, QPersistentModelIndex, QPointF, QRect, QSize, Qt
from PySide6.QtGui import QFontMetrics, QPainter
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem, QTreeView, QWidget

from viewer.look.assets import icon_pixmap
from viewer.look.theme import C, mono, px, scale, ui
from viewer.look.topic_colours import colours_of
from viewer.look.topic_kinds import alike_at_the_start
from viewer.widgets.focus_ring import FocusRing
from viewer.widgets.paint import mark
from viewer.widgets.store_tree_rows import Node, NodeRole
from viewer.widgets.topic_lead import ROOM, draw_lead

Index = QModelIndex | QPersistentModelIndex
ROW = 24


class TreeDelegate(QStyledItemDelegate):
    """Paints a :class:`Node`."""

    def sizeHint(self, _option: QStyleOptionViewItem, _index: Index) -> QSize:
        """Every line has the same height."""
        return QSize(px(60), px(ROW))

    def paint(self, p: QPainter, option: Any, index: Index) -> None:
        """One line."""
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
        left = inner.left()
        if node.icon:
            ratio = p.device().devicePixelRatioF()
            side = px(17)
            p.drawPixmap(left, inner.center().y() - side // 2, icon_pixmap(node.icon, C("text2"), side, ratio))
            return left + px(23)
        if node.topic:
            draw_lead(p, node.topic, colours_of(tree).color(node.topic), left, inner.center().y() + 1, scale())
            return left + px(ROOM)
        return left

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
    """A tree of structure: one column, rows as high as the font wants, a bar at the left of the chosen line."""

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
        """The ground over the whole width, then the line."""
        rect = QRect(0, option.rect.top(), self.viewport().width(), option.rect.height())
        if self.selectionModel() is not None and self.selectionModel().isSelected(index):
            p.fillRect(rect, C("select"))
            p.fillRect(QRect(0, rect.top(), 3, rect.height()), C("accent"))
        elif rect.contains(self.viewport().mapFromGlobal(self.cursor().pos())):
            p.fillRect(rect, C("hover"))
        super().drawRow(p, option, index)

    def drawBranches(self, p: QPainter, rect: QRect, index: Index) -> None:
        """A small triangle before what can be opened."""
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
        """The pointer's line is drawn anew as it moves."""
        if event.type() in {QEvent.Type.HoverMove, QEvent.Type.MouseMove, QEvent.Type.Leave}:
            self.viewport().update()
        return super().viewportEvent(event)
