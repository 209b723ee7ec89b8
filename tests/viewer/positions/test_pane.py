"""The positions of stores at rest, and of a growing one."""

from __future__ import annotations

import math
import shutil
from types import SimpleNamespace

import pytest
from panes import on_store, wait_until, wait_until_idle, write_in_place

from engine.replication.master import SlavePosition
from viewer.positions import pane as module
from viewer.positions.pane import PositionsPane, with_breaks
from viewer.runtime import places
from viewer.runtime.places import Place
from viewer.runtime.recovery_plan import recovery_of


@pytest.mark.golden
def test_the_plan_is_on_the_ruler_with_one_link_to_it(qapp, golden) -> None:
    """The same plan was shown three times: in Positions, in Findings and in the incident card."""

    async def drive(pane, session) -> None:
        plan = recovery_of(session).plan
        assert plan.units_dropped > 0
        assert f"{plan.end_offset:,}" in pane.ruler.accessibleDescription()
        emitted = []
        pane.placeRequested.connect(emitted.append)
        pane.ruler.offset_chosen.emit(plan.end_offset)
        pane._plan_link.clicked.emit()
        assert emitted == [places.log(plan.end_offset), places.recovery()]

    on_store(qapp, PositionsPane, golden("crash-flip-5.3.3"), drive)


@pytest.mark.golden
def test_a_clean_store_has_everything_at_the_end(qapp, golden) -> None:
    async def drive(pane, session) -> None:
        end = session.snapshot.log.max_offset
        now = {row.key: row for row in pane.now.source.rows}
        assert now["wrote"].offset == now["flushed"].offset == now["dispatched"].offset == end
        assert f"{end:,}" in pane.status()
        pane.show_place(Place("checkpoint"))
        await wait_until_idle(session.jobs)
        assert pane.now.current_row().key == "physicMsgTimestamp"
        assert pane.now.current_row().timestamp == session.snapshot.checkpoint().physic_msg_timestamp
        assert "end of the log" in pane.plot.accessibleDescription()

    on_store(qapp, PositionsPane, golden("clean-5.3.3"), drive)


async def poll_once(session) -> None:
    """Run one short poll and wait for its result."""
    emitted = []
    link = session.tail.sampled.connect(emitted.append)
    session.tail.take_reading()
    await wait_until(lambda: emitted, "a look came back")
    session.tail.sampled.disconnect(link)
    session.tail._timer.stop()


@pytest.mark.golden
def test_a_store_that_grows_is_followed_over_time(qapp, golden, tmp_path, monkeypatch) -> None:
    """The last units are zeroed and restored. Each poll is a sample, and the plots follow the last seconds. Slaves are
    on the ruler.
    """
    slave = SlavePosition("127.0.0.1:5", 9000, 8000, 7000)
    monkeypatch.setattr(module, "slaves_of", lambda _store, _wrote: (slave,))
    store = tmp_path / "store"
    shutil.copytree(golden("clean-5.3.3"), store)
    file = sorted(next(store.rglob("commitlog")).iterdir())[-1]
    content = file.read_bytes()
    from engine.inspection import open_store

    with open_store(store) as snapshot:
        units = [item.offset - int(file.name) for item in snapshot.log.items_before(snapshot.log.max_offset, 3)]
    file.write_bytes(content[: units[0]].ljust(len(content), b"\0"))

    async def drive(pane, session) -> None:
        ends = [pane.model.reading.positions.wrote.offset]
        await poll_once(session)
        for cut in (units[1], units[2]):
            write_in_place(file, content[:cut])
            # A poll that was already running does not see it.
            while pane.model.reading.positions.wrote.offset == ends[-1]:
                await poll_once(session)
            ends.append(pane.model.reading.positions.wrote.offset)
        assert ends == sorted(set(ends))
        await wait_until_idle(session.jobs)
        await poll_once(session)
        await wait_until(
            lambda: "slave has" in [flag.name for flag in pane.ruler._view.flags], "the slave is on the ruler"
        )
        assert {("slave has", 7000), ("sent to slave", 8000)} <= {(f.name, f.offset) for f in pane.ruler._view.flags}
        assert not pane._live.isHidden()
        assert pane.over_time.bar.isVisible()
        await wait_until(
            lambda: pane.over_time.ready and "messages/s" in pane.over_time.group.accessibleDescription(),
            "the rates are plotted",
        )
        await wait_until(lambda: "wrote" in pane.plot.accessibleDescription(), "the positions are plotted")
        pane.over_time.pause()
        end = pane.over_time.range().end
        await poll_once(session)
        assert pane.over_time.range().end == end
        pane.over_time.go_live()
        assert pane.over_time.at_end
        pane.grab()

    on_store(qapp, PositionsPane, store, drive)


def test_the_curve_has_a_gap_at_an_unread_file() -> None:
    """It was drawn straight over an unread file, as if values had been measured there."""
    files = tuple((n * 1000, n * 1000 + 1000, f"{n * 1000:020d}") for n in range(4))
    observed = SimpleNamespace(files=files, heads=((10, 0), (30, 2000), (40, 3000), (45, 3500)))
    points = with_breaks(observed)
    assert [ms for ms, _ in points] == [10, 30, 30, 40, 45]
    assert math.isnan(points[1][1])
    assert [offset for _, offset in points if not math.isnan(offset)] == [0, 2000, 3000, 3500]
