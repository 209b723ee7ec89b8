"""Small reusable widgets: labels, icons, chips, key caps, buttons, fields, progress bars, pane heads, hairlines, cards.

Texts are already translated when they are passed in. Each widget follows changes of colours, fonts and zoom by
itself.
"""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QFontMetrics,
    QIcon,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QPixmap,
    QShowEvent,
)
from PySide6.QtWidgets import (
    QDialog,
    QLabel,
    QLineEdit,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from viewer.look.assets import icon_pixmap
from viewer.look.theme import C, follow, mono, px, theme, ui
from viewer.widgets.boxes import Part, fill
from viewer.widgets.flow import WrappedRow
from viewer.widgets.paint import chip_width, draw_chip, mark


class Glyph(QWidget):
    """An icon beside text. It does not react to the mouse."""

    def __init__(self, name: str, role: str = "text2", size: int = 18) -> None:
        super().__init__()
        self._name, self._role, self._size = name, role, size
        self._fit()
        follow(self, self._fit)

    def set_glyph(self, name: str, role: str) -> None:
        """Change the icon and its colour role."""
        self._name, self._role = name, role
        self.update()

    def _fit(self) -> None:
        self.setFixedSize(px(self._size), px(self._size))
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        picture: QPixmap = icon_pixmap(self._name, C(self._role), px(self._size), self.devicePixelRatioF())
        QPainter(self).drawPixmap(0, 0, picture)


class StatusMark(QWidget):
    """The mark of a status without its word."""

    def __init__(self, kind: str, size: float = 4.5) -> None:
        super().__init__()
        self._kind, self._size = kind, size
        self.setFixedSize(px(16), px(16))
        follow(self, self.update)

    def set_kind(self, kind: str) -> None:
        """Show the mark of another status; "" shows none."""
        self._kind = kind
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        if self._kind:
            mark(
                QPainter(self),
                self._kind,
                QPointF(self.width() / 2, self.height() / 2 + 0.5),
                self._size * px(100) / 100,
            )


class Chip(QWidget):
    """A status in a rounded box: shape, word and colour. A click emits ``clicked``."""

    clicked = Signal()

    def __init__(self, kind: str, text: str) -> None:
        super().__init__()
        self._kind, self._text = kind, text
        self._fit()
        follow(self, self._fit)

    def set_chip(self, kind: str, text: str) -> None:
        """Change the status and its word."""
        self._kind, self._text = kind, text
        self._fit()

    def _fit(self) -> None:
        self.setAccessibleName(self._text)
        self.setFixedSize(chip_width(self._text), px(20))
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw_chip(QPainter(self), QRectF(0, 0.5, self.width(), px(19)), self._kind, self._text)

    def mouseReleaseEvent(self, _event: QMouseEvent) -> None:
        self.clicked.emit()


class Key(QWidget):
    """A key cap, for example ``Ctrl G``."""

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
        p = QPainter(self)
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        p.setPen(C("hair"))
        p.setBrush(C("raised"))
        p.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 4, 4)
        p.setFont(ui(11, 500))
        p.setPen(C("text3"))
        p.drawText(self.rect(), int(Qt.AlignmentFlag.AlignCenter), self._text)


class Progress(QWidget):
    """A thin progress bar. ``part`` is from 0 to 1, or None while the total is unknown."""

    def __init__(self, width: int = 0, role: str = "accent", height: int = 4) -> None:
        super().__init__()
        self._part: float | None = 0.0
        self._role, self._bar = role, height
        if width:
            self.setFixedWidth(px(width))
        self.setFixedHeight(px(18))
        follow(self, self.update)

    def set_part(self, part: float | None) -> None:
        """Set the finished part, from 0 to 1; None while the total is unknown."""
        if part != self._part:
            self._part = part
            self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the finished part, or a bar in the middle while the total is unknown."""
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


def icon(name: str, role: str = "text2", size: int = 20) -> QIcon:
    """The icon in the colour of ``role``, grey when it is disabled."""
    themed_icon = QIcon(icon_pixmap(name, C(role), px(size)))
    themed_icon.addPixmap(icon_pixmap(name, C("disabled"), px(size)), QIcon.Mode.Disabled)
    return themed_icon


class Label(QLabel):
    """Text in one of the theme's colour roles. ``code`` sets the monospaced font, for text from the store."""

    def __init__(
        self,
        text: str = "",
        size: int = 13,
        role: str = "text",
        weight: int = 400,
        *,
        code: bool = False,
        wrap: bool = False,
        select: bool = False,
    ) -> None:
        super().__init__(text)
        self._size, self._role, self._weight, self._code = size, role, weight, code
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setWordWrap(wrap)
        if select:
            self.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.retheme()
        follow(self, self.retheme)

    def set_role(self, role: str) -> None:
        """Use the colour of another role."""
        self._role = role
        self.retheme()

    def set_size(self, size: int) -> None:
        """Use another font size."""
        if size != self._size:
            self._size = size
            self.retheme()

    def retheme(self) -> None:
        """Apply the current fonts and colours."""
        self.setFont((mono if self._code else ui)(self._size, self._weight))
        colors = self.palette()
        colors.setColor(QPalette.ColorRole.WindowText, C(self._role))
        self.setPalette(colors)


MIN_SHOWN_CHARACTERS = 5
"""A shortened line with fewer letters than this is not shown."""


class ElidedLine(Label):
    """A line of text that is shortened when there is little room, in its middle (names) or at its end (sentences).
    The tool tip shows the full text.
    """

    def __init__(
        self,
        text: str = "",
        size: int = 13,
        role: str = "text",
        weight: int = 400,
        *,
        code: bool = False,
        middle: bool = False,
    ) -> None:
        super().__init__(text, size, role, weight, code=code)
        self._mode = Qt.TextElideMode.ElideMiddle if middle else Qt.TextElideMode.ElideRight
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def minimumSizeHint(self) -> QSize:
        """Allow shrinking to a few letters."""
        return QSize(px(24), super().minimumSizeHint().height())

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint as much of the text as fits."""
        p = QPainter(self)
        p.setPen(C(self._role))
        shown = self.fontMetrics().elidedText(self.text(), self._mode, self.width())
        if len(shown) < MIN_SHOWN_CHARACTERS and shown != self.text():
            shown = ""
        p.drawText(self.rect(), int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft), shown)
        self.setToolTip(self.text() if shown != self.text() else "")


class Link(Label):
    """A text link. A click, Enter or Space emits ``clicked``."""

    clicked = Signal()

    def __init__(
        self, text: str = "", size: int = 12, weight: int = 400, *, code: bool = False, wrap: bool = False
    ) -> None:
        super().__init__(text, size, "accent", weight, code=code, wrap=wrap)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAccessibleName(text)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton and self.rect().contains(event.position().toPoint()):
            self.clicked.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space}:
            self.clicked.emit()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the text, underlined under the pointer and with keyboard focus."""
        underlined = self.underMouse() or self.hasFocus()
        if self.wordWrap() and underlined != self.font().underline():
            font = self.font()
            font.setUnderline(underlined)
            self.setFont(font)
        super().paintEvent(event)
        if underlined and not self.wordWrap():
            p = QPainter(self)
            base = (self.height() + self.fontMetrics().ascent() - self.fontMetrics().descent()) // 2 + 2
            p.fillRect(0, base, self.fontMetrics().horizontalAdvance(self.text()), 1, C("accent"))


class Button(QPushButton):
    """A push button with text. ``kind`` is empty, primary, danger, flat or pill."""

    def __init__(self, text: str, kind: str = "", icon_name: str = "") -> None:
        super().__init__(text)
        self._icon = icon_name
        self.setProperty("kind", kind)
        self.setAccessibleName(text)
        self.setAutoDefault(False)
        self.retheme()
        follow(self, self.retheme)

    def showEvent(self, event: QShowEvent) -> None:
        """Make the primary button the dialog's default, unless the dialog has one: dialogs that write may choose
        Cancel.
        """
        super().showEvent(event)
        box = self.window()
        if self.property("kind") == "primary" and isinstance(box, QDialog) and not _has_default(box):
            self.setDefault(True)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Press the focused button on Enter. Qt would press the dialog's default button instead."""
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter} and event.modifiers() in _PLAIN:
            self.click()
            return
        super().keyPressEvent(event)

    def retheme(self) -> None:
        """Apply the current fonts and colours."""
        kind = self.property("kind")
        self.setFont(ui(12 if kind == "pill" else 13, 600 if kind in {"primary", "danger"} else 400))
        if self._icon:
            role = {"primary": "accentText", "danger": "error", "flat": "accent"}.get(kind, "text2")
            self.setIcon(icon(self._icon, role, 18))
            self.setIconSize(QSize(px(18), px(18)))


_PLAIN = {Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.KeypadModifier}


def _has_default(box: QDialog) -> bool:
    return any(button.isDefault() for button in box.findChildren(QPushButton))


class ToolButton(QToolButton):
    """A small button with an icon and, where needed, text."""

    def __init__(self, icon_name: str, tip: str = "", text: str = "", *, checkable: bool = False) -> None:
        super().__init__()
        self._icon = icon_name
        self.setText(text)
        self.setToolTip(tip)
        self.setAccessibleName(tip or text)
        self.setCheckable(checkable)
        if text:
            self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.toggled.connect(lambda _on: self.retheme())
        self.retheme()
        follow(self, self.retheme)

    def set_icon(self, icon_name: str) -> None:
        """Change the icon."""
        self._icon = icon_name
        self.retheme()

    def retheme(self) -> None:
        """Apply the current fonts and colours."""
        self.setFont(ui(12, 500))
        self.setIcon(icon(self._icon, "accent" if self.isChecked() else "text2", 18))
        self.setIconSize(QSize(px(18), px(18)))


class Field(QLineEdit):
    """A text field. ``code`` sets the monospaced font, for offsets, keys and filters."""

    def __init__(self, hint: str = "", *, code: bool = False, width: int = 0, icon_name: str = "") -> None:
        super().__init__()
        self._code, self._width, self._icon = code, width, icon_name
        self._lead = self.addAction(QIcon(), QLineEdit.ActionPosition.LeadingPosition) if icon_name else None
        self.setPlaceholderText(hint)
        self.setAccessibleName(hint)
        self.retheme()
        follow(self, self.retheme)

    def set_width(self, width: int) -> None:
        """Change the fixed width, in px at 100 %."""
        self._width = width
        self.retheme()

    def retheme(self) -> None:
        """Apply the current fonts and colours."""
        self.setFont(mono(12) if self._code else ui(13))
        if self._width:
            self.setFixedWidth(px(self._width))
        if self._lead is not None:
            self._lead.setIcon(icon(self._icon, "text3", 18))


class Hairline(QWidget):
    """A line of one pixel between two panes."""

    def __init__(self, vertical: bool = False) -> None:
        super().__init__()
        if vertical:
            self.setFixedWidth(1)
        else:
            self.setFixedHeight(1)
        follow(self, self.update)

    def paintEvent(self, event: QPaintEvent) -> None:
        QPainter(self).fillRect(event.rect(), C("hair"))


class ThemedPanel(QWidget):
    """A background in one of the theme's roles, with hairlines at ``edges``: "top", "bottom", "left", "right"."""

    def __init__(self, role: str = "pane", edges: Iterable[str] = ()) -> None:
        super().__init__()
        self._role, self._edges = role, frozenset(edges)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        follow(self, self.update)

    def paintEvent(self, event: QPaintEvent) -> None:
        p = QPainter(self)
        p.fillRect(event.rect(), C(self._role))
        w, h = self.width(), self.height()
        lines = {"top": (0, 0, w, 1), "bottom": (0, h - 1, w, 1), "left": (0, 0, 1, h), "right": (w - 1, 0, 1, h)}
        for edge in self._edges:
            p.fillRect(*lines[edge], C("hair"))


class Card(QWidget):
    """A framed paper with round corners. Only the welcome page and dialogs use it."""

    def __init__(self, *parts: Part, gap: int = 8, pad: int = 12) -> None:
        super().__init__()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(px(pad), px(pad), px(pad), px(pad))
        layout.setSpacing(px(gap))
        fill(layout, parts)
        follow(self, self.update)

    def paintEvent(self, _event: QPaintEvent) -> None:
        p = QPainter(self)
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        p.setPen(C("hair"))
        p.setBrush(C("pane"))
        p.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 6, 6)


class _Title(ElidedLine):
    """A name that stays readable: the tools beside it go to the next line first."""

    def minimumSizeHint(self) -> QSize:
        """Ask for the beginning of the name."""
        hint = self.sizeHint()
        return QSize(min(hint.width(), px(96)), hint.height())


class _Note(ElidedLine):
    """A line that takes the room that is left and is shortened before its neighbours."""

    def __init__(self, text: str, size: int, role: str) -> None:
        super().__init__(text, size, role)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        """Ask for a few letters only."""
        return self.minimumSizeHint()


class PaneHead(ThemedPanel):
    """The head of a pane: name, note after it, tools at the right. 32 px high, more where the tools need more lines."""

    def __init__(self, title: str, note: str = "", *tools: Part) -> None:
        super().__init__("pane", ("bottom",))
        self.title = _Title(title, 13, "text", 600)
        self.title.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.note = _Note(note, 12, "text3")
        layout = self.box = WrappedRow(gap=8, line_gap=0, line_height=32)
        self.setLayout(layout)
        layout.setContentsMargins(px(12), 0, px(8), 0)
        fill(layout, (self.title, self.note, *tools))
        follow(self, layout.invalidate)

    def set_title(self, title: str) -> None:
        """Change the name."""
        self.title.setText(title)

    def set_note(self, note: str) -> None:
        """Change the note."""
        self.note.setText(note)
