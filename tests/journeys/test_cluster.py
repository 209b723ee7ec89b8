"""A cluster in the window: a serving broker and its clients, watched with and without an open store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from connected_clients import ConnectedClients, joined
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QFileDialog, QLineEdit, QPushButton, QToolButton, QWidget
from real_cluster import free_port
from walker import Run, Walker

from engine.broker.serving import Addresses, serving_beside
from engine.cluster.state import BrokerPart, Queue
from engine.lab.presets import PRESETS
from engine.lab.samples import ServeSettings
from viewer.cluster.cluster_model import Selection
from viewer.cluster.pane import ClusterPane
from viewer.cluster.side import SidePanel

pytestmark = pytest.mark.journey
QUEUES = [Queue("Orders", "broker-a", number) for number in range(4)]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Addresses]:
    """Start a broker and a name server."""
    with serving_beside(tmp_path / "served") as addresses:
        yield addresses


@pytest.fixture
def clients(served: Addresses) -> Iterator[ConnectedClients]:
    """Start a sender and two readers of a group; 30 messages in queue 0, 10 of them read."""
    with joined(served.broker) as sample:
        sample.producer("p@1", "senders")
        sample.send("p@1", "Orders", 30)
        sample.consumer("c@1", "readers", "Orders", QUEUES[:2])
        sample.consumer("c@2", "readers", "Orders", QUEUES[2:])
        sample.commit("c@1", "readers", "Orders", 0, 10)
        yield sample


@pytest.fixture(autouse=True)
def no_watch_is_left(walker: Walker) -> Iterator[None]:
    """Stop watching the cluster after each walk."""
    yield
    watch = walker.window.workspace.cluster
    if watch is not None:
        watch.end()
        watch.model.begin(("nobody",))
        watch.model.show("")
        watch.end()


async def connected(walker: Walker, address: str) -> ClusterPane:
    """Open the view and wait until it has read the cluster."""
    await walker.act("view.cluster")
    pane = walker.window.panes["cluster"]
    assert isinstance(pane, ClusterPane)
    field = walker.find(QLineEdit, "cluster.address")
    field.setText(address)
    walker.press(field, Qt.Key.Key_Return)
    await walker.until(lambda: pane.model.state is not None, "the cluster was read")
    if not pane.model.is_own:
        pane.clients.ask_declaration().agree.click()
        await walker.rest()
        walker.window.activateWindow()
    return pane


def _fault(pane: ClusterPane) -> str:
    """Return the text above the lines, or ""."""
    return pane.fault.state.text if pane.fault.state is not None else ""


def test_a_cluster_is_watched_without_a_store(
    run: Run, walker: Walker, served: Addresses, clients: ConnectedClients, tmp_path: Path
) -> None:
    async def walk() -> None:
        window = walker.window
        window.show_welcome()
        assert walker.action("view.cluster").isEnabled()
        assert not walker.action("view.units").isEnabled()
        pane = await connected(walker, served.namesrv)

        def owned_queues() -> list[int]:
            group = pane.model.find_group("readers")
            return [len(client.owned or ()) for client in group.clients] if group is not None else []

        def ends() -> tuple[object, ...]:
            row = pane.model.find_queue(QUEUES[0])
            return () if row is None else (row.ends.max_offset, row.next_offset, row.lag, row.owners)

        await walker.until(lambda: owned_queues() == [2, 2], "both readers say what they own")
        await walker.until(lambda: ends() == (30, 10, 20, ("c@1",)), "the queue has its ends and its owner")
        assert window.alone
        assert not window.rail.buttons["log"].isEnabled()
        assert walker.place.endswith(served.namesrv)
        counts = "1 topic, 4 queues on 1 broker · 2 consumers in 1 group"
        await walker.until(lambda: counts in walker.status_text, "the status bar counts them")
        canvas = walker.find(QWidget, "cluster.lines")
        assert canvas.isVisible()
        await walker.until(lambda: pane.lines.box_of(Selection("queue", queue=QUEUES[0])) is not None, "it is drawn")
        box = pane.lines.box_of(Selection("queue", queue=QUEUES[0]))
        assert box is not None
        walker.click(canvas, box.center().toPoint())
        side = walker.find(SidePanel, "cluster.side")
        await walker.until(lambda: "Max offset: 30" in side.facts.texts(), "its facts are shown")
        assert walker.place.endswith("Orders / broker-a / 0")
        await walker.key(canvas, Qt.Key.Key_Return)
        assert "No store is open" in walker.status_text
        done = {operation.words for operation in window.changes.operations.list if operation.id == "cluster.ask"}
        assert {
            "GET_BROKER_CLUSTER_INFO",
            "GET_TOPIC_STATS_INFO",
            "GET_CONSUMER_CONNECTION_LIST",
            "GET_CONSUMER_RUNNING_INFO",
            "GET_ALL_PRODUCER_INFO",
        } <= done
        clients.leave("c@2")

        def is_orphan() -> bool:
            row, group = pane.model.find_queue(QUEUES[2]), pane.model.find_group("readers")
            return (
                row is not None
                and row.orphan
                and group is not None
                and [client.has_left for client in group.clients] == [False, True]
            )

        await walker.until(is_orphan, "nobody owns the queues of the one that left")
        target = tmp_path / "cluster.md"
        pane.exports.write_markdown(target)
        await walker.until(lambda: str(target) in walker.status_text, "it is written")
        assert "| Orders | broker-a | 2 | 0 | readers |" in target.read_text("utf-8")
        await walker.act("go.back")
        assert window.pages.currentIndex() == 1, "the welcome page stands before it"

    run(walk())


def test_beside_a_store_queues_groups_and_offsets_are_links(
    run: Run, walker: Walker, served: Addresses, clients: ConnectedClients, orders: Path
) -> None:
    async def walk() -> None:
        clients.producer("p@2", "senders")
        clients.send("p@2", "OrderPaid", 5, 2)
        clients.consumer("c@3", "billing", "OrderPaid", [Queue("OrderPaid", "broker-a", 2)])
        await walker.open(orders)
        pane = await connected(walker, served.namesrv)
        await walker.until(lambda: pane.model.find_topic("OrderPaid") is not None, "the topic is there")
        pane.choose(Selection("queue", group="billing", queue=Queue("OrderPaid", "broker-a", 2)))
        canvas = walker.find(QWidget, "cluster.lines")
        await walker.key(canvas, Qt.Key.Key_Return)
        assert walker.window.view == "queue"
        assert walker.place.endswith("OrderPaid › Queue 2 › 0")
        await walker.act("go.back")
        assert walker.window.view == "cluster"
        pane.choose(Selection("group", "billing"))
        await walker.key(canvas, Qt.Key.Key_Return)
        assert walker.window.view == "groups"
        await walker.act("go.back")
        pane.choose(Selection("topic", "Orders"))
        await walker.key(canvas, Qt.Key.Key_Return)
        assert walker.status_text == "The open store has no topic Orders."
        await walker.act("view.refresh")
        assert walker.window.session is not None

    run(walk())


def test_pausing_filters_and_tables(run: Run, walker: Walker, served: Addresses, clients: ConnectedClients) -> None:
    async def walk() -> None:
        pane = await connected(walker, served.namesrv)
        await walker.until(lambda: pane.model.find_group("readers") is not None, "the group is there")
        pane.tabs.choose("tables")
        await walker.until(lambda: len(walker.rows("cluster.table")) == 4, "a row each queue")
        heads = ("Group", "Topic", "Next offset", "Behind", "Max offset")

        def first() -> tuple[str, ...]:
            rows = walker.rows("cluster.table")
            return tuple(rows[0][head] for head in heads) if rows else ()

        await walker.until(lambda: first() == ("readers", "Orders", "10", "20", "30"), "offsets are read, too")
        assert {"SUCCESS"} == set(walker.values("cluster.requests", "Answer"))
        await walker.choose("cluster.table", 3)
        assert pane.model.chosen.queue == QUEUES[3]
        await walker.act("filter.focus")
        field = walker.find(QLineEdit, "cluster.filter")
        assert field.hasFocus()
        field.setText("nobody has this")
        assert walker.rows("cluster.table") == []
        field.setText("c@1")
        assert len(walker.rows("cluster.table")) == 4
        walker.find(QPushButton, "cluster.only.idle").click()
        assert walker.rows("cluster.table") == []
        walker.find(QPushButton, "cluster.only.idle").click()
        await walker.act("cluster.pause")
        state = pane.model.state
        assert pane.model.status == "paused"
        await walker.until(lambda: _fault(pane).startswith("As of"), "the time of what is shown stands above it")
        await walker.act("cluster.pause")
        await walker.until(lambda: pane.model.state is not state, "it goes on")
        every = walker.find(QComboBox, "cluster.every")
        every.setCurrentIndex(0)
        every.activated.emit(0)
        assert pane.model.interval_s == 0.5
        await walker.act("cluster.copy")
        assert walker.clipboard.startswith(f"# Cluster {served.namesrv}")
        await walker.act("cluster.connect")
        assert pane.watch is not None
        assert not pane.watch.runs

    run(walk())


def test_a_cluster_that_does_not_answer_is_an_error_with_its_expected_answer(
    run: Run, walker: Walker, served: Addresses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(QFileDialog, "open", lambda _self: None)

    async def walk() -> None:
        await walker.act("view.cluster")
        pane = walker.window.panes["cluster"]
        assert isinstance(pane, ClusterPane)
        field = walker.find(QLineEdit, "cluster.address")
        field.setText("no address:at all")
        walker.press(field, Qt.Key.Key_Return)
        assert "is not an address. Expected HOST:PORT" in walker.status_text
        assert field.property("state") == "error"
        field.setText(f"127.0.0.1:{free_port()}")
        walker.press(field, Qt.Key.Key_Return)
        await walker.until(lambda: "Expected a name server that answers" in walker.status_text, "nobody listens there")
        field.setText(served.broker)
        walker.press(field, Qt.Key.Key_Return)
        await walker.until(
            lambda: "Expected a name server: HOST:PORT" in walker.status_text, "a broker is no name server"
        )
        await walker.until(lambda: pane.fault.state is not None and pane.fault.state.kind == "error", "it is an error")
        pane.exports.ask_markdown()
        assert walker.status_text == "There is nothing to export yet."
        field.setText(served.namesrv)
        walker.press(field, Qt.Key.Key_Return)
        await walker.until(lambda: pane.model.state is not None, "this one answers")
        hint = "No client is connected. Connect your client to"
        await walker.until(lambda: _fault(pane).startswith(hint), "it is drawn at a turn of its own")
        assert walker.window.settings.clusters[0] == served.namesrv

    run(walk())


def test_the_cluster_stays_through_languages_and_stores(
    run: Run, walker: Walker, served: Addresses, clients: ConnectedClients, orders: Path
) -> None:
    async def walk() -> None:
        await connected(walker, served.namesrv)
        walker.action("language.zh_CN").trigger()
        await walker.until(walker.window.panes["cluster"].isVisible, "it speaks Chinese")
        await walker.rest()
        pane = walker.window.panes["cluster"]
        assert isinstance(pane, ClusterPane)
        await walker.until(lambda: "消费者" in walker.status_text, "the sentence is Chinese")
        assert pane.model.address == served.namesrv
        walker.action("language.en").trigger()
        await walker.rest()
        await walker.open(orders)
        assert walker.window.workspace.cluster is not None
        assert walker.window.workspace.cluster.runs
        await walker.act("view.cluster")
        assert walker.window.panes["cluster"].isVisible()
        walker.window.show_view("log")
        await walker.act("store.close")
        assert walker.window.pages.currentIndex() == 1
        await walker.go(f"cluster:{served.namesrv}")

    run(walk())


def test_a_consumer_of_ones_own_is_killed_and_its_queues_move(
    run: Run, walker: Walker, served: Addresses, tmp_path: Path
) -> None:
    """Two consumers share the messages; one is killed: the step and its impact are shown, recorded and replayed."""

    async def added(pane: ClusterPane, kind: str, **fields: str) -> int:
        await walker.until(walker.find(QToolButton, f"cluster.add.{kind}").isVisible, "one can be added")
        walker.find(QToolButton, f"cluster.add.{kind}").click()
        for name, text in fields.items():
            walker.find(QLineEdit, f"cluster.new.{name}").setText(text)
        walker.find(QPushButton, "cluster.new.add").click()
        assert pane.watch is not None
        own_clients, number = pane.watch.own, max(pane.watch.own.rows)
        await walker.until(lambda: own_clients.rows[number].status == "running", f"the {kind} runs", 90)
        return number

    async def walk() -> None:
        pane = await connected(walker, served.namesrv)
        assert pane.watch is not None
        own_clients, model = pane.watch.own, pane.model
        await added(pane, "producer", group="senders", topic="Orders", amount="100")
        first = await added(pane, "consumer", group="readers", topic="Orders", amount="0")
        second = await added(pane, "consumer", group="readers", topic="Orders", amount="0")
        names = [own_clients.rows[number].client_id for number in (first, second)]

        def shared() -> bool:
            group = model.find_group("readers")
            return group is not None and sorted(
                len(client.owned or ()) for client in group.clients if not client.has_left
            ) == [
                2,
                2,
            ]

        await walker.until(shared, "they share four queues", 90)
        await walker.until(lambda: model.deliveries.delivered_count("readers", 0, 1 << 62) > 200, "messages come", 90)
        pane.choose(Selection("client", names[1], "readers"))
        await walker.until(lambda: len(model.moments["readers"]) > 3, "it was read some times")
        walker.find(QPushButton, "cluster.kill").click()
        await walker.until(lambda: own_clients.rows[second].status == "killed", "it is killed")
        pane.tabs.choose("rebalance")
        pane.choose(Selection("group", "readers"))
        panel = pane.rebalance

        def moved() -> bool:
            steps = panel.line.steps  # one who left and its queues' new owner may be seen in two readings
            return any(names[1] in step.departed for step in steps) and set(steps[-1].owners_after.values()) == {
                (names[0],)
            }

        await walker.until(moved, "its queues have moved", 90)
        await walker.until(
            lambda: any(
                rebalance.added for rebalance in model.deliveries.rebalances if rebalance.client_ids == (names[0],)
            ),
            "the one that stays says what it took: that comes another way than readings do",
            90,
        )
        killed = next(step for step in panel.line.steps if names[1] in step.departed)
        step = panel.line.steps[-1]
        panel.choose_step(step.number - 1)
        assert model.shown_time_ms is not None or model.state is not None
        words_by_step = {row["Step"]: row["What"] for row in walker.rows("cluster.steps")}
        assert f"{model.name_of(names[1])} killed" in words_by_step[str(killed.number)]  # with who joined, perhaps
        changes = {row["Change"] for row in walker.rows("cluster.moves")}
        # taken of nobody, where its end was read before they had an owner, or a reading did not hear who owns them
        assert changes - {"unchanged"} in ({"moved"}, {"taken"}, {"moved", "taken"})
        rows = walker.rows("cluster.lists")
        assert any("+broker-a" in row["Change"] for row in rows)
        assert pane.rebalance.impact_head.note.text() == "of this step, counted from deliveries"
        target = tmp_path / "rebalance.md"
        pane.exports.write_markdown(target)
        await walker.until(lambda: str(target) in walker.status_text, "it is written")
        assert "- Delivered twice: " in target.read_text("utf-8")
        recording = tmp_path / "r.jsonl"
        pane.watch.record(recording)
        recorder = pane.watch.recorder
        assert recorder is not None
        await walker.until(lambda: recorder.bytes > 0, "what was kept is written, to its last line")
        pane.watch.load(recording)
        await walker.until(lambda: bool(model.recording), "the recording is shown")
        await walker.rest()
        assert any(names[1] in step.departed for step in panel.line.steps), "the same step is in the recording"
        assert not walker.find(QWidget, "cluster.clients").isVisible()
        pane.tabs.choose("lines")
        own_clients.close()

    run(walk())


def test_another_cluster_is_read_only_until_the_user_confirms_that_it_is_his(
    run: Run, walker: Walker, served: Addresses
) -> None:
    async def walk() -> None:
        pane = await connected(walker, served.namesrv)
        await walker.until(walker.find(QWidget, "cluster.clients").isVisible, "clients can be added")
        pane.model.address = "10.9.8.7:9876"
        pane.clients.refresh()
        ours = walker.find(QPushButton, "cluster.mine")
        assert ours.isVisible()
        assert not walker.find(QToolButton, "cluster.add.consumer").isVisible()
        ours.click()
        walker.find(QPushButton, "cluster.declare.deed").click()
        assert walker.find(QToolButton, "cluster.add.consumer").isVisible()
        done = [finding.id for finding in walker.window.changes.operations.list]
        assert "cluster.mine" in done
        pane.model.address = served.namesrv

    run(walk())


def test_the_labs_cluster_gets_queues_a_broker_and_loses_a_connection(
    run: Run, walker: Walker, served: Addresses, tmp_path: Path
) -> None:
    """A lab store is served: queues are added and removed, a broker is added, ended and started again, a client is cut.
    Each of these is disabled for any other cluster, with its reason.
    """

    async def walk() -> None:
        window = walker.window
        lab = window.lab.session
        assert await window.lab.open_lab(tmp_path / "lab", PRESETS[3].config, "5.3")
        await lab.serve(ServeSettings(0, 0))
        assert lab.serving is not None
        pane = await connected(walker, lab.serving.namesrv)
        bar, acts = pane.clients, pane.clients.lab
        await walker.until(bar.isVisible, "the bar is there")
        assert acts.serves
        await walker.key(pane, Qt.Key.Key_Plus)
        walker.find(QLineEdit, "cluster.lab.topic").setText("Orders")
        walker.find(QPushButton, "cluster.lab.do").click()
        await walker.until(lambda: queues(pane) == 4, "the topic has queues")
        await walker.act("edit.undo")
        await walker.until(lambda: queues(pane) == 0, "they are taken back")
        await walker.act("edit.redo")
        await walker.until(lambda: queues(pane) == 4, "they are there again")
        await walker.act("cluster.add.broker")
        walker.find(QPushButton, "cluster.lab.do").click()
        await walker.until(lambda: len(pane.model.unfiltered.brokers) == 2, "it registers", 60)
        assert (tmp_path / "lab-broker-b").is_dir()
        pane.choose(Selection("broker", "broker-b"))
        assert walker.action("cluster.broker.end").isEnabled()
        await walker.key(pane, Qt.Key.Key_Delete)
        await walker.until(lambda: bool(master(pane, "broker-b").words), "it is ended", 60)
        await walker.act("edit.undo")
        await walker.until(lambda: not master(pane, "broker-b").words, "it comes again", 60)
        assert not walker.action("cluster.cut").isEnabled()
        with joined(lab.serving.broker) as clients:
            clients.consumer("c@1", "readers", "Orders", QUEUES)
            await walker.until(lambda: pane.model.find_client("readers", "c@1") is not None, "the client is there")
            pane.choose(Selection("client", "c@1", "readers"))
            await walker.until(acts.cut.isEnabled, "it can be cut")
            acts.cut.click()
            await walker.until(lambda: pane.model.find_group("readers") is None, "it is cut")
        await walker.until(
            lambda: any(finding.id == "cluster.cut" for finding in window.changes.operations.list), "the cut is noted"
        )
        done = [item.id for item in window.changes.operations.list]
        assert {"cluster.add.queues", "cluster.add.broker", "cluster.broker.end", "cluster.cut"} <= set(done)
        await connected(walker, served.namesrv)
        await walker.until(lambda: not acts.queues.isEnabled(), "another cluster is only asked")
        assert acts.broker.toolTip() == f"Read-only: the lab of this window serves {lab.serving.namesrv}."
        await walker.until(lambda: walker.status_text.startswith(served.namesrv), "the bar tells of it")
        await walker.key(pane, Qt.Key.Key_Plus)
        assert walker.status_text == acts.broker.toolTip()
        assert not acts.form.isVisible()
        await lab.stop_serving()
        assert acts.broker.toolTip().startswith("Read-only: only a cluster that the lab serves")
        await lab.close()

    def queues(pane: ClusterPane) -> int:
        topic = pane.model.find_topic("Orders")
        return len(topic.queues) if topic is not None else 0

    def master(pane: ClusterPane, name: str) -> BrokerPart:
        actual_master = next(broker.master for broker in pane.model.unfiltered.brokers if broker.name == name)
        assert actual_master is not None
        return actual_master

    run(walk())
