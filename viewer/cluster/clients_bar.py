"""Bar of actions on a cluster: add your own producer or consumer; slow, pause, stop or kill the selected one.

Actions that only the lab's cluster allows (:mod:`viewer.cluster.lab_actions`) are grey elsewhere, with the reason. A
cluster that the user has not declared to be their own is read-only.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QApplication, QVBoxLayout, QWidget
from shiboken6 import isValid

from viewer.cluster.cluster_model import ClusterModel, Selection
from viewer.cluster.lab_actions import LabActions
from viewer.cluster.own_clients import OwnClientRow, OwnClients
from viewer.look.assets import tr, tr_plural, words
from viewer.look.engine_words import engine_words
from viewer.pane.confirmation import Confirmation
from viewer.widgets.basics import Button, Field, Label, ThemedPanel, ToolButton
from viewer.widgets.boxes import BoxWidget, row

SLOW_S = 0.025
"""Delay of each message of a slowed client, in seconds."""
DEFAULTS = {"producer": ("senders", "100"), "consumer": ("readers", "0")}
"""Default group, and default messages a second (producer) or ms a message (consumer)."""

MAX_NAMED_BROKERS = 6
"""Brokers that the question before a declaration names."""

KINDS = {"producer": words("producer"), "consumer": words("consumer"), "broker": words("broker")}
"""Names of the kinds of clients."""


class ClientsBar(ThemedPanel):
    """The bar of the user's own clients.

    Emits ``operationDone(command, words, parameters)`` for the operation log, ``declarationChanged()`` after the user
    declared the cluster their own, or took that back.
    """

    operationDone = Signal(str, str, object)
    declarationChanged = Signal()

    def __init__(self) -> None:
        super().__init__("pane", ("bottom",))
        self.setObjectName("cluster.clients")
        self.setAccessibleName(tr("Your own clients"))
        self.model = ClusterModel()
        self.own: OwnClients | None = None
        self._kind = "consumer"
        self._focus_before: QWidget | None = None
        """Widget that had the focus before a form was opened."""
        self.read_only_label = Label("", 12, "ok", 600)
        self.own_button = Button(tr("This cluster is mine…"))
        self.own_button.setObjectName("cluster.mine")
        self.own_button.clicked.connect(lambda _on: self.ask_declaration())
        self.withdraw_button = self._make_tool(
            "lock", "cluster.withdraw", tr("Not mine"), tr("Take the declaration back: the cluster is read-only again")
        )
        self.withdraw_button.clicked.connect(lambda _on: self.withdraw())
        self.producer = self._make_tool(
            "plus", "cluster.add.producer", tr("Producer"), tr("Add a producer of your own (Shift+Ins)")
        )
        self.consumer = self._make_tool(
            "plus", "cluster.add.consumer", tr("Consumer"), tr("Add a consumer of your own (Ins)")
        )
        self.producer.clicked.connect(lambda _on: self.open_form("producer"))
        self.consumer.clicked.connect(lambda _on: self.open_form("consumer"))
        self.selected_name = Label("", 12, "accent", 600)
        self.slow = self._make_tool("slow", "cluster.slow", tr("Slow 25 ms"), tr("Each message takes 25 ms longer"))
        self.slow.setCheckable(True)
        self.pause = self._make_tool("pause", "cluster.client.pause", tr("Pause"), tr("Pause or resume this client"))
        self.pause.setCheckable(True)
        self.stop = self._make_tool(
            "stop", "cluster.stop", tr("Stop"), tr("Stop it properly: it unregisters first (Del)")
        )
        self.kill = Button(tr("Kill −9"), "danger", "kill")
        self.kill.setObjectName("cluster.kill")
        self.kill.setToolTip(tr("Kill it without unregistering, like kill -9 (Shift+Del)"))
        self.slow.clicked.connect(lambda _on: self.toggle_slow())
        self.pause.clicked.connect(lambda _on: self.toggle_pause())
        self.stop.clicked.connect(lambda _on: self.end_selected(kill=False))
        self.kill.clicked.connect(lambda _on: self.end_selected(kill=True))
        self.status_label = Label("", 12, "text3")
        self.lab = LabActions(self)
        self.lab.operationDone.connect(self.operationDone)
        self.lab.changed.connect(self.refresh)
        lab = self.lab
        line = row(
            self.read_only_label,
            self.own_button,
            self.producer,
            self.consumer,
            lab.queues,
            lab.broker,
            8,
            self.selected_name,
            self.slow,
            self.pause,
            lab.cut,
            self.stop,
            self.kill,
            lab.end,
            self.status_label,
            None,
            self.withdraw_button,
            margins=(12, 5, 12, 5),
            gap=6,
        )
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 1)
        box.setSpacing(0)
        box.addWidget(line)
        self.form = self._make_form()
        box.addWidget(self.form)
        self.lab.formOpened.connect(self._on_form_opening)
        box.addWidget(self.lab.form)
        self.refresh()

    @staticmethod
    def _make_tool(icon: str, name: str, text: str, tip: str) -> ToolButton:
        tool = ToolButton(icon, tip, text)
        tool.setObjectName(name)
        return tool

    def _make_form(self) -> BoxWidget:
        self.group, self.topic, self.amount = (
            Field(tr("Group"), code=True, width=170),
            Field(tr("Topic"), code=True, width=170),
            Field(tr("Number"), code=True, width=80),
        )
        for field, name in ((self.group, "group"), (self.topic, "topic"), (self.amount, "amount")):
            field.setObjectName(f"cluster.new.{name}")
            field.returnPressed.connect(self.add)
        self.form_title, self.amount_unit = Label("", 13, "text", 600), Label("", 12, "text3")
        self.form_error = Label("", 12, "error")
        add, close = Button(tr("Add"), "primary"), Button(tr("Close"), "flat")
        add.setObjectName("cluster.new.add")
        close.setObjectName("cluster.new.close")
        add.clicked.connect(self.add)
        form = row(
            self.form_title,
            Label(tr("Group"), 12, "text3"),
            self.group,
            Label(tr("Topic"), 12, "text3"),
            self.topic,
            self.amount,
            self.amount_unit,
            add,
            close,
            self.form_error,
            None,
            margins=(12, 4, 12, 8),
        )
        close.clicked.connect(lambda _on: self.close_form())
        form.hide()
        return form

    # ---- showing -----------------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Show the present state of model, clients and lab."""
        is_own = self.model.is_own
        self.lab.model = self.model
        self.lab.refresh()
        self.read_only_label.setText("" if is_own else tr("Read-only"))
        self.read_only_label.setVisible(not is_own)
        self.own_button.setVisible(not is_own and bool(self.model.brokers) and not self.model.recording)
        self.withdraw_button.setVisible(is_own and not self.model.of_lab)
        for part in (self.producer, self.consumer):
            part.setVisible(is_own)
        if not is_own:
            self.form.hide()
        chosen = self.chosen
        self.selected_name.setText(self._name())
        for tool in (self.slow, self.pause, self.stop, self.kill):
            tool.setVisible(is_own and chosen is not None)
        if chosen is not None:
            self.slow.setChecked(chosen.delay > 0)
            self.pause.setChecked(chosen.paused)
        self.status_label.setText(self._status_text(is_own=is_own))

    def _status_text(self, *, is_own: bool) -> str:
        if not is_own and (joined := self.model.undeclared_brokers):
            return tr("brokers that you did not declare: {brokers}", brokers=", ".join(joined))
        if not is_own:
            return tr("read-only, with admin requests")
        failed = [
            client_row for client_row in (self.own.rows.values() if self.own is not None else ()) if client_row.error
        ]
        if failed:
            last_failed = failed[-1]
            return f"{tr(KINDS[last_failed.spec.kind])} {last_failed.spec.group}: {engine_words(last_failed.error)}"
        chosen = self.chosen
        if chosen is None and self.model.chosen.kind in {"client", "producer"}:
            ended = self.own.ended(self.model.chosen.name) if self.own is not None else None
            if ended is None:
                return tr("this client is not one of yours")
            return tr("you killed this client") if ended.status == "killed" else tr("you stopped this client")
        if chosen is not None and (chosen.paused or chosen.delay):
            slowed = tr("slowed: each message takes {n:g} ms longer", n=chosen.delay * 1000) if chosen.delay else ""
            return " · ".join(part for part in (tr("paused") if chosen.paused else "", slowed) if part)
        running = self.own.running if self.own is not None else 0
        return tr_plural("{n:,} client, your own", "{n:,} clients, your own", n=running) if running else ""

    def _name(self) -> str:
        """Return the name of the selection if it can be acted on."""
        chosen = self.model.chosen
        if self.lab.selected_added_broker() is not None:
            return chosen.name
        acted = self.chosen is not None or bool(self.lab.connections())
        return self.model.name_of(chosen.name) if acted else ""

    def possible_commands(self) -> dict[str, Callable[[], object]]:
        """Return the commands that are possible now."""
        commands: dict[str, Callable[[], object]] = {}
        if self.model.state is None or self.model.recording:
            return commands
        if not self.model.of_lab and self.model.brokers:
            commands["cluster.mine"] = self.withdraw if self.model.is_own else self.ask_declaration
        if self.model.is_own:
            commands |= {
                "cluster.add.producer": lambda: self.open_form("producer"),
                "cluster.add.consumer": lambda: self.open_form("consumer"),
            }
        if self.chosen is not None:
            commands |= {
                "cluster.slow": self.toggle_slow,
                "cluster.client.pause": self.toggle_pause,
                "cluster.stop": lambda: self.end_selected(kill=False),
                "cluster.kill": lambda: self.end_selected(kill=True),
            }
        if self.lab.serves:
            commands |= {
                "cluster.add.queues": lambda: self.lab.open_form("queues"),
                "cluster.add.broker": lambda: self.lab.open_form("broker"),
            }
        if self.lab.connections():
            commands["cluster.cut"] = self.lab.cut_selected
        if self.lab.selected_added_broker() is not None:
            commands["cluster.broker.end"] = self.lab.end_selected
        return commands

    def handle_key(self, event: QKeyEvent) -> bool:
        """Handle the keys of the view.

        Ins and Shift+Ins add a consumer and a producer, + queues, Ctrl+Ins a broker, Esc closes the form. Del stops
        the selected client or broker, Shift+Del kills the client, Ctrl+Del cuts its connection.
        """
        key, modifiers = event.key(), event.modifiers()
        shift = bool(modifiers & Qt.KeyboardModifier.ShiftModifier)
        control = bool(modifiers & Qt.KeyboardModifier.ControlModifier)
        if key == Qt.Key.Key_Insert and control:
            self.lab.open_form("broker")
        elif key == Qt.Key.Key_Insert:
            self.open_form("producer" if shift else "consumer")
        elif key == Qt.Key.Key_Plus:
            self.lab.open_form("queues")
        elif key == Qt.Key.Key_Escape:
            return self.close_form()
        elif key == Qt.Key.Key_Delete and control:
            self.lab.cut_selected()
        elif key == Qt.Key.Key_Delete and self.lab.selected_added_broker() is not None:
            self.lab.end_selected()
        elif key == Qt.Key.Key_Delete:
            self.end_selected(kill=shift)
        else:
            return False
        return True

    @property
    def chosen(self) -> OwnClientRow | None:
        """Selected client if it is one of the user's own."""
        chosen: Selection = self.model.chosen
        if self.own is None or chosen.kind not in {"client", "producer"}:
            return None
        return self.own.find(chosen.name)

    # ---- actions -----------------------------------------------------------------------------------------------------

    def ask_declaration(self) -> Confirmation:
        """Ask whether the cluster is the user's own, naming its name servers and brokers."""
        title = tr("Declare this cluster to be yours?")
        box = Confirmation(self, "cluster.declare", title, self.model.address, tr("It is mine"))
        brokers = sorted(self.model.brokers)
        named = ", ".join(brokers[:MAX_NAMED_BROKERS])
        if len(brokers) > MAX_NAMED_BROKERS:
            named = tr("{names} and {n:,} more", names=named, n=len(brokers) - MAX_NAMED_BROKERS)
        for words_of_body in (
            tr_plural(
                "It has {n:,} broker: {brokers}.", "It has {n:,} brokers: {brokers}.", n=len(brokers), brokers=named
            ),
            tr(
                "Then this window can change it: add clients, send messages, send dead letters again, move offsets. "
                "Each act asks first and is in the operation log."
            ),
            tr(
                "An address of this machine can be the near end of a tunnel to another cluster. If other brokers "
                "appear behind these addresses, the cluster is read-only again."
            ),
        ):
            box.box.addWidget(Label(words_of_body, 13, "text2", wrap=True))
        box.finish()
        box.confirmed.connect(self._declare)
        box.open()
        return box

    def _declare(self) -> None:
        self.model.declare()
        parameters = {"address": self.model.address, "brokers": ", ".join(sorted(self.model.brokers))}
        self.operationDone.emit("cluster.mine", tr("Declare the cluster to be yours"), parameters)
        self._show_declaration()

    def withdraw(self) -> None:
        """Take the declaration back."""
        self.model.withdraw()
        self.operationDone.emit(
            "cluster.mine", tr("Take back that the cluster is yours"), {"address": self.model.address}
        )
        self._show_declaration()

    def _show_declaration(self) -> None:
        self.refresh()
        self.declarationChanged.emit()

    def open_form(self, kind: str) -> None:
        """Open the form for a new client, filled in from the selection."""
        if not self.model.is_own:
            return
        self._on_form_opening()
        self.lab.form.hide()
        self._kind = kind
        group, amount = DEFAULTS[kind]
        model, chosen = self.model, self.model.chosen
        topics = [topic_row.name for topic_row in model.unfiltered.topics]
        leading = model.find_group(model.leading)
        topic = chosen.queue.topic if chosen.queue is not None else chosen.name if chosen.kind == "topic" else ""
        if leading is not None and kind == "consumer":
            group = leading.name
            topic = topic or next(iter(leading.group.subscriptions), "")
        self.form_title.setText(tr("New producer") if kind == "producer" else tr("New consumer"))
        self.amount_unit.setText(tr("messages a second") if kind == "producer" else tr("ms a message"))
        self.group.setText(group)
        self.topic.setText(topic or (topics[0] if topics else "Orders"))
        self.amount.setText(amount)
        self.form_error.setText("")
        self.form.show()
        self.topic.setFocus()

    def _on_form_opening(self) -> None:
        """Remember the focus and close the other form."""
        focused = QApplication.focusWidget()
        if focused is not None and not any(form.isAncestorOf(focused) for form in (self.form, self.lab.form)):
            self._focus_before = focused
        self.form.hide()

    def close_form(self) -> bool:
        """Close the open form and restore the focus; return True if a form was open."""
        was_open = not (self.form.isHidden() and self.lab.form.isHidden())
        self.form.hide()
        self.lab.form.hide()
        if was_open and self._focus_before is not None and isValid(self._focus_before):
            self._focus_before.setFocus()
        self._focus_before = None
        return was_open

    def add(self) -> None:
        """Add the client described in the form."""
        group, topic, amount = self.group.text().strip(), self.topic.text().strip(), self._amount()
        if not group or not topic or amount is None:
            self.form_error.setText(tr("Expected a group, a topic and a number."))
            return
        if self.own is None or not self.model.is_own:
            return
        self.own.add(self._kind, self.model.addresses, group, topic, amount)
        action = tr("Add a producer of your own") if self._kind == "producer" else tr("Add a consumer of your own")
        self.operationDone.emit("cluster.add", action, {"group": group, "topic": topic, "amount": f"{amount:g}"})
        self.close_form()

    def _amount(self) -> float | None:
        try:
            amount = float(self.amount.text())
        except ValueError:
            return None
        return amount if 0 <= amount <= 1e6 and (amount or self._kind == "consumer") else None

    def toggle_slow(self) -> None:
        """Slow the selected client down, or let it run at full speed."""
        chosen = self.chosen
        if chosen is not None and self.own is not None:
            self.own.slow(chosen.spec.number, 0.0 if chosen.delay else SLOW_S)
            self._emit_action("cluster.slow", tr("Slow a client of your own"), chosen)

    def toggle_pause(self) -> None:
        """Pause or resume the selected client."""
        chosen = self.chosen
        if chosen is not None and self.own is not None:
            self.own.pause(chosen.spec.number)
            self._emit_action("cluster.client.pause", tr("Pause a client of your own"), chosen)

    def end_selected(self, *, kill: bool) -> None:
        """Stop or kill the selected client."""
        chosen = self.chosen
        if chosen is None or self.own is None:
            return
        (self.own.kill if kill else self.own.stop)(chosen.spec.number)
        action = tr("Kill a client of your own") if kill else tr("Stop a client of your own")
        self._emit_action("cluster.kill" if kill else "cluster.stop", action, chosen)

    def _emit_action(self, command: str, action: str, chosen: OwnClientRow) -> None:
        self.operationDone.emit(
            command, action, {"client": self.model.name_of(chosen.client_id), "group": chosen.spec.group}
        )
