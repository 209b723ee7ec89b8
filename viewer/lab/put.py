"""Put form of the lab: a message is typed in, put, edited and put again; earlier ones are listed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QComboBox,
    QFileDialog,
    QGridLayout,
    QMenu,
    QPlainTextEdit,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from viewer.look.assets import tr, tr_plural
from viewer.look.formats import clock
from viewer.look.theme import follow, mono, px, ui
from viewer.runtime.put_form import EXTRA, KINDS, FormFault, PutForm
from viewer.widgets.basics import Button, ElidedLine, Field, Key, Label, PaneHead, StatusMark, ThemedPanel, ToolButton
from viewer.widgets.boxes import row
from viewer.widgets.choices import ChoiceField, TickBox
from viewer.widgets.word_tabs import WordTabs

if TYPE_CHECKING:
    from viewer.runtime.lab_session import ManualPut

MAX_LISTED = 20


class PutPanel(ThemedPanel):
    """Emits ``putRequested(PutForm)`` to put a message, ``earlierPutChosen(ManualPut)`` to show an earlier one."""

    putRequested = Signal(object)
    earlierPutChosen = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._done: list[ManualPut] = []
        self._slim = False
        self._parts: dict[str, QWidget] = {}
        self._build_fields()
        self.put = Button(tr("Put"), "primary")
        self.put.setObjectName("lab.put")
        self.put.setAccessibleName(tr("Put the message"))
        self.put.clicked.connect(lambda: self._ask(self.form()))
        self.again = Button(tr("Put again"))
        self.again.setObjectName("lab.put.again")
        self.again.setToolTip(tr("Put the last message again, unchanged"))
        self.again.clicked.connect(self.put_again)
        self.earlier = ToolButton("chevron-down", tr("Messages put before: choose one to edit it again"))
        self.earlier.setObjectName("lab.put.earlier")
        self.earlier.clicked.connect(self._show_earlier_menu)
        self._size = Label("", 12, "text3", code=True)
        self._key = Key("Ctrl ↵")
        self._mark = StatusMark("")
        self._status = Label("", 12, "text", 600, code=True)
        self._status.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
        self.answer = ElidedLine("", 12, "text2", code=True)
        self.answer.setObjectName("lab.put.answer")
        self.answer.setAccessibleName(tr("Answer to the put"))
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        box.addWidget(PaneHead(tr("Put a message")))
        inner = QWidget()
        grid = self._grid(inner)
        box.addWidget(inner)
        line = row(self.put, self._key, self.again, self.earlier, None, self._size, gap=8)
        grid.addWidget(line, 7, 0, 1, 4)
        answer_row = row(self._mark, self._status, self.answer, gap=6)
        answer_row.box.setStretch(2, 1)
        grid.addWidget(answer_row, 8, 0, 1, 4)
        for keys in ("Ctrl+Return", "Ctrl+Enter"):
            shortcut = QShortcut(QKeySequence(keys), self)
            shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(self.put_now)
        self._kind_changed()
        self._retheme()
        follow(self, self._retheme)
        self.set_enabled(False)

    # ---- building ----------------------------------------------------------------------------------------------------

    def _build_fields(self) -> None:
        form = PutForm()
        self.topic = self._field("topic", tr("Topic"), form.topic)
        self.queue = self._field("queue", tr("Queue"), form.queue)
        self.tags = self._field("tags", tr("Tags"))
        self.flag = self._field("flag", tr("Flag"), form.flag)
        self.keys = self._field("keys", tr("Keys"))
        self.keys.setToolTip(tr("Separate several keys with spaces"))
        self.properties = self._field("properties", tr("Further properties"))
        self.properties.setPlaceholderText("name=value; name=value")
        self.body = QPlainTextEdit()
        self.body.setObjectName("lab.put.body")
        self.body.setAccessibleName(tr("Body"))
        self.body.setTabChangesFocus(True)
        self.forms = WordTabs("lab.put.form", (("text", tr("Text")), ("hex", tr("Hex")), ("file", tr("File"))))
        self.forms.setAccessibleName(tr("Format of the body"))
        self.forms.chosen.connect(self._form_chosen)
        self.kind = ChoiceField()
        self.kind.setObjectName("lab.put.kind")
        self.kind.setAccessibleName(tr("Kind"))
        self.kind.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.kind.setMinimumContentsLength(5)
        for key, label in KINDS:
            self.kind.addItem(tr(label), key)
        self.kind.currentIndexChanged.connect(lambda _n: self._kind_changed())
        self.extra = self._field("extra", tr("Level"))
        self._extra_name = Label("", 12, "text2")
        self.wait = TickBox(tr("wait for the flush"))
        self.wait.setObjectName("lab.put.wait")
        self.wait.setAccessibleName(tr("Wait for the flush"))
        self.wait.setToolTip(tr("WAIT=true: under SYNC_FLUSH the answer comes when the disk has the message"))
        self.wait.setChecked(True)

    def _field(self, key: str, name: str, text: str = "") -> Field:
        field = Field(name, code=True)
        field.setPlaceholderText("")
        field.setObjectName(f"lab.put.{key}")
        field.setText(text)
        field.textEdited.connect(lambda _text: self._fault("", ""))
        field.returnPressed.connect(lambda: self._ask(self.form()))
        self._parts[key] = field
        return field

    def _grid(self, inner: QWidget) -> QGridLayout:
        grid = QGridLayout(inner)
        grid.setContentsMargins(px(12), px(10), px(12), px(8))
        grid.setHorizontalSpacing(px(8))
        grid.setVerticalSpacing(px(7))
        for line, column, text, part, columns in (
            (0, 0, tr("Topic"), self.topic, 1),
            (0, 2, tr("Queue"), self.queue, 1),
            (1, 0, tr("Tags"), self.tags, 1),
            (1, 2, tr("Flag"), self.flag, 1),
            (2, 0, tr("Keys"), self.keys, 3),
            (3, 0, tr("More"), self.properties, 3),
            (4, 0, tr("Body"), self.body, 3),
            (6, 0, tr("Kind"), self.kind, 1),
        ):
            name = Label(text, 12, "text2")
            grid.addWidget(name, line, column, Qt.AlignmentFlag.AlignTop if part is self.body else Qt.AlignmentFlag(0))
            grid.addWidget(part, line, column + 1, 1, columns)
        grid.addWidget(row(self.forms, None, self.wait, gap=8), 5, 1, 1, 3)
        grid.addWidget(self._extra_name, 6, 2)
        grid.addWidget(self.extra, 6, 3)
        grid.setColumnStretch(1, 1)
        return grid

    def _retheme(self) -> None:
        self.body.setFont(mono(12))
        self.body.setFixedHeight(px(64))
        for part in (self.queue, self.flag, self.extra):
            part.setFixedWidth(px(52 if self._slim else 72))
        self._size.setVisible(not self._slim)
        self._key.setVisible(not self._slim)
        self.kind.setFont(ui(13))
        self.wait.setFont(ui(12))

    # ---- what the pane calls -----------------------------------------------------------------------------------------

    def set_slim(self, slim: bool) -> None:
        """Give numbers less width in narrow windows and hide the size."""
        if slim != self._slim:
            self._slim = slim
            self._retheme()

    def set_enabled(self, on: bool) -> None:
        """Allow or forbid puts."""
        self.put.setEnabled(on)
        self.again.setEnabled(on and bool(self._done))
        self.earlier.setEnabled(bool(self._done))

    def form(self) -> PutForm:
        """Return the content of the form."""
        return PutForm(
            self.topic.text(),
            self.queue.text(),
            self.tags.text(),
            self.keys.text(),
            self.flag.text(),
            self.properties.text(),
            self.body.toPlainText(),
            self.forms.key,
            str(self.kind.currentData()),
            self.wait.isChecked(),
            self.extra.text(),
        )

    def set_form(self, form: PutForm) -> None:
        """Fill the fields from ``form`` to edit it again."""
        for field, text in (
            (self.topic, form.topic),
            (self.queue, form.queue),
            (self.tags, form.tags),
            (self.keys, form.keys),
            (self.flag, form.flag),
            (self.properties, form.properties),
            (self.extra, form.extra),
        ):
            field.setText(text)
        self.forms.choose(form.body_form)
        self.body.setPlainText(form.body)
        self.kind.setCurrentIndex(max(0, self.kind.findData(form.kind)))
        self.extra.setText(form.extra)
        self.wait.setChecked(form.wait)

    def show_done(self, done: Sequence[ManualPut]) -> None:
        """List the messages put so far, oldest first, and show the answer to the last one."""
        self._done = list(done)
        last_put = self._done[-1] if self._done else None
        if last_put is None:
            self._say("", "", "")
            self._size.setText("")
            return
        self._say(
            "ok" if last_put.ok else "warn" if last_put.offset is not None else "error",
            last_put.status,
            last_put.where(),
        )
        self._size.setText(tr_plural("{n:,} byte", "{n:,} bytes", n=last_put.size) if last_put.size else "")

    def fail(self, words: str) -> None:
        """Show why the put could not be sent."""
        self._say("error", "", words)

    def put_now(self) -> None:
        """Put the message in the form."""
        self._ask(self.form())

    def put_again(self) -> None:
        """Put the last message once more."""
        if self._done:
            self._ask(self._done[-1].form)

    # ---- below -------------------------------------------------------------------------------------------------------

    def _ask(self, form: PutForm) -> None:
        if not self.put.isEnabled():
            return
        self._fault("", "")
        self.putRequested.emit(form)

    def show_fault(self, fault: FormFault) -> None:
        """Mark the wrong field and say why."""
        self._fault(fault.field, str(fault))

    def _fault(self, field: str, reason: str) -> None:
        for name, part in self._parts.items():
            part.setProperty("state", "error" if name == field else "")
            part.style().unpolish(part)
            part.style().polish(part)
        if reason:
            self._say("error", "", reason)
            (self._parts.get(field) or self.body).setFocus()

    def _say(self, kind: str, status: str, details: str) -> None:
        self._mark.set_kind(kind)
        self._mark.setVisible(bool(kind))
        self._status.setText(status)
        self._status.set_role(kind or "text")
        self._status.setVisible(bool(status))
        self.answer.setText(details)
        self.answer.setAccessibleDescription(f"{status} {details}".strip())

    def _kind_changed(self) -> None:
        name = EXTRA.get(str(self.kind.currentData()), "")
        self._extra_name.setText(tr(name) if name else "")
        self._extra_name.setVisible(bool(name))
        self.extra.setVisible(bool(name))
        self.extra.setAccessibleName(tr(name) if name else "")

    def _form_chosen(self, key: str) -> None:
        if key != "file":
            return
        dialog = QFileDialog(self, tr("A file as the body"))
        dialog.setObjectName("lab.put.file")
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(self.body.setPlainText)
        dialog.open()

    def _edit_again(self, done: ManualPut) -> None:
        self.set_form(done.form)
        self.earlierPutChosen.emit(done)

    def _show_earlier_menu(self) -> None:
        menu = QMenu(self)
        menu.setObjectName("lab.put.menu")
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for done in reversed(self._done[-MAX_LISTED:]):
            text = f"{clock(done.at_ms)[:8]}  {done.status}  {done.where()}"
            menu.addAction(text, partial(self._edit_again, done))
        menu.popup(self.earlier.mapToGlobal(self.earlier.rect().bottomLeft()))
