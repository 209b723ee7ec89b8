"""The box that sends dead letters at a broker to their original topics again, on a cluster that the user declared to be
their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialog, QVBoxLayout, QWidget

from viewer.log.resend import result_text, summary_lines
from viewer.look.assets import tr, tr_plural
from viewer.look.engine_words import engine_words
from viewer.look.theme import px
from viewer.widgets.basics import Button, Label
from viewer.widgets.boxes import row, scrolling
from viewer.widgets.choices import TickBox

if TYPE_CHECKING:
    from engine.resend.resend_plan import ResendPlan
    from viewer.log.resend_work import ResendResult
    from viewer.remote.dead_letter_work import LetterRequest
    from viewer.remote.send_box import Ask

PLAN, SEND = "viewer.remote.dead_letter_work:plan", "viewer.remote.dead_letter_work:send"


class DeadLetterBox(QDialog):
    """Emits ``operationDone(command, words, parameters, line)`` after messages were sent."""

    operationDone = Signal(str, str, object, str)

    def __init__(self, request: LetterRequest, ask: Ask, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("letters.box")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Send dead letters to their topics again"))
        self.setAccessibleName(self.windowTitle())
        self.resize(px(640), px(420))
        self._request, self._ask = request, ask
        self._plan: ResendPlan | None = None
        self._is_running = False
        title = tr_plural(
            "{n:,} message of {topic} at {address}",
            "{n:,} messages of {topic} at {address}",
            n=len(request.offsets),
            topic=request.queue.topic,
            address=";".join(request.addresses),
        )
        self.summary = Label("", 13, "text", wrap=True, select=True)
        self.summary.setObjectName("letters.summary")
        journal = Label(
            tr("What is sent is noted in {file}: nothing is sent twice.", file=str(request.journal)),
            12,
            "text3",
            wrap=True,
            select=True,
        )
        self.unknown = TickBox(tr("also messages of which an earlier run does not know whether they arrived"))
        self.unknown.setObjectName("letters.unknown")
        self.unknown.setAccessibleName(self.unknown.text())
        self.unknown.toggled.connect(lambda _on: self.show_plan())
        self.close_button, self.send_button = Button(tr("Close")), Button(tr("Send"), "danger")
        for name, button, action in (
            ("close", self.close_button, self.reject),
            ("send", self.send_button, self.send),
        ):
            button.setObjectName(f"letters.{name}")
            button.clicked.connect(action)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(px(16), px(14), px(16), px(12))
        layout.setSpacing(px(8))
        layout.addWidget(Label(title, 13, "text", 600, wrap=True))
        layout.addWidget(scrolling(self.summary), 1)
        layout.addWidget(self.unknown)
        layout.addWidget(journal)
        layout.addWidget(row(None, self.close_button, self.send_button))
        self.show_plan()

    def request(self) -> LetterRequest:
        """Return the request with the present choice."""
        from dataclasses import replace

        return replace(self._request, resend_unknown=self.unknown.isChecked())

    def _show(self, plan: ResendPlan | None, text: str) -> None:
        self._is_running = False
        self._plan = plan
        self.summary.setText(text)
        self.send_button.setEnabled(plan is not None and bool(plan.to_send))

    def show_plan(self) -> None:
        """Read the messages again, and show what would be sent."""
        if self._is_running:
            return
        self._show(None, tr("Reading what would be sent…"))
        self._is_running = True

        def finished(plan: ResendPlan | None, error: Exception | None) -> None:
            if plan is None:
                self._show(None, engine_words(str(error)) if error is not None else "")
            else:
                self._show(plan, "\n".join(summary_lines(plan)))

        self._ask(PLAN, (self.request(),), finished)

    def send(self) -> None:
        """Send the messages of the summary."""
        plan, request = self._plan, self.request()
        if plan is None or self._is_running or not self.send_button.isEnabled():
            return
        self._show(None, tr("Sending to {address}", address=";".join(request.addresses)))
        self._is_running = True

        def finished(result: ResendResult | None, error: Exception | None) -> None:
            if result is None:
                self._show(None, engine_words(str(error)) if error is not None else "")
                return
            self._show(None, result_text(result))
            parameters = {
                "topic": request.queue.topic,
                "journal": str(request.journal),
                "sent": result.sent,
                "refused": result.refused,
                "unknown": result.unknown,
            }
            words = tr("Send dead letters to their topics again")
            self.operationDone.emit("cluster.letters", words, parameters, "")

        self._ask(SEND, (request, tuple(plan.to_send)), finished)
