"""Shapes that stand beside words: icons, marks, chips, key caps, bars of progress. They follow the theme."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QFontMetrics, QMouseEvent, QPainter, QPaintEvent, QPixmap
from PySide6.QtWidgets import QWidget

from viewer.look.assets import icon_pixmap
from viewer.look.theme import C, follow, px, theme, ui
from viewer.widgets.paint import chip_width, draw_chip, mark


class Glyph(QWidget):
    """An icon that stands beside words and does nothing."""

    def __init__(self, name: str, role: str = "text2", size: int = 18) -> None:
        super().__init__()
        self._name, self._role, self._size = name, role, size
        self._fit()
        follow(self, self._fit)

    def set_glyph(self, name: str, role: str) -> None:
        """Another picture or colour."""
        self._name, self._role = name, role
        self.update()

    def _fit(self) -> None:
        self.setFixedSize(px(self._size), px(self._size))
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the icon in the role's colour."""
        picture: QPixmap = icon_pixmap(self._name, C(self._role), px(self._size), self.devicePixelRatioF())
        QPainter(self).drawPixmap(0, 0, picture)


class Mark(QWidget):
    """A state's shape by itself."""

    def __init__(self, kind: str, size: float = 4.5) -> None:
        super().__init__()
        self._kind, self._size = kind, size
        self.setFixedSize(px(16), px(16))
        follow(self, self.update)

    def set_kind(self, kind: str) -> None:
        """Another state; empty for none."""
        self._kind = kind
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the shape."""
        if self._kind:
            mark(
                QPainter(self),
                self._kind,
                QPointF(self.width() / 2, self.height() / 2 + 0.5),
                self._size * px(100) / 100,
            )


class Chip(QWidget):
    """State in a rounded field: shape, word, colour. ``clicked`` where somebody listens."""

    clicked = Signal()

    def __init__(self, kind: str, text: str) -> None:
        super().__init__()
        self._kind, self._text = kind, text
        self._fit()
        follow(self, self._fit)

    def set_chip(self, kind: str, text: str) -> None:
        """Another state and word."""
        self._kind, self._text = kind, text
        self._fit()

    def _fit(self) -> None:
        self.setAccessibleName(self._text)
        self.setFixedSize(chip_width(self._text), px(20))
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Fill, mark, word."""
        draw_chip(QPainter(self), QRectF(0, 0.5, self.width(), px(19)), self._kind, self._text)

    def mouseReleaseEvent(self, _event: QMouseEvent) -> None:
        """A chip may be a switch of its pane."""
        self.clicked.emit()


class Key(QWidget):
    """A key cap: ``Ctrl G``."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text
        self._fit()
        follow(self, self._fit)

    def _fit(self) -> None:
        width = QFontMetrics(ui(11, 500)).horizontalAdvance(self._text)
        self.setFixedSize(width + px(16), px(18))
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Frame and word."""
        p = QPainter(self)
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        p.setPen(C("hair"))
        p.setBrush(C("raised"))
        p.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 4, 4)
        p.setFont(ui(11, 500))
        p.setPen(C("text3"))
        p.drawText(self.rect(), int(Qt.AlignmentFlag.AlignCenter), self._text)


class Progress(QWidget):
    """A thin bar; ``part`` from 0 to 1, or None while the total is not known."""

    def __init__(self, width: int = 0, role: str = "accent", height: int = 4) -> None:
        super().__init__()
        self._part: float | None = 0.0
        self._role, self._bar = role, height
        if width:
            self.setFixedWidth(px(width))
        self.setFixedHeight(px(18))
        follow(self, self.update)

    def set_part(self, part: float | None) -> None:
        """How much is done."""
        if part != self._part:
            self._part = part
            self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Track, then what is done; a bar in the middle while nobody knows how much there is."""
        p = QPainter(self)
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        p.setPen(Qt.PenStyle.NoPen)
        track = QRectF(0, self.height() / 2 - self._bar / 2, self.width(), self._bar)
        p.setBrush(C("line" if theme.dark else "hair"))
        p.drawRoundedRect(track, self._bar / 2, self._bar / 2)
        p.setBrush(C(self._role))
        if self._part is None:
            done = QRectF(track.left() + track.width() * 0.35, track.top(), track.width() * 0.3, self._bar)
        else:
            width = max(float(self._bar), track.width() * min(max(self._part, 0.0), 1.0))
            done = QRectF(track.left(), track.top(), width, self._bar)
        p.drawRoundedRect(done, self._bar / 2, self._bar / 2)
