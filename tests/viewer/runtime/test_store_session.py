"""An open store in the window: one selection for all views, counted findings, and growth."""

from __future__ import annotations

import pytest
from handmade_stores import HandmadeStore
from panes import on_store, wait_until_idle, write_in_place

from engine.mapped.reading import Unread
from engine.rules import catalogue
from viewer.pane import Pane


@pytest.fixture
def small_store():
    store = HandmadeStore()
    for _ in range(20):
        store.put("Orders")
    return store


def test_a_choice_is_signalled_once(qapp, small_store, tmp_path):
    async def drive(_pane, session):
        emitted = []
        session.selectionChanged.connect(emitted.append)
        for offset in (640, 640, None):
            session.select(offset)
        assert emitted == [640, None]

    on_store(qapp, Pane, small_store.write(tmp_path / "s"), drive)


def test_findings_are_counted_and_name_the_damaged_parts(qapp, small_store, tmp_path):
    async def drive(_pane, session):
        assert not session.harmed
        session.set_findings([catalogue.CL03.finding("Wrong"), catalogue.CL10.finding("Blank")], complete=True)
        assert session.counts() == {"error": 1, "warn": 0, "note": 1, "chat": 0}
        assert (session.findings_complete, session.harmed) == (True, True)
        session.set_findings([], complete=False)
        assert not session.findings_complete

    on_store(qapp, Pane, small_store.write(tmp_path / "s"), drive)


def test_work_is_delayed_until_the_first_rows_are_shown(qapp, small_store, tmp_path):
    async def drive(_pane, session):
        done = []
        session.later(lambda: done.append("at once"))
        session.hold()
        session.later(lambda: done.append("later"))
        assert done == ["at once"]
        session.begin()
        await wait_until_idle(session.jobs)
        assert done == ["at once", "later"]
        assert session.survey.max_offset == small_store.end

    on_store(qapp, Pane, small_store.write(tmp_path / "s"), drive)


def test_growth_is_signalled(qapp, small_store, tmp_path):
    root = small_store.write(tmp_path / "s")

    async def drive(_pane, session):
        grown = []
        session.logGrown.connect(lambda: grown.append(session.snapshot.log.max_offset))
        unit = small_store.put("Orders")
        file = max((root / "commitlog").iterdir())
        data = bytes(small_store.log[int(file.name) :])
        write_in_place(file, data)
        while not grown or grown[-1] != unit.offset + unit.size:  # a poll that was already running does not see it
            session.look(anyway=True)
            await wait_until_idle(session.jobs)

    on_store(qapp, Pane, root, drive)


def test_a_file_that_vanished_after_it_could_not_be_read_is_no_growth(qapp, small_store, tmp_path):
    """A lost file of tiered storage was noted as unread and forgotten again: each time the store "had grown"."""

    async def drive(_pane, session):
        grown = []
        session.logGrown.connect(lambda: grown.append(True))
        session.unread.note((Unread(str(tmp_path / "gone"), "No such file or directory", "look"),))
        while session.unread:
            session.look()
            await wait_until_idle(session.jobs)
        assert grown == []

    on_store(qapp, Pane, small_store.write(tmp_path / "s"), drive)


def test_changed_bytes_are_read_anew(qapp, small_store, tmp_path):
    """After a mend in place the views showed the bytes that they had read before: no file had another name."""

    async def drive(_pane, session):
        emitted = []
        session.forgotten.connect(lambda: emitted.append("forgotten"))
        session.replaced.connect(lambda: emitted.append("replaced"))
        session.set_findings([catalogue.CL03.finding("Wrong")], complete=True)
        old = session.snapshot
        await session.read_anew()
        await wait_until_idle(session.jobs)
        assert emitted == ["forgotten", "replaced"]
        assert session.snapshot is not old
        assert (session.findings, session.findings_complete) == ((), False)
        assert session.tail.tail.read_positions().wrote.offset == session.snapshot.log.max_offset

    on_store(qapp, Pane, small_store.write(tmp_path / "s"), drive)
