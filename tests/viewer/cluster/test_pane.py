"""The cluster view with a cluster from the test: pages, side column, filter, errors, without a window."""

from __future__ import annotations

from pathlib import Path

import pytest
import sample_clusters as made
from PySide6.QtWidgets import QApplication
from sample_clusters import FakeReaderProcess

from engine.cluster.state import ClusterState
from viewer.cluster.access import AccessFiles
from viewer.cluster.cluster_model import Reading, Selection
from viewer.cluster.pane import ClusterPane
from viewer.cluster.watch import ClusterWatch
from viewer.look.theme import theme
from viewer.runtime.places import Place
from viewer.runtime.settings import Settings


@pytest.fixture
def works() -> FakeReaderProcess:
    return FakeReaderProcess()


@pytest.fixture
def pane(works, settings: Settings, shown) -> ClusterPane:
    made_pane = ClusterPane()
    made_pane.use(settings)
    watch = ClusterWatch(works, _do, made_pane)
    made_pane.set_watch(watch)
    shown(made_pane, width=1600)
    made_pane.resize(1600, 1000)
    return made_pane


def deliver_reading(works: FakeReaderProcess, look: Reading) -> None:
    """Deliver a reading and run one turn of the event loop."""
    works.items(look)
    QApplication.processEvents()


def _do(work, done, failed):
    try:
        actual_work = work()
    except OSError as error:
        failed(error)
    else:
        done(actual_work)


def test_without_a_cluster_it_offers_the_previous_addresses(pane, works, settings):
    assert pane.pages.currentIndex() == 0
    assert pane.start_page.title.text() == "No cluster is connected"
    pane.show_place(Place("cluster", name=made.NAMES))
    assert works.requests[0][1][0] == (made.NAMES,)
    assert pane.start_page.title.text() == "Asking 127.0.0.1:9876 …"
    assert pane.address_bar.go.text() == "Disconnect"
    assert settings.clusters == [made.NAMES]
    assert pane.busy()


def test_the_picture_goes_with_the_size_of_the_cluster(pane, works):
    pane.show_place(Place("cluster", name=made.NAMES))
    deliver_reading(works, Reading(made.small(), made.ASKED))
    assert pane.pages.currentIndex() == 1
    assert pane.side.isVisible()
    deliver_reading(works, Reading(made.large(5), made.ASKED))
    assert pane.pages.currentIndex() == 2
    assert not pane.side.isVisible()
    assert pane.folded.isVisible()
    pane.choose(Selection("topic", "Topic000"))
    assert pane.topic_queues.isVisible()
    assert pane.topic_queues_head.title.text() == "Topic000"
    pane.choose(Selection("client", "10.1.0.0@0#1", "group-00"))
    assert pane.topic_queues_head.title.text() == "Topic000"
    pane.folded.click()
    assert pane.side.isVisible()
    assert "without owner" in pane.troubles.text()
    pane.tabs.choose("tables")
    assert pane.table.total_rows() == 1600


def test_a_secured_cluster_is_read_with_the_files_that_the_boxes_name(pane, works, settings):
    """The view had no box for an account and for TLS, so that it could not read a cluster that requires them."""
    assert pane.address_bar.access_fields.isHidden()
    pane.address_bar.secured.click()
    assert not pane.address_bar.access_fields.isHidden()
    pane.address_bar.address.setText("a:1")
    pane.address_bar.account_file.setText("/etc/rocketmq/tools.yml")
    pane.address_bar.tls_file.setText("tls.properties")
    done: list[str] = []
    pane.operationDone.connect(lambda _name, _words, _parameters, cli: done.append(cli))
    pane.connect_now()
    files = AccessFiles("/etc/rocketmq/tools.yml", "tls.properties")
    assert works.requests[-1][1] == (("a:1",), 1.0, files)
    assert pane.watch.own.access == files
    assert done == ["storescope cluster a:1 --account /etc/rocketmq/tools.yml --tls tls.properties"]
    assert settings.cluster_access("a:1") == ("/etc/rocketmq/tools.yml", "tls.properties")

    pane.show_place(Place("cluster", name="b:1"))
    assert works.requests[-1][1] == (("b:1",), 1.0, AccessFiles())
    assert pane.address_bar.account_file.text() == ""
    pane.show_place(Place("cluster", name="a:1"))
    assert works.requests[-1][1] == (("a:1",), 1.0, files)
    assert not pane.address_bar.access_fields.isHidden()


def test_the_pane_shows_its_address_and_its_history(pane, works):
    places, done, emitted = [], [], []
    pane.placeMoved.connect(places.append)
    pane.operationDone.connect(lambda name, _words, parameters, cli: done.append((name, parameters, cli)))
    pane.statusMessage.connect(emitted.append)
    pane.show_place(Place("cluster", name=made.NAMES))
    deliver_reading(works, Reading(made.small(), made.ASKED))
    pane.choose(Selection("group", "billing"))
    assert places[-1] == Place("cluster", name=made.NAMES, part="billing")
    assert done == [("cluster.connect", {"address": made.NAMES}, f"storescope cluster {made.NAMES}")]
    pane.follow(Selection("group", "billing"))
    assert emitted[-1].startswith("No store is open")
    pane.commands()["cluster.connect"]()
    assert done[-1][0] == "cluster.end"
    assert pane.fault.state is not None
    assert pane.fault.state.kind == "stale"


def test_a_cluster_that_stops_answering_stays_with_a_message(pane, works):
    pane.show_place(Place("cluster", name=made.NAMES))
    deliver_reading(works, Reading(made.small()))
    deliver_reading(works, Reading(made.small(5, name_servers={made.NAMES: "no answer"})))
    assert pane.fault.state is not None
    assert pane.fault.state.kind == "error"
    assert pane.pages.currentIndex() == 1
    works.finished(None, RuntimeError("The worker process ended"))
    assert "The worker process ended" in pane.fault.state.text
    pane.fault.step()
    assert len(works.requests) == 2
    deliver_reading(works, Reading(ClusterState(9, {made.NAMES: "no answer"}, ())))
    assert pane.status().startswith("No name server answers")


def test_markdown_is_written_or_the_error_is_shown(pane, works, tmp_path: Path):
    emitted = []
    pane.statusMessage.connect(emitted.append)
    pane.show_place(Place("cluster", name=made.NAMES))
    deliver_reading(works, Reading(made.small()))
    pane.exports.write_markdown(tmp_path / "c.md")
    assert (tmp_path / "c.md").read_text("utf-8").startswith("# Cluster")
    assert emitted[-1] == f"Written: {tmp_path / 'c.md'}"
    pane.exports.write_markdown(tmp_path / "nowhere" / "c.md")
    assert "nowhere" in emitted[-1]


def test_a_narrow_window_folds_the_side_column(pane, works):
    pane.show_place(Place("cluster", name=made.NAMES))
    deliver_reading(works, Reading(made.small()))
    pane.resize(1200, 700)
    assert pane.folded.isVisible()
    assert not pane.side.isVisible()
    theme.set_zoom(120)
    pane.retheme()
    assert pane.lines.height() >= pane.lines.plan.height * 1.2 - 1
    theme.set_zoom(100)


def test_a_command_brings_the_lessons_in_any_window(pane, works):
    assert "cluster.lessons" not in pane.commands(), "nobody is asked yet"
    pane.show_place(Place("cluster", name=made.NAMES))
    deliver_reading(works, Reading(made.small()))
    assert "cluster.lessons" not in pane.commands(), "nobody said that the cluster is theirs"
    pane.model.declare()
    pane.resize(860, 560)
    pane.commands()["cluster.lessons"]()
    assert pane.tabs.key == "rebalance"
    assert pane.lessons.isVisible()
    pane.clients.withdraw()
    assert "cluster.lessons" not in pane.commands(), "on a cluster of others no client is added"


def test_an_earlier_time_is_shown_and_left_again(pane, works, tmp_path: Path):
    pane.show_place(Place("cluster", name=made.NAMES))
    for state in made.rebalanced():
        works.items(Reading(state))
    QApplication.processEvents()
    bar = pane.replay.bar
    assert bar.note.text() == "live"
    bar.track.moved.emit(made.BEGUN + 10_000)
    assert pane.model.state.time_ms == made.BEGUN + 10_000
    assert bar.note.text() == "49.0 s before live"
    bar.live.click()
    assert pane.model.shown_time_ms is None
    pane.tabs.choose("rebalance")
    pane.choose(Selection("group", "billing"))
    pane.commands()["list.previous"]()
    assert pane.model.shown_time_ms == made.BEGUN + 19_000
    pane.exports.write_markdown(tmp_path / "r.md")
    assert (tmp_path / "r.md").read_text("utf-8").startswith("# Rebalance billing")
    assert pane.watch is not None
    pane.watch.record(tmp_path / "r.jsonl")
    assert bar.record.isChecked()
    pane.watch.load(tmp_path / "r.jsonl")
    assert bar.note.text() == "recording r.jsonl"
    pane.go_live()
    assert works.requests[-1][1][0] == (made.NAMES,)
