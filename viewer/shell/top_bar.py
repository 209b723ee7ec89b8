"""The bar over the views: back and forward, crumbs, the go-to box, follow and look again."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRectF, Qt, Signal
from PySide6.QtGui import QAction, QKeyEvent, QPainter, QPaintEvent, QPalette, QPen
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from viewer.look.assets import tr
from viewer.look.theme import C, follow, px, ui
from viewer.shell.crumbs import Crumbs, Siblings
from viewer.widgets.basics import Field, Key, ThemedPanel, ToolButton


class GoToField(Field):
    """The go-to box. Enter goes, Escape gives the focus back."""

    goRequested = Signal(str)
    leaveRequested = Signal()

    def __init__(self) -> None:
        super().__init__(tr("Go to offset, topic/queue/offset, time, message id or key"), width=420, icon_name="go-to")
        self.setObjectName("goto.field")
        self.setAccessibleName(tr("Go to"))
        self.setToolTip(
            tr(
                "Offset: 81,604,377,362 or 0x13000\nEntry: Topic/0/42\nTime: 2026-11-20 09:41:07\n"
                "Message: offset id, unique key or key\nTrace: Topic#key"
            )
        )
        self.fault = ""
        """Why the last text leads nowhere; empty: it leads somewhere."""
        self._fault: FaultNote | None = None
        self.returnPressed.connect(lambda: self.goRequested.emit(self.text()))
        self.textEdited.connect(lambda _text: self.set_fault(""))

    def set_fault(self, words: str) -> None:
        """Show under the field why its text leads nowhere. The message stays until it is replaced."""
        self.fault = words
        if self._fault is None and words:
            self._fault = FaultNote(self, "goto.fault")
        if self._fault is not None:
            self._fault.say(words)
        self.setProperty("state", "error" if words else "")
        self.style().unpolish(self)
        self.style().polish(self)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Clear and leave the field on Escape."""
        if event.key() == Qt.Key.Key_Escape:
            self.clear()
            self.set_fault("")
            self.leaveRequested.emit()
        else:
            super().keyPressEvent(event)


class TopBar(ThemedPanel):
    """The whole bar, 44 px high."""

    def __init__(self, siblings: Siblings) -> None:
        super().__init__("window", ("bottom",))
        self.setObjectName("top")
        self.back = self._tool("back", "go.back", tr("Back"), "Alt+←")
        self.forward = self._tool("forward", "go.forward", tr("Forward"), "Alt+→")
        self.crumbs = Crumbs(siblings)
        self.goto = GoToField()
        self.key = Key("Ctrl G")
        self.follow = ToolButton("follow", tr("Follow the end of the log"), tr("Follow"), checkable=True)
        self.follow.setObjectName("top.follow")
        self.close_lab = ToolButton("stop", tr("Close the store for writing"), tr("Close the store"))
        self.close_lab.setObjectName("top.lab.close")
        self.close_lab.hide()
        self.bookmark = self._tool("bookmark", "bookmark.here", tr("Bookmark this place…"), "Ctrl+B")
        self.refresh = self._tool("refresh", "view.refresh", tr("Refresh"), "F5")
        layout = QHBoxLayout(self)
        layout.setContentsMargins(px(12), 0, px(12), 2)
        layout.setSpacing(px(6))
        for part in (self.back, self.forward):
            layout.addWidget(part)
        layout.addSpacing(px(4))
        layout.addWidget(self.crumbs, 1)
        layout.addWidget(self.goto)
        layout.addWidget(self.key)
        layout.addSpacing(px(8))
        for part in (self.close_lab, self.follow, self.bookmark, self.refresh):
            layout.addWidget(part)
        self._fit()
        follow(self, self._fit)

    def show_writing(self, on: bool) -> None:
        """Replace Follow by the button that closes the lab's store, while the lab has it open for writing."""
        self.close_lab.setVisible(on)
        self.follow.setVisible(not on)

    def set_slim(self, slim: bool) -> None:
        """Use a shorter box if the window is narrow."""
        self.goto.set_width(300 if slim else 420)

    def set_folded(self, folded: bool) -> None:
        """Hide words and keys beside the icons in half a screen."""
        if folded:
            self.goto.set_width(200)
        self.key.setVisible(not folded)
        self.follow.setText("" if folded else tr("Follow"))
        icons, words = Qt.ToolButtonStyle.ToolButtonIconOnly, Qt.ToolButtonStyle.ToolButtonTextBesideIcon
        self.follow.setToolButtonStyle(icons if folded else words)

    def _fit(self) -> None:
        self.setFixedHeight(px(44))

    def show_history(self, back: QAction, forward: QAction) -> None:
        """Enable the arrows as their commands are; the tip of a grey one says what it needs."""
        for button, action, tip in (
            (self.back, back, f"{tr('Back')}   Alt+←"),
            (self.forward, forward, f"{tr('Forward')}   Alt+→"),
        ):
            button.setEnabled(action.isEnabled())
            button.setToolTip(tip if action.isEnabled() else action.toolTip())

    @staticmethod
    def _tool(icon: str, name: str, tip: str, keys: str) -> ToolButton:
        button = ToolButton(icon, f"{tip}   {keys}")
        button.setAccessibleName(tip)
        button.setObjectName(f"top.{name}")
        return button


class FaultNote(QLabel):
    """Words under a field. Hidden until :meth:`say`."""

    def __init__(self, field: QWidget, name: str) -> None:
        super().__init__(field.window())
        self._field = field
        self.setObjectName(name)
        self.setWordWrap(True)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.hide()

    def say(self, words: str) -> None:
        """Show what is wrong with the field's text."""
        self.setText(words)
        self._field.setAccessibleDescription(words)
        self.setVisible(bool(words))
        if not words:
            return
        self.setFont(ui(12))
        colors = self.palette()
        colors.setColor(QPalette.ColorRole.WindowText, C("error"))
        self.setPalette(colors)
        self.setContentsMargins(px(10), px(6), px(10), px(6))
        self.setFixedWidth(self._field.width())
        self.adjustSize()
        self.move(self._field.mapTo(self._field.window(), QPoint(0, self._field.height() + 3)))
        self.raise_()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint background and frame, then the words."""
        p = QPainter(self)
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        p.setPen(QPen(C("error"), 1))
        p.setBrush(C("errorFill"))
        p.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 4, 4)
        p.end()
        super().paintEvent(event)
