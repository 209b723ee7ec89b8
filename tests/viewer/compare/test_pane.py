"""The view of two stores on real stores: a master and its slave, a damaged copy, a copy with other offsets."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from panes import on_store, wait_until, wait_until_idle

from engine.patching.patches import WriteBytes
from viewer.compare.pair_columns import OTHER, OWN
from viewer.compare.pane import ComparePane
from viewer.runtime.places import Place

pytestmark = pytest.mark.golden


@pytest.fixture
def damaged(golden, tmp_path: Path) -> tuple[Path, Path]:
    """A store, and a copy of it with a flipped bit in a body, and a length field that is wrong."""
    store = golden("broker-orders-5.5.1")
    copied = tmp_path / "copied"
    shutil.copytree(store, copied)
    log = copied / "commitlog" / f"{0:020d}"
    data = bytearray(log.read_bytes())
    data[2923 + 200] ^= 0x40
    data[4114:4118] = b"\x88" * 4
    log.write_bytes(data)
    yield store, copied
    shutil.rmtree(copied)


async def compare_with(pane: ComparePane, session, path: Path) -> None:
    pane.show_place(Place("compare", name=str(path)))
    await wait_until(lambda: pane.model.comparison is not None, "both stores are compared")
    await wait_until_idle(session.jobs)


def test_differences_are_stepped_through_and_shown_in_bytes_and_fields(qapp, damaged) -> None:
    store, copied = damaged

    async def drive(pane: ComparePane, session) -> None:
        assert pane.table.note.state.kind == "hint"
        await compare_with(pane, session, copied)
        assert pane.status().startswith("2 differences.")
        assert pane.model.counts() == {"differs": 2}
        commands = pane.commands()
        commands["list.next"]()
        await wait_until_idle(session.jobs)
        row = pane.table.current_row()
        assert (row.position, row.sign) == (2923, "differs")
        assert pane.place.text() == "Difference 1 of 2"
        assert [field.name for field in pane.detail.fields.table.rows] == ["body"]
        assert pane.detail.verdict.text().startswith("The body CRC is right in A only")
        assert session.selection == 2923
        commands["compare.next"]()
        await wait_until_idle(session.jobs)
        assert pane.table.current_row().position == 4114
        assert pane.detail.verdict.text() == "A can be read as a message here, the other side cannot."
        words = []
        pane.statusMessage.connect(words.append)
        commands["compare.next"]()
        assert words[-1] == "No further difference."
        commands["list.previous"]()
        await wait_until_idle(session.jobs)
        assert pane.table.current_row().position == 2923
        pane.strip.positionChosen.emit(1_200_000)
        await wait_until_idle(session.jobs)
        assert pane.table.current_row().sign == "same"
        assert pane.detail.fields.note.state.text == "Every byte is the same."

    on_store(qapp, ComparePane, store, drive)


def test_a_slave_that_lags_is_level_with_its_master(qapp, golden) -> None:
    master, slave = golden("master-slave-5.5.1", "master"), golden("master-slave-5.5.1", "slave")

    async def drive(pane: ComparePane, session) -> None:
        await compare_with(pane, session, slave)
        assert pane.model.counts() == {OWN: 779}
        pane.step(1)
        await wait_until_idle(session.jobs)
        row = pane.table.current_row()
        assert (row.position, row.sign) == (1_008_343, "own")
        assert pane.detail.heads[OTHER].note.text() in {"nothing here", ""} or row.other is not None
        assert [total.count("here") for total in pane.totals.table.rows] == [98, 99, 97, 97, 97, 97, 97, 97]
        pane.tabs.choose("all")
        kinds = [pane.kinds.itemData(n) for n in range(pane.kinds.count())]
        pane.kinds.setCurrentIndex(kinds.index("checkpoint"))
        assert [shown.subject for shown in pane.list.table.rows] == ["indexMsgTimestamp"]
        pane.kinds.setCurrentIndex(kinds.index("queues"))
        requested = []
        pane.placeRequested.connect(requested.append)
        pane.list.go_to_row(0)
        assert pane.list.follow()
        assert requested[0].kind == "queue"
        pane.compare_again()
        await wait_until(lambda: pane.model.comparison is not None, "both stores are compared again")
        assert pane.model.counts() == {OWN: 779}

    on_store(qapp, ComparePane, master, drive)


def test_a_store_that_cannot_be_opened_is_named(qapp, golden, tmp_path: Path) -> None:
    async def drive(pane: ComparePane, session) -> None:
        pane.show_place(Place("compare", name=str(tmp_path / "nowhere")))
        await wait_until_idle(session.jobs)
        assert "nowhere cannot be shown" in pane.table.note.state.text
        asked = []
        pane.otherStoreRequested.connect(lambda: asked.append(True))
        pane.other.click()
        assert asked
        pane.step(1)
        await compare_with(pane, session, session.path)
        assert pane.status().startswith("Both stores are equal.")
        assert not pane.next.isEnabled()

    on_store(qapp, ComparePane, golden("lmq-5.3.3"), drive)


def test_comparing_can_be_stopped_and_begun_again(qapp, golden) -> None:
    async def drive(pane: ComparePane, session) -> None:
        pane.show_place(Place("compare", name=str(session.path)))
        await wait_until(lambda: pane.model.is_running, "comparing runs")
        pane.cancel()
        await wait_until_idle(session.jobs)
        if pane.model.comparison is None:
            assert pane.table.strip.state.kind == "cut"
            pane.table.strip.state.steps[0][1]()
        await wait_until(lambda: pane.model.comparison is not None, "both stores are compared")
        assert pane.table.total_rows() > 0

    on_store(qapp, ComparePane, golden("broker-orders-5.5.1"), drive)


def test_a_store_as_patched_is_compared_with_itself_as_it_is(qapp, damaged) -> None:
    """The other side was read as patched, too: the store seemed to be equal to itself."""
    _store, copied = damaged
    file = copied / "commitlog" / f"{0:020d}"
    data = file.read_bytes()
    position = 2923 + 200
    old = data[position : position + 1]
    patch = WriteBytes(file=f"commitlog/{0:020d}", why="by hand", offset=position, old=old, new=b"t")

    async def drive(pane: ComparePane, session) -> None:
        await session.read_anew([patch])
        pane.set_session(session)
        await compare_with(pane, session, session.path)
        assert pane.model.counts() == {"differs": 1}
        assert not pane.heads.chips[OWN].isHidden()
        pane.step(1)
        await wait_until_idle(session.jobs)
        assert pane.table.current_row().own.crc != pane.table.current_row().other.crc

    on_store(qapp, ComparePane, copied, drive)
