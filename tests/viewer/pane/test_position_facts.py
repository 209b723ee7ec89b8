"""Positions of a store, and the reasons for unknown ones."""

from __future__ import annotations

import pytest
from panes import on_store

from engine.broker.server import ListeningBroker
from engine.broker.serving import serving_beside
from engine.codec.encode import Message
from engine.inspection.positions import positions
from engine.inspection.snapshot import open_store
from engine.replication.master import SlavePosition
from engine.replication.source import Slave
from viewer.pane.position_facts import gap_list, read_positions, rows, ruler_view, slaves_of
from viewer.positions.pane import PositionsPane


@pytest.mark.golden
def test_a_position_beyond_the_log_is_no_position_at_its_end(qapp, golden) -> None:
    """An old leader's queues reach beyond the log that its new leader left it."""

    async def drive(pane, session) -> None:
        gaps = {name: gap for name, _, gap in gap_list(pane.model.reading)}
        assert gaps["queue max"] < 0
        assert gaps["checkpoint, index"] > 0

    on_store(qapp, PositionsPane, golden("dledger-replaced-5.5.1"), drive)


def test_unknown_positions_have_a_reason_and_are_not_drawn(qapp, golden) -> None:
    async def drive(pane, session) -> None:
        actual_positions = positions(session.snapshot)
        assert actual_positions.flushed.offset is None
        assert any("flushed" in text and "no file shows" in text for text in pane._unknown.texts())
        row = next(r for r in rows(pane.model.reading) if r.key == "flushed")
        assert (row.offset, row.behind) == (None, None)
        assert not any(flag.name == "flushed" for flag in ruler_view(pane.model.reading, None).flags)
        assert "flushed" not in [name for name, _, _ in gap_list(pane.model.reading)]

    on_store(qapp, PositionsPane, golden("crash-power-5.3.3"), drive)


def test_a_store_with_an_empty_log_is_drawn_without_a_line(qapp, tmp_path) -> None:
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / f"{0:020d}").write_bytes(bytes(8192))

    async def drive(pane, session) -> None:
        observed = read_positions(session.snapshot, 0)
        assert observed.positions.wrote.offset == 0
        assert ruler_view(observed, None).lens()[1] > 0
        pane.ruler.grab()

    on_store(qapp, PositionsPane, tmp_path, drive)


@pytest.mark.golden
def test_a_log_by_itself_does_not_claim_to_be_flushed(qapp, golden) -> None:
    """Without its store it is unknown whether the broker was stopped: the page cache may contain the tail."""

    async def drive(pane, session) -> None:
        row = next(r for r in rows(pane.model.reading) if r.key == "flushed")
        assert row.offset is None
        assert "only a commit log" in row.why
        assert "complete store" in pane._plan_words.text()

    on_store(qapp, PositionsPane, next(golden("clean-5.3.3").rglob("commitlog")), drive)


@pytest.mark.golden
def test_slaves_are_shown_on_their_masters_ruler(golden) -> None:
    with open_store(golden("clean-5.3.3")) as store:
        plots_look = read_positions(store, 0)
        end = plots_look.positions.wrote.offset
        position, two = (
            SlavePosition("127.0.0.1:5", end, end, end),
            SlavePosition("127.0.0.1:6", end, end - 100, end - 2048),
        )
        view = ruler_view(plots_look, None, slaves=(position, two))
        slave_flags = [(flag.name, flag.offset, flag.note) for flag in view.flags if "slave" in flag.name]
        assert slave_flags == [
            ("slave has", end, "127.0.0.1:5"),
            ("slave has", end - 2048, "127.0.0.1:6"),
            ("sent to slave", end - 100, "127.0.0.1:6"),
        ]
        assert [(gap.start, gap.end) for gap in view.gaps if "slave" in gap.words] == [(end - 2048, end)]
        assert slaves_of(store, end) == (), "nobody has it open"


def test_the_running_broker_reports_its_slaves(tmp_path, monkeypatch) -> None:
    sample = ListeningBroker.__aenter__

    async def with_a_slave(self: ListeningBroker) -> ListeningBroker:
        self.broker.followers = lambda: [Slave("127.0.0.1:5", sent=7, acknowledged=5)]
        assert self.broker.store.put_message(Message("Orders", b"x")).ok
        return await sample(self)

    monkeypatch.setattr(ListeningBroker, "__aenter__", with_a_slave)
    with serving_beside(tmp_path), open_store(tmp_path) as store:
        end = positions(store).wrote.offset
        assert slaves_of(store, end) == (SlavePosition("127.0.0.1:5", end, 7, 5),)
        monkeypatch.setattr("viewer.pane.position_facts._is_here", lambda _: False)
        assert slaves_of(store, end) == (), "a message of another machine's broker"
