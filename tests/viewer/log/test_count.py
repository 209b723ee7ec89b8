"""The log view's figures for a growing store are correct: bytes, offsets, rows, and the frame on its Line."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from panes import on_store, wait_until, wait_until_idle, write_in_place

from engine.inspection import open_store
from viewer.log.count import rows_between
from viewer.log.pane import UnitsPane
from viewer.pane import log_survey
from viewer.runtime.store_session import StoreSession
from viewer.shell.following import LogFollower

MANY = 400


@pytest.mark.golden
def test_the_figures_grow_with_the_store(
    qapp: object, golden: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "store"
    shutil.copytree(golden("clean-5.3.3"), store)
    file = sorted(next(store.rglob("commitlog")).iterdir())[-1]
    content = file.read_bytes()
    with open_store(store) as snapshot:
        log = snapshot.log
        total_rows = rows_between(log, log.min_offset, log.max_offset)
        ends = [item.offset for item in log.items_before(log.max_offset, MANY)]
        full = log.max_offset
    file.write_bytes(content[: ends[0] - int(file.name)].ljust(len(content), b"\0"))

    async def drive(pane: UnitsPane, session: StoreSession) -> None:
        follow = LogFollower(pane)
        await wait_until(lambda: pane.model.upto >= 0 and bool(pane.line._mixes))
        assert pane.status().endswith(f"0 to {ends[0]:,} · {total_rows - MANY:,} rows")
        for done, end in ((3, ends[3]), (MANY, full)):
            write_in_place(file, content[: end - int(file.name)])
            session.tail.take_reading()
            await wait_until(lambda end=end: session.snapshot.log.known_end == end)
            older = pane.line._line
            with monkeypatch.context() as look:  # started before the follower found the end
                look.setattr(log_survey, "line_of", lambda _log, older=older: older)
                pane.survey.read_extent()
                follow._act()
                await wait_until_idle(session.jobs)
            # a directory listing in between may have reset the known end; then the next poll finds it
            await wait_until(lambda end=end: pane.line._line.written == end)
            assert pane.line._mixes, "samples stay"
            follow._act()
            await wait_until_idle(session.jobs)
            await wait_until(
                lambda end=end, rows=total_rows - MANY + done: pane.status().endswith(f"0 to {end:,} · {rows:,} rows")
            )
            assert pane.line._line.written == end
        pane.table.tail()
        await wait_until_idle(session.jobs)
        line, (frame_start, frame_end) = pane.line._line, pane.line._frame
        assert frame_start < line.written
        assert frame_end <= line.high
        assert line.share(frame_start) < 1.0, "the frame is over the data, not after them"
        await wait_until(lambda: max(mix.end for mix in pane.line._mixes) == full)
        mixes = sorted(pane.line._mixes, key=lambda mix: mix.start)
        assert [mix.start for mix in mixes] == [line.low, *(mix.end for mix in mixes[:-1])], "no gap, no overlap"
        assert mixes[-1].end == full

    on_store(qapp, UnitsPane, store, drive)


@pytest.mark.golden
def test_rows_are_known_before_the_worker_answers(qapp: object, golden: Callable[..., Path]) -> None:
    """Beside a busy broker the worker gets little processor time, so the window counts the rows of a small log
    itself.
    """
    store = golden("clean-5.3.3")

    async def drive(pane: UnitsPane, session: StoreSession) -> None:
        log = session.snapshot.log
        await wait_until(lambda: log.known_end is not None and pane.model.extent is not None)
        pane.count.set_session(session)
        pane.model.upto = -1
        pane.count._busy = True  # the worker has not answered yet
        assert "rows" not in pane.status()
        pane.count.grow()
        await wait_until_idle(session.jobs)
        assert pane.status().endswith(f" · {rows_between(log, log.min_offset, log.max_offset):,} rows")

    on_store(qapp, UnitsPane, store, drive)
