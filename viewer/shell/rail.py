"""The rail: the views, icon over word; icons only in narrow windows. A mark on a view shows the worst finding."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QVBoxLayout

from viewer.look.assets import icon_pixmap
from viewer.look.theme import C, follow, px, ui
from viewer.widgets.basics import Hairline, ThemedPanel
from viewer.widgets.paint import mark

WIDE, SLIM = 72, 48


class RailButton(QAbstractButton):
    """The button of a view."""

    def __init__(self, view: str, icon: str, text: str, keys: str) -> None:
        super().__init__()
        self.view, self._icon, self._mark, self._slim = view, icon, "", False
        self.setObjectName(f"rail.{view}")
        self.setText(text)
        self.setAccessibleName(text)
        self.tip = f"{text}   {keys}" if keys else text
        self.setToolTip(self.tip)
        self.setCheckable(True)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)

    def set_slim(self, slim: bool) -> None:
        """Show the icon only."""
        self._slim = slim
        self.setFixedHeight(px(44 if slim else 58))
        self.update()

    def set_mark(self, kind: str) -> None:
        """Show the worst finding of this view. Empty for none."""
        self._mark = kind
        self.update()

    def sizeHint(self) -> QSize:
        """Return a fixed height for the button's form."""
        return QSize(px(SLIM if self._slim else WIDE), px(44 if self._slim else 58))

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint background, bar, icon, word and mark."""
        p = QPainter(self)
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        w, h, on = self.width(), self.height(), self.isChecked()
        box = QRectF(px(6), 2, w - px(12), h - 4)
        if on or (self.underMouse() and self.isEnabled()):
            p.setPen(Qt.PenStyle.NoPen)
            p.setBrush(C("select" if on else "sunken"))
            p.drawRoundedRect(box, 6, 6)
        if on:
            p.setBrush(C("accent"))
            p.drawRoundedRect(QRectF(0, px(12), 3, h - px(24)), 1.5, 1.5)
        if self.hasFocus():
            p.setBrush(Qt.BrushStyle.NoBrush)
            p.setPen(C("accent"))
            p.drawRoundedRect(box.adjusted(1, 1, -1, -1), 5, 5)
        role = "accent" if on else "text2" if self.isEnabled() else "disabled"
        side = px(22)
        top = (h - side) // 2 if self._slim else px(9)
        p.drawPixmap((w - side) // 2, top, icon_pixmap(self._icon, C(role), side, self.devicePixelRatioF()))
        if not self._slim:
            p.setFont(ui(11, 600 if on else 500))
            p.setPen(C(role))
            p.drawText(QRectF(0, px(33), w, px(18)), int(Qt.AlignmentFlag.AlignCenter), self.text())
        if self._mark:
            mark(p, self._mark, QPointF(w / 2 + px(13), top + px(2)), 4 * px(100) / 100)


class Rail(ThemedPanel):
    """The buttons of all views. ``chosen(view)`` on a click."""

    chosen = Signal(str)

    def __init__(
        self,
        views: Sequence[tuple[str, str, str, str]],
        foot: Sequence[tuple[str, str, str, str]] = (),
        live: Sequence[tuple[str, str, str, str]] = (),
    ) -> None:
        """Make the buttons of ``views``: (view, icon, word, keys).

        Those in ``live`` stand below a line, because they listen. Those in ``foot`` stand apart at the bottom,
        because they do something.
        """
        super().__init__("window", ("right",))
        self.setObjectName("rail")
        self.buttons: dict[str, RailButton] = {}
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, px(6), 0, px(6))
        layout.setSpacing(0)
        for number, (view, icon, text, keys) in enumerate((*views, *live, *foot)):
            if live and number == len(views):
                layout.addSpacing(px(4))
                layout.addWidget(Hairline())
                layout.addSpacing(px(4))
            if number == len(views) + len(live):
                layout.addStretch(1)
                layout.addWidget(Hairline())
                layout.addSpacing(px(4))
            button = self.buttons[view] = RailButton(view, icon, text, keys)
            button.clicked.connect(lambda _on, view=view: self.chosen.emit(view))
            layout.addWidget(button)
        if not foot:
            layout.addStretch(1)
        self._slim = False
        self._fit()
        follow(self, self._fit)

    def set_current(self, view: str) -> None:
        """Mark the current view."""
        for name, button in self.buttons.items():
            button.setChecked(name == view)

    def set_able(self, views: Collection[str] | None, need: str) -> None:
        """Enable only these views, or all of them for None; the tips of the others say what they need."""
        for name, button in self.buttons.items():
            button.setEnabled(views is None or name in views)
            button.setToolTip(button.tip if button.isEnabled() else need)

    def set_slim(self, slim: bool) -> None:
        """Show icons only if the window is narrow."""
        if slim != self._slim:
            self._slim = slim
            self._fit()

    def set_mark(self, view: str, kind: str) -> None:
        """Set the mark of a view."""
        self.buttons[view].set_mark(kind)

    def _fit(self) -> None:
        self.setFixedWidth(px(SLIM if self._slim else WIDE))
        for button in self.buttons.values():
            button.set_slim(self._slim)
