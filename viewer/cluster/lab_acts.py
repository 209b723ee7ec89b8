"""What one does with the cluster that the lab of this window serves: give a topic queues, add a broker, cut a client.

Any other cluster is only asked: there each of these stands in grey and says why. A broker runs in the lab's process
over a store of its own beside the lab's; it is ended by a click, or with Undo, and its store stays. Queues are
taken back with Undo as long as they are empty.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, QPoint, Signal
from PySide6.QtWidgets import QMenu, QWidget

from engine.errors import StoreError, cause_of
from viewer.cluster.cluster_model import ClusterModel
from viewer.look.assets import tr
from viewer.look.engine_words import engine_words
from viewer.runtime.edit import Edit
from viewer.widgets.basics import Boxed, Button, Field, Label, Tool, row
from viewer.widgets.choices import ChoiceField

if TYPE_CHECKING:
    from engine.lab.serving import ServedBroker, ServedClient
    from viewer.runtime.lab_session import LabSession

MORE = 4
"""Queues that are added where nobody says otherwise."""


class LabActs(QObject):
    """Its tools and its form stand in :class:`~viewer.cluster.clients_bar.ClientsBar`. ``did(command, words,
    parameters)`` for the operation log, ``edited(Edit)`` for Undo, ``said(words)`` for the status bar, ``changed()``
    as something else can be done, ``asks()`` as its form opens.
    """

    did = Signal(str, str, object)
    edited = Signal(object)
    said = Signal(str)
    changed = Signal()
    asks = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.model = ClusterModel()
        self.session: LabSession | None = None
        self._kind = ""
        self._sure = False
        self.queues = self._tool("plus", "cluster.add.queues", tr("Queues…"))
        self.broker = self._tool("plus", "cluster.add.broker", tr("Broker…"))
        self.cut = self._tool("cut", "cluster.cut", tr("Cut connection"))
        self.end = self._tool("stop", "cluster.broker.end", tr("End broker"))
        self.queues.clicked.connect(lambda _on: self.ask("queues"))
        self.broker.clicked.connect(lambda _on: self.ask("broker"))
        self.cut.clicked.connect(lambda _on: self.cut_now())
        self.end.clicked.connect(lambda _on: self.end_now())
        self.form = self._form()

    @staticmethod
    def _tool(icon: str, name: str, text: str) -> Tool:
        made = Tool(icon, "", text)
        made.setObjectName(name)
        made.setAccessibleName(text)
        return made

    def _form(self) -> Boxed:
        self.what, self.note, self.fault = Label("", 13, "text", 600), Label("", 12, "text3"), Label("", 12, "error")
        self.fault.setObjectName("cluster.lab.fault")
        self.topic, self.name = Field(tr("Topic"), code=True, width=150), Field(tr("Broker"), code=True, width=130)
        self.amount = Field(tr("Number"), code=True, width=56)
        self.at = ChoiceField()
        self.at.setAccessibleName(tr("Broker"))
        for part, name in ((self.topic, "topic"), (self.name, "name"), (self.amount, "amount"), (self.at, "at")):
            part.setObjectName(f"cluster.lab.{name}")
        for field in (self.topic, self.name, self.amount):
            field.returnPressed.connect(self.do)
            field.textEdited.connect(lambda _text: self._noted())
        self.at.activated.connect(lambda _at: self._noted())
        self.go, close = Button(tr("Add"), "primary"), Button(tr("Close"), "flat")
        self.go.setObjectName("cluster.lab.do")
        close.setObjectName("cluster.lab.close")
        self.go.clicked.connect(self.do)
        form = row(
            self.what,
            self.topic,
            self.at,
            self.name,
            self.amount,
            self.go,
            close,
            self.note,
            self.fault,
            None,
            margins=(12, 4, 12, 8),
        )
        close.clicked.connect(form.hide)
        form.hide()
        return form

    # ---- what can be done --------------------------------------------------------------------------------------------

    @property
    def serves(self) -> bool:
        """The lab of this window serves the cluster that is looked at."""
        serving = self.session.serving if self.session is not None else None
        return serving is not None and serving.namesrv in self.model.addresses

    def why_not(self) -> str:
        """Why nothing of this can be done; "" where it can."""
        if self.serves:
            return ""
        if self.session is None or self.session.serving is None:
            return tr("Only asked: what changes a cluster is done to one that the lab serves (Lab, Serve).")
        return tr("Only asked: the lab of this window serves {address}.", address=self.session.serving.namesrv)

    def connections(self) -> list[ServedClient]:
        """The chosen client's, to brokers of the lab."""
        chosen = self.model.chosen
        serving = self.session.serving if self.session is not None else None
        if not self.serves or serving is None or chosen.kind not in {"client", "producer"}:
            return []
        return [one for one in serving.clients if one.client_id == chosen.name]

    def added(self) -> ServedBroker | None:
        """The chosen broker, where it is one that was added to the lab."""
        chosen = self.model.chosen
        serving = self.session.serving if self.session is not None else None
        if not self.serves or serving is None or chosen.kind != "broker":
            return None
        return next((one for one in serving.brokers if one.name == chosen.name and not one.first), None)

    def refresh(self) -> None:
        """As model and lab have it now."""
        self.model.of_lab = self.serves
        why = self.why_not()
        chosen = self.model.chosen
        client = chosen.kind in {"client", "producer"}
        there = bool(self.connections())
        cut = tr("End its connection; it comes again by itself (Ctrl+Del)")
        lost = tr("This client has no connection to a broker of the lab.")
        tips = {
            self.queues: (not why, why or tr("Give a topic more queues (+)")),
            self.broker: (not why, why or tr("One more broker in the lab, at the same name server (Ctrl+Ins)")),
            self.cut: (there, why or (cut if there else lost)),
            self.end: (not why, why or tr("It leaves the name server; its store stays (Del)")),
        }
        for tool, (able, tip) in tips.items():
            tool.setEnabled(able)
            tool.setToolTip(tip)
            tool.setAccessibleDescription("" if able else tip)
        self.cut.setVisible(client)
        self.end.setVisible(self.added() is not None)
        if why:
            self.form.hide()

    # ---- asking ------------------------------------------------------------------------------------------------------

    def ask(self, kind: str) -> None:
        """Ask for what is needed; what is chosen gives it, as far as it goes."""
        serving = self.session.serving if self.session is not None else None
        if not self.serves or serving is None:
            self.said.emit(self.why_not())
            return
        self.asks.emit()
        self._kind, self._sure = kind, False
        model, chosen = self.model, self.model.chosen
        queues = kind == "queues"
        for part in (self.topic, self.at, self.amount):
            part.setVisible(queues)
        self.name.setVisible(not queues)
        self.what.setText(tr("More queues") if queues else tr("New broker"))
        if queues:
            topic = chosen.queue.topic if chosen.queue is not None else chosen.name if chosen.kind == "topic" else ""
            names = [one.name for one in serving.brokers]
            at = chosen.queue.broker if chosen.queue is not None else chosen.name if chosen.kind == "broker" else ""
            self.topic.setText(topic or next((one.name for one in model.whole.topics), "Orders"))
            self.at.clear()
            self.at.addItems(names)
            self.at.setCurrentIndex(names.index(at) if at in names else 0)
            self.amount.setText(str(MORE))
        else:
            self.name.setText(self._free_name())
        self._noted()
        self.form.show()
        (self.amount if queues else self.name).setFocus()

    def _free_name(self) -> str:
        taken = {one.name for one in self.model.whole.brokers}
        taken |= {one.name for one in self.session.serving.brokers} if self.session and self.session.serving else set()
        return next(name for letter in "bcdefghijklmnopqrstuvwxyz" if (name := f"broker-{letter}") not in taken)

    def _noted(self) -> None:
        """What would be done, beside the fields."""
        self._sure = False
        self.fault.setText("")
        self.go.setText(tr("Add"))
        if self._kind == "queues":
            before = self._queues(self.at.currentText(), self.topic.text().strip())
            self.note.setText(tr("{n:,} queues there now", n=before))
        else:
            self.note.setText(tr("its store: {folder}", folder=self._folder(self.name.text().strip()).name))
            self.note.setToolTip(str(self._folder(self.name.text().strip())))

    def _queues(self, broker: str, topic: str) -> int:
        state = self.model.state
        return sum(one.topic == topic and one.broker == broker for one in (state.queues if state is not None else ()))

    def _folder(self, name: str) -> Path:
        """Beside the lab's own store."""
        lab = self.session
        own = (lab.folder or lab.store or Path("lab")) if lab is not None else Path("lab")
        return own.with_name(f"{own.name}-{name}")

    # ---- doing -------------------------------------------------------------------------------------------------------

    def do(self) -> None:
        """Do what the form asks for. Where the store is somebody's own, no lab store, it is asked once more."""
        lab = self.session
        if not self.serves or lab is None:
            return
        if self._kind == "queues":
            topic, at = self.topic.text().strip(), self.at.currentText()
            amount = self.amount.text().strip()
            if not topic or not amount.isdigit() or not int(amount):
                self.fault.setText(tr("Expected a topic and a number of queues."))
                return
            serving = lab.serving
            first = serving is not None and any(one.name == at and one.first for one in serving.brokers)
            if lab.folder is None and first and not self._sure:
                self._sure = True
                self.fault.setText(tr("This is your own store, not one of the lab: its table of topics is written."))
                self.go.setText(tr("Write it"))
                return
            self._add_queues(at, topic, int(amount))
        else:
            name = self.name.text().strip()
            if not name or name in {one.name for one in self.model.whole.brokers if not self._gone(one.name)}:
                self.fault.setText(tr("Expected the name of a broker that is not there yet."))
                return
            self._add_broker(name)

    def _gone(self, name: str) -> bool:
        row = next((one for one in self.model.whole.brokers if one.name == name), None)
        return row is not None and row.master is not None and bool(row.master.words)

    def _add_queues(self, at: str, topic: str, more: int) -> None:
        before = self._queues(at, topic)
        parameters = {"topic": topic, "broker": at, "queues": before + more}

        def done() -> None:
            self.form.hide()
            self.did.emit("cluster.add.queues", tr("Give a topic more queues"), parameters)
            what = tr("{n:,} queues of {topic} at {broker}", n=more, topic=topic, broker=at)
            self.edited.emit(Edit(what, before, before + more, lambda queues: self._put_queues(at, topic, queues)))

        self._begin(lambda lab: lab.set_queues(at, topic, before + more), done)

    def _put_queues(self, at: str, topic: str, queues: int) -> None:
        """Undo and Redo."""
        parameters = {"topic": topic, "broker": at, "queues": queues}

        def done() -> None:
            self.did.emit("cluster.add.queues", tr("Give a topic so many queues"), parameters)

        self._begin(lambda lab: lab.set_queues(at, topic, queues), done)

    def _add_broker(self, name: str) -> None:
        folder = self._folder(name)

        def done() -> None:
            self.form.hide()
            self.did.emit("cluster.add.broker", tr("Add a broker to the lab"), {"broker": name, "store": str(folder)})
            what = tr("broker {name} of the lab", name=name)
            self.edited.emit(Edit(what, False, True, lambda there: self._put_broker(name, folder, there)))

        self.note.setText(tr("opens …"))
        self._begin(lambda lab: lab.add_broker(name, folder), done)

    def _put_broker(self, name: str, folder: Path, there: bool) -> None:
        """Undo and Redo."""
        if there:
            self._begin(lambda lab: lab.add_broker(name, folder))
        else:
            self._begin(lambda lab: lab.end_broker(name))

    def end_now(self) -> None:
        """End the chosen broker, where it was added here."""
        found = self.added()
        if found is None:
            return
        name, folder = found.name, found.folder

        def done() -> None:
            self.did.emit("cluster.broker.end", tr("End a broker of the lab"), {"broker": name, "store": str(folder)})
            what = tr("end of broker {name}", name=name)
            self.edited.emit(Edit(what, True, False, lambda there: self._put_broker(name, folder, there)))

        self._begin(lambda lab: lab.end_broker(name), done)

    def cut_now(self) -> None:
        """Cut the chosen client; where it is connected to several brokers, a menu asks which."""
        found = self.connections()
        names = list(dict.fromkeys(one.broker for one in found))
        if not found:
            self.said.emit(self.why_not() or tr("This client has no connection to a broker of the lab."))
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
        """End the chosen client's connections, to one broker or with "" to all."""
        client_id = self.model.chosen.name
        name = self.model.name_of(client_id)

        async def cut(lab: LabSession) -> None:
            number = await lab.cut_client(client_id, broker)
            self.said.emit(tr("Cut {n:,} connections of {client}: it comes again by itself.", n=number, client=name))

        told = {"client": name, "broker": broker or "*"}
        self._begin(cut, lambda: self.did.emit("cluster.cut", tr("Cut the connection of a client"), told))

    def _begin(
        self, work: Callable[[LabSession], Coroutine[Any, Any, object]], done: Callable[[], object] = lambda: None
    ) -> None:
        """Have the lab do it; why it does not stands in the form, or in the status bar where that is closed."""
        lab = self.session
        if lab is None or not self.serves:
            self.said.emit(self.why_not())
            return

        async def tried() -> None:
            try:
                await work(lab)
            except (StoreError, OSError, EOFError, TimeoutError) as error:
                said = engine_words(cause_of(error, type(error).__name__))
                self.fault.setText(said)
                self.said.emit(said)
                return
            done()
            self.changed.emit()

        lab.begin(tried())
