"""Actions on the cluster that the lab of this window serves: add queues, add a broker, cut a client's connection.

For any other cluster they are grey and say why. An added broker runs in the lab's process over its own store beside
the lab's; a click or Undo ends it, and its store stays. Undo takes back added queues while they are empty.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, QPoint, Signal
from PySide6.QtWidgets import QMenu, QWidget

from engine.errors import StoreError, cause_of
from viewer.cluster.cluster_model import ClusterModel
from viewer.look.assets import tr, tr_plural
from viewer.look.engine_words import engine_words
from viewer.runtime.edit import Edit
from viewer.widgets.basics import Button, Field, Label, ToolButton
from viewer.widgets.boxes import BoxWidget, row
from viewer.widgets.choices import ChoiceField

if TYPE_CHECKING:
    from engine.lab.serving import ServedBroker, ServedClient
    from viewer.runtime.lab_session import LabSession

DEFAULT_QUEUE_COUNT = 4
"""Proposed number of additional queues."""


class LabActions(QObject):
    """Tools and form for :class:`~viewer.cluster.clients_bar.ClientsBar`.

    Emits ``operationDone(command, words, parameters)`` for the operation log, ``edited(Edit)`` for Undo,
    ``statusText(words)`` for the status bar, ``changed()`` when other actions become possible, ``formOpened()`` when
    its form opens.
    """

    operationDone = Signal(str, str, object)
    edited = Signal(object)
    statusText = Signal(str)
    changed = Signal()
    formOpened = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.model = ClusterModel()
        self.session: LabSession | None = None
        self._kind = ""
        self._is_confirmed = False
        self.queues = self._make_tool("plus", "cluster.add.queues", tr("Queues…"))
        self.broker = self._make_tool("plus", "cluster.add.broker", tr("Broker…"))
        self.cut = self._make_tool("cut", "cluster.cut", tr("Cut connection"))
        self.end = self._make_tool("stop", "cluster.broker.end", tr("End broker"))
        self.queues.clicked.connect(lambda _on: self.open_form("queues"))
        self.broker.clicked.connect(lambda _on: self.open_form("broker"))
        self.cut.clicked.connect(lambda _on: self.cut_selected())
        self.end.clicked.connect(lambda _on: self.end_selected())
        self.form = self._make_form()

    @staticmethod
    def _make_tool(icon: str, name: str, text: str) -> ToolButton:
        tool = ToolButton(icon, "", text)
        tool.setObjectName(name)
        tool.setAccessibleName(text)
        return tool

    def _make_form(self) -> BoxWidget:
        self.form_title, self.note, self.form_error = (
            Label("", 13, "text", 600),
            Label("", 12, "text3"),
            Label("", 12, "error"),
        )
        self.form_error.setObjectName("cluster.lab.fault")
        self.topic, self.name = Field(tr("Topic"), code=True, width=150), Field(tr("Broker"), code=True, width=130)
        self.amount = Field(tr("Number"), code=True, width=56)
        self.broker_choice = ChoiceField()
        self.broker_choice.setAccessibleName(tr("Broker"))
        for part, name in (
            (self.topic, "topic"),
            (self.name, "name"),
            (self.amount, "amount"),
            (self.broker_choice, "at"),
        ):
            part.setObjectName(f"cluster.lab.{name}")
        for field in (self.topic, self.name, self.amount):
            field.returnPressed.connect(self.apply_form)
            field.textEdited.connect(lambda _text: self._show_effect())
        self.broker_choice.activated.connect(lambda _index: self._show_effect())
        self.submit, close = Button(tr("Add"), "primary"), Button(tr("Close"), "flat")
        self.submit.setObjectName("cluster.lab.do")
        close.setObjectName("cluster.lab.close")
        self.submit.clicked.connect(self.apply_form)
        form = row(
            self.form_title,
            self.topic,
            self.broker_choice,
            self.name,
            self.amount,
            self.submit,
            close,
            self.note,
            self.form_error,
            None,
            margins=(12, 4, 12, 8),
        )
        close.clicked.connect(form.hide)
        form.hide()
        return form

    # ---- possible actions --------------------------------------------------------------------------------------------

    @property
    def serves(self) -> bool:
        """Return True if the lab of this window serves the shown cluster."""
        serving = self.session.serving if self.session is not None else None
        return serving is not None and self.model.addresses == (serving.namesrv,)

    def why_not(self) -> str:
        """Return why these actions are not possible; "" if they are."""
        if self.serves:
            return ""
        if self.session is None or self.session.serving is None:
            return tr("Read-only: only a cluster that the lab serves can be changed (Lab, Serve).")
        return tr("Read-only: the lab of this window serves {address}.", address=self.session.serving.namesrv)

    def connections(self) -> list[ServedClient]:
        """Return the selected client's connections to brokers of the lab."""
        chosen = self.model.chosen
        serving = self.session.serving if self.session is not None else None
        if not self.serves or serving is None or chosen.kind not in {"client", "producer"}:
            return []
        return [client for client in serving.clients if client.client_id == chosen.name]

    def selected_added_broker(self) -> ServedBroker | None:
        """Return the selected broker if it was added to the lab."""
        chosen = self.model.chosen
        serving = self.session.serving if self.session is not None else None
        if not self.serves or serving is None or chosen.kind != "broker":
            return None
        return next(
            (broker for broker in serving.brokers if broker.name == chosen.name and not broker.is_own_store), None
        )

    def refresh(self) -> None:
        """Show the present state of model and lab."""
        self.model.of_lab = self.serves
        serving = self.session.serving if self.session is not None else None
        self.model.lab_brokers = frozenset(broker.address for broker in serving.brokers) if serving else frozenset()
        reason = self.why_not()
        chosen = self.model.chosen
        is_client = chosen.kind in {"client", "producer"}
        has_connections = bool(self.connections())
        cut_tip = tr("Cut its connection; it reconnects by itself (Ctrl+Del)")
        no_connection_tip = tr("This client has no connection to a broker of the lab.")
        tips = {
            self.queues: (not reason, reason or tr("Give a topic more queues (+)")),
            self.broker: (not reason, reason or tr("One more broker in the lab, at the same name server (Ctrl+Ins)")),
            self.cut: (has_connections, reason or (cut_tip if has_connections else no_connection_tip)),
            self.end: (not reason, reason or tr("It leaves the name server; its store stays (Del)")),
        }
        for tool, (is_possible, tip) in tips.items():
            tool.setEnabled(is_possible)
            tool.setToolTip(tip)
            tool.setAccessibleDescription("" if is_possible else tip)
        self.cut.setVisible(is_client)
        self.end.setVisible(self.selected_added_broker() is not None)
        if reason:
            self.form.hide()

    # ---- the form ----------------------------------------------------------------------------------------------------

    def open_form(self, kind: str) -> None:
        """Open the form, filled in from the selection."""
        serving = self.session.serving if self.session is not None else None
        if not self.serves or serving is None:
            self.statusText.emit(self.why_not())
            return
        self.formOpened.emit()
        self._kind, self._is_confirmed = kind, False
        model, chosen = self.model, self.model.chosen
        for_queues = kind == "queues"
        for part in (self.topic, self.broker_choice, self.amount):
            part.setVisible(for_queues)
        self.name.setVisible(not for_queues)
        self.form_title.setText(tr("More queues") if for_queues else tr("New broker"))
        if for_queues:
            topic = chosen.queue.topic if chosen.queue is not None else chosen.name if chosen.kind == "topic" else ""
            names = [named_row.name for named_row in serving.brokers]
            broker_name = (
                chosen.queue.broker if chosen.queue is not None else chosen.name if chosen.kind == "broker" else ""
            )
            self.topic.setText(topic or next((named_row.name for named_row in model.unfiltered.topics), "Orders"))
            self.broker_choice.clear()
            self.broker_choice.addItems(names)
            self.broker_choice.setCurrentIndex(names.index(broker_name) if broker_name in names else 0)
            self.amount.setText(str(DEFAULT_QUEUE_COUNT))
        else:
            self.name.setText(self._free_name())
        self._show_effect()
        self.form.show()
        (self.amount if for_queues else self.name).setFocus()

    def _free_name(self) -> str:
        used_names = {broker.name for broker in self.model.unfiltered.brokers}
        used_names |= (
            {broker.name for broker in self.session.serving.brokers} if self.session and self.session.serving else set()
        )
        return next(name for letter in "bcdefghijklmnopqrstuvwxyz" if (name := f"broker-{letter}") not in used_names)

    def _show_effect(self) -> None:
        """Show beside the fields what would be done."""
        self._is_confirmed = False
        self.form_error.setText("")
        self.submit.setText(tr("Add"))
        if self._kind == "queues":
            queue_count = self._queues(self.broker_choice.currentText(), self.topic.text().strip())
            self.note.setText(tr_plural("{n:,} queue there now", "{n:,} queues there now", n=queue_count))
        else:
            self.note.setText(tr("its store: {folder}", folder=self._folder(self.name.text().strip()).name))
            self.note.setToolTip(str(self._folder(self.name.text().strip())))

    def _queues(self, broker: str, topic: str) -> int:
        state = self.model.state
        return sum(
            queue.topic == topic and queue.broker == broker for queue in (state.queues if state is not None else ())
        )

    def _folder(self, name: str) -> Path:
        """Return the store folder of a new broker, beside the lab's store."""
        lab = self.session
        lab_folder = (lab.folder or lab.store or Path("lab")) if lab is not None else Path("lab")
        return lab_folder.with_name(f"{lab_folder.name}-{name}")

    # ---- actions -----------------------------------------------------------------------------------------------------

    def apply_form(self) -> None:
        """Do what the form describes; ask once more before writing to a store that is not a lab store."""
        lab = self.session
        if not self.serves or lab is None:
            return
        if self._kind == "queues":
            topic, broker_name = self.topic.text().strip(), self.broker_choice.currentText()
            amount = self.amount.text().strip()
            if not topic or not amount.isdigit() or not int(amount):
                self.form_error.setText(tr("Expected a topic and a number of queues."))
                return
            serving = lab.serving
            is_first_broker = serving is not None and any(
                broker.name == broker_name and broker.is_own_store for broker in serving.brokers
            )
            if lab.folder is None and is_first_broker and not self._is_confirmed:
                self._is_confirmed = True
                self.form_error.setText(
                    tr("This is your own store, not a lab store: its topics table will be changed.")
                )
                self.submit.setText(tr("Change it"))
                return
            self._add_queues(broker_name, topic, int(amount))
        else:
            name = self.name.text().strip()
            if not name or name in {
                broker.name for broker in self.model.unfiltered.brokers if not self._is_unreachable(broker.name)
            }:
                self.form_error.setText(tr("Expected the name of a new broker."))
                return
            self._add_broker(name)

    def _is_unreachable(self, name: str) -> bool:
        row = next((broker_row for broker_row in self.model.unfiltered.brokers if broker_row.name == name), None)
        return row is not None and row.master is not None and bool(row.master.words)

    def _add_queues(self, broker: str, topic: str, added_count: int) -> None:
        count_before = self._queues(broker, topic)
        parameters = {"topic": topic, "broker": broker, "queues": count_before + added_count}

        def done() -> None:
            self.form.hide()
            self.operationDone.emit("cluster.add.queues", tr("Give a topic more queues"), parameters)
            description = tr_plural(
                "{n:,} queue of {topic} at {broker}",
                "{n:,} queues of {topic} at {broker}",
                n=added_count,
                topic=topic,
                broker=broker,
            )
            self.edited.emit(
                Edit(
                    description,
                    count_before,
                    count_before + added_count,
                    lambda queues: self._set_queues(broker, topic, queues),
                )
            )

        self._run_in_lab(lambda lab: lab.set_queues(broker, topic, count_before + added_count), done)

    def _set_queues(self, broker: str, topic: str, queues: int) -> None:
        """Set the number of queues for Undo and Redo."""
        parameters = {"topic": topic, "broker": broker, "queues": queues}

        def done() -> None:
            self.operationDone.emit("cluster.add.queues", tr("Give a topic so many queues"), parameters)

        self._run_in_lab(lambda lab: lab.set_queues(broker, topic, queues), done)

    def _add_broker(self, name: str) -> None:
        folder = self._folder(name)

        def done() -> None:
            self.form.hide()
            self.operationDone.emit(
                "cluster.add.broker", tr("Add a broker to the lab"), {"broker": name, "store": str(folder)}
            )
            description = tr("broker {name} of the lab", name=name)
            self.edited.emit(
                Edit(description, False, True, lambda is_running: self._set_broker(name, folder, is_running))
            )

        self.note.setText(tr("opens …"))
        self._run_in_lab(lambda lab: lab.add_broker(name, folder), done)

    def _set_broker(self, name: str, folder: Path, is_running: bool) -> None:
        """Start or end the broker for Undo and Redo."""
        if is_running:
            self._run_in_lab(lambda lab: lab.add_broker(name, folder))
        else:
            self._run_in_lab(lambda lab: lab.end_broker(name))

    def end_selected(self) -> None:
        """End the selected broker if it was added to the lab."""
        broker = self.selected_added_broker()
        if broker is None:
            return
        name, folder = broker.name, broker.folder

        def done() -> None:
            self.operationDone.emit(
                "cluster.broker.end", tr("End a broker of the lab"), {"broker": name, "store": str(folder)}
            )
            description = tr("end of broker {name}", name=name)
            self.edited.emit(
                Edit(description, True, False, lambda is_running: self._set_broker(name, folder, is_running))
            )

        self._run_in_lab(lambda lab: lab.end_broker(name), done)

    def cut_selected(self) -> None:
        """Cut the selected client's connection; with several brokers, a menu asks which."""
        connections = self.connections()
        names = list(dict.fromkeys(connection.broker for connection in connections))
        if not connections:
            self.statusText.emit(self.why_not() or tr("This client has no connection to a broker of the lab."))
        elif len(names) == 1:
            self.cut_client(names[0])
        else:
            menu = QMenu(self.cut)
            menu.setObjectName("cluster.cut.menu")
            for name in names:
                menu.addAction(tr("To {broker}", broker=name)).triggered.connect(
                    lambda _on=False, name=name: self.cut_client(name)
                )
            menu.addAction(tr("To all of them")).triggered.connect(lambda _on=False: self.cut_client(""))
            menu.popup(self.cut.mapToGlobal(QPoint(0, self.cut.height())))

    def cut_client(self, broker: str) -> None:
        """End the selected client's connections to one broker, or to all with ""."""
        client_id = self.model.chosen.name
        name = self.model.name_of(client_id)

        async def cut(lab: LabSession) -> None:
            number = await lab.cut_client(client_id, broker)
            self.statusText.emit(
                tr_plural(
                    "Cut {n:,} connection of {client}: it reconnects by itself.",
                    "Cut {n:,} connections of {client}: it reconnects by itself.",
                    n=number,
                    client=name,
                )
            )

        parameters = {"client": name, "broker": broker or "*"}
        self._run_in_lab(
            cut, lambda: self.operationDone.emit("cluster.cut", tr("Cut the connection of a client"), parameters)
        )

    def _run_in_lab(
        self, work: Callable[[LabSession], Coroutine[Any, Any, object]], done: Callable[[], object] = lambda: None
    ) -> None:
        """Run work in the lab; an error is shown in the form, or in the status bar if the form is closed."""
        lab = self.session
        if lab is None or not self.serves:
            self.statusText.emit(self.why_not())
            return

        async def run() -> None:
            try:
                await work(lab)
            except (StoreError, OSError, EOFError, TimeoutError) as error:
                message = engine_words(cause_of(error, type(error).__name__))
                self.form_error.setText(message)
                self.statusText.emit(message)
                return
            done()
            self.changed.emit()

        lab.begin(run())
