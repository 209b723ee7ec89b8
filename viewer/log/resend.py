"""Send messages of the log to a running broker again: a box asks which and where to, shows what would be sent, and the
worker sends exactly that.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from engine.errors import StoreError
from viewer.log.log_model import LogModel
from viewer.log.resend_work import ResendChoice, ResendResult
from viewer.log.row_scopes import RowScope, RowScopeBox, row_scopes
from viewer.look.assets import tr, tr_plural
from viewer.look.engine_words import engine_words
from viewer.look.formats import moment
from viewer.runtime.jobs import Cancelled
from viewer.runtime.store_session import StoreSession
from viewer.widgets.basics import Button, Field, Label
from viewer.widgets.boxes import row, scrolling
from viewer.widgets.choices import TickBox
from viewer.widgets.record_view import RecordView

if TYPE_CHECKING:
    from engine.resend.resend_plan import ResendPlan

PLAN, SEND = "viewer.log.resend_work:plan", "viewer.log.resend_work:send"


class LogResend(QObject):
    """Sends units of one table again. ``over`` is the widget that the box is shown over.

    Emits ``statusText(text)`` for the status bar, and ``operationDone`` as a pane does.
    """

    statusText = Signal(str)
    operationDone = Signal(str, str, object, str)

    def __init__(self, model: LogModel, table: RecordView, over: QWidget) -> None:
        super().__init__(table)
        self._model, self._table, self._over = model, table, over
        self.session: StoreSession | None = None
        self.box: ResendBox | None = None

    def commands(self) -> dict[str, Callable[[], object]]:
        """The one command."""
        return {"log.resend": self.ask}

    def ask(self) -> ResendBox | None:
        """Show the box."""
        if self.session is None or self._model.log is None:
            return None
        has_row = self._table.current_row() is not None
        chosen_scope = "span" if self._span() else "row" if has_row else "filter"
        self.box = box = ResendBox(row_scopes(self._model, self._table), chosen_scope, self._over)
        box.planRequested.connect(lambda: self._start(self._plan(box)))
        box.sendRequested.connect(lambda plan: self._start(self._send(box.choice(self), plan)))
        box.finished.connect(self._forget_box)
        box.open()
        return box

    def _forget_box(self) -> None:
        self.box = None

    def rows(self, scope: str) -> tuple[tuple[int, ...] | None, str]:
        """Return the offsets of a scope, or None and the filter that finds them."""
        return self._model.to_export(scope, self._table.current_row(), self._span())

    def _span(self) -> tuple[int, int] | None:
        return self._model.chosen_span(self._table.chosen_span())

    def _start(self, work: object) -> None:
        if self.session is not None:
            self.session.jobs.start(work)  # type: ignore[arg-type]

    async def _plan(self, box: ResendBox) -> None:
        session = self.session
        assert session is not None
        choice = box.choice(self)
        box.show_summary([tr("Reading what would be sent…")], None)
        try:
            now = time.time_ns() // 1_000_000
            title = tr("What would be sent again")
            plan: ResendPlan = await session.jobs.in_worker(
                title, PLAN, session.path, session.config, choice, now, as_it_is=True
            )
        except (Cancelled, asyncio.CancelledError):
            lines = [tr("Stopped; nothing was sent.")]
            plan_to_send = None
        except (StoreError, OSError, RuntimeError, ValueError) as error:
            lines = [engine_words(str(error))]
            plan_to_send = None
        else:
            lines = summary_lines(plan)
            plan_to_send = plan if plan.to_send else None
        if self.box is box:
            box.show_summary(lines, plan_to_send, choice)

    async def _send(self, choice: ResendChoice, plan: ResendPlan) -> None:
        session = self.session
        assert session is not None
        title = tr("Sending again to {address}", address=choice.to)
        messages = tuple(plan.to_send)
        try:
            result: ResendResult = await session.jobs.in_worker(
                title, SEND, session.path, session.config, choice, messages, as_it_is=True
            )
        except (StoreError, OSError, RuntimeError) as error:
            self.statusText.emit(engine_words(str(error)))
            return
        self.statusText.emit(result_text(result))
        parameters = {"to": choice.to, "journal": str(choice.journal), "sent": result.sent, "refused": result.refused}
        self.operationDone.emit("log.resend", tr("Send again…"), parameters, "")


def summary_lines(plan: ResendPlan) -> list[str]:
    """Return what a plan sends and leaves out, in lines."""
    from engine.resend.originals import DEAD_LETTER, DELAYED, HALF, RETRY
    from engine.resend.resend_plan import Decision

    lines = [
        tr_plural("{n:,} message would be sent", "{n:,} messages would be sent", n=len(plan.to_send))
        if plan.to_send
        else tr("Nothing would be sent")
    ]
    for share in plan.topics():
        lines.append(
            tr_plural(
                "to {topic}: {n:,} message, stored from {first} to {last}",
                "to {topic}: {n:,} messages, stored from {first} to {last}",
                n=share.messages,
                topic=share.topic,
                first=moment(share.first_timestamp),
                last=moment(share.last_timestamp),
            )
        )
    kinds = plan.kinds()
    dead, retry, delayed, half = (kinds[kind] for kind in (DEAD_LETTER, RETRY, DELAYED, HALF))
    if dead:
        lines.append(tr_plural("{n:,} dead letter", "{n:,} dead letters", n=dead))
    if retry:
        lines.append(tr_plural("{n:,} message of a retry topic", "{n:,} messages of retry topics", n=retry))
    if delayed:
        lines.append(
            tr_plural(
                "{n:,} delayed message, without its delay", "{n:,} delayed messages, without their delays", n=delayed
            )
        )
    if half:
        lines.append(
            tr_plural("{n:,} half message, as an ordinary one", "{n:,} half messages, as ordinary ones", n=half)
        )
    if plan.to_send:
        lines.append(tr("Every group that consumes such a topic gets them, also one that consumed them before."))
    for decision, words in (
        (Decision.ALREADY_SENT, tr("sent already, says the journal: {n:,}", n=plan.count(Decision.ALREADY_SENT))),
        (Decision.COPY, tr("left out for a later copy of the same message: {n:,}", n=plan.count(Decision.COPY))),
        (
            Decision.NOT_KNOWN,
            tr("left out, not known whether they arrived: {n:,}", n=plan.count(Decision.NOT_KNOWN)),
        ),
    ):
        if plan.count(decision):
            lines.append(words)
    for reason, count in plan.reasons().items():
        lines.append(tr("cannot be sent: {n:,} ({reason})", n=count, reason=engine_words(reason)))
    return lines


def result_text(result: ResendResult) -> str:
    """``12 messages were sent · refused: 1 · …``."""
    parts = [tr_plural("{n:,} message was sent", "{n:,} messages were sent", n=result.sent)]
    if result.refused:
        parts.append(tr("refused: {n:,}", n=result.refused))
    if result.unknown:
        parts.append(tr("not known whether they arrived: {n:,}", n=result.unknown))
    if result.remaining:
        parts.append(tr("not sent yet: {n:,}", n=result.remaining))
    if result.reason:
        parts.append(engine_words(result.reason))
    return " · ".join(parts)


class ResendBox(RowScopeBox):
    """Asks for rows and address. ``planRequested()`` when the summary is wanted, ``sendRequested(plan)`` when the
    messages of the summary are to be sent.
    """

    planRequested = Signal()
    sendRequested = Signal(object)

    def __init__(self, scopes: Sequence[RowScope], chosen_scope: str, parent: QWidget | None = None) -> None:
        super().__init__("resend", tr("Send again"), scopes, chosen_scope, parent)
        self._plan: ResendPlan | None = None
        self._planned_choice: ResendChoice | None = None
        for button in self.scope_buttons.values():
            button.toggled.connect(self._changed)
        self.address = Field(tr("Broker or name server, HOST:PORT"), code=True)
        self.topic = Field(tr("Topic (empty: the original topics)"), code=True)
        self.rate = Field(tr("Messages a second (empty: no limit)"), code=True)
        self.account_file = Field(tr("Account file, as mqadmin's tools.yml (empty: no account)"), code=True)
        self.tls_file = Field(tr("TLS file, tls.properties (empty: no TLS)"), code=True)
        self._fields = {
            "address": self.address,
            "topic": self.topic,
            "rate": self.rate,
            "account": self.account_file,
            "tls": self.tls_file,
        }
        for name, field in self._fields.items():
            field.setObjectName(f"resend.{name}")
            field.textEdited.connect(self._changed)
        self.unknown = TickBox(tr("also messages of which an earlier run does not know whether they arrived"))
        self.unknown.setObjectName("resend.unknown")
        self.unknown.setAccessibleName(self.unknown.text())
        self.unknown.toggled.connect(self._changed)
        self.mine = TickBox(tr("the cluster at this address is mine"))
        self.mine.setObjectName("resend.mine")
        self.mine.setAccessibleName(self.mine.text())
        self.mine.toggled.connect(self._show_send)
        self.address.textEdited.connect(lambda _text: self.mine.setChecked(False))
        self.summary = Label("", 13, "text", wrap=True)
        self.summary.setObjectName("resend.summary")
        self.show_button, self.cancel = Button(tr("Show what would be sent")), Button(tr("Cancel"))
        self.send = Button(tr("Send"), "danger")
        self._lay_out()
        self._changed()

    def _lay_out(self) -> None:
        actions = {
            "show": (self.show_button, self.planRequested.emit),
            "cancel": (self.cancel, self.reject),
            "send": (self.send, self._send),
        }
        layout = self.begin_layout(600, 560, actions)
        self.show_button.setDefault(True)
        for field in self._fields.values():
            layout.addWidget(field)
        layout.addWidget(self.unknown)
        layout.addWidget(scrolling(self.summary), 1)
        layout.addWidget(self.mine)
        layout.addWidget(row(self.show_button, None, self.cancel, self.send))

    def _changed(self, *_: object) -> None:
        """Another choice needs another summary."""
        self._plan = None
        self._show_send()
        host, _colon, port = self.address.text().strip().rpartition(":")
        self.show_button.setEnabled(bool(host) and port.isdecimal() and self.messages_a_second() != 0)
        self.summary.setText("")

    def messages_a_second(self) -> float | None:
        """Return the limit; None without one, 0 if the text is no number above 0."""
        text = self.rate.text().strip()
        try:
            return max(float(text), 0.0) if text else None
        except ValueError:
            return 0.0

    def choice(self, source: LogResend) -> ResendChoice:
        """Return the present choice, or the one that the summary shows."""
        if self._plan is not None and self._planned_choice is not None:
            return self._planned_choice
        from engine.resend.store_messages import default_journal

        offsets, where = source.rows(self.chosen_scope("row"))
        assert source.session is not None
        return ResendChoice(
            self.address.text().strip(),
            default_journal(source.session.path),
            self.topic.text().strip(),
            self.messages_a_second(),
            self.unknown.isChecked(),
            where,
            offsets,
            self.account_file.text().strip(),
            self.tls_file.text().strip(),
        )

    def show_summary(self, lines: Sequence[str], plan: ResendPlan | None, choice: ResendChoice | None = None) -> None:
        """Show what would be sent; with a plan it can be sent now."""
        self.summary.setText("\n".join(lines))
        self._plan, self._planned_choice = plan, choice
        self._show_send()

    def _show_send(self, _on: bool = False) -> None:
        """Offer the send once the summary is shown and the user said that the cluster is theirs."""
        self.send.setEnabled(self._plan is not None and self.mine.isChecked())
        self.send.setToolTip(
            tr("Show what would be sent first.")
            if self._plan is None
            else ""
            if self.mine.isChecked()
            else tr("Tick that the cluster is yours: an address can be the near end of a tunnel.")
        )

    def _send(self) -> None:
        if self._plan is not None:
            self.sendRequested.emit(self._plan)
            self.accept()
