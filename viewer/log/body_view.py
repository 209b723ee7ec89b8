"""The body of the chosen unit: as JSON, as text in a charset, or unpacked as bytes."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QPlainTextEdit, QStackedWidget, QVBoxLayout, QWidget

from viewer.look.assets import tr
from viewer.look.theme import follow, mono, px, ui
from viewer.pane.body_text import CHARSETS, Body, as_json_or_text, as_messages, as_text
from viewer.widgets.basics import Label, ThemedPanel
from viewer.widgets.choices import ChoiceField
from viewer.widgets.hex_view import HexView

FORMS = ("json", "text", "hex")


class BodyView(QWidget):
    """Shows a :class:`Body` in one of :data:`FORMS`; ``noteChanged(str)`` with its size and what was cut."""

    noteChanged = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("unit.body")
        self.setAccessibleName(tr("Body"))
        self._body: Body | None = None
        self._reason = ""
        self._form = "text"
        self._text = QPlainTextEdit()
        self._text.setObjectName("unit.body.text")
        self._text.setAccessibleName(tr("Body as text"))
        self._text.setReadOnly(True)
        self._text.setProperty("bare", True)
        self._text.setFrameShape(QPlainTextEdit.Shape.NoFrame)
        self._text.setLineWrapMode(QPlainTextEdit.LineWrapMode.WidgetWidth)
        self._text.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self._hex = HexView("unit.body.hex")
        self._pages = QStackedWidget()
        self._pages.addWidget(self._text)
        self._pages.addWidget(self._hex)
        self.charset = ChoiceField()
        self.charset.setObjectName("unit.body.charset")
        self.charset.setAccessibleName(tr("Charset"))
        self.charset.addItems(list(CHARSETS))
        self.charset.currentTextChanged.connect(lambda _text: self._show())
        self._note = Label("", 12, "text3")
        foot = ThemedPanel("pane", ("top",))
        line = QHBoxLayout(foot)
        line.setContentsMargins(px(12), 2, px(8), 2)
        line.addWidget(self._note, 1)
        line.addWidget(self.charset)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        box.addWidget(self._pages, 1)
        box.addWidget(foot)
        self._retheme()
        follow(self, self._retheme)

    def show_body(self, body: Body | None, form: str | None = None, reason: str = "") -> None:
        """Show ``body`` (None: nothing yet, or ``reason``: why there is none) in ``form``."""
        self._body = body
        self._reason = reason
        if form is not None:
            self._form = form
        self._show()

    def set_form(self, form: str) -> None:
        """Show it as ``json``, ``text`` or ``hex``."""
        self._form = form
        self._show()

    def text(self) -> str:
        """The text that is shown, if it is text."""
        return self._text.toPlainText()

    def _show(self) -> None:
        body = self._body
        self.charset.setEnabled(self._form != "hex")
        if body is None:
            self._text.setPlainText(self._reason)
            self._hex.clear()
            self._note.setText("")
            if self._reason:
                self._pages.setCurrentWidget(self._text)
            return
        notes = [body.summary, *body.notes]
        if self._form == "hex":
            data = body.data
            self._hex.show_bytes(lambda offset, size: data[offset : offset + size], 0, (), len(data), 0, len(data))
            self._pages.setCurrentWidget(self._hex)
        else:
            text, note = self._words(body)
            self._text.setPlainText(text)
            self._pages.setCurrentWidget(self._text)
            notes.append(note)
        self._note.setText(" · ".join(note for note in notes if note))
        self._note.setToolTip(self._note.text())
        self.noteChanged.emit(self._note.text())

    def _words(self, body: Body) -> tuple[str, str]:
        charset = self.charset.currentText()
        if body.members:
            return as_messages(body.members, charset, as_indented_json=self._form == "json")
        if self._form == "json":
            return as_json_or_text(body.data, charset)
        return as_text(body.data, charset)

    def _retheme(self) -> None:
        self._text.setFont(mono(12))
        self.charset.setFont(ui(12))
        self._text.document().setDocumentMargin(px(10))
