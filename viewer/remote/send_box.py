"""The box that sends one message to a cluster that the user declared to be their own.

It shows what will be sent and where before it sends anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialog, QFileDialog, QFormLayout, QPlainTextEdit, QStackedWidget, QVBoxLayout, QWidget

from viewer.look.assets import tr, tr_plural, words
from viewer.look.engine_words import engine_words
from viewer.look.formats import full_moment, number, plain
from viewer.look.theme import follow, mono, px, ui
from viewer.remote.send_work import NewMessage, SendPlan, SendReport, SendRequest, with_queue
from viewer.runtime.places import parse_number, parse_time
from viewer.widgets.basics import Button, Field, Label, Link
from viewer.widgets.boxes import column, row, scrolling
from viewer.widgets.choices import ChoiceField, TickBox

if TYPE_CHECKING:
    from viewer.cluster.access import AccessFiles

PLAN, SEND = "viewer.remote.send_work:plan", "viewer.remote.send_work:send"
Finished = Callable[[Any, Exception | None], None]
Ask = Callable[[str, tuple[object, ...], Finished], None]
"""Runs a function of the worker, and calls the last argument with its value or error."""
TEXT, HEX, FILE, COPIED = "text", "hex", "file", "copied"
BODIES = ((TEXT, words("Body as text")), (HEX, words("Body as hex")), (FILE, words("Body from a file")))
NOW, LEVEL, TIME = "now", "level", "time"
DELAYS = ((NOW, words("At once")), (LEVEL, words("Delay level, 1 to 18")), (TIME, words("Deliver at")))
DELAY_HINTS = {NOW: "", LEVEL: "3", TIME: "2026-11-20 09:41:07"}
MAX_EDITED_BYTES = 64 << 10
"""A longer body of a copied message is not put into the field."""
MAX_BODY_BYTES = 4 << 20
PREVIEW_CHARACTERS = 90


class _Missing(ValueError):
    """A field has no value that can be sent; the text says which."""


class SendBox(QDialog):
    """Emits ``operationDone(command, words, parameters, line)`` after a send, also one without an answer, and
    ``placeRequested(topic, broker, queue_id, offset)`` for the link to what was sent.
    """

    operationDone = Signal(str, str, object, str)
    placeRequested = Signal(str, str, int, object)

    def __init__(
        self, addresses: tuple[str, ...], access: AccessFiles, ask: Ask, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName("send.box")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Send a message to {address}", address=";".join(addresses)))
        self.setAccessibleName(self.windowTitle())
        self.resize(px(720), px(660))
        self._addresses, self._access, self._ask = addresses, access, ask
        self._copied = b""
        self._request: SendRequest | None = None
        self._plan: SendPlan | None = None
        self._is_running = False
        self._build()
        self._changed()

    # ---- building ----------------------------------------------------------------------------------------------------

    def _build(self) -> None:
        self.topic, self.queue = (
            Field(tr("Topic"), code=True, width=230),
            Field(tr("2, or broker-a/2 (empty: any)"), code=True, width=250),
        )
        self.tags, self.keys = (
            Field(tr("Tag"), code=True, width=230),
            Field(tr("with blanks between"), code=True, width=250),
        )
        for field, name in ((self.queue, tr("Queue")), (self.keys, tr("Keys"))):
            field.setAccessibleName(name)
        self.delay, self.delay_value = (
            _choice("send.delay", tr("When it is delivered"), DELAYS),
            Field("", code=True, width=250),
        )
        self.body_kind = _choice("send.bodyKind", tr("Form of the body"), BODIES)
        self.file = Field(tr("File with the body"), code=True, width=400)
        self.body, self.properties = QPlainTextEdit(), QPlainTextEdit()
        self.body.setAccessibleName(tr("Body"))
        self.properties.setAccessibleName(tr("Properties"))
        self.properties.setPlaceholderText(tr("Properties, one NAME=value a line"))
        self.properties.setMaximumHeight(px(84))
        browse = Button(tr("Choose…"), "flat")
        browse.setObjectName("send.choose")
        browse.clicked.connect(lambda _on: self._ask_file())
        self.copied_words = Label("", 12, "text2")
        self._bodies = QStackedWidget()
        for page in (self.body, column(row(self.file, browse, None), None), column(self.copied_words, None)):
            self._bodies.addWidget(page)
        self.summary = Label("", 13, "text", wrap=True, select=True)
        self.link = Link("")
        self.link.clicked.connect(self._follow)
        self.link.hide()
        self.confirmed = TickBox(tr("Every group of the topic gets it: send it"))
        self.confirmed.setAccessibleName(self.confirmed.text())
        self.confirmed.toggled.connect(lambda _on: self._enable())
        self.show_button = Button(tr("Show what will be sent"), "primary")
        self.close_button, self.send_button = Button(tr("Close")), Button(tr("Send"), "danger")
        for button, action in (
            (self.show_button, self.show_plan),
            (self.close_button, self.reject),
            (self.send_button, self.send),
        ):
            button.clicked.connect(action)
        fields = (self.topic, self.queue, self.tags, self.keys, self.delay_value, self.file)
        for field in fields:
            field.textEdited.connect(self._changed)
            field.returnPressed.connect(self.show_plan)
        for edit in (self.body, self.properties):
            edit.textChanged.connect(self._changed)
            edit.setTabChangesFocus(True)
        for choice in (self.delay, self.body_kind):
            choice.currentIndexChanged.connect(self._changed)
        for name in ("topic", "queue", "tags", "keys", "file", "body", "properties", "summary", "link", "confirmed"):
            getattr(self, name).setObjectName(f"send.{name}")
        self.delay_value.setObjectName("send.delayValue")
        for name in ("show", "close", "send"):
            getattr(self, f"{name}_button").setObjectName(f"send.{name}Button")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(px(16), px(14), px(16), px(12))
        layout.setSpacing(px(8))
        form = QFormLayout()
        form.setSpacing(px(8))
        for label, parts in (
            (tr("Topic"), (self.topic, Label(tr("Queue"), 12, "text3"), self.queue)),
            (tr("Tag"), (self.tags, Label(tr("Keys"), 12, "text3"), self.keys)),
            (tr("When it is delivered"), (self.delay, self.delay_value)),
            (tr("Body"), (self.body_kind,)),
        ):
            form.addRow(Label(label, 12, "text3"), row(*parts, None))
        layout.addLayout(form)
        layout.addWidget(self._bodies, 2)
        layout.addWidget(Label(tr("Properties"), 12, "text3"))
        layout.addWidget(self.properties)
        layout.addWidget(row(None, self.show_button))
        layout.addWidget(scrolling(self.summary), 1)
        layout.addWidget(self.link)
        layout.addWidget(row(self.confirmed, None, self.close_button, self.send_button))
        follow(self, self._retheme)
        self._retheme()

    def _retheme(self) -> None:
        for edit in (self.body, self.properties):
            edit.setFont(mono(12))

    def _ask_file(self) -> None:
        dialog = QFileDialog(self, tr("File with the body"), str(Path.home()))
        dialog.setObjectName("send.file.dialog")
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.fileSelected.connect(lambda path: (self.file.setText(path), self._changed()))
        dialog.open()

    # ---- fields ------------------------------------------------------------------------------------------------------

    def fill(self, message: NewMessage) -> None:
        """Put a message into the fields. A body that is no text, or a long one, is sent as it is."""
        self.topic.setText(message.topic)
        self.tags.setText(message.tags)
        self.keys.setText(message.keys)
        self.properties.setPlainText("\n".join(f"{name}={value}" for name, value in message.properties))
        if message.body:
            try:
                text = message.body.decode() if len(message.body) <= MAX_EDITED_BYTES else None
            except UnicodeDecodeError:
                text = None
            if text is not None and text.isprintable() and "\n" not in text:
                self.body.setPlainText(text)
            else:
                self._copied = message.body
                self.body_kind.addItem(tr("Body of the copied message"), COPIED)
                self.body_kind.setCurrentIndex(self.body_kind.count() - 1)
                size = tr_plural("{n:,} byte", "{n:,} bytes", n=len(message.body))
                self.copied_words.setText(f"{size}: {_preview(message.body)}")
        self._changed()

    def message(self) -> NewMessage:
        """Return the message in the fields. Raises ``ValueError`` with words, and ``OSError`` for the file."""
        topic = self.topic.text().strip()
        if not topic:
            raise _Missing(tr("A topic is missing."))
        message = NewMessage(
            topic, self._body(), self.tags.text().strip(), self.keys.text().strip(), tuple(self._properties())
        )
        kind, value = self.delay.currentData(), self.delay_value.text().strip()
        if kind == LEVEL:
            if not value.isdecimal() or not 1 <= int(value) <= 18:
                raise _Missing(tr("The delay level is a number from 1 to 18."))
            message = replace(message, delay_level=int(value))
        elif kind == TIME:
            time_ms = parse_time(value) or parse_number(value)
            if not time_ms:
                raise _Missing(tr("The delivery time is written like 2026-11-20 09:41:07, or as ms since 1970."))
            message = replace(message, deliver_at=time_ms)
        placed = with_queue(message, self.queue.text())
        if placed is None:
            raise _Missing(tr("The queue is written as 2 or broker-a/2."))
        return placed

    def _body(self) -> bytes:
        kind, text = self.body_kind.currentData(), self.body.toPlainText()
        if kind == COPIED:
            return self._copied
        if kind == FILE:
            path = Path(self.file.text().strip())
            if path.stat().st_size > MAX_BODY_BYTES:
                raise _Missing(tr("The file is longer than a broker takes: at most 4 MiB."))
            body = path.read_bytes()
        elif kind == HEX:
            try:
                body = bytes.fromhex(text)
            except ValueError as error:
                raise _Missing(tr("The body is no hex: two digits for each byte.")) from error
        else:
            body = text.encode("utf-8", "surrogatepass")
        if not body:
            raise _Missing(tr("The body is empty, and no broker accepts that."))
        return body

    def _properties(self) -> list[tuple[str, str]]:
        pairs = []
        for line in self.properties.toPlainText().splitlines():
            name, equals, value = line.partition("=")
            if not line.strip():
                continue
            if not equals or not name.strip():
                raise _Missing(tr("A property is written NAME=value: {line}", line=plain(line)))
            pairs.append((name.strip(), value))
        return pairs

    def _changed(self, *_: object) -> None:
        """Another message needs another plan."""
        kind = self.body_kind.currentData()
        self._bodies.setCurrentIndex({FILE: 1, COPIED: 2}.get(kind, 0))
        delay = self.delay.currentData()
        self.delay_value.setVisible(delay != NOW)
        self.delay_value.setPlaceholderText(DELAY_HINTS[delay])
        self.delay_value.setAccessibleName(self.delay.currentText())
        self._forget_plan("")

    def _forget_plan(self, text: str) -> None:
        self._plan = self._request = None
        self.confirmed.setChecked(False)
        self.link.hide()
        self.summary.setText(text)
        self._enable()

    def _enable(self) -> None:
        has_plan = self._plan is not None and not self._is_running
        self.show_button.setEnabled(not self._is_running)
        self.confirmed.setEnabled(has_plan)
        self.send_button.setEnabled(has_plan and self.confirmed.isChecked())

    # ---- asking and sending ------------------------------------------------------------------------------------------

    def show_plan(self) -> None:
        """Ask the cluster where the message goes, and show what will be sent."""
        if self._is_running:
            return
        try:
            request = SendRequest(self._addresses, self.message(), self._access)
        except OSError as error:
            self._forget_plan(f"{self.file.text()}: {error.strerror}")
            return
        except _Missing as error:
            self._forget_plan(str(error))
            return
        self._forget_plan(tr("Asking the brokers…"))

        def finished(plan: SendPlan | None, error: Exception | None) -> None:
            self._is_running = False
            if plan is None:
                self._forget_plan(engine_words(str(error)) if error is not None else "")
                return
            self._plan, self._request = plan, request
            self.summary.setText("\n".join(plan_lines(plan)))
            self._enable()

        self._run(PLAN, (request,), finished)

    def send(self) -> None:
        """Send what is shown, once."""
        plan, request = self._plan, self._request
        if plan is None or request is None or not self.send_button.isEnabled():
            return

        def finished(report: SendReport | None, error: Exception | None) -> None:
            self._is_running = False
            if report is None:
                reason = engine_words(str(error)) if error is not None else ""
                self._forget_plan(tr("Nothing was sent: {reason}", reason=reason))
                return
            self._forget_plan(report_text(report))
            self._report = report
            if report.state == "sent" and report.queue_offset is not None and report.queue_id is not None:
                self.link.setText(
                    tr(
                        "Show it: {topic} / {queue} / {offset}",
                        topic=report.topic,
                        queue=report.queue_id,
                        offset=number(report.queue_offset),
                    )
                )
                self.link.show()
            parameters = {
                "topic": request.message.topic,
                "broker": report.broker,
                "queue": plan.queue_id,
                "msgId": report.msg_id,
                "status": report.status,
                "offset": report.queue_offset,
            }
            self.operationDone.emit("cluster.send", tr("Send a message"), parameters, "")

        self._run(SEND, (request, plan), finished)

    def _run(self, target: str, arguments: tuple[object, ...], finished: Finished) -> None:
        self._is_running = True
        self._enable()
        self._ask(target, arguments, finished)

    def _follow(self) -> None:
        report = self._report
        self.placeRequested.emit(report.topic, report.broker, report.queue_id, report.queue_offset)


def _choice(name: str, accessible_name: str, rows: tuple[tuple[str, str], ...]) -> ChoiceField:
    choice = ChoiceField()
    choice.setObjectName(name)
    choice.setAccessibleName(accessible_name)
    choice.setFont(ui(13))
    for key, title in rows:
        choice.addItem(tr(title), key)
    return choice


def _preview(body: bytes) -> str:
    text = body[: 4 * PREVIEW_CHARACTERS].decode("utf-8", "replace")
    if text.count("�") > len(text) // 4:
        return body[:48].hex(" ").upper() + (" …" if len(body) > 48 else "")
    return plain(text[:PREVIEW_CHARACTERS]) + (" …" if len(text) > PREVIEW_CHARACTERS else "")


def plan_lines(plan: SendPlan) -> list[str]:
    """Return what will be sent and where, in lines."""
    message = plan.message
    broker = f"{plan.broker} {plan.release}".strip()
    lines = [
        tr(
            "to {topic}, queue {queue} of {broker} at {address}",
            topic=message.topic,
            queue=plan.queue_id,
            broker=broker,
            address=plan.address,
        ),
        f"{tr_plural('{n:,} byte', '{n:,} bytes', n=len(message.body))}: {_preview(message.body)}",
    ]
    for name, value in ((tr("Tag"), message.tags), (tr("Keys"), message.keys)):
        if value:
            lines.append(f"{name}: {plain(value)}")
    if message.properties:
        properties = ", ".join(f"{name}={plain(value)}" for name, value in message.properties)
        lines.append(tr("Properties: {properties}", properties=properties))
    if message.delay_level:
        lines.append(tr("It waits for delay level {n}, as the broker's settings say.", n=message.delay_level))
    if message.deliver_at:
        lines.append(tr("It waits until {time}.", time=full_moment(message.deliver_at)))
    return lines


def report_text(report: SendReport) -> str:
    """Return the result of a send in a sentence."""
    if report.state == "sent":
        text = tr(
            "{status}: {id} is at offset {offset} of {topic} / {queue} on {broker}",
            status=report.status,
            id=report.msg_id,
            offset="?" if report.queue_offset is None else number(report.queue_offset),
            topic=report.topic,
            queue=report.queue_id,
            broker=report.broker,
        )
        return text if report.offset_msg_id is None else f"{text} · {report.offset_msg_id}"
    if report.state == "refused":
        return tr("Nothing was stored: {reason}", reason=engine_words(report.reason))
    return tr(
        "It is not known whether {id} arrived: {reason}. Look for it before you send it again.",
        id=report.msg_id,
        reason=engine_words(report.reason),
    )
